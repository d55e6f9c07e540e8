# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The mistakes of a first day, played as a user does: each message names the place, the value and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.railops.rdma.tests.unit.playbook_run import play

CASES = yaml.safe_load(Path(__file__).with_name("data").joinpath("mistakes.yml").read_text(encoding="utf-8"))


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")


def merged(values, change):
    """Return group_vars/all with a change; a value that is null is taken out."""
    return {key: value for key, value in {**values, **change}.items() if value is not None}


@pytest.mark.parametrize("case", CASES["mistakes"], ids=lambda case: case["name"])
def test_a_mistake_is_refused_with_place_value_and_fix(tmp_path, case):
    write(tmp_path, {"hosts": CASES["hosts"], "group_vars/all.yml": CASES["all"]})
    if "before" in case:
        write(tmp_path, {"group_vars/all.yml": merged(CASES["all"], case["before"])})
        assert play(tmp_path, "-i", "hosts", "railops.rdma.plan").returncode == 0
    write(tmp_path, {"group_vars/all.yml": merged(CASES["all"], case.get("all", {})), **case.get("files", {})})
    words = case.get("play", "-i hosts railops.rdma.plan").split()
    done = play(tmp_path, *words, **case.get("environ", {}))
    output = " ".join((done.stdout + done.stderr).split())
    assert [text for text in case["says"] if text not in output] == [], done.stdout + done.stderr
    assert [text for text in case.get("never", ()) if text in output] == [], done.stdout + done.stderr
    assert done.returncode == case.get("rc", 2)
    assert "Traceback" not in output

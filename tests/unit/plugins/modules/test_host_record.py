# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine that runs the tests is recorded; the playbook keeps a record only when it is told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.tests.unit.machines import put

CHECKOUT = Path(__file__).resolve().parents[4]


@pytest.fixture
def params():
    return {"key": "key", "names": ["blue-lab"]}


def test_this_machine_is_recorded_alike_with_and_without_check_mode(run_module):
    real, check = run_module(), run_module(_ansible_check_mode=True)
    assert real["changed"] is False
    for result in (real, check):
        # Counters and times of day go on.
        result["record"] = [row[:2] for row in result["record"]["files"]]
        result["summary"].pop("bytes")
    assert [row for row in real["record"] if not row[1].startswith("/proc/")] == [
        row for row in check["record"] if not row[1].startswith("/proc/")
    ]
    assert real["summary"]["host"] == check["summary"]["host"] != os.uname().nodename
    assert real["summary"]["stand_ins"]["name"] > 0


def test_folders_alone(run_module, tmp_path):
    put(tmp_path, "plan/fabric/plan.json", "blue-lab 10.1.2.3")
    result = run_module(folders=[str(tmp_path / "plan/fabric")])
    assert sorted(key for key in result if key in ("record", "summary", "bundle")) == ["bundle"]
    ((path, text),) = result["bundle"]
    assert path == "fabric/plan.json"
    assert "blue-lab" not in text


@pytest.mark.parametrize("keep", ["", "true"])
def test_the_playbook(tmp_path, keep):
    """It shows a summary and writes nothing, until it is told to keep the record."""
    put(tmp_path, "plan/fabric/plan.json", '{"node1": "10.1.2.3"}')
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    put(tmp_path, "hosts.json", json.dumps({"gpu_nodes": {"hosts": {"node1": here}}}))
    more = ["-e", f"record_keep={keep}"] if keep else []
    argv = ["ansible-playbook", "-i", "hosts.json", "railops.rdma.record", *more]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stand_ins" in done.stdout
    path = tmp_path / "record/fabric/record.json"
    assert path.exists() is bool(keep)
    if keep:
        assert path.stat().st_mode & 0o777 == 0o600
        text = path.read_text(encoding="utf-8")
        record = json.loads(text)
        assert (record["format"], len(record["hosts"]), record["bundle"][0][0]) == (1, 1, "fabric/plan.json")
        assert record["collection"].count(".") == 2
        assert [word for word in ("node1", "10.1.2.3", os.uname().nodename) if f'"{word}"' in text] == []

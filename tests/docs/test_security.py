# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of the threat model: each line's test is there; and what CI fetches is named by what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs/decide/security.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\|[^|\n]+\|[^|\n]+\|[^|\n]+\| `(tests/[^`]+)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("row", ROWS)
def test_the_test_that_a_line_names_is_there(row):
    path, _colons, name = row.partition("::")
    text = (CHECKOUT / path).read_text(encoding="utf-8")
    assert not name or f"def {name}(" in text


def test_every_line_names_one():
    table = PAGE[PAGE.index("| Attacker | Attack") :].partition("\n\n")[0]
    assert len(ROWS) == len(table.splitlines()) - 2 > 10


def test_ci_downloads_are_pinned():
    workflows = list((CHECKOUT / ".github/workflows").glob("*.yml"))
    assert workflows
    for path in workflows:
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            for step in job["steps"]:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step.get("uses", "a@" + 40 * "0")), step
            image = (job.get("container") or {}).get("image", "@sha256:")
            assert "@sha256:" in image, image
    for path in CHECKOUT.glob("roles/*/files/*/Containerfile"):
        assert re.search(r"^FROM \S+@sha256:[0-9a-f]{64}$", path.read_text(encoding="utf-8"), re.MULTILINE), path

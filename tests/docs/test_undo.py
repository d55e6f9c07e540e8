# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The section "Undo the last change" of docs/guides/changes.md: its commands in a repository, with the real playbook.

Beside them what it warns of: the cluster's copy of the plan refuses an older `plan/`, and takes what the page makes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from blocks import CHECKOUT, read
from test_commands import Administrator, bare

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.lock import parse_lock
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.lock_copy import LockCopy

PAGE = "docs/guides/changes.md"
PLAN = "ansible-playbook railops.rdma.plan"
SWITCH = " -e fabric_allow_renumber=true"
RAILS = Path("inventory/exclusive/group_vars/all/fabric.yml")
GIT = "git config user.name docs && git config user.email docs@example.invalid && "


class Site(Administrator):
    """Somebody who keeps inventory and plan in git."""

    def again(self, text: str) -> str:
        """Run a text, also one that ran before."""
        self.done.pop(text, None)
        return self.run(text)

    def change(self, old: str, new: str, more: str = "") -> None:
        """Change the inventory, plan and commit."""
        path = self.folder / RAILS
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        self.again(PLAN + more)
        self.again("git add inventory plan && git commit -q -m change")

    def undo(self, more: str = "") -> None:
        """Do what the page says."""
        for text in steps():
            self.again(text + more * (text == PLAN or text.startswith(f"{PLAN} ")))

    def files(self) -> dict[str, bytes]:
        """Return inventory and plan."""
        paths = [path for name in ("inventory", "plan") for path in (self.folder / name).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def refused(self, rolled_out: str, *, allow: bool = False) -> str:
        """Return why the cluster that has this text of plan.json refuses the plan; empty where it takes it."""
        found = LockCopy((), "fabric", "spiderpool").wanted(rolled_out)
        copy = LockCopy([found], "fabric", "spiderpool")
        return " ".join(map(str, copy.problems(parse_lock(self.lock(), "plan.json"), (), allow_renumber=allow)))

    def lock(self) -> str:
        """Return the text of plan.json."""
        return (self.folder / "plan/fabric/plan.json").read_text(encoding="utf-8")


def steps() -> list[str]:
    """Return the commands of the page's block, without those that need hosts."""
    lines = (CHECKOUT / PAGE).read_text(encoding="utf-8").splitlines()
    begin = lines.index("## Undo the last change") + 1
    end = next(number for number, line in enumerate(lines[begin:], start=begin) if line.startswith("## "))
    found = [command for command in read(CHECKOUT / PAGE).commands() if begin < command.line <= end]
    texts = [bare(command) for command in found if lines[command.line - 1].startswith(("git", "ansible"))]
    assert sum("railops.rdma.site" in text for text in texts) == 2
    return [text for text in texts if "railops.rdma.site" not in text]


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A repository with inventory and plan in its first commit."""
    made = Site(tmp_path_factory.mktemp("undo"))
    made.run(f"{GIT}{PLAN} && git add inventory plan && git commit -q -m first")
    return made.folder


@pytest.fixture
def site(planned, tmp_path):
    """A copy of it."""
    made = Site.__new__(Site)
    made.folder, made.done = tmp_path / "site", {}
    shutil.copytree(planned, made.folder, symlinks=True)
    return made


def test_a_value_goes_back_and_every_file_with_it(site):
    before = site.files()
    site.change("fabric_attachment: macvlan", "fabric_attachment: ipvlan")
    assert site.files() != before
    rolled_out = site.lock()
    site.undo()
    assert site.files() == before
    assert site.refused(rolled_out) == ""
    assert site.again("git status --porcelain inventory plan") == ""


def test_a_rail_more_is_taken_back_with_the_switch_and_an_older_plan_is_refused(site):
    rail = "  - {name: rail8, interface: ens8np0, gpu: 7}\n"
    before = site.files()
    site.change(rail, f"{rail}  - {{name: rail9, interface: ens9np0}}\n")
    rolled_out = site.lock()
    site.again("git checkout -q HEAD~1 -- plan")
    assert "Your checkout is older than the cluster" in site.refused(rolled_out)
    site.again("git checkout -q HEAD -- plan")
    with pytest.raises(AssertionError, match=r"rail9 from 172\.17\.8\.2/27 by 172\.17\.8\.1 to nothing"):
        site.undo()
    site.again("git reset -q --hard")
    site.undo(more=SWITCH)
    assert site.files() == before
    assert site.refused(rolled_out, allow=True) == ""

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The section "Undo the last change" of docs/guides/changes.md: its commands, with git and the playbook."""

from __future__ import annotations

from pathlib import Path

from blocks import CHECKOUT, read
from test_commands import Administrator, bare

PAGE = "docs/guides/changes.md"
PLAN = "ansible-playbook railops.rdma.plan"
RAILS = Path("inventory/exclusive/group_vars/all/fabric.yml")
GIT = "git config user.name docs && git config user.email docs@example.invalid && "


class Site(Administrator):
    """A user who keeps inventory and plan in git."""

    def again(self, text: str) -> str:
        """Run a text, also one that ran before."""
        self.done.pop(text, None)
        return self.run(text)

    def change(self, old: str, new: str) -> None:
        """Change the inventory, plan and commit."""
        path = self.folder / RAILS
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        self.again(PLAN)
        self.again("git add inventory plan && git commit -q -m change")

    def undo(self) -> None:
        """Do what the page says."""
        for text in steps():
            self.again(text)

    def files(self) -> dict[str, bytes]:
        """Return inventory and plan."""
        paths = [path for name in ("inventory", "plan") for path in (self.folder / name).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}


def steps() -> list[str]:
    """Return the commands of the page's block, without those that need hosts."""
    lines = (CHECKOUT / PAGE).read_text(encoding="utf-8").splitlines()
    begin = lines.index("## Undo the last change") + 1
    end = next(number for number, line in enumerate(lines[begin:], start=begin) if line.startswith("## "))
    found = [command for command in read(CHECKOUT / PAGE).commands() if begin < command.line <= end]
    texts = [bare(command) for command in found if lines[command.line - 1].startswith(("git", "ansible"))]
    assert sum("railops.rdma.site" in text for text in texts) == 2
    return [text for text in texts if "railops.rdma.site" not in text]


def test_a_value_goes_back_and_every_file_with_it(tmp_path):
    site = Site(tmp_path)
    site.run(f"{GIT}{PLAN} && git add inventory plan && git commit -q -m first")
    before = site.files()
    site.change("fabric_attachment: macvlan", "fabric_attachment: ipvlan")
    assert site.files() != before
    site.undo()
    assert site.files() == before
    assert site.again("git status --porcelain inventory plan") == ""

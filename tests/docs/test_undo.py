# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The section "Undo the last change" of docs/guides/changes.md: its commands, with git and the playbook."""

from __future__ import annotations

from blocks import CHECKOUT, read
from test_commands import Administrator, bare

PAGE = "docs/guides/changes.md"
PLAN = "ansible-playbook railops.rdma.plan"
RAILS = "inventory/exclusive/group_vars/all/fabric.yml"
GIT = "git config user.name docs && git config user.email docs@example.invalid && "


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
    site = Administrator(tmp_path)
    site.run(f"{GIT}{PLAN} && git add inventory plan && git commit -q -m first && git tag first")
    change = f"sed -i 's/^fabric_attachment: macvlan$/fabric_attachment: ipvlan/' {RAILS} && {PLAN}"
    site.run(f"{change} && git add inventory plan && git commit -q -m change")
    assert site.run("git diff --name-only first -- plan") != ""
    site.run("set -e; " + "\n".join(steps()))
    assert site.run("git status --porcelain inventory plan; git diff --name-only first -- inventory plan") == ""

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges what the hosts said into a proposal, on the controller."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import asdict

import yaml
from ansible.plugins.action import ActionBase

from ..plugin_utils._discover.plan import discover
from ..plugin_utils._discover.text import cables, inventory, report

HEADER = """\
# Proposed by the playbook railops.rdma.discover from what is wired. Read report.md first.
# Try it beside your inventory (-i inventory/... -i this file), then move what is right into the inventory.
---
"""
CABLES = """\
# Where each cable ends, as LLDP says it today: right or wrong. Read report.md first, and mend what is wrong.
# In the inventory it is the plan that the audit compares every cable with.
---
"""
ARGUMENT_SPEC = {
    "register": {"type": "str", "required": True},
    "hosts": {"type": "list", "elements": "str", "required": True},
    "dest": {"type": "path", "required": True},
    "group": {"type": "str", "default": "gpu_nodes"},
    "names": {"type": "list", "elements": "str", "default": []},
}


def _yaml(data: dict[str, t.Any]) -> str:
    # Ansible's strings carry tags that YAML cannot represent.
    return str(yaml.safe_dump(json.loads(json.dumps(data)), sort_keys=False, width=120))


class ActionModule(ActionBase):
    """Needs no connection to any host."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Collect, propose, write the files that change."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _checked, arguments = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)  # type: ignore[no-untyped-call]
        hostvars = (task_vars or {})["hostvars"]
        infos = {}
        for host in arguments["hosts"]:
            said = hostvars[host].get(arguments["register"]) if host in hostvars else None
            infos[host] = said.get("info") if said else None
        proposal = discover(infos, arguments["names"])
        wanted = {
            "proposal.yml": HEADER + _yaml(inventory(proposal, arguments["group"])),
            "report.md": report(proposal),
        }
        if seen := cables(proposal, arguments["group"]):
            wanted["cables.yml"] = CABLES + _yaml(seen)
        changed = self._write(arguments["dest"], wanted, result)
        result.update(
            changed=changed,
            files=[os.path.join(arguments["dest"], name) for name in wanted],
            network=proposal.network,
            rails=[{**asdict(rail), "switches": list(rail.switches)} for rail in proposal.rails],
            interfaces=proposal.interfaces,
            findings=[asdict(finding) for finding in proposal.findings],
        )
        return result

    def _write(self, folder: str, wanted: dict[str, str], result: dict[str, t.Any]) -> bool:
        """Write what differs; in check mode only tell."""
        differing = {}
        for name, text in wanted.items():
            path = os.path.join(folder, name)
            old = ""
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    old = file.read()
            if old != text:
                differing[path] = (old, text)
        if self._task.diff:
            result["diff"] = [
                {"before_header": path, "after_header": path, "before": old, "after": new}
                for path, (old, new) in differing.items()
            ]
        if not self._task.check_mode:
            for path, (_old, text) in differing.items():
                os.makedirs(folder, exist_ok=True)
                with open(f"{path}.new", "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(f"{path}.new", path)
        return bool(differing)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges what the hosts returned into a proposal, on the controller."""

from __future__ import annotations

import os
import typing as t

from ..modules.rail_discover import DOCUMENTATION
from ..plugin_utils._arguments import arguments, documented
from ..plugin_utils._discover.plan import discover
from ..plugin_utils._discover.text import as_yaml, cables, inventory, report
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._plan.store import read_text
from ..plugin_utils._verdict.files import write_text

HEADER = """\
# Proposed by the playbook railops.rdma.discover from the cabling. Read report.md first.
# Try it beside your inventory (-i inventory/... -i this file), then move what is right into the inventory.
# !unsafe: that text comes from a host or a switch; Ansible uses it literally, never as a template. Keep it.
---
"""
CABLES = """\
# The end of each cable, as LLDP reports it today, right or wrong. Read report.md first, and correct what is wrong.
# In the inventory it is the plan that the audit compares every cable with.
# !unsafe: that text comes from a switch; Ansible uses it literally, never as a template. Keep it.
---
"""
ARGUMENT_SPEC = documented(DOCUMENTATION)


class ActionModule(FabricAction):
    """Needs no connection to any host."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Collect, propose, write the files that change."""
        args = arguments(args, ARGUMENT_SPEC)
        hostvars = task_vars["hostvars"]
        returned = {host: hostvars[host].get(args["register"]) if host in hostvars else None for host in args["hosts"]}
        proposal = discover({host: row.get("info") if row else None for host, row in returned.items()}, args["names"])
        wanted = {
            "proposal.yml": HEADER + as_yaml(inventory(proposal, args["group"])),
            "report.md": report(proposal),
        }
        if seen := cables(proposal, args["group"]):
            wanted["cables.yml"] = CABLES + as_yaml(seen)
        texts = {os.path.join(args["dest"], name): text for name, text in wanted.items()}
        before = {path: read_text(path) if os.path.exists(path) else "" for path in texts}
        differing = {path: text for path, text in texts.items() if text != before[path]}
        if not self._task.check_mode:
            for path, text in differing.items():
                write_text(path, text)
        result = {
            "changed": bool(differing),
            "files": list(texts),
            "network": proposal.network,
            "rails": [{**rail._asdict(), "switches": list(rail.switches)} for rail in proposal.rails],
            "interfaces": proposal.interfaces,
            "findings": [finding._asdict() for finding in proposal.findings],
        }
        if self._task.diff:
            result["diff"] = [
                {"before_header": path, "after_header": path, "before": before[path], "after": text}
                for path, text in differing.items()
            ]
        return result

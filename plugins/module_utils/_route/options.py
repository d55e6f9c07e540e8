# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that the controller reads too: those that come from a host plan, and those of policy_route."""

from __future__ import annotations

import typing as t


def host_plan_spec() -> dict[str, t.Any]:
    """Return the specification of what comes from the host plan."""
    address = {
        "family": {"type": "int", "choices": [4, 6]},
        "address": {"type": "str", "required": True},
        "subnet": {"type": "str", "required": True},
        "gateway": {"type": "str"},
    }
    rail = {
        "name": {"type": "str"},
        "index": {"type": "int"},
        "interface": {"type": "str"},
        "pci": {"type": "str"},
        "mtu": {"type": "int"},
        "vlan": {"type": "int"},
        "table": {"type": "int"},
        "rule_priority": {"type": "int"},
        "metric": {"type": "int"},
        "addresses": {"type": "list", "elements": "dict", "default": [], "options": address},
    }
    return {
        "plan_dir": {"type": "path"},
        "rails": {"type": "list", "elements": "dict", "options": rail},
        "out_of_service": {"type": "list", "elements": "dict"},
        "rdma_prefixes": {"type": "list", "elements": "str"},
        "policy": {"type": "str", "choices": ["prefixes", "default_route"]},
        "network": {"type": "str", "choices": ["roce", "infiniband"]},
        "sysctls": {"type": "dict"},
    }


# Of policy_route and rail_persist, which set the same rails now and for the next boot.
RAILS = {
    **host_plan_spec(),
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "force": {"type": "list", "elements": "str", "default": []},
    "adopt_ports": {"type": "list", "elements": "str", "default": []},
    "on_conflict": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
}
SPEC = {
    **RAILS,
    "confirm_timeout": {"type": "int", "default": 0},
    "confirm": {"type": "str"},
    "rollback_token": {"type": "str", "no_log": False},
    "gateways": {"type": "str", "choices": ["ignore", "require"], "default": "ignore"},
}

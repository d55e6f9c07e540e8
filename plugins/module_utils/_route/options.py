# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that modules share which work from a host plan."""

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
        "addresses": {"type": "list", "elements": "dict", "default": [], "options": address},
    }
    return {
        "plan_dir": {"type": "path"},
        "rails": {"type": "list", "elements": "dict", "options": rail},
        "rdma_prefixes": {"type": "list", "elements": "str"},
        "policy": {"type": "str", "choices": ["prefixes", "default_route"]},
        "network": {"type": "str", "choices": ["roce", "infiniband"]},
        "sysctls": {"type": "dict"},
    }

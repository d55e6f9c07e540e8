# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a fabric: their types, defaults, choices, and which of them decide addresses.

The module's documentation, docs/fabric.md and what other roles fall back to are compared with this table by tests
(tests/unit/plugins/modules/test_ippool_plan.py); the role's argument spec and defaults are made from that documentation
by tests/docs/options_doc.py.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...module_utils._fabric.attachments import ATTACHMENTS
from ...module_utils._fabric.backends import BACKENDS, SPIDER
from ...module_utils._fabric.labels import RESOURCE_PREFIX


@dataclass(frozen=True)
class Option:
    """One fabric_* variable, by its name without the prefix."""

    type: str = "str"
    """As argument specs name it; `list` is a list of strings where `keys` is empty."""
    default: t.Any = None
    """None: required, or it follows from another one."""
    choices: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """The keys of a dictionary, or of the dictionaries of a list."""
    frozen: bool = False
    """Whether it decides addresses: it is in the lock, and a change that moves anybody is refused."""


NETWORKS = ("roce", "infiniband")
INJECT_KEYS = ("cni.spidernet.io/rdma-resource-inject", "cni.spidernet.io/network-resource-inject")

OPTIONS = {
    "name": Option(default="fabric"),
    "group": Option(default="gpu_nodes"),
    "mode": Option(choices=("shared", "exclusive", "flat"), frozen=True),
    "network": Option(default="roce", choices=NETWORKS),
    "attachment": Option(choices=tuple(ATTACHMENTS)),
    "supernets": Option("list", (), frozen=True),
    "rails": Option(
        "list", keys=("name", "interface", "subnets", "gpu", "resource", "pci", "vlan", "device"), frozen=True
    ),
    "max_nodes": Option("int", frozen=True),
    "rail_prefix": Option("raw", frozen=True),
    "node_prefix": Option("raw", frozen=True),
    "first_block": Option("int", 0, frozen=True),
    "gateway": Option("raw", "first", frozen=True),
    "host_addresses": Option(default="start", choices=("start", "end"), frozen=True),
    "node_pods": Option("int", frozen=True),
    "reserved": Option("list", (), frozen=True),
    "foreign_networks": Option("list", ()),
    "foreign_plans": Option("list", ()),
    "zones": Option("list", (), keys=("name", "group", "supernets", "max_nodes", "leaves"), frozen=True),
    "leaves": Option("list", ()),
    "ipam": Option(default=SPIDER, choices=tuple(BACKENDS), frozen=True),
    "policy": Option(default="prefixes", choices=("prefixes", "default_route")),
    "mtu": Option("int"),
    "vfs": Option("int", 8),
    "hca_max": Option("int", 100),
    "vlan": Option("int", 0),
    "pkey": Option("raw"),
    "namespace": Option(default="spiderpool"),
    "resource_prefix": Option(default=RESOURCE_PREFIX),
    "inject": Option("dict", keys=("key", "value")),
    "lossless": Option("dict", keys=("priority", "dscp", "cnp")),
    "rails_meet": Option("bool"),
    "retire": Option("list", ()),
    "release": Option("list", ()),
    "rename": Option("dict", {}),
    "allow_renumber": Option("bool", False),
    "accept_lock": Option("bool", False),
    "plan_locked": Option("bool", False),
    "plan_from_cluster": Option("bool", False),
    "plan_dir": Option("path", "plan"),
}
DEFAULTS = {name: option.default for name, option in OPTIONS.items()}
RAIL_PREFIX = {4: 24, 6: 64}
NODE_PREFIX = {4: 27, 6: 64}
"""Defaults of the prefix lengths, by family."""

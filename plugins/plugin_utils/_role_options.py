# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Which variable of a role gives which option of its module: for audits, and for questions before the first change."""

from __future__ import annotations

import typing as t

from ..module_utils._card.run import SPEC as CARD
from ..module_utils._driver.run import SPEC as DRIVER
from ..module_utils._gpudirect.run import SPEC as GPUDIRECT
from ..module_utils._netns.run import SPEC as NETNS
from ..module_utils._persist.run import SPEC as PERSIST
from ..module_utils._qos.run import SPEC as QOS
from ..module_utils._rdma.host_run import SPEC as HOST
from ..module_utils._route.options import SPEC as ROUTE

OF_PLAN = ("plan_dir", "rails", "rdma_prefixes", "policy", "network", "sysctls", "rdma_mode")
"""The options that a host plan gives."""


class Row(t.NamedTuple):
    """A module of a host role. An option `x` is the variable `<role>_x`, unless the row says otherwise."""

    role: str
    spec: t.Mapping[str, t.Any]
    names: t.Mapping[str, str] = {}
    """Variables with other names, by option."""
    unaudited: tuple[str, ...] = ()
    """Options without meaning for an audit: the role's tasks give them, or they only matter for a change."""
    unasked: tuple[str, ...] | None = ()
    """Further options without meaning before the first change; None where the module is not asked then."""


ROWS = {
    "rdma_driver": Row("rdma_driver", DRIVER, {}, ("upgrade",), ("container_timeout", "refresh")),
    "nic_link_type": Row("nic_mode", CARD),
    "rdma_netns": Row("rdma_host", NETNS),
    "rdma_host": Row("rdma_host", HOST, {"pin": "rdma_host_pin_names", "take_over": "rail_network_take_over"}),
    "policy_route": Row("rail_network", ROUTE, {}, ("confirm", "undo", "gateways", "on_problem"), ("purge",)),
    "rail_persist": Row("rail_network", PERSIST, {}, ("root", "stage", "on_problem")),
    "roce_qos": Row("lossless_roce", QOS, {}, (), None),
    "gpudirect": Row("gpudirect", GPUDIRECT, {}, (), ("gdrcopy",)),
}
"""The modules of the host roles, by name."""


def _variables(row: Row, without: t.Container[str]) -> dict[str, str]:
    named = {option: row.names.get(option, f"{row.role}_{option}") for option in row.spec if option not in OF_PLAN}
    return {option: name for option, name in named.items() if option not in without}


AUDITED = {module: _variables(row, row.unaudited) for module, row in ROWS.items()}
"""By module and option the variables that an audit reads."""
ASKED = {
    module: _variables(row, (*row.unaudited, *row.unasked)) for module, row in ROWS.items() if row.unasked is not None
}
"""The same before the first change."""

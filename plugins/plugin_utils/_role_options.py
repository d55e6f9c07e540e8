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

NO_VARIABLES = (
    "variables_of",
    "plan_dir",
    "rails",
    "out_of_service",
    "rdma_prefixes",
    "policy",
    "network",
    "sysctls",
    "rdma_mode",
)
"""The options that a host plan gives, or that name it."""


class Row(t.NamedTuple):
    """A module of a host role. An option `x` is the variable `<role>_x`, unless the row says otherwise."""

    role: str
    spec: t.Mapping[str, t.Any]
    names: t.Mapping[str, str] = {}
    """Variables with other names, by option."""
    own: tuple[str, ...] = ()
    """Options that only tasks give."""
    unaudited: tuple[str, ...] = ()
    """Options without meaning for an audit."""
    unasked: tuple[str, ...] = ()
    """Further options without meaning before the first change."""


ROWS = {
    "rdma_driver": Row("rdma_driver", DRIVER, unaudited=("upgrade",), unasked=("container_timeout", "refresh")),
    "nic_link_type": Row("nic_link_type", CARD),
    "rdma_netns": Row("rdma_host", NETNS),
    "rdma_host": Row("rdma_host", HOST, {"pin": "rdma_host_pin_names", "adopt_ports": "rail_network_adopt_ports"}),
    "policy_route": Row("rail_network", ROUTE, {}, ("confirm", "rollback_token", "on_problem"), ("gateways",)),
    "rail_persist": Row("rail_network", PERSIST, own=("root", "stage", "on_problem")),
    "roce_qos": Row("lossless_roce", QOS),
    "gpudirect": Row("gpudirect", GPUDIRECT),
}
"""The modules of the host roles, by name."""


def variables_of(module: str, without: t.Container[str] = (), role: str = "") -> dict[str, str]:
    """Return the variables of a module's options.

    :param module: one of ROWS.
    :param without: options that are left out.
    :param role: whose variables; by default the row's.
    """
    row = ROWS[module]
    options = [option for option in row.spec if option not in (*NO_VARIABLES, *row.own) and option not in without]
    return {option: row.names.get(option, f"{role or row.role}_{option}") for option in options}


AUDITED = {module: variables_of(module, row.unaudited) for module, row in ROWS.items()}
"""By module and option the variables that an audit reads."""
ASKED = {module: variables_of(module, (*row.unaudited, *row.unasked)) for module, row in ROWS.items()}
"""The same before the first change."""

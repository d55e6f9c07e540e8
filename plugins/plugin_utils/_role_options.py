# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Which variable of a role gives which option of its module: for audits, and for questions before the first change."""

from __future__ import annotations

import typing as t

from ..module_utils._card.run import SPEC as CARD
from ..module_utils._driver.run import SPEC as DRIVER
from ..module_utils._errors import Problem
from ..module_utils._gpudirect.run import SPEC as GPUDIRECT
from ..module_utils._netns.run import SPEC as NETNS
from ..module_utils._persist.run import SPEC as PERSIST
from ..module_utils._qos.run import SPEC as QOS
from ..module_utils._rdma.host_run import SPEC as HOST
from ..module_utils._route.options import SPEC as ROUTE
from ._refusal import fail

OF_PLAN = ("plan_dir", "rails", "rdma_prefixes", "policy", "network", "sysctls", "rdma_mode")
"""The options that a host plan gives."""

GONE = {
    ("nic_link_type", "reset"): Problem(
        "inventory",
        "nic_mode_reset is gone, with the option reset of nic_link_type: one reboot brings all cards what waits.",
        "Take it out of the inventory; docs/link-type.md shows how to reset a card by hand.",
    ),
    **{
        ("gpudirect", option): Problem(
            "inventory",
            f"gpudirect_{option} is gone: what a host answers is in no Helm values.",
            "Take it out of the inventory; docs/gpudirect.md has the lines to write for the GPU Operator.",
        )
        for option in ("values_dest", "driver_on_host", "ofed_on_host")
    },
    **{
        ("rdma_host", old): Problem(
            "options",
            f"rdma_host has no option {old} any more: the namespace mode is the module rdma_netns's.",
            f"Call rdma_netns {new}, before rdma_host; the role rdma_host does both.",
        )
        for old, new in (("netns", "too"), ("netns_mode", "with mode"), ("netns_live", "with live"))
    },
    **{
        ("rdma_driver", old): Problem(
            "options",
            f"rdma_driver has no option {old} any more: a module that needs pyroute2 brings it by itself.",
            "Take it out.",
        )
        for old in ("pyroute2_wheel", "pyroute2_carried")
    },
}
"""The options that modules do not have any more, each with what is wrong and what to do."""


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


def _gone(module: str) -> dict[str, str]:
    """Return the variables that are gone: named before the first change, they are refused then."""
    return {
        option: f"{ROWS[module].role}_{option}"
        for (of, option), problem in GONE.items()
        if of == module and problem.place == "inventory"
    }


AUDITED = {module: _variables(row, row.unaudited) for module, row in ROWS.items()}
"""By module and option the variables that an audit reads."""
ASKED = {
    module: {**_variables(row, (*row.unaudited, *row.unasked)), **_gone(module)}
    for module, row in ROWS.items()
    if row.unasked is not None
}
"""The same before the first change."""


def refuse_gone(module: str, options: t.Mapping[str, t.Any]) -> None:
    """Refuse options that the module does not have any more.

    :raises AnsibleActionFail: naming the first of them.
    """
    for option in options:
        if gone := GONE.get((module, option)):
            fail(gone.problem, gone.fix)

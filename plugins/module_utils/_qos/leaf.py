# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the site declares of its switches, what hosts have without that, and what the leaf announces.

Pure. Nothing is set until priority and DSCP are declared: a host whose values are not the switches' loses the queue
that it had.
"""

from __future__ import annotations

import typing as t

from .._cabling.lldp import INSTALL
from .._check import Check, compared, skipped
from .._errors import InputError, Problem
from .policy import OPTIONS, QosPolicy, make_policy

if t.TYPE_CHECKING:
    from .plan import State

# Source of a policy: the inventory, or none; or no policy is wanted.
DECLARED, NOWHERE, AWAY = "declared", "nowhere", "away"
# Defaults of a policy; without effect where nothing is declared.
USUAL = {"priority": 5, "dscp": 40}

DECLARE = (
    "Declare in fabric_lossless, priority and dscp, what the switches have (NVIDIA's usual pair is 3 and 26), "
    "and plan again"
)


def choose(params: t.Mapping[str, t.Any]) -> tuple[QosPolicy, str]:
    """Return the policy of a host, and where it comes from: DECLARED, NOWHERE or AWAY.

    Without a declaration everything stays as it is.

    :raises InputError: when the site declares one of the two alone, or what makes no policy.
    """
    given = {name: params[name] for name in OPTIONS if params.get(name) is not None}
    policy = make_policy({**USUAL, **given})
    if params["state"] != "present" or params["network"] != "roce":
        return policy, AWAY
    declared = [name for name in USUAL if name in given]
    if len(declared) == 1:
        other = "dscp" if declared == ["priority"] else "priority"
        fix = f"{DECLARE}. [lossless_incomplete]"
        raise InputError([Problem(other, f"{declared[0]} is declared and {other} is not.", fix)])
    return policy, DECLARED if declared else NOWHERE


def undeclared_check(there: t.Mapping[str, State]) -> Check:
    """Return the one check of a host whose site does not declare what its switches have.

    :param there: what each interface of the fabric has now.
    """
    paused = "; ".join(existing_pfc(name, state) for name, state in sorted(there.items()) if state["pfc"])
    return skipped(
        "roce_declared",
        "Nothing is set: the inventory does not declare the priority and DSCP of the switches. "
        + (f"Unchanged: {paused}." if paused else "No interface of the fabric has flow control now."),
        f"{DECLARE}.",
    )


def existing_pfc(name: str, state: State) -> str:
    """Return what an interface has of lossless traffic."""
    pfc = state["pfc"] or ()
    paused = ", ".join(map(str, pfc))
    dscps = ", ".join(str(dscp) for dscp, priority in state["dscp_map"] or () if priority in pfc)
    return f"{name} has flow control on priority {paused}{f' (DSCP {dscps})' if dscps else ''}"


def leaf_check(policy: QosPolicy, rail: str, name: str, neighbors: t.Mapping[str, t.Any], unseen: str) -> Check:
    """Return what the leaf of a rail announces against the policy. Not seen is never green.

    :param name: of the rail's interface.
    :param neighbors: what LLDP has by interface, with `dcbx` as `_cabling.lldp` gives it, and in `unseen` why there is
        nothing.
    """
    wanted: dict[str, t.Any] = {"pfc": list(policy.pfc)}
    if unseen:
        return skipped("roce_switch", f"Not seen: {unseen}.", INSTALL, wanted, rail=rail)
    dcbx = (neighbors.get(name) or {}).get("dcbx")
    if not dcbx or "pfc" not in dcbx:
        return skipped(
            "roce_switch",
            f"Not seen: what arrives on {name} by LLDP has no flow control data. The leaf sends no IEEE DCBX, or "
            "the card's firmware keeps the frames.",
            "Switch DCBX on at the leaf, or compare manually; the firmware: LLDP_NB_RX_MODE_P1=OFF (mlxconfig).",
            wanted,
            rail=rail,
        )
    seen: dict[str, t.Any] = {"pfc": dcbx["pfc"]}
    if priorities := dcbx.get("dscp"):
        wanted["dscp"] = {str(policy.dscp): policy.priority}
        seen["dscp"] = {str(policy.dscp): priorities.get(str(policy.dscp))}
    if policy.ets is not None and "ets" in dcbx:
        wanted["ets"] = policy.ets
        seen["ets"] = dcbx["ets"]["bandwidth"][dcbx["ets"]["priority_tc"][policy.priority]]
    return compared(
        "roce_switch",
        wanted,
        seen,
        f"The leaf at {name} has other values than the inventory declares.",
        "Correct the switch, or fabric_lossless: a lossless queue needs both sides.",
        rail=rail,
    )

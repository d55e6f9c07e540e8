# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of lossless RoCE that hosts and switches share, and what is wrong with them.

Numbers: RFC 2474 (DSCP: the upper six bits of the byte), RFC 3168 (ECN: the lower two), IEEE 802.1Qbb (priorities).
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._errors import InputError, Problem

ECT0 = 2  # the ECN field of a sender that understands congestion marks
OPTIONS: dict[str, dict[str, t.Any]] = {
    "priority": {"type": "int"},
    "dscp": {"type": "int"},
    "pfc_priorities": {"type": "list", "elements": "int"},
    "cnp_priority": {"type": "int", "default": 6},
    "cnp_dscp": {"type": "int"},
    "ecn": {"type": "bool", "default": True},
    "ets_bandwidth": {"type": "int"},
}
"""The module's options that make a policy."""


@dataclass(frozen=True)
class QosPolicy:
    """The values that hosts and switches share."""

    priority: int = 5
    dscp: int = 40
    cnp_priority: int = 6
    cnp_dscp: int = 48
    pfc: tuple[int, ...] = (5,)
    ecn: bool = True
    ets: int | None = None  # percent of the bandwidth for RoCE's class; None leaves ETS as it is

    @property
    def entries(self) -> dict[int, int]:
        """The DSCP map's entries that count, by DSCP."""
        return {self.dscp: self.priority, self.cnp_dscp: self.cnp_priority}

    @property
    def traffic_class(self) -> int:
        """The traffic class (ToS) byte of RoCE's packets: the DSCP, and ECT(0) with ECN."""
        return self.dscp * 4 + (ECT0 if self.ecn else 0)


def make_policy(params: t.Mapping[str, t.Any]) -> QosPolicy:
    """Return the policy of a module's parameters.

    What is not given follows from the priorities: their first DSCP (8 times the priority), flow control for the RoCE
    priority alone.

    :raises InputError: with everything that is wrong at once.
    """
    priority, cnp_priority = params["priority"], params["cnp_priority"]
    dscp = priority * 8 if params.get("dscp") is None else params["dscp"]
    cnp_dscp = cnp_priority * 8 if params.get("cnp_dscp") is None else params["cnp_dscp"]
    policy = QosPolicy(
        priority=priority,
        dscp=dscp,
        cnp_priority=cnp_priority,
        cnp_dscp=cnp_dscp,
        pfc=tuple(sorted(set(params.get("pfc_priorities") or [priority]))),
        ecn=params.get("ecn", True),
        ets=params.get("ets_bandwidth"),
    )
    if problems := list(policy_problems(policy)):
        raise InputError(problems)
    return policy


def policy_problems(policy: QosPolicy) -> t.Iterator[Problem]:
    """Yield everything that is wrong with a policy."""
    named = {"priority": policy.priority, "cnp_priority": policy.cnp_priority}
    for place, value in [*named.items(), *(("pfc_priorities", value) for value in policy.pfc)]:
        if not 0 <= value <= 7:
            yield Problem(place, f"{value} is no priority.", "Give a number from 0 to 7. [priority_range]")
    for place, value in (("dscp", policy.dscp), ("cnp_dscp", policy.cnp_dscp)):
        if not 0 <= value <= 63:
            yield Problem(
                place, f"{value} is no DSCP.", "Give a number from 0 to 63: the ToS byte divided by 4. [dscp_range]"
            )
    if policy.dscp == policy.cnp_dscp and policy.priority != policy.cnp_priority:
        yield Problem(
            "cnp_dscp",
            f"DSCP {policy.dscp} cannot have both priority {policy.priority} and {policy.cnp_priority}.",
            "Give congestion notifications a DSCP of their own. [cnp_dscp]",
        )
    if policy.ets is not None and not 1 <= policy.ets <= 99:
        yield Problem(
            "ets_bandwidth", f"{policy.ets} is no share.", "Give the percent for RoCE, from 1 to 99. [ets_share]"
        )
    if policy.ets is not None and (
        0 in (policy.priority, policy.cnp_priority) or policy.priority == policy.cnp_priority
    ):
        yield Problem(
            "ets_bandwidth",
            "RoCE, congestion notifications and all other traffic (class 0) need classes of their own.",
            "Give RoCE and its notifications priorities of their own above 0, or leave ets_bandwidth out. [ets_class]",
        )
    if policy.priority not in policy.pfc:
        yield Problem(
            "pfc_priorities",
            f"RoCE has priority {policy.priority}, which gets no flow control.",
            f"Add {policy.priority}, or leave the list out. [pfc_missing]",
        )


def switch_values(policy: QosPolicy) -> list[str]:
    """Return what the switch ports of the fabric must be set to: the same variable, the other side."""
    return [
        "trust DSCP on the ports of the rails and between the switches",
        *(f"DSCP {dscp} to priority {priority}" for dscp, priority in sorted(policy.entries.items())),
        f"priority flow control on priority {', '.join(map(str, policy.pfc))}, off on all others",
        *([f"ECN marking on the queue of priority {policy.priority}"] if policy.ecn else []),
        f"priority {policy.cnp_priority} strict, without flow control: congestion notifications",
        *([f"{policy.ets} percent of the bandwidth for priority {policy.priority} (ETS)"] if policy.ets else []),
    ]

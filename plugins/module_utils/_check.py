# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A check: what was planned, what is there, and if they differ why and what to do. The only way to make one. Pure.

Modules return checks as plain data (`Check.data`), the verdict collects them.
Their ids are listed in plugin_utils/_verdict/ids.py.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

STRANGE = "strange_addresses"
"""A fact of preflight: addresses here that the plan does not give to this host. Whose they are the controller knows."""
OK, DEVIATION, WARNING, SKIPPED = "ok", "deviation", "warning", "skipped"
# What is observed where somebody has switched a check off.
NOT_LOOKED_AT = "not looked at"

# What a role costs the work on a host, by its tag in the playbook hosts.
COSTS = {
    "rdma_driver": "a reboot follows where it changes packages",
    "nic_mode": "a reboot follows",
    "rdma_host": "a reboot only where the preview names one",
    "reboot": "drains and reboots",
    "gpudirect": "no reboot",
    "rail_network": "no reboot, no drain",
    "lossless_roce": "no reboot; a port may pause for a moment",
}


class _Data(t.TypedDict):
    id: str
    rail: str | None
    status: str
    planned: t.Any
    observed: t.Any
    cause: str
    fix: str


class CheckData(_Data, total=False):
    """A check as modules return it and verdicts keep it: `Check` says what its keys mean."""

    family: int
    node: str
    object: str
    peers: list[str]
    fault: str
    """Of a verdict: the other end, where the fault lies there."""


def by_role(role: str, cost: str = "") -> str:
    """Return the fix that a role makes: its command, and what it costs.

    :param role: a tag of the playbook hosts.
    :param cost: what it costs here, where that is not what it costs everywhere.
    """
    return f"ansible-playbook railops.rdma.hosts --tags {role} --limit HOST ({cost or COSTS[role]})"


@dataclass(frozen=True)
class Check:
    """One comparison.

    :param id: `subject_thing`, such as `route_path`; one of `IDS` in plugin_utils/_verdict/ids.py.
    :param status: OK, DEVIATION, WARNING (shown, and never a reason to fail) or SKIPPED (not looked at, for a reason).
    :param planned: what the plan has, and `observed` what is there: anything that JSON can hold.
    :param cause: why they differ, or why it was skipped; empty when they do not differ.
    :param fix: what to do about it; empty when there is nothing to do.
    :param rail: the rail that it is about; None when it is about the whole host, node or cluster.
    :param family: 4 or 6 where the families of one rail can differ; None where they cannot.
    :param node: the Kubernetes node, for checks that are made of the cluster and not on a host.
    :param object: what it is about beside rail and node: a card, a file, an object of the cluster.
    :param peers: hosts or nodes at the other end of what failed, where a failure may be theirs.
    """

    id: str
    status: str
    planned: t.Any = None
    observed: t.Any = None
    cause: str = ""
    fix: str = ""
    rail: str | None = None
    family: int | None = None
    node: str | None = None
    object: str | None = None
    peers: t.Sequence[str] = ()

    def data(self) -> CheckData:
        """Return it as modules return it: family, node, object and peers only where they are set."""
        found = {key: getattr(self, key) for key in ("id", "rail", "status", "planned", "observed", "cause", "fix")}
        more = {key: getattr(self, key) for key in ("family", "node", "object")}
        if self.peers:
            more["peers"] = list(self.peers)
        return t.cast("CheckData", {**found, **{key: value for key, value in more.items() if value is not None}})


def ok(name: str, planned: t.Any, observed: t.Any, **where: t.Any) -> Check:
    """Return a check that found what was planned. `where`: rail, family, node, object."""
    return Check(name, OK, planned, observed, **where)


def deviation(name: str, planned: t.Any, observed: t.Any, cause: str, fix: str, **where: t.Any) -> Check:
    """Return a check that found something else. `where`: rail, family, node, object.

    :param name: the check's id.
    """
    return Check(name, DEVIATION, planned, observed, cause, fix, **where)


def warning(name: str, planned: t.Any, observed: t.Any, cause: str, fix: str, **where: t.Any) -> Check:
    """Return a check that found what a person should see, and what is no reason to fail.

    :param name: the check's id.
    """
    return Check(name, WARNING, planned, observed, cause, fix, **where)


def skipped(
    name: str, cause: str, fix: str = "", planned: t.Any = None, observed: t.Any = None, **where: t.Any
) -> Check:
    """Return a check that was not made, with the reason: nothing is green by silence.

    :param name: the check's id.
    """
    return Check(name, SKIPPED, planned, observed, cause, fix, **where)


def compared(
    name: str,
    planned: t.Any,
    observed: t.Any,
    cause: str,
    fix: str,
    *,
    good: bool | None = None,
    **where: t.Any,
) -> Check:
    """Return a check that is ok when both are equal, else a deviation.

    :param name: the check's id.
    :param good: whether they count as equal, where that is more than `planned == observed`.
    """
    if planned == observed if good is None else good:
        return ok(name, planned, observed, **where)
    return deviation(name, planned, observed, cause, fix, **where)

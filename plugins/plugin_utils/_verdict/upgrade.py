# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Upgrades over a fleet: which host has its turn, and whether a node is worse than before. Pure.

A node whose upgrade is unfinished has a record with what it was before; the next run goes on with it. Which nodes
are done is not noted anywhere: they have the wanted versions.
"""

from __future__ import annotations

import typing as t

from ...module_utils._check import DEVIATION, OK, SKIPPED
from ...module_utils._errors import RdmaError
from ...module_utils._formatting import group_by, natural
from ...module_utils._probe.health_plan import LIMITS
from .merge import WORST

Check = t.Mapping[str, t.Any]
_MOST = 3


class HostUpgrade(t.NamedTuple):
    """The state of one host before the run.

    :param zone: its zone; `slot` is its place there.
    :param due: the pending changes, one sentence each; empty when it has the wanted versions.
    :param status: the result of its audit: pass, deviation or error.
    :param unfinished: whether an earlier run has left its upgrade unfinished.
    """

    zone: str
    slot: int
    due: tuple[str, ...] = ()
    status: str = "pass"
    unfinished: bool = False


def upgrade_order(hosts: t.Mapping[str, HostUpgrade], *, by_zone: bool) -> list[list[str]]:
    """Return the hosts of each turn: unfinished ones first, one at a time, then the others.

    :param by_zone: one host of each zone at a time, those of one slot; after one canary host.
    """
    ordered = sorted(hosts, key=lambda host: (natural(hosts[host].zone), hosts[host].slot, natural(host)))
    unfinished = [[host] for host in ordered if hosts[host].unfinished]
    due = [host for host in ordered if hosts[host].due and not hosts[host].unfinished]
    if not by_zone:
        return unfinished + [[host] for host in due]
    slots = group_by((hosts[host].slot, host) for host in due[1:])
    return unfinished + [[host] for host in due[:1]] + [slots[slot] for slot in sorted(slots)]


def refuse_others(unfinished: t.Iterable[str], hosts: t.Collection[str], folder: str) -> None:
    """Refuse to touch anybody while a host is left in the middle that has no turn now.

    :param unfinished: the hosts with a record, and `folder` where records are.
    :raises RdmaError: when there is one.
    """
    if left := sorted(set(unfinished) - set(hosts), key=natural):
        raise RdmaError(
            f"The upgrade of {', '.join(left)} is unfinished, so no other node is changed.",
            f"Fix what that run reported and run the playbook upgrade again with {left[0]} among its hosts; remove the"
            f" host's file in {folder} when it is no longer part of the fabric. [upgrade_unfinished]",
        )


def lines(
    hosts: t.Mapping[str, HostUpgrade], order: t.Sequence[t.Sequence[str]], *, drain: bool = True, reboot: bool = True
) -> list[str]:
    """Return what a run does, for a person: a line a host that has a turn, and the hosts that are skipped and why.

    :param order: the turns, as `upgrade_order` returns them.
    :param drain: whether nodes are emptied, and `reboot` whether they are restarted.
    """
    found = []
    steps = ["drain"] * drain + ["reboot"] * reboot + ["verify"] + ["uncordon"] * drain
    for number, turn in enumerate(order, start=1):
        for host in turn:
            what = "; ".join(hosts[host].due) or "nothing new to install"
            again = "resumes an earlier run; " if hosts[host].unfinished else ""
            found.append(f"turn {number}: {host}: {again}{what}; {', '.join(steps)}")
    rest = sorted({*hosts} - {host for turn in order for host in turn}, key=natural)
    bad = [host for host in rest if hosts[host].status != "pass"]
    if len(rest) > len(bad):
        found.append(f"skip: {len(rest) - len(bad)} hosts have the wanted versions and are healthy")
    text = "has the wanted versions and deviates from the plan: run the playbook audit"
    return found + [f"skip: {host} {text}" for host in bad]


def _by_key(checks: t.Iterable[Check]) -> dict[tuple[t.Any, ...], Check]:
    """Return the worst check of each object that was checked."""
    found: dict[tuple[t.Any, ...], Check] = {}
    for check in checks:
        key = (check["id"], check.get("rail"), check.get("family"), check.get("object"))
        found[key] = min(found.get(key, check), check, key=lambda one: WORST.index(one["status"]))
    return found


def regressions(before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return what is worse on a host than before: new deviations, then healthy checks that cannot run any more.

    It does not compare counters of ports: a boot resets them.

    :param before: the host's result as merge.host_result makes it, and `after`.
    """
    if after.get("error"):
        return [_row("error", None, after["error"], "See why the host could not be checked.")]
    was, now = _by_key(before["checks"]), _by_key(after["checks"])
    found, lost = [], []
    for key, check in now.items():
        if check["status"] == DEVIATION and was.get(key, {}).get("status") != DEVIATION:
            found.append(_row(check["id"], check.get("rail"), check.get("cause") or "", check.get("fix") or ""))
    for key, check in was.items():
        if check["status"] == OK and check["id"] not in LIMITS and now.get(key, {}).get("status", SKIPPED) == SKIPPED:
            why = now[key].get("cause") or "" if key in now else "It was not checked."
            lost.append(_row(check["id"], check.get("rail"), f"It was healthy and can no longer be checked: {why}", ""))
    return _in_order(found) + _in_order(lost)


def _in_order(rows: t.Iterable[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Return rows by rail; equal rows of both families count once."""
    unique = {tuple(row.values()): row for row in rows}
    return sorted(unique.values(), key=lambda row: (natural(row["rail"] or ""), row["id"]))


def _row(name: str, rail: str | None, cause: str, fix: str) -> dict[str, t.Any]:
    return {"id": name, "rail": rail, "cause": cause, "fix": fix}


def sentence(host: str, rows: t.Sequence[t.Mapping[str, t.Any]], *, drain: bool = True) -> str:
    """Return the message for a host that is worse than before.

    :param rows: what `regressions` returned, not empty.
    :param drain: whether the node was emptied, and so stays cordoned.
    """
    shown = "; ".join(
        f"{' '.join(filter(None, (row['rail'], row['id'])))}: {row['cause'].rstrip('.')}" for row in rows[:_MOST]
    )
    more = f"; and {len(rows) - _MOST} more" if len(rows) > _MOST else ""
    fix = next((row["fix"] for row in rows if row["fix"]), "")
    return (
        f"{host} is worse than before its upgrade{', stays cordoned,' if drain else ''} and no further node is touched:"
        f" {shown}{more}. {fix}{' ' if fix else ''}Fix it or name the old versions again, then run the playbook"
        f" upgrade: it continues with {host}. [upgrade_regression]"
    )

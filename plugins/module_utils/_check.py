# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A check: what was planned, what is there, and if they differ why and what to do. The only way to make one. Pure.

It is plain data from the beginning: modules return it, the verdict collects it.
Its ids are listed in plugin_utils/_verdict/ids.py.
"""

from __future__ import annotations

import typing as t

from ._errors import Problem

UNPLANNED_ADDRESSES = "unplanned_addresses"
"""A fact of preflight: addresses here that the plan does not give to this host. Whose they are the controller knows."""
OK, DEVIATION, WARNING, SKIPPED = "ok", "deviation", "warning", "skipped"
# The observed value of a check that a setting switched off.
NOT_CHECKED = "not checked"


class Check(t.TypedDict, total=False):
    """One comparison, as modules return it and verdicts keep it.

    id: `subject_thing`, such as `route_path`; one of `IDS` in plugin_utils/_verdict/ids.py.
    rail: the rail that it is about; None when it is about the whole host, node or cluster.
    status: OK, DEVIATION, WARNING (shown, and never a reason to fail) or SKIPPED (did not run, for a reason).
    planned: what the plan has, and `observed` what is there: anything that JSON can hold.
    cause: why they differ, or why it was skipped; empty when they do not differ.
    fix: what to do about it; empty when there is nothing to do.
    These it has only where they are set:
    family: 4 or 6 where the families of one rail can differ.
    node: the Kubernetes node, for checks that are made of the cluster and not on a host.
    object: what it is about beside rail and node: a card, a file, an object of the cluster.
    peers: hosts or nodes at the other end of what failed, where a failure may be theirs.
    values: of a verdict: what is in the places of the fix's sentences, by type.
    attributed_to: of a verdict: the host at fault, where that is another one; None where it is not decided which.
    caused_by: of a verdict: the ID of the check that explains this one, on the same rail or the host at fault.
    command, impact: of a verdict: the line to paste, where one repairs it, and what the repair disturbs.
    unconfirmed: of a verdict: it is made of the word of other hosts, or of one other end, and keeps no job off a node.
    """

    id: str
    rail: str | None
    status: str
    planned: t.Any
    observed: t.Any
    cause: str
    fix: str
    family: int
    node: str
    object: str
    peers: list[str]
    values: dict[str, list[str]]
    attributed_to: str | None
    caused_by: str
    command: str
    impact: str
    unconfirmed: bool


def by_role(tags: str) -> str:
    """Return the fix that the playbook hosts makes with these tags. The verdict makes its command from it."""
    return f"Run the playbook railops.rdma.hosts with the tag{'s' if ',' in tags else ''} {tags}."


def _made(
    name: str, status: str, planned: t.Any, observed: t.Any, cause: str = "", fix: str = "", **where: t.Any
) -> Check:
    """Return a check. `where`: rail and what else a Check may have; of that only what is set."""
    found = {"id": name, "rail": where.pop("rail", None), "status": status, "planned": planned, "observed": observed}
    where["peers"] = list(where.get("peers", ())) or None
    found.update(cause=cause, fix=fix, **{key: value for key, value in where.items() if value is not None})
    return t.cast("Check", found)


def ok(name: str, planned: t.Any, observed: t.Any, **where: t.Any) -> Check:
    """Return a check that found what was planned. `where`: rail, family, node, object."""
    return _made(name, OK, planned, observed, **where)


def deviation(name: str, planned: t.Any, observed: t.Any, cause: str, fix: str, **where: t.Any) -> Check:
    """Return a check that found something else. `where`: rail, family, node, object.

    :param name: the check's id.
    """
    return _made(name, DEVIATION, planned, observed, cause, fix, **where)


def warning(name: str, planned: t.Any, observed: t.Any, cause: str, fix: str, **where: t.Any) -> Check:
    """Return a check that found what a person should see, and what is no reason to fail.

    :param name: the check's id.
    """
    return _made(name, WARNING, planned, observed, cause, fix, **where)


def conflicting(name: str, problem: Problem, rail: str | None = None) -> Check:
    """Return a problem as a check that deviates.

    :param name: the check's id.
    :param rail: that it is about; None when it is about the host.
    """
    named = not problem.place.startswith("/") or problem.place in problem.problem
    cause = problem.problem if named else f"{problem.place} {problem.problem}"
    return deviation(name, problem.place, problem.problem, cause, problem.fix, rail=rail)


def skipped(
    name: str, cause: str, fix: str = "", planned: t.Any = None, observed: t.Any = None, **where: t.Any
) -> Check:
    """Return a check that was not made, with the reason: nothing is green by silence.

    :param name: the check's id.
    """
    return _made(name, SKIPPED, planned, observed, cause, fix, **where)


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

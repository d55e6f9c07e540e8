# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Required groups of checks: one that did not run is a deviation. Pure.

A group is the beginning of IDs in complete words: `traffic` is all of `traffic_...`, `pod_read_lat` is that one check.
"""

from __future__ import annotations

import difflib
import typing as t
from itertools import accumulate

from ...module_utils._check import OK, SKIPPED, Check, deviation
from .ids import IDS

ID = "verify_require"
GROUPS = {group for name in IDS for group in accumulate(name.split("_"), "{}_{}".format)}


def unknown_checks(names: t.Iterable[str], *, ids_only: bool) -> t.Iterator[str]:
    """Yield a sentence for each name that is neither the ID of a check nor, unless `ids_only`, a group of checks."""
    known = IDS if ids_only else GROUPS
    for name in sorted({*names} - known):
        (near,) = difflib.get_close_matches(name, sorted(known), 1, 0)
        yield f"{name}: no such check ID. Write {near}. [check_unknown]"


class RequiredChecks:
    """Looks at one host after the other, and at the sections of plan and cluster, for what may not be skipped."""

    def __init__(self, required: t.Sequence[str]) -> None:
        self._required = required
        self._hosts: list[str] = []
        # By group: the checked hosts, and all places that were checked or have a reason.
        self._checked: dict[str, set[str]] = {group: set() for group in required}
        self._known: dict[str, set[str]] = {group: set() for group in required}

    def host(self, name: str, checks: t.Sequence[t.Mapping[str, t.Any]]) -> list[Check]:
        """Return a deviation for each required group that a host, or a rail of it, has only skipped checks of."""
        self._hosts.append(name)
        return self._all_checks(name, checks)

    def section(self, name: str, checks: t.Sequence[t.Mapping[str, t.Any]], ok_ids: t.Iterable[str]) -> list[Check]:
        """Return the same of the plan's or the cluster's section.

        :param checks: those that are not ok.
        :param ok_ids: the IDs of those that are.
        """
        return self._all_checks(name, [*checks, *({"id": one, "rail": None, "status": OK} for one in ok_ids)])

    def _all_checks(self, where: str, checks: t.Sequence[t.Mapping[str, t.Any]]) -> list[Check]:
        return [check for group in self._required for check in self._group_checks(group, where, checks)]

    def _group_checks(self, group: str, where: str, checks: t.Sequence[t.Mapping[str, t.Any]]) -> t.Iterator[Check]:
        rows = [row for row in checks if f"{row['id']}_".startswith(f"{group}_")]
        checked = {row["rail"] for row in rows if row["status"] != SKIPPED}
        if rows:
            self._known[group].add(where)
        if checked:
            self._checked[group].add(where)
        reasons = {row["rail"]: row["cause"] for row in rows if row["status"] == SKIPPED and row["rail"] not in checked}
        for rail, reason in reasons.items():
            # What is skipped of the whole host matters where nothing else of the group was made there.
            if rail is not None or not checked:
                yield _missing_check(group, reason, rail)

    def hosts_without_check(self) -> t.Iterator[tuple[str, Check]]:
        """Yield the hosts without a required check and without a reason, where other hosts have the check."""
        for group in self._required:
            for host in self._hosts if self._checked[group] else ():
                if host not in self._known[group]:
                    reason = "no such check ran on this host, but on others"
                    yield host, {**_missing_check(group, reason), "unconfirmed": True}

    def groups_without_check(self) -> list[Check]:
        """Return the required groups that ran nowhere and have no reason."""
        return [_missing_check(group, "no such check ran") for group in self._required if not self._known[group]]


def _missing_check(group: str, reason: str, rail: str | None = None) -> Check:
    fix = f"Add what the run lacks, or remove {group} from verify_require."
    return deviation(ID, f"{group} is checked", "skipped", str(reason), fix, rail=rail)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts equal deviations together: one line for what is the same on many rails and hosts; says where they are. Pure."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Equal:
    """Checks with the same id, planned, observed and fix."""

    check: Mapping[str, t.Any]
    """The first of them."""
    places: tuple[tuple[str, str], ...]
    """Host (or part of the verdict) and rail of each; the rail is empty where there is none."""
    causes: tuple[str, ...]
    """Each once."""

    @property
    def cause(self) -> str:
        """The first cause, and how many others there are."""
        more = len(self.causes) - 1
        return f"{self.causes[0]} (and {more} more like it)" if more else self.causes[0]

    @property
    def hosts(self) -> list[str]:
        """Each host once."""
        return list(dict.fromkeys(host for host, _rail in self.places))

    @property
    def rails(self) -> list[str]:
        """Each rail once."""
        return list(dict.fromkeys(rail for _host, rail in self.places if rail))

    @property
    def where(self) -> list[str]:
        """Host and rail of each."""
        return [f"{host} {rail}".strip() for host, rail in self.places]


def _key(check: Mapping[str, t.Any]) -> tuple[str, ...]:
    texts = (json.dumps(check[key], sort_keys=True, default=str) for key in ("planned", "observed"))
    return (check["id"], str(check["fix"] or ""), *texts)


def equal(checks: Iterable[tuple[str, Mapping[str, t.Any]]]) -> list[Equal]:
    """Return checks, each with its host, put together, in the order in which the first of each comes."""
    groups: dict[tuple[str, ...], list[tuple[str, Mapping[str, t.Any]]]] = {}
    for host, check in checks:
        groups.setdefault(_key(check), []).append((host, check))
    return [_group(members) for members in groups.values()]


def _group(members: Sequence[tuple[str, Mapping[str, t.Any]]]) -> Equal:
    places = tuple((host, str(check["rail"] or "")) for host, check in members)
    causes = dict.fromkeys(str(check["cause"] or "") for _host, check in members)
    return Equal(members[0][1], places, tuple(causes))


def shortened(names: Sequence[str], limit: int = 8) -> str:
    """Return some names in one line, and how many more there are."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def places(verdict: Mapping[str, t.Any]) -> list[str]:
    """Return what explains the deviations, a line each: `leaf3: all 6 deviations (network_link, ping_gateway)`."""
    rows = verdict.get("explained") or []
    total = sum(row["deviations"] for row in rows)
    return [_told(row, total) for row in rows]


def _told(row: Mapping[str, t.Any], total: int) -> str:
    count = row["deviations"]
    share = f"all {count:,}" if count == total > 1 else f"{count:,} of {total:,}"
    noun = "deviation" if total == 1 else "deviations"
    return f"{' '.join(row['scope'].values())}: {share} {noun} ({', '.join(row['checks'])})"

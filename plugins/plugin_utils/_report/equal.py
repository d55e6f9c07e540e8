# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts equal deviations together: one line for what is the same on many rails and hosts; and where they are. Pure."""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...module_utils._fabric.shapes import Verdict


# IPv4, IPv6 and hardware addresses, with their prefix lengths: each host has its own.
ADDRESS = re.compile(
    r"\b\d+(?:\.\d+){3}(?:/\d+)?\b|(?<![\w:])[0-9a-f]*(?::[0-9a-f]*){2,}(?:/\d+)?(?![\w:])", re.IGNORECASE
)


@dataclass(frozen=True)
class Equal:
    """Checks with the same id and fix, whose planned and observed are the same but for addresses."""

    check: Mapping[str, t.Any]
    """The first of them."""
    alike: bool
    """Whether planned and observed are those of all of them."""
    places: tuple[tuple[str, str], ...]
    """Host (or section of the verdict) and rail of each; the rail is empty where there is none."""
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
    return (check["id"], str(check["fix"] or ""), *(ADDRESS.sub("@", text) for text in _texts(check)))


def _texts(check: Mapping[str, t.Any]) -> tuple[str, ...]:
    return tuple(json.dumps(check[key], sort_keys=True, default=str) for key in ("planned", "observed"))


def equal(checks: Iterable[tuple[str, Mapping[str, t.Any]]]) -> list[Equal]:
    """Return checks, each with its host, put together, in the order in which the first of each comes."""
    groups: dict[tuple[str, ...], list[tuple[str, Mapping[str, t.Any]]]] = {}
    for host, check in checks:
        groups.setdefault(_key(check), []).append((host, check))
    return [_group(members) for members in groups.values()]


def _group(members: Sequence[tuple[str, Mapping[str, t.Any]]]) -> Equal:
    places = tuple((host, str(check["rail"] or "")) for host, check in members)
    causes = dict.fromkeys(str(check["cause"] or "") for _host, check in members)
    first = members[0][1]
    return Equal(first, all(_texts(check) == _texts(first) for _host, check in members), places, tuple(causes))


def shortened(names: Sequence[str], limit: int = 8) -> str:
    """Return some names in one line, and how many more there are."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def places(verdict: Verdict) -> list[str]:
    """Return what explains the deviations, a line each: `leaf3: all 6 deviations (network_link, ping_gateway)`."""
    rows = verdict.get("explained") or []
    total = sum(row["deviations"] for row in rows)
    return [_row_text(row, total) for row in rows]


def _row_text(row: Mapping[str, t.Any], total: int) -> str:
    count = row["deviations"]
    share = f"all {count:,}" if count == total > 1 else f"{count:,} of {total:,}"
    noun = "deviation" if total == 1 else "deviations"
    return f"{' '.join(row['scope'].values())}: {share} {noun} ({', '.join(row['checks'])})"

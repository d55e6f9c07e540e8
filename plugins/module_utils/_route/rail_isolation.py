# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rail isolation: selects pairs of rails to test, and compares the answers with the plan. Pure.

In a routed fabric every rail reaches every other one; isolated rails reach only themselves. A pair counts only where
the address answers on its own rail too, and so does a neighbor on the host's rail: `ping_neighbor` reports a dead rail.
"""

from __future__ import annotations

import random
import typing as t

from .._check import Check, deviation, ok, skipped, warning

if t.TYPE_CHECKING:
    from .icmp import EchoTarget

CHECK = "rail_isolation"
ROUTED = (
    "Look at the routes between the leaves of these rails; if they are isolated, set fabric_rails_reachable: false."
)
LEAK = (
    "Look for a port, a VLAN or a route that joins these rails; if they are to meet, set fabric_rails_reachable: true."
)


def sample(pairs: t.Sequence[EchoTarget], most: int, seed: int, host: str) -> list[EchoTarget]:
    """Return the pairs to test: of each rail those to `most` other rails, in all families.

    Hosts choose different pairs, so that a fleet tests every pair; the same seed chooses the same pairs.

    :param host: a value that differs between hosts.
    """
    drawn = random.Random(f"{seed} {host}")
    found: list[EchoTarget] = []
    for rail in dict.fromkeys(pair.rail for pair in pairs):
        others = sorted({pair.other for pair in pairs if pair.rail == rail})
        chosen = set(drawn.sample(others, min(most, len(others))))
        found += [pair for pair in pairs if pair.rail == rail and pair.other in chosen]
    return found


def isolation_checks(
    answers: t.Mapping[EchoTarget, bool], alive: t.Collection[EchoTarget], meet: bool, declared: bool
) -> list[Check]:
    """Return one check per rail and family.

    :param answers: whether each tested pair answered.
    :param alive: the pairs from a rail to the same rail that answered.
    :param meet: whether rails reach each other, as planned.
    :param declared: whether the user declared `meet`; a silence that contradicts a guess is a warning.
    """
    ends: dict[tuple[str, int], tuple[list[str], list[str]]] = {}
    own, addresses = {(pair.rail, pair.family) for pair in alive}, {pair.address for pair in alive}
    for pair, is_received in answers.items():
        answered, silent = ends.setdefault((pair.rail, pair.family), ([], []))
        # One answer proves a route, even when other targets are silent.
        if is_received:
            answered.append(pair.other)
        elif (pair.rail, pair.family) in own and pair.address in addresses:
            silent.append(pair.other)
    return [_check(*end, sorted(yes), sorted(no), meet, declared) for end, (yes, no) in ends.items()]


def _check(name: str, family: int, answered: list[str], silent: list[str], meet: bool, declared: bool) -> Check:
    where: dict[str, t.Any] = {"rail": name, "family": family}
    queried = sorted(answered + silent)
    if not queried:
        return skipped(CHECK, "no neighbor answers on its own rail", **where)
    planned = {"meets": queried if meet else []}
    observed = {"meets": answered}
    if meet and silent:
        cause = f"{name} does not reach {', '.join(silent)} of a neighbor, whose own rails answer"
        return (deviation if declared else warning)(CHECK, planned, observed, cause, ROUTED, **where)
    if not meet and answered:
        cause = f"{name} reaches {', '.join(answered)}, and isolated rails must not meet"
        return deviation(CHECK, planned, observed, cause, LEAK, **where)
    return ok(CHECK, planned, observed, **where)

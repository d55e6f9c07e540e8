# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns the results of RDMA tests into the checks that verification collects. Pure."""

from __future__ import annotations

import typing as t

from .._check import Check, compared, deviation, ok, skipped, warning
from .._formatting import group_by
from .counters import BENIGN
from .perftest import SLOW, TOOLS

_LOSS_FIX = "Look at the cable and the optics, and at PFC and ECN on the leaf and on the host (role lossless_roce)."
_ORDER_FIX = "Nothing with adaptive routing; without it look for loss on the leaves."
_PLANNED = {"read_lat": "answers RDMA reads", "write_bw": "takes RDMA writes"}


def _measure(test: dict[str, t.Any]) -> str:
    tool = TOOLS[test["test"]]
    peer = test["peer"] or test["peer_address"]
    return f"{test[tool.metric]:g} {tool.unit} with {peer}" if tool.metric in test else f"nothing from {peer}"


def traffic_checks(tests: t.Iterable[dict[str, t.Any]], *, server: bool = False) -> t.Iterator[Check]:
    """Yield one check for each rail and kind of test: its peers together, the failed ones named.

    :param tests: results of rdma_probe, each with `status`, and `cause` and `fix` when it failed.
    :param server: these are servers that did not start.
    """
    for (rail, kind), members in group_by(((test["rail"], test["test"]), test) for test in tests).items():
        bad = [test for test in members if test["status"] != "ok"]
        peers = ", ".join(dict.fromkeys(test["peer"] or test["peer_address"] for test in members))
        planned = f"a server for {peers}" if server else f"{peers} {_PLANNED[kind]}"
        shown = "did not start" if server else "; ".join(_measure(test) for test in (bad or members)[:4])
        name = f"traffic_{kind}_server" if server else f"traffic_{kind}"
        cause, fix = (bad[0]["cause"], bad[0]["fix"]) if bad else ("", "")
        ends = tuple(dict.fromkeys(test["peer"] for test in bad if test["peer"]))
        slow = next((test for test in members if test.get("slow")), None)
        if slow and not bad:
            yield warning(name, planned, _measure(slow), slow["slow"], SLOW, rail=rail)
        else:
            yield compared(name, planned, shown, cause, fix, good=not bad, rail=rail, peers=ends)


def counter_checks(
    before: dict[str, dict[str, int]], after: dict[str, dict[str, int]], limit: int
) -> t.Iterator[Check]:
    """Yield one check for each rail: how far its port's error counters grew while its tests ran.

    :param limit: the growth of one counter that still passes; negative: every growth does. Those of `counters.BENIGN`
        grow on sound fabrics as well, and warn.
    """
    for rail, values in after.items():
        start = before.get(rail, {})
        grown = {name: value - start.get(name, value) for name, value in values.items()}
        grown = {name: growth for name, growth in grown.items() if growth > 0}
        over = {name for name, growth in grown.items() if 0 <= limit < growth}
        shown = ", ".join(f"{name} +{growth}" for name, growth in sorted(grown.items()))
        planned = "error counters stay" if limit == 0 else f"error counters grow by at most {limit}"
        if not values:
            yield skipped("traffic_errors", "the port has no such counters", planned=planned, rail=rail)
        elif over - BENIGN:
            cause = "packets were lost or damaged during the test"
            yield deviation("traffic_errors", planned, shown, cause, _LOSS_FIX, rail=rail)
        elif over:
            cause = "packets came out of order, or were dropped, as adaptive routing and other traffic do"
            yield warning("traffic_errors", planned, shown, cause, _ORDER_FIX, rail=rail)
        else:
            yield ok("traffic_errors", planned, shown or "none grew", rail=rail)

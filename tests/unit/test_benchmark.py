# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page that `make bench` writes, from played measurements, and its waiting, by a played clock; nothing is timed."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(CHECKOUT / "tests/benchmark"))
    return importlib.import_module


def table(text):
    """Return the rows of the page's second table."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.count("|") == 9][2:]


def test_the_page_has_the_rows_and_bars_of_the_table(bench):
    page = bench("page")
    rows = [row for group in page.GROUPS.values() for row in group["rows"].values()]
    written = (CHECKOUT / "docs/performance.md").read_text(encoding="utf-8")
    assert [(row[0], row[1], row[-1]) for row in table(written)] == [
        (row["what"], page.wanted(row), row["why"]) for row in rows
    ]
    assert "`make bench` wrote this page" in written


def test_a_row_is_median_and_spread_of_its_pairs(bench):
    page = bench("page")
    pairs = [{"ping": (ours, 1.0), "loop": (ours, looped)} for ours, looped in zip((3, 1, 1.4), (3, 3, 7), strict=True)]
    back = [{"back": (0, None), "wait": (0.05, 0.0)}] * 2
    results = {
        "host.playbooks": page.Result(pairs, ""),
        "confirm.waits": page.Result(back, "killed"),
        "host.foreign": page.Result((), "busy"),
    }
    text = page.page({"date": "today"}, results, 3)
    got = {row[0]: row[2:-1] for row in table(text)}
    named = {key: got[row["what"]] for group in page.GROUPS.values() for key, row in group["rows"].items()}
    assert named["ping"] == ["1.40 x", "1.00 to 3.00", "1.40 s", "1.00 s", "met"]
    assert named["loop"] == ["3.00 x faster", "1.00 to 5.00", "1.40 s", "3.00 s", "met"]
    assert named["back"] == ["0 hosts, 2 pairs only: killed", "0 to 0", "0 hosts", "", "met"]
    assert named["wait"] == ["inf x, 2 pairs only: killed", "inf to inf", "50.0 ms", "0.00 ms", "**missed**"]
    assert named["foreign"] == ["not measured: busy", "", "", "", ""]
    assert named["files"] == ["not measured: not yet", "", "", "", ""]
    assert "| date | today |" in text
    assert f"| rows | 3 met, 1 missed, {len(table(text)) - 4} not measured |" in text


def test_it_waits_for_a_quiet_machine_ten_minutes_in_a_round(bench):
    machine = bench("machine")
    now, shares = [0.0, 0.0], iter([])

    def sleep(seconds):
        now[0] += seconds * next(shares)
        now[1] += seconds

    quiet = machine.Quiet(lambda: (now[0], now[1]), sleep)
    shares = iter([1, 0.5, 0.05])
    assert quiet.why_not() == ""
    assert (quiet.waited, now[1], f"{quiet.busy:.2f}") == (2 * machine.WINDOW, 3 * machine.WINDOW, "0.05")
    shares = itertools.repeat(0.5)
    assert quiet.why_not() == "others used 50 % of the processor, and 10 minutes of waiting were over"
    assert quiet.waited == machine.LIMIT
    begun = now[1]
    assert quiet.why_not() != ""
    assert (now[1] - begun, f"{quiet.busy:.2f}") == (machine.WINDOW, "0.05")
    assert quiet.why_not(wait=False) == ""
    shares = iter([0])
    assert quiet.why_not() == ""

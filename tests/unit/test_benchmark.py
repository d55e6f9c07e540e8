# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page that `make bench` writes, from played measurements, and its waiting, by a played clock; nothing is timed."""

from __future__ import annotations

import importlib
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

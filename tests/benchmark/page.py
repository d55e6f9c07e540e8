# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes docs/project/performance.md: the rows of rows.yml, each with what a round has measured."""

from __future__ import annotations

import statistics
import typing as t
from pathlib import Path

import yaml
from ran import Pair

Row = dict[str, t.Any]
GROUPS: dict[str, Row] = yaml.safe_load(Path(__file__).with_name("rows.yml").read_text(encoding="utf-8"))
HEAD = """# Performance

`make bench` wrote this page in one round: do not edit it. Its rows, their bars and the reason for each are in
`tests/benchmark/rows.yml`. A row is the median of {pairs} pairs, ours and its baseline by turns. The baselines are what
people do today: Jinja loops with `ipsubnet`, the guides' `ip` calls, `kubernetes.core.k8s` with a list.
Machines differ: read the ratios.

"""
COLUMNS = ("what", "bar", "median", "lowest to highest", "ours", "baseline", "", "why this bar")


class Result(t.NamedTuple):
    """What a group of rows came to: the pairs of each measurement by row, and why there are none or not all."""

    pairs: t.Sequence[t.Mapping[str, Pair]] = ()
    why: str = "not yet"


def number(row: Row, pair: Pair) -> float:
    """Return what a pair says: its ratio, or ours where there is no baseline."""
    ours, theirs = pair
    if theirs is None:
        return ours
    above, below = (theirs, ours) if row["kind"] == "x faster" else (ours, theirs)
    return above / below if below else float("inf")


def values(row: Row) -> str:
    """Return the bar of a row in words."""
    return f"{'at least' if row['kind'] == 'x faster' else 'at most'} {row['bar']:g} {row['kind']}"


def shown(value: float, unit: str) -> str:
    """Return a value with three digits and its unit."""
    if unit == "s" and value < 0.1:
        value, unit = value * 1000, "ms"
    digits = 0 if unit in ("hosts", "MiB") else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f} {unit}".strip()


def cells(row: Row, pairs: list[Pair], why: str) -> list[str]:
    """Return the cells of a row."""
    if not pairs:
        return [row["what"], values(row), f"not measured: {why}", *[""] * 4, row["why"]]
    unit = row.get("unit", "s")
    found = sorted(number(row, pair) for pair in pairs)
    median = statistics.median(found)
    met = median >= row["bar"] if row["kind"] == "x faster" else median <= row["bar"]
    sides = [[side for side in column if side is not None] for column in zip(*pairs, strict=True)]
    return [
        row["what"],
        values(row),
        shown(median, row["kind"]) + (f", {len(pairs)} pairs only: {why}" if why else ""),
        " to ".join(shown(value, row["kind"]).removesuffix(row["kind"]).strip() for value in (found[0], found[-1])),
        *(shown(statistics.median(side), unit) if side else "" for side in sides),
        "met" if met else "**missed**",
        row["why"],
    ]


def page(about: t.Mapping[str, str], results: t.Mapping[str, Result], pairs: int) -> str:
    """Return the page.

    :param about: the round: date, machine, versions.
    :param results: by group; one that is missing is not measured yet.
    :param pairs: how many each row was to have.
    """
    table = [COLUMNS, ["---"] * len(COLUMNS)]
    for name, group in GROUPS.items():
        result = results.get(name, Result())
        table += [cells(row, [pair[key] for pair in result.pairs], result.why) for key, row in group["rows"].items()]
    ends = [line[6] for line in table[2:]]
    counts = f"{ends.count('met')} met, {ends.count('**missed**')} missed, {ends.count('')} not measured"
    rows = [["the round", ""], ["---", "---"], *([key, text] for key, text in {**about, "rows": counts}.items())]
    made = [
        "\n".join("|".join(["", *(f" {cell} " if cell else " " for cell in line), ""]) for line in part)
        for part in (rows, table)
    ]
    return HEAD.format(pairs=pairs) + "\n\n".join(made) + "\n"

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the benchmarks share: how they get into the development environment, and the table that they print."""

from __future__ import annotations

import importlib
import os
import sys
import typing as t
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/tools"))

import env

COLLECTION = "ansible_collections.railops.rdma.plugins.module_utils._errors"


class Row(t.NamedTuple):
    """One line of the table."""

    what: str
    ours: str
    theirs: str
    ratio: str
    target: str
    met: bool | None  # None: no target

    @classmethod
    def faster(cls, what: str, ours: str, theirs: str, ratio: float, least: float) -> Row:
        """Make the line of something that should be at least so many times faster than its baseline."""
        shown = f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}"
        return cls(what, ours, theirs, f"{shown} x faster", f">= {least:g} x", ratio >= least)

    def told(self) -> Row:
        """Return the line without its target: it only explains another."""
        return self._replace(target="", met=None)

    @classmethod
    def within(cls, what: str, ours: str, theirs: str, ratio: float, most: float) -> Row:
        """Make the line of something that should cost at most so many times its baseline."""
        shown = f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"
        return cls(what, ours, theirs, f"{shown} x", f"<= {most:g} x", ratio <= most)


def enter_environment(*needed: str) -> None:
    """Run the script again in the development environment when the collection or a needed module is not here."""
    try:
        for name in (*needed, COLLECTION):
            importlib.import_module(name)
    except ImportError:
        if os.environ.get("RAILOPS_BENCH"):
            raise
        python, tree = env.environment(None) / "python", str(env.tree())
        path = f"{python.parent}:{os.environ['PATH']}"
        extra = {"RAILOPS_BENCH": "1", "PATH": path, "PYTHONPATH": tree, "ANSIBLE_COLLECTIONS_PATH": tree}
        os.execve(python, [str(python), *sys.argv], {**os.environ, **extra})


def show(title: str, rows: list[Row]) -> None:
    """Print the table."""
    heads = (title, "ours", "baseline", "ratio", "target", "")
    said = {True: "met", False: "MISSED", None: ""}
    cells = [heads, *((*row[:5], said[row.met]) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    for line in cells:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())

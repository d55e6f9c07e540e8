# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a browser needs to open report.html of a large fleet."""

from __future__ import annotations

import tempfile
import typing as t
from pathlib import Path

from ran import Pair

DRAWN = """new Promise((found) => requestAnimationFrame(() => requestAnimationFrame(() =>
found(document.querySelectorAll(".row").length && performance.now()))))"""


def opens() -> t.Iterator[dict[str, Pair]]:
    """Open the page of 10,000 nodes with a verdict, until its table is rendered."""
    from browser import Browser
    from test_pictures import fleet

    from ansible_collections.railops.rdma.tests.unit.reports import page_of

    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name:
        path = Path(name) / "report.html"
        path.write_text(page_of(*fleet()), encoding="utf-8")
        shown = Browser(Path(name) / "profile")
        try:
            while True:
                shown.view(1280, "light")
                shown.load(path.as_uri())
                yield {"open": (shown.value(DRAWN) / 1000, None)}
        finally:
            shown.close()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The plan's HTML report with the verdict in it."""

from __future__ import annotations

import typing as t


def report(plan_dir: str, verdict: dict[str, t.Any]) -> tuple[str | None, str | None]:
    """Return the report's text, or why there is none."""
    del plan_dir, verdict
    return None, "The HTML report with the verdict is not written yet."

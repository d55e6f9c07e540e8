# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The plan's HTML report with the verdict in it."""

from __future__ import annotations

import os
import typing as t

from ...module_utils._errors import RdmaError
from .verdict import with_verdict

if t.TYPE_CHECKING:
    from ...module_utils._fabric.shapes import Verdict


def report(plan_dir: str, verdict: Verdict) -> tuple[str | None, str | None]:
    """Return the report's text, or why there is none: a verdict without its page is still a verdict."""
    path = os.path.join(plan_dir, "report.html")
    try:
        with open(path, encoding="utf-8") as file:
            return with_verdict(file.read(), verdict), None
    except (OSError, ValueError, RdmaError) as exc:
        return None, f"The HTML report was not written, since {path!r} cannot be used: {exc}"

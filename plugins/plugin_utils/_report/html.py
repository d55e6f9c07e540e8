# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan as one HTML page, and the verdict in it: a style, a script, and their data as JSON.

Nothing in the page leads outside of the file. The script only ever sets texts as text. Nothing of a plan's page depends
on the time, the machine or the collection's version.
"""

from __future__ import annotations

import html
import json
import re
import typing as t
from pathlib import Path

from ...module_utils._errors import RdmaError
from ...module_utils._fabric.shapes import Verdict
from .facts import PlanReport, page_data
from .verdict import verdict_data

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
DATA = '<script type="application/json" id="{}">{}</script>'
SLOT = re.compile(DATA.format("verdict", ".*?"), re.DOTALL)


def _beside(name: str) -> str:
    """Return a file of this folder without its license, which ends with the first empty line."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8").partition("\n\n")[2]


STYLE = _beside("page.css")
SCRIPT = _beside("page.js")


def embedded(value: t.Any) -> str:
    """Return JSON that cannot end its script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def render_html(report: PlanReport) -> str:
    """Return report.html: no resources from elsewhere, no time stamps."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Fabric {html.escape(report.plan.fabric.name)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        "<body>\n<noscript>This page needs JavaScript. report.md and verdict.txt have the same facts.</noscript>\n"
        f'<main id="page"></main>\n{DATA.format("data", embedded(page_data(report)))}\n'
        f"{DATA.format('verdict', 'null')}\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )


def with_verdict(page: str, verdict: Verdict, *more: t.Any) -> str:
    """Return report.html with its verdict replaced.

    :param more: history and commands, see `verdict_data`.
    :raises RdmaError: when the text is no report of this collection.
    """
    if not SLOT.search(page):
        raise RdmaError(
            "This file is no report.html of this collection.",
            "Run the plan playbook to write one. [report_not_managed]",
        )
    filled = DATA.format("verdict", embedded(verdict_data(verdict, *more)))
    return SLOT.sub(lambda _found: filled, page)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes a verdict into its files, shows its picture, and decides whether the run fails."""

from __future__ import annotations

import os
import time
import typing as t

from ansible.utils.display import Display

from ...module_utils._errors import RdmaError
from ...module_utils._fabric.shapes import Verdict
from .._arguments import for_this_run, has_color
from .._json_lines import json_lines
from .._report.html import with_verdict
from .._report.verdict import record
from . import files, merge, text
from .metrics import metrics

# In the message of a failed task.
_CAUSES = 3
FAILED = ("deviation", "error")


def finish(args: t.Mapping[str, t.Any], verdict: Verdict, display: Display) -> dict[str, t.Any]:
    """Write the files, show the picture, and fail when something is not as planned.

    :param args: `plan_dir`, `verify_dir`, `history`, `show` and `fail`.
    :return: the result of the task.
    """
    verdict["time"] = round(time.time(), 3)
    history = files.read_history(args["verify_dir"])
    page, warning = _page(args["plan_dir"], verdict, history, text.repair_commands(verdict))
    texts = {"report.html": page} if page is not None else {}
    # Only a whole verdict is measured: a run that breaks off leaves the old numbers and their time.
    texts["verdict.prom"] = metrics(verdict, _name(args), verdict["time"])
    texts[files.HISTORY] = json_lines({"verdicts": [record(verdict), *history][: args["history"]]}, 2) + "\n"
    result = written(args, verdict, texts)
    if warning:
        result["warnings"] = [warning]
    path = os.path.abspath(os.path.join(args["verify_dir"], "verdict.md" if page is None else "report.html"))
    if args["show"]:
        display.display(for_this_run(text.terminal(verdict, _name(args), color=has_color(), report=path)))
    problem = fix = ""
    if not verdict["hosts"]:
        problem = f"No host of this play is in the plan {args['plan_dir']!r}."
        fix = "Look at the inventory group (fabric_group), at --limit, and run the playbook plan."
    if verdict["status"] in ("deviation", "error"):
        causes = [] if args["show"] else [card["sentence"] for card in verdict["causes"]]
        problem = " ".join([result["summary"], *causes[:_CAUSES]])
        fix = f"Read {path}: each cause has its command or its fix."
    if not problem:
        return result
    failed = [name for name, entry in verdict["hosts"].items() if entry["status"] in FAILED]
    result |= {"failure": f"{problem} {fix}", "failed_on": ["localhost", *failed]}
    return result | {"failed": True, "msg": result["failure"], "fix": fix} if args["fail"] else result


def _page(plan_dir: str, verdict: Verdict, *more: t.Any) -> tuple[str | None, str | None]:
    """Return the plan's page with the verdict in it, or why there is none: a verdict without its page is a verdict."""
    path = os.path.join(plan_dir, "report.html")
    try:
        with open(path, encoding="utf-8") as file:
            return with_verdict(file.read(), verdict, *more), None
    except (OSError, ValueError, RdmaError) as exc:
        return None, f"The HTML report was not written, since {path!r} cannot be used: {exc}"


def _name(args: t.Mapping[str, t.Any]) -> str:
    return os.path.basename(os.path.normpath(str(args["plan_dir"])))


def written(args: t.Mapping[str, t.Any], verdict: Verdict, texts: dict[str, str]) -> dict[str, t.Any]:
    """Write a verdict's files, and return the task's result. An interrupted run calls it directly.

    :param args: `plan_dir` and `verify_dir`.
    :param texts: the other files to write, by name.
    """
    texts |= {"verdict.md": text.markdown(verdict, _name(args)), "verdict.txt": text.terminal(verdict, _name(args))}
    paths = {name: os.path.join(args["verify_dir"], name) for name in (*texts, files.VERDICT)}
    for name, content in texts.items():
        files.write_text(paths[name], content)
    # Last, as with plan.json: a reader of this file finds the others.
    files.write_json(paths[files.VERDICT], verdict)
    return {
        "changed": False,
        "status": verdict["status"],
        "summary": merge.summary(verdict),
        "files": list(paths.values()),
    }

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges the results of all hosts into one verdict, on the controller."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils._check import skipped
from ..modules.verdict import ARGUMENT_SPEC
from ..plugin_utils._arguments import arguments, colour
from ..plugin_utils._report.rewrite import report
from ..plugin_utils._slice import read_slice
from ..plugin_utils._verdict import files, merge, text

display = Display()


class ActionModule(ActionBase):
    """The action behind the module verdict."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Begin or finish a verification."""
        super().run(tmp, task_vars)
        args = arguments(self, ARGUMENT_SPEC)
        plan = files.read_plan(args["plan_dir"])
        expected = self._expected(args)
        if args["phase"] == "begin":
            files.forget(args["verify_dir"], args["hosts"] if args["present"] is None else args["present"])
            lost = "The run ended before this host was verified."
        else:
            lost = "No result came from this host: it is unreachable, or it was lost on the way."
        results, left = merge.attach(files.read_results(args["verify_dir"], expected), args["nodes"])
        verdict = merge.merge(
            plan.get("digest"),
            results,
            expected,
            rails=self._rails(args["plan_dir"], expected),
            cluster=self._part("cluster_api", [args["cluster"], left], args["cluster_error"], args["cluster_reason"]),
            plan=self._part("plan_inventory", args["plan"], args["plan_error"], args["plan_reason"]),
            lost=lost,
        )
        if args["phase"] == "begin":
            verdict["status"] = "incomplete"
        return self._finish(args, verdict)

    def _expected(self, args: dict[str, t.Any]) -> dict[str, str | None]:
        """Return the hosts of the plan among those asked for, each with its node."""
        expected: dict[str, str | None] = {}
        left_out: list[str] = []
        for host in args["hosts"]:
            try:
                expected[host] = read_slice(args["plan_dir"], host)["node"]
            except AnsibleActionFail as exc:
                left_out.append(f"{host} ({exc})")
                # A retired or unplanned host has no part in the verdict, unless it wrote a result that says why.
                if os.path.exists(files.result_path(args["verify_dir"], host)):
                    expected[host] = None
        if left_out and args["planned"]:
            more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
            fix = "Run the playbook railops.rdma.plan, or take these hosts out of the play."
            raise AnsibleActionFail(
                f"{len(left_out)} of {len(args['hosts'])} hosts have no part in the plan, and nothing was changed:"
                f" {'; '.join(left_out[:5])}{more} {fix}",
                result={"fix": fix, "unplanned": len(left_out)},
            )
        return expected

    def _rails(self, plan_dir: str, expected: dict[str, str | None]) -> list[str]:
        for host, node in expected.items():
            if node is not None:
                return [rail["name"] for rail in read_slice(plan_dir, host)["rails"]]
        return []

    def _part(self, name: str, results: t.Any, error: str, reason: str) -> dict[str, t.Any] | None:
        """Return the part of the plan or the cluster; None when nothing is known of it.

        :param name: the check that stands for a part that was not looked at.
        """
        checks = merge.flatten(results)
        if reason:
            checks.append(skipped(name, reason).data())
        return merge.seen_part(checks, error or None) if checks or error else None

    def _finish(self, args: dict[str, t.Any], verdict: dict[str, t.Any]) -> dict[str, t.Any]:
        """Write the files, show the picture, and fail when something is not as planned."""
        folder, name = args["verify_dir"], os.path.basename(os.path.normpath(args["plan_dir"]))
        written = [os.path.join(folder, file) for file in ("verdict.md", "verdict.txt", "verdict.json")]
        files.write_text(written[0], text.markdown(verdict, name))
        files.write_text(written[1], text.picture(verdict, name))
        result: dict[str, t.Any] = {"changed": False, "status": verdict["status"], "summary": merge.summary(verdict)}
        if args["phase"] == "finish":
            page, warning = report(args["plan_dir"], verdict)
            if page is not None:
                written.insert(0, os.path.join(folder, "report.html"))
                files.write_text(written[0], page)
            if warning:
                result["warnings"] = [warning]
        # Last, as plan.json is: whoever reads it finds the others.
        files.write_json(os.path.join(folder, "verdict.json"), verdict)
        result["files"] = written
        if args["phase"] == "finish" and args["show"]:
            display.display(text.picture(verdict, name, colour=colour()))
        if args["phase"] == "finish" and args["fail"] and not verdict["hosts"]:
            fix = "Look at the inventory group (fabric_group), at --limit, and run the playbook plan."
            result |= {
                "failed": True,
                "msg": f"No host of this play is in the plan {args['plan_dir']!r}. {fix}",
                "fix": fix,
            }
        if args["phase"] == "finish" and args["fail"] and verdict["status"] in ("deviation", "error"):
            fix = f"Read {os.path.join(folder, 'verdict.md')}: each deviation has its cause and its fix."
            result |= {"failed": True, "msg": f"{result['summary']} {_worst(verdict)} {fix}", "fix": fix}
        return result


def _worst(verdict: dict[str, t.Any], limit: int = 10) -> str:
    """Name the first errors and deviations in one line."""
    found = [f"{host}: {entry['error']}" for host, entry in verdict["hosts"].items() if entry["status"] == "error"]
    found += [f"{host}: {check['rail'] or 'host'} {check['id']}" for host, check in merge.deviations(verdict)]
    found += [f"{part}: {verdict[part]['error']}" for part in merge.PARTS if verdict[part].get("error")]
    rest = f" and {len(found) - limit} more" if len(found) > limit else ""
    return "; ".join(found[:limit]) + rest + "."

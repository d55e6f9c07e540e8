# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges the results of all hosts, or the verdicts of several runs, into one verdict, on the controller."""

from __future__ import annotations

import glob
import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ..module_utils._check import skipped
from ..module_utils._errors import InputError
from ..module_utils._fabric.lock import LOCK
from ..module_utils._fabric.shapes import HostPlan, PlanFile
from ..module_utils._intake import FILE, parsed
from ..module_utils._words import natural, shortened
from ..modules.verdict import DOCUMENTATION
from ..plugin_utils._accept.collect import without
from ..plugin_utils._arguments import arguments, documented
from ..plugin_utils._host_plan import planned_hosts, read_host_plan, read_plan
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._module_action import refuse_two_declarations, torn_options
from ..plugin_utils._plan.host_plans import edited
from ..plugin_utils._plan.lock import parse_lock
from ..plugin_utils._plan.store import read_text
from ..plugin_utils._refusal import Refusal
from ..plugin_utils._report.equal import SECTIONS, section_of
from ..plugin_utils._verdict import files, merge
from ..plugin_utils._verdict.explain import HostPlace, place_of, with_places
from ..plugin_utils._verdict.finish import finish, written
from ..plugin_utils._verdict.intake import NOT_VERIFIED, answer_in
from ..plugin_utils._verdict.outliers import PortKinds, compare_fleet
from ..plugin_utils._verdict.parts import MergedVerdict
from ..plugin_utils._verdict.require import unknown

ARGUMENT_SPEC = documented(DOCUMENTATION)
FIX_PART = "Name the verdict.json of each part (merge_verdicts). [merge_path]"
display = Display()


class ActionModule(FabricAction):
    """The action behind the module verdict."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Begin or finish a verification, or merge the verdicts of several."""
        args = arguments(args, ARGUMENT_SPEC, one_of=["hosts", "verdicts"])
        self._vars = task_vars
        plan = read_plan(args["plan_dir"])
        self._places: dict[str, HostPlace] = {}
        self._rails: list[str] = []
        if args["verdicts"] is not None:
            return self._merged(args, plan)
        if wrong := "; ".join(unknown(args["require"], whole=False)):
            raise Refusal(f"require has {wrong}")
        expected = self._expected(args, plan)
        if args["planned"] and self._task.check_mode:
            return {"changed": False}
        if args["phase"] == "begin":
            files.forget(args["verify_dir"], args["hosts"] if args["present"] is None else args["present"])
            lost = "The run ended before this host was verified."
        else:
            lost = "No result came from this host: it is unreachable, or it was lost on the way."
        kept = self._kept(args) if args["keep"] else {}
        ports = PortKinds()
        verdict = merge.merge(
            plan.get("digest"),
            compare_fleet(lambda whole: files.read_results(args["verify_dir"], expected, self._rails, whole), ports),
            expected,
            rails=self._rails,
            cluster=kept.get("cluster") or self._section("cluster", "cluster_api", args),
            plan=kept.get("plan") or self._section("plan", "plan_inventory", args),
            nodes=args["nodes"],
            require=args["require"] if args["phase"] == "finish" else (),
            lost=lost,
        )
        verdict["ports"] = ports.kinds
        if args["phase"] == "begin":
            verdict["status"] = "incomplete"
            return written(args, verdict, {})
        return finish(args, with_places(verdict, self._places), display)

    def _expected(self, args: dict[str, t.Any], plan: PlanFile) -> dict[str, str | None]:
        """Return the hosts of the plan among those of the play, each with its node, and remember where they stand."""
        expected: dict[str, str | None] = {}
        left_out: list[str] = []
        torn: dict[tuple[str, t.Any, int], list[str]] = {}
        for host in args["hosts"]:
            try:
                piece = self._placed(args["plan_dir"], host, plan)
                expected[host] = piece["node"]
                if args["planned"] and piece.get("lossless"):
                    for row in torn_options(piece, self._vars["hostvars"][host], "lossless_roce_"):
                        torn.setdefault(row, []).append(host)
            except AnsibleActionFail as exc:
                left_out.append(f"{host} ({exc})")
                # A retired or unplanned host has no part in the verdict, unless it wrote a result that says why.
                if os.path.exists(files.result_path(args["verify_dir"], host)):
                    expected[host] = None
        if left_out and args["planned"]:
            fix = "Run the playbook railops.rdma.plan, or take these hosts out of the play."
            raise Refusal(
                f"{len(left_out)} of {len(args['hosts'])} hosts have no part in the plan, and nothing was changed:"
                f" {shortened(left_out, 5, '; ')} {fix}",
                result={"unplanned": len(left_out)},
            )
        refuse_two_declarations(torn)
        if args["planned"]:
            self._refuse_edited(args["plan_dir"], expected)
        return expected

    def _refuse_edited(self, plan_dir: str, hosts: t.Iterable[str]) -> None:
        """Refuse host plans whose addresses are not those of their slots."""
        path = os.path.join(plan_dir, LOCK)
        if wrong := edited(parse_lock(read_text(path), path), (read_host_plan(plan_dir, host) for host in hosts)):
            raise Refusal(
                f"The plan was changed by hand, and nothing was changed: {shortened(wrong, 5)}. "
                f"Run the playbook railops.rdma.plan: it writes {plan_dir} anew from what is declared."
            )

    def _placed(self, plan_dir: str, host: str, plan: PlanFile) -> HostPlan:
        """Return what the plan has of a host, and remember where it stands and which rails there are."""
        piece = read_host_plan(plan_dir, host)
        self._places[host] = place_of(piece, plan)
        self._rails = self._rails or [rail["name"] for rail in piece["rails"]]
        return piece

    def _kept(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the sections of the last verdict, with what acceptance found this time and not the last time."""
        old = files.read_verdict(args["verify_dir"])
        sections = {name: without(section_of(old, name)) for name in SECTIONS}
        return {**sections, "cluster": merge.added(sections["cluster"], answer_in(args["cluster"]).checks)}

    @staticmethod
    def _section(name: str, whole: str, args: dict[str, t.Any]) -> dict[str, t.Any] | None:
        """Return the section of the plan or the cluster; None when nothing is known of it.

        :param name: plan or cluster.
        :param whole: the check that stands for it where it was not looked at.
        """
        checks, _facts, _wrong = answer = answer_in(args[name])
        error = args[f"{name}_error"] or answer.error
        if reason := args[f"{name}_reason"]:
            checks.append(skipped(whole, reason))
        return merge.seen_section(checks, error or None) if checks or error else None

    def _merged(self, args: dict[str, t.Any], plan: PlanFile) -> dict[str, t.Any]:
        """Make one verdict of its parts, which are read one by one."""
        hosts = sorted(planned_hosts(args["plan_dir"]), key=natural)
        expected = {host: self._placed(args["plan_dir"], host, plan)["node"] for host in hosts}
        merged = MergedVerdict(plan.get("digest"), self._rails)
        for name in args["verdicts"]:
            found = sorted(glob.glob(os.path.expanduser(name)), key=natural)
            if not found:
                merged.refuse(name, "there is no such file or folder.", FIX_PART)
            for path in found:
                path = os.path.join(path, files.VERDICT) if os.path.isdir(path) else path
                try:
                    with open(path, encoding="utf-8") as file:
                        merged.take(path, parsed(file.read(FILE + 1), FILE))
                except (OSError, ValueError) as exc:
                    merged.refuse(path, f"it cannot be read: {exc}.", FIX_PART)
        try:
            verdict = merged.verdict(expected, self._rails)
        except InputError as exc:
            raise Refusal(f"Nothing was merged. {exc}") from None
        left = [host for host, entry in verdict["hosts"].items() if entry["status"] == NOT_VERIFIED]
        result = finish(args, with_places(verdict, self._places), display)
        if args["fail"] and verdict["status"] == "incomplete":
            # No unreachable host of this run says so by ansible's own exit code.
            fix = "Verify the hosts that have no result, and merge again with what that run writes."
            more = f" No part had {shortened(left)}." if left else ""
            result |= {"failed": True, "msg": f"{result['summary']}{more} {fix}", "fix": fix}
        return {**result, "not_verified": left}

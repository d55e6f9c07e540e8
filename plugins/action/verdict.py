# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes one verdict of the results of all hosts, of one run or of several, on the controller."""

from __future__ import annotations

import contextlib
import glob
import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ..module_utils._check import skipped
from ..module_utils._errors import InputError, Problem
from ..module_utils._fabric.lock import verified
from ..module_utils._fabric.shapes import PlanFile, Verdict, planned_rails
from ..module_utils._formatting import natural, shortened
from ..module_utils._validation import line
from ..modules.verdict import DOCUMENTATION
from ..plugin_utils._accept.collect import PREFIX
from ..plugin_utils._arguments import arguments, documented
from ..plugin_utils._host_plan import HOSTS_FOLDER, out_of_service, planned_hosts, read_host_plan, read_plan
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._refusal import Refusal
from ..plugin_utils._report.equal import SECTIONS
from ..plugin_utils._verdict import files, merge
from ..plugin_utils._verdict.causes import FALLBACKS
from ..plugin_utils._verdict.explain import place_of, with_causes
from ..plugin_utils._verdict.finish import finish, written
from ..plugin_utils._verdict.intake import NOT_VERIFIED
from ..plugin_utils._verdict.parts import (
    FIX_FOLDER,
    KINDS,
    NODES,
    VerdictPart,
    folders_of,
    merged_checks,
    part_of,
    read_part,
    write_part,
)
from ..plugin_utils._verdict.preflight import HostPlace
from ..plugin_utils._verdict.require import unknown_checks

ARGUMENT_SPEC = documented(DOCUMENTATION)
display = Display()


class ActionModule(FabricAction):
    """The action behind the module verdict."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Begin or finish a verification, or make one verdict of the parts of several."""
        args = arguments(args, ARGUMENT_SPEC, one_of=["hosts", "folders"])
        plan = read_plan(args["plan_dir"])
        self._places: dict[str, HostPlace] = {}
        self._rails: list[str] = []
        if wrong := "; ".join(unknown_checks(args["require"], ids_only=False)):
            raise Refusal(f"require has {wrong}")
        merging = args["folders"] is not None
        parts = _read(args["folders"], plan.get("digest")) if merging else [self._part(args, plan)]
        out = out_of_service(args["plan_dir"])
        excluded = {row["host"] for row in out if row["all_rails"]}
        folders = {host: folder for host, folder in folders_of(parts).items() if host not in excluded}
        left = sorted({*planned_hosts(args["plan_dir"])} - {*folders} - excluded, key=natural) if merging else []
        expected = self._expected(args, plan, [*folders, *left], folders)
        if args["planned"] and self._task.check_mode:
            return {"changed": False}
        begins = args["phase"] == "begin"
        if begins:
            files.forget(args["verify_dir"], args["hosts"] if args["present"] is None else args["present"])
        if not merging:
            write_part(parts[0], plan.get("digest"))
        why = "The run ended before this host was verified." if begins else "No part had this host."
        verdict = merge.merge(
            plan.get("digest"),
            files.read_results({host: folder for host, folder in folders.items() if host in expected}),
            expected,
            rails=self._rails,
            **{name: merge.seen_section(*found) for name in SECTIONS if any(found := merged_checks(parts, name))},
            nodes=merged_checks(parts, NODES)[0],
            require=() if begins else [*dict.fromkeys(group for part in parts for group in part.require)],
            unverified=dict.fromkeys(expected if begins else left, why),
            out=out,
        )
        if begins:
            verdict["status"] = "incomplete"
            return written(args, verdict, {})
        if merging:
            verdict["parts"] = [part.folder for part in parts]
        result = finish(args, with_causes(verdict, self._places, len(plan.get("nodes") or ())), display)
        return self._forgotten(args, verdict, result) if merging else result

    @staticmethod
    def _forgotten(args: dict[str, t.Any], verdict: Verdict, result: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the result of a merge, which fails where hosts have no result: ansible's exit code does not say so."""
        left = [host for host, entry in verdict["hosts"].items() if entry["status"] == NOT_VERIFIED]
        if args["fail"] and verdict["status"] == "incomplete":
            fix = "Verify the hosts that have no result, and merge again with what that run writes. [merge_incomplete]"
            more = f" No part had {shortened(left)}." if left else ""
            result |= {"failed": True, "msg": f"{result['summary']}{more} {fix}", "fix": fix}
        return {**result, "not_verified": left}

    @staticmethod
    def _part(args: dict[str, t.Any], plan: PlanFile) -> VerdictPart:
        """Return what this run found beside its hosts' results, with what the last one did where that is kept."""
        errors = {kind: args.get(f"{kind}_error") for kind in KINDS}
        part = part_of(args["verify_dir"], {**args, "checks": args, "errors": errors})
        for kind, check in FALLBACKS.items():
            if reason := args[f"{kind}_reason"]:
                part.checks[kind].append(skipped(check, reason))
        if not args["keep"]:
            return part
        with contextlib.suppress(InputError):
            old = read_part(args["verify_dir"], plan.get("digest"))
            for kind, rows in old.checks.items():
                part.checks[kind][:0] = [row for row in rows if not row["id"].startswith(PREFIX)]
            for kind, error in old.errors.items():
                part.errors[kind] = line(error, part.errors[kind])
            part = part._replace(require=old.require)
        return part

    def _expected(
        self, args: dict[str, t.Any], plan: PlanFile, hosts: t.Iterable[str], folders: t.Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the hosts of the plan among these, each with its node, and remember where they stand.

        :param folders: where the result of each would be; a host of no part has none.
        """
        expected: dict[str, str | None] = {}
        left_out: list[str] = []
        for host in hosts:
            try:
                piece = read_host_plan(args["plan_dir"], host)
                expected[host], self._places[host] = piece["node"], place_of(piece, plan)
                self._rails = self._rails or [rail["name"] for rail in planned_rails(piece)]
            except AnsibleActionFail as exc:
                left_out.append(f"{host} ({exc})")
                # A retired or unplanned host has no part in the verdict, unless it wrote a result that says why.
                if host in folders and os.path.exists(files.result_path(folders[host], host)):
                    expected[host] = None
        if left_out and args["planned"]:
            fix = "Run the playbook railops.rdma.plan, or remove these hosts from the play. [hosts_unplanned]"
            raise Refusal(
                f"{len(left_out)} of {len(args['hosts'])} hosts have no part in the plan, and nothing was changed:"
                f" {shortened(left_out, 5, '; ')} {fix}",
                result={"unplanned": len(left_out)},
            )
        if args["planned"]:
            verified(args["plan_dir"], HOSTS_FOLDER)
        return expected


def _read(patterns: t.Iterable[str], digest: str | None) -> list[VerdictPart]:
    """Return the parts in folders that these name; all that cannot be used are refused at once."""
    parts, problems = [], []
    for pattern in patterns:
        found = sorted(glob.glob(os.path.expanduser(pattern)), key=natural)
        if not found:
            problems.append(Problem(pattern, "there is no such folder.", FIX_FOLDER))
        for folder in found:
            try:
                parts.append(read_part(folder, digest))
            except InputError as exc:
                problems += exc.problems
    if problems:
        raise InputError(problems)
    return parts

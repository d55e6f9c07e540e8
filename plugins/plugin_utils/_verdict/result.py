# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes what was found on one host: the file that the verdict reads."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail

from ...module_utils._check import NOT_CHECKED, skipped
from ...module_utils._validation import line
from .._host_plan import read_host_plan, read_plan
from .files import LAST_FOLDER, UNREACHABLE_FOLDER, host_path, read_result, result_path, write_json
from .intake import UNREACHABLE, answer_in
from .merge import host_result, status_of
from .outliers import compared


def write_unreachable(verify_dir: str, host: str, problem: str) -> None:
    """Write why the controller does not reach a host."""
    write_json(host_path(verify_dir, UNREACHABLE_FOLDER, host), {"host": host, "checks": [], UNREACHABLE: problem})


def write_result(
    args: t.Mapping[str, t.Any],
    host: str,
    results: t.Any,
    error: str | None,
    left_out: t.Mapping[str, t.Any],
    *,
    required: bool = False,
) -> dict[str, t.Any]:
    """Write a host's result, and return what the task has to say of it.

    :param args: `plan_dir`, `verify_dir`, and `add`: whether what the file has already stays.
    :param results: the answers of modules.
    :param error: what hinders; None where nothing does.
    :param left_out: the reason of each check that was not made, by its id.
    :param required: whether answers without a check are refused.
    """
    node, digest, rails = None, None, []
    try:
        plan = read_host_plan(args["plan_dir"], host)
        node, rails = plan["node"], [rail["name"] for rail in plan["rails"]]
        digest = read_plan(args["plan_dir"]).get("digest")
    except AnsibleActionFail as exc:
        error = error or str(exc)
    checks, facts, wrong = answer = answer_in(results, rails)
    if required and not (checks or error or wrong):
        wrong.append("it has no check")
    checks += [skipped(name, str(reason), observed=NOT_CHECKED) for name, reason in left_out.items()]
    if health := facts.get("health"):
        write_json(host_path(args["verify_dir"], LAST_FOLDER, host), health)
    path = result_path(args["verify_dir"], host)
    have = read_result(path) if args.get("add") else {}
    error = line(have.get("error"), error, answer.error)
    facts = {**have.get("facts", {}), **compared(facts)}
    made = host_result(host, node, digest, [*have.get("checks", []), *checks], error, facts)
    write_json(path, made)
    return {"changed": False, "path": path, "status": status_of(made), "checks": made["checks"]}

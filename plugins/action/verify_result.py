# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes what verification found on one host, without contacting it."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._check import skipped
from ..module_utils._intake import line
from ..plugin_utils._arguments import arguments
from ..plugin_utils._host_plan import read_host_plan, read_plan
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._refusal import Refusal
from ..plugin_utils._verdict.files import read_result, result_path, write_json
from ..plugin_utils._verdict.ids import IDS
from ..plugin_utils._verdict.intake import answer_in
from ..plugin_utils._verdict.merge import host_result, status_of

ARGUMENT_SPEC = {
    "plan_dir": {"type": "path", "required": True},
    "verify_dir": {"type": "path", "required": True},
    "results": {"type": "raw", "default": []},
    "skipped": {"type": "dict", "default": {}},
    "error": {"type": "str", "default": ""},
    "add": {"type": "bool", "default": False},
}


class ActionModule(FabricAction):
    """The action behind the module verify_result."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Collect the checks and write the file."""
        super().run(tmp, task_vars)
        args = arguments(self, ARGUMENT_SPEC)
        if unknown := sorted(set(args["skipped"]) - IDS):
            fix = "Use the ids that docs/verify.md lists."
            raise Refusal(f"No check is called {', '.join(unknown)} (skipped). {fix}")
        host = (task_vars or {})["inventory_hostname"]
        digest, node, error, rails = None, None, args["error"] or None, []
        try:
            have_plan = read_host_plan(args["plan_dir"], host)
            node, rails = have_plan["node"], [rail["name"] for rail in have_plan["rails"]]
            digest = read_plan(args["plan_dir"]).get("digest")
        except AnsibleActionFail as exc:
            error = error or str(exc)
        checks, found, _wrong = answer = answer_in(args["results"], rails)
        checks += [skipped(name, str(reason)).data() for name, reason in args["skipped"].items()]
        path = result_path(args["verify_dir"], host)
        have = read_result(path) if args["add"] else {}
        error = line(have.get("error"), error, answer.error)
        facts = {**have.get("facts", {}), **found}
        made = host_result(host, node, digest, [*have.get("checks", []), *checks], error, facts)
        write_json(path, made)
        return {"changed": False, "path": path, "status": status_of(made), "checks": made["checks"]}

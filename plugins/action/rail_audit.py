# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives rail_audit the host plan, and writes what it found: results stay in the worker, so memory stays flat."""

from __future__ import annotations

import contextlib
import time
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.loader import filter_loader

from ..module_utils._cluster.node_identity import HOST_KEYS
from ..module_utils._fabric.neighbors import most_neighbors
from ..module_utils._fabric.shapes import HostPlan
from ..module_utils._validation import line
from ..plugin_utils._arguments import without_omitted
from ..plugin_utils._host_plan import (
    drawn_addresses,
    leaves_of,
    proving_neighbors,
    read_plan,
    refuse_other_node,
)
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._module_action import ModuleAction, lossless_options
from ..plugin_utils._refusal import once
from ..plugin_utils._verdict.files import LAST_FOLDER, host_path, read_json
from ..plugin_utils._verdict.ids import scope
from ..plugin_utils._verdict.preflight import unreachable_reason
from ..plugin_utils._verdict.result import write_result, write_unreachable

# The options that the controller alone reads, with their defaults.
SCOPE = {"roles": None, "devices": True, "traffic": "rdma", "persist": True}
GATHERED = ("virtualization_role", "virtualization_type", "default_ipv4", "default_ipv6")

# nic_link_type_cards uses a filter. Load it here, in the process that forks: each host's worker would compile all
# filters of the collection again, for twice what a ping costs.
with contextlib.suppress(KeyError):
    filter_loader.get("railops.rdma.own_device")


class ActionModule(ModuleAction):
    """Pass rail_audit the host plan, and keep its result where the verdict reads it."""

    def options(self, have: HostPlan, folder: str, args: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return the options that the host plan gives, with the neighbors, and the namespace mode in the settings."""
        qos, run = self._settings.get("roce_qos", {}), self._settings.get("preflight", {})
        refuse_other_node(run.get("node"), self._host, have["node"])
        self._node = {"host": self._host, "node": have["node"]}
        mode = {"mode": have["rdma_mode"]} if "rdma_mode" in have else {}
        plan = read_plan(folder)
        zone = plan["nodes"][have["node"]]["zone"]
        cables = have.get("cables")
        cabling = {"cables": cables, "leaves": leaves_of(folder), "zone": zone} if cables is not None else {}
        slots = next((one["max_nodes"] for one in plan["frozen"].get("zones", ()) if one["name"] == zone), 0)
        # The plan itself sets the neighbor tables.
        planned = any("/gc_thresh" in key for key in have.get("sysctls", ()))
        settings = {
            **self._settings,
            "roce_qos": {**lossless_options(have), **qos},
            "rdma_netns": {**mode, **self._settings.get("rdma_netns", {})},
            "cabling": cabling,
            "neighbors": {"count": 0 if planned else most_neighbors(plan["frozen"]["mode"], slots, len(have["rails"]))},
            "preflight": {**run, **self._node},
        }
        options = {**super().options(have, folder, args), "settings": settings}
        options["neighbors"] = proving_neighbors(folder, self._host, int(time.time()) // 3600)
        if "paths" in args.get("checks", ["paths"]):
            options["addresses"] = drawn_addresses(folder, self._host, self._settings.get("ping", {}).get("seed", 0))
        return options

    def _gathered(self, subset: list[str], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return what core's facts say of a host, as data.

        :param subset: of the facts; what playbooks ask for of them is in GATHERED.
        """
        # Not by _execute_module of ours, which takes facts out.
        untyped: t.Any = super(FabricAction, self)
        found = untyped._execute_module("ansible.legacy.setup", {"gather_subset": subset}, task_vars=task_vars)
        facts = found.get("ansible_facts") or {}
        return {key: facts.get(f"ansible_{key}") for key in GATHERED}

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module; with verify_dir write the host's result and return what became of it."""
        self._node, settings = {}, without_omitted(args.pop("settings", None) or {}, None)
        self._settings: dict[str, dict[str, t.Any]] = settings
        self._host: str = task_vars["inventory_hostname"]
        group = task_vars.get("fabric_group")
        self._group = str(self._templar.template(group)) if group else "gpu_nodes"
        gather = settings.get("preflight", {}).pop("gather", None)
        verify_dir = args.pop("verify_dir", None)
        left_out: dict[str, str] = {}
        own = {key: args.pop(key, value) for key, value in SCOPE.items()}
        if own["roles"] is not None:
            # Here, as a condition of the task would cost more than all that this does.
            if self._host not in task_vars["groups"][self._group]:
                reason = f"{self._host} is not in the group {self._group}"
                return {"changed": False, "skipped": True, "skip_reason": reason}
            flags = {key: boolean(own[key]) for key in ("devices", "persist")}
            args["checks"], left_out = scope(own["roles"], traffic=own["traffic"], **flags)
        if verify_dir and "since" not in args:
            args["since"] = read_json(host_path(verify_dir, LAST_FOLDER, self._host)) or None
        plan_dir = str(args.get("plan_dir") or "")
        args |= {"settings": settings} if settings and not plan_dir else {}
        preflight = args.get("checks") == ["preflight"]
        try:
            result = once(self._task, super().act(args, task_vars))
        except AnsibleError as exc:
            connected = not isinstance(exc, AnsibleConnectionFailure)
            problem, fix = unreachable_reason(str(exc), self._group, connected=connected)
            if preflight and problem:
                result = {"failed": True, "msg": f"{problem} {fix}", "lost": True}
            elif not connected:
                if verify_dir:
                    write_unreachable(verify_dir, self._host, problem)
                raise AnsibleConnectionFailure(f"{problem} {fix}") from None
            elif verify_dir and isinstance(exc, AnsibleActionFail):
                result = {"failed": True, "msg": str(exc)}
            else:
                raise
        problem, fix = unreachable_reason(str(result.get("module_stderr") or ""), self._group, connected=True)
        if preflight and problem:
            result = {"failed": True, "msg": f"{problem} {fix}", "lost": True}
        facts = result["facts"] if isinstance(result.get("facts"), dict) else {}
        if isinstance(node := facts.pop("node", None), dict):  # whose answer it is, no host says
            facts["node"] = {**{key: line(node.get(key)) or "" for key in HOST_KEYS}, **self._node}
        if gather and not result.get("failed"):
            result["facts"] = {**facts, "gathered": self._gathered(gather, task_vars)}
        if not verify_dir or result.get("unreachable"):
            return result
        errors = result.get("errors")
        error = line(*errors) if isinstance(errors, list) else None
        if result.get("failed") or "checks" not in result:
            error = f"rail_audit: {line(result.get('msg')) or 'no answer'}"
        where = {"plan_dir": plan_dir, "verify_dir": verify_dir}
        required = args.get("checks") != []
        made = write_result(where, self._host, {"checks": None, **result}, error, left_out, required=required)
        del made["checks"]
        return made | {key: result[key] for key in ("warnings", "deprecations", "errors") if result.get(key)}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives rail_audit the host's slice, and writes what it found: results stay in the worker, so memory stays flat."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._check import skipped
from ..plugin_utils._slice import leaves_of, proving_neighbours, read_slice
from ..plugin_utils._slice_action import SliceAction
from ..plugin_utils._verdict.files import last_path, read_json, read_plan, result_path, without_counters, write_json
from ..plugin_utils._verdict.merge import flatten, host_result, status_of


class ActionModule(SliceAction):
    """Give rail_audit the host's slice of the plan, and keep its result where the verdict reads it."""

    SLICE_KEYS = ("rails", "rdma_prefixes", "policy", "network", "sysctls", "rdma_mode")
    RAIL_KEYS = SliceAction.ROUTED_RAIL_KEYS

    def options(self, have: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the options that the slice gives, the namespace mode among the settings."""
        settings = {
            **self._settings,
            "rdma_netns": {"mode": have["rdma_mode"], **self._settings.get("rdma_netns", {})},
            "cabling": {**self._cabling(have), **self._settings.get("cabling", {})},
        }
        return {**super().options(have), "settings": settings}

    def _values(self, named: dict[str, dict[str, str]], task_vars: dict[str, t.Any]) -> dict[str, dict[str, t.Any]]:
        """Return the settings with those of named variables, of which only templates are templated."""
        settings: dict[str, dict[str, t.Any]] = dict(self._task.args.get("settings") or {})
        for module, options in named.items():
            found = {}
            for option, name in options.items():
                value = task_vars.get(name)
                if value is not None and self._templar.is_template(value):
                    value = self._templar.template(value)
                if value is not None:
                    found[option] = value
            settings[module] = {**found, **settings.get(module, {})}
        return settings

    def _cabling(self, have: dict[str, t.Any]) -> dict[str, t.Any]:
        if not have.get("cables"):
            return {}
        zone = read_plan(self._folder)["nodes"][have["node"]]["zone"]
        return {"cables": have["cables"], "leaves": leaves_of(self._folder), "zone": zone}

    def more_args(self, args: dict[str, t.Any], plan_dir: str, host: str) -> None:
        """Add the neighbours."""
        self._settings, self._folder = args.pop("settings", None) or {}, plan_dir
        if args.get("neighbours") is None:
            args["neighbours"] = proving_neighbours(plan_dir, host)

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module; with verify_dir write the host's result and return what became of it."""
        verify_dir = self._task.args.pop("verify_dir", None)
        left_out = self._task.args.pop("skipped", None) or {}
        named = self._task.args.pop("variables", None)
        if named:
            self._task.args["settings"] = self._values(named, task_vars or {})
        host = (task_vars or {})["inventory_hostname"]
        if verify_dir and "since" not in self._task.args:
            self._task.args["since"] = read_json(last_path(verify_dir, host)) or None
        plan_dir = str(self._task.args.get("plan_dir") or "")
        try:
            result = super().run(tmp, task_vars)
        except AnsibleActionFail as exc:
            if not verify_dir:
                raise
            result = {"failed": True, "msg": str(exc)}
        if not verify_dir or result.get("unreachable"):
            return result
        digest, node, error = None, None, "; ".join(result.get("errors") or ()) or None
        if result.get("failed") or "checks" not in result:
            error = f"rail_audit: {result.get('msg') or 'no answer'}"
        try:
            node, digest = read_slice(plan_dir, host)["node"], read_plan(plan_dir).get("digest")
        except AnsibleActionFail as exc:
            error = error or str(exc)
        checks = flatten(result.get("checks")) + [
            skipped(name, str(reason)).data() for name, reason in left_out.items()
        ]
        facts = result.get("facts") or {}
        if health := facts.get("health"):
            write_json(last_path(verify_dir, host), health)
        made = host_result(host, node, digest, checks, error, without_counters(facts))
        path = result_path(verify_dir, host)
        write_json(path, made)
        kept = {key: result[key] for key in ("warnings", "deprecations", "errors") if result.get(key)}
        return {"changed": False, "path": path, "status": status_of(made), **kept}

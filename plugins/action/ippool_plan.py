# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan in the controller's own process: it knows the inventory, and ten thousand nodes need not be sent anywhere."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleError, AnsibleUndefinedVariable

from ..module_utils._errors import InputError, Problem, RdmaError
from ..plugin_utils._arguments import without_omitted
from ..plugin_utils._fabric.options import DEFAULTS
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._plan.check import still_templates
from ..plugin_utils._plan.input import BOOLEANS
from ..plugin_utils._plan.lock_copy import LockCopy, name_of
from ..plugin_utils._plan.run import read_problems, run
from ..plugin_utils._refusal import refuse
from ..plugin_utils._settings import collect, name_problems, name_warnings, template_problem


class ActionModule(FabricAction):
    """Collect the nodes and their variables, and run the planner."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the planner; the module's documentation says what it takes and returns."""
        # A variable that is null is an empty text in an argument for ansible-core before 2.19.
        raw = {
            key: value for key, value in args.items() if value != "" or task_vars.get(f"fabric_{key}", "") is not None
        }
        places = {name: name for name in task_vars}
        try:
            self._resolve(raw, task_vars)
            self._check_keys(raw)
            nodes, problems, unseen = collect(raw, task_vars["groups"], task_vars["hostvars"], places)
            problems += name_problems(places)
            places_of = {one.place for one in problems}
            unknown = name_warnings({name: place for name, place in places.items() if place not in places_of})
            for text in [unseen, *unknown] if unseen else unknown:
                self._display.warning(text)
            if problems:
                found = read_problems(raw, nodes)
                raise InputError([*problems, *(one for one in found if one.place not in places_of)])
            done = run(
                raw,
                nodes,
                check_mode=bool(self._task.check_mode),
                diff=bool(self._task.diff),
                full=self._display.verbosity > 0,
                copy=self._copy(raw, task_vars) if raw.get("plan_from_cluster") is True else None,
            )
        except RdmaError as exc:
            refuse(self._task, str(exc), exc.facts)
        warnings = done.pop("plan_warnings")
        return {**done, "warnings": warnings} if warnings else done

    def _copy(self, raw: dict[str, t.Any], variables: dict[str, t.Any]) -> LockCopy:
        """Read the cluster's copy of the lock.

        :raises RdmaError: no cluster that answers.
        """
        fabric, namespace = (str(raw.get(key) or DEFAULTS[key]) for key in ("name", "namespace"))
        wanted = {"api_version": "v1", "kind": "ConfigMap", "name": name_of(fabric), "namespace": namespace}
        ways = {key: self._templar.template(variables.get(f"fabric_{key}")) for key in ("kubeconfig", "context")}
        found = self._execute_module(
            module_name="kubernetes.core.k8s_info",
            module_args={**wanted, **{key: value for key, value in ways.items() if value}},
            task_vars=variables,
        )
        if found.get("failed") or not found.get("api_found", True):
            why = str(found.get("msg") or "no API answers").rstrip(".")
            raise RdmaError(
                f"The copy of plan.json cannot be read from the cluster: {why}.",
                "Set fabric_kubeconfig (or KUBECONFIG) to a cluster that answers, or plan without "
                "fabric_plan_from_cluster. [copy_unreadable]",
            )
        return LockCopy(found["resources"], fabric, namespace)

    def _check_keys(self, raw: dict[str, t.Any]) -> None:
        if unknown := sorted(set(raw) - set(DEFAULTS)):
            fix = "Remove it; ansible-doc lists them. [unknown_parameter]"
            raise InputError(Problem(key, "It is no parameter of ippool_plan.", fix) for key in unknown)
        for key in BOOLEANS:
            if isinstance(raw.get(key), str) and raw[key].lower() in ("true", "yes", "1", "false", "no", "0"):
                raw[key] = raw[key].lower() in ("true", "yes", "1")

    def _resolve(self, raw: dict[str, t.Any], variables: dict[str, t.Any]) -> None:
        """Add the options that only variables give, and refuse each value that is still a template.

        :param raw: the options of the task.
        """
        problems: list[Problem] = []
        for key in [key for key in DEFAULTS if key not in raw and f"fabric_{key}" in variables]:
            try:
                value = without_omitted(self._templar.template(variables[f"fabric_{key}"]), variables.get("omit"))
            except AnsibleUndefinedVariable as exc:
                problems.append(template_problem(f"fabric_{key}", exc))
            except AnsibleError:
                continue  # resolved to omit, which is as good as absent
            else:
                raw |= {key: value} if value is not None else {}
        problems += [found for key, value in raw.items() for found in still_templates(f"fabric_{key}", value)]
        if problems:
            raise InputError(problems)

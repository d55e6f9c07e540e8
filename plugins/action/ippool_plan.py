# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan in the controller's own process: it knows the inventory, and ten thousand nodes need not be sent anywhere."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleError, AnsibleUndefinedVariable
from ansible.module_utils.basic import missing_required_lib

from ..module_utils._errors import InputError, Problem, RdmaError
from ..module_utils._words import shortened
from ..plugin_utils._arguments import kept
from ..plugin_utils._fabric.options import DEFAULTS
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._plan.check import NETADDR_ERROR, still_templates, unknown_variables
from ..plugin_utils._plan.input import BOOLEANS, read_fabric
from ..plugin_utils._plan.lock_copy import LockCopy, name_of
from ..plugin_utils._plan.run import run
from ..plugin_utils._refusal import refuse
from ..plugin_utils._settings import HOST_KEYS, known_variables


def _broken(place: str, exc: Exception) -> Problem:
    problem = f"It cannot be resolved: {str(exc).rstrip('.')}."
    return Problem(place, problem, "Correct the template. [template_broken]")


class ActionModule(FabricAction):
    """Collect the nodes and their variables, and run the planner."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the planner; the module's documentation says what it takes and returns."""
        # A variable that is null is an empty text in an argument for ansible-core before 2.19.
        raw = {
            key: value for key, value in args.items() if value != "" or task_vars.get(f"fabric_{key}", "") is not None
        }
        of_role = bool(raw.pop("variables_of", None))
        if NETADDR_ERROR:
            text = f"{missing_required_lib('netaddr >= 1.3')} [library_missing]"
            return {"failed": True, "msg": text, "exception": NETADDR_ERROR}
        nodes = raw.pop("nodes", None)
        places = {name: name for name in task_vars}
        warnings: list[str] = []
        try:
            self._resolve(raw, task_vars, of_role)
            self._check_keys(raw)
            if nodes is None:
                nodes = self._collect(raw, task_vars, places)
            warnings = self._check_names(raw, places)
            done = run(
                raw,
                nodes,
                check_mode=bool(self._task.check_mode),
                diff=bool(self._task.diff),
                whole=self._display.verbosity > 0,
                copy=self._copy(raw, task_vars) if raw.get("plan_from_cluster") is True else None,
            )
        except RdmaError as exc:
            # Those of a result are lost with a failure.
            for text in warnings:
                self._display.warning(text)
            refuse(self._task, str(exc), exc.facts)
        warnings += done.pop("plan_warnings")
        return {**done, "warnings": warnings} if warnings else done

    def _copy(self, raw: dict[str, t.Any], variables: dict[str, t.Any]) -> LockCopy:
        """Read the cluster's copy of the lock.

        :raises RdmaError: no cluster that answers.
        """
        fabric, namespace = (str(raw.get(key) or DEFAULTS[key]) for key in ("name", "namespace"))
        asked = {"api_version": "v1", "kind": "ConfigMap", "name": name_of(fabric), "namespace": namespace}
        ways = {key: self._templar.template(variables.get(f"fabric_{key}")) for key in ("kubeconfig", "context")}
        found = self._execute_module(
            module_name="kubernetes.core.k8s_info",
            module_args={**asked, **{key: value for key, value in ways.items() if value}},
            task_vars=variables,
        )
        if found.get("failed") or not found.get("api_found", True):
            why = str(found.get("msg") or "no API answers").rstrip(".")
            raise RdmaError(
                f"The copy of plan.json cannot be read from the cluster: {why}.",
                "Set fabric_kubeconfig (or KUBECONFIG) to a cluster that answers, or plan without "
                "fabric_plan_from_cluster. [copy_unread]",
            )
        return LockCopy(found["resources"], fabric, namespace)

    def _check_keys(self, raw: dict[str, t.Any]) -> None:
        if unknown := sorted(set(raw) - set(DEFAULTS)):
            fix = "Take it out; ansible-doc lists them. [unknown_parameter]"
            raise InputError(Problem(key, "It is no parameter of ippool_plan.", fix) for key in unknown)
        for key in BOOLEANS:
            if isinstance(raw.get(key), str) and raw[key].lower() in ("true", "yes", "1", "false", "no", "0"):
                raw[key] = raw[key].lower() in ("true", "yes", "1")

    def _check_names(self, raw: dict[str, t.Any], places: dict[str, str]) -> list[str]:
        """Refuse misspelt variables, with all that is wrong with the fabric; return warnings of the unknown ones.

        :param places: where each variable stands, by its name.
        """
        problems, warnings = unknown_variables(places, known_variables())
        if problems:
            try:
                read_fabric(raw)
            except InputError as exc:
                problems += exc.problems
            raise InputError(problems)
        return warnings

    def _resolve(self, raw: dict[str, t.Any], variables: dict[str, t.Any], of_role: bool) -> None:
        """Refuse what is still a template, or is there and cannot be resolved: `default(omit)` takes it for absent.

        :param raw: the options that are given.
        :param of_role: whether the role's variables give the others, which are then added.
        """
        problems: list[Problem] = []
        for key in [key for key in DEFAULTS if key not in raw and f"fabric_{key}" in variables]:
            try:
                value = kept(self._templar.template(variables[f"fabric_{key}"]), variables.get("omit"))
            except AnsibleUndefinedVariable as exc:
                problems.append(_broken(f"fabric_{key}", exc))
            except AnsibleError:
                continue  # resolved to omit, which is as good as absent
            else:
                raw |= {key: value} if of_role and value is not None else {}
        problems += [found for key, value in raw.items() for found in still_templates(f"fabric_{key}", value)]
        if problems:
            raise InputError(problems)

    def _collect(
        self, raw: dict[str, t.Any], variables: dict[str, t.Any], places: dict[str, str]
    ) -> list[dict[str, t.Any]]:
        """Return the hosts of the group with what they say about themselves, templates resolved.

        :param places: where each variable stands, by its name; those of hosts are added.
        """
        groups = variables["groups"]
        hostvars = variables["hostvars"]
        zones = raw.get("zones") if isinstance(raw.get("zones"), (list, tuple)) else []
        names = [zone.get("group") or zone.get("name") for zone in zones or [] if isinstance(zone, dict)]
        member: dict[str, list[str]] = {}
        for host, name in [(host, one) for one in names if isinstance(one, str) for host in groups.get(one, ())]:
            member.setdefault(host, []).append(name)
        group = raw.get("group") or DEFAULTS["group"]
        if outside := sorted(set(member) - set(groups.get(group, ()))):
            self._display.warning(f"In a zone's group but not in {group}, so without a slot: {shortened(outside, 5)}.")
        nodes = []
        problems = []
        for host in groups.get(group, ()):
            node: dict[str, t.Any] = {"host": str(host), "groups": member.get(host, [])}
            own = hostvars[host]
            places.update({name: f"hosts.{host}.{name}" for name in set(own) - places.keys()})
            for key, variable in HOST_KEYS.items():
                if variable not in own:
                    continue
                place = f"hosts.{host}.{variable}"
                try:
                    node[key] = own[variable]
                except AnsibleError as exc:
                    problems.append(_broken(place, exc))
                # ansible-core before 2.19 returns the text of a template that it could not resolve.
                problems += still_templates(place, node.get(key))
            nodes.append(node)
        if problems:
            raise InputError(problems)
        return nodes

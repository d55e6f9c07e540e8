# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the collection's playbooks without ansible-playbook: which plays run, with what, and what each decides.

The plays, conditions, variables and defaults are those of the files, templated by Ansible itself. The planner, the
reader of host plans, the look at a host's addresses, the copy of the lock and the filters are the real ones; only the
hosts and the cluster's store are played. Thousands of runs take the time of a few real ones.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import sys
import tempfile
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

from ansible_collections.railops.rdma.plugins import filter as filters
from ansible_collections.railops.rdma.plugins.action.ippool_plan import ActionModule as PlanAction
from ansible_collections.railops.rdma.plugins.module_utils._audit import renumbered
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import DEFAULTS
from ansible_collections.railops.rdma.plugins.plugin_utils._host_plan import read_host_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.lock_copy import LockCopy, name_of
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan

Json = dict[str, t.Any]
CHECKOUT = Path(__file__).resolve().parents[2]
LOADER = DataLoader()
ROLES = ("railops.rdma.fabric", "railops.rdma.rail_network", "railops.rdma.rail_objects")
ASSERTED = ("__site_in_the_way", "__site_preview", "__site_plan_dir", "__rail_objects_lock")
CLUSTER_ROLE = "roles/rail_objects"
FILES: dict[str, t.Any] = {}
init_plugin_loader([])
# Tests import the collection as plain Python: this is what Ansible's own importer would have said of it.
vars(sys.modules["ansible_collections.railops.rdma"])["_collection_meta"] = {}
vars(filters)["__file__"] = str(CHECKOUT / "plugins/filter/__synthetic__")


def content(path: str) -> t.Any:
    """Return what a YAML file of the collection holds."""
    if path not in FILES:
        FILES[path] = LOADER.load_from_file(str(CHECKOUT / path), trusted_as_template=True)
    return FILES[path]


class RefusedError(Exception):
    """A task failed: the run ends with its message."""


class Host:
    """A machine: the addresses that it has, by interface."""

    def __init__(self) -> None:
        self.live: dict[str, str] = {}


class Playbooks:
    """One ansible-playbook: its inventory, its machines, and where it stands.

    :param fleet: the machines by name; those of the inventory are `hosts`.
    :param cluster: the objects that the cluster has, by name.
    :param values: the variables of group_vars/all; `more` are those of the command line.
    """

    def __init__(
        self,
        folder: Path,
        fleet: dict[str, Host],
        cluster: dict[str, Json],
        hosts: list[str],
        values: Json,
        own: dict[str, Json],
        **more: t.Any,
    ) -> None:
        self.folder = folder
        self.cluster = cluster
        self.fleet = fleet
        self.hosts = hosts
        self.own = own
        self.values = {**values, "fabric_plan_dir": str(folder / "plan")}
        self.more = more
        self.facts: Json = {}
        self.answers: dict[str, Json] = {}
        self.limit: list[str] | None = None
        self.check = False
        self.given: list[str] = []
        self.mine: list[str] = []

    def play(self, name: str, *, limit: list[str] | None = None, check: bool = False) -> str:
        """Run a playbook; return what refused it, or nothing."""
        self.limit, self.check = limit, check
        with tempfile.TemporaryDirectory(prefix="railops-books-") as scratch:
            self.scratch = scratch
            try:
                self._book(f"{name}.yml", {})
            except RefusedError as exc:
                return str(exc)
        return ""

    # Playbooks, plays and tasks

    def _book(self, name: str, inherited: Json) -> None:
        for play in content(f"playbooks/{name}"):
            values = {**inherited, **play.get("vars", {})}
            if imported := play.get("ansible.builtin.import_playbook"):
                if "when" not in play or self._true(play["when"], values):
                    self._book(imported, values)
                continue
            pattern = str(self._value(play["hosts"], values))
            mine = [] if self.limit else ["localhost"]
            if "localhost" not in pattern:
                mine = [host for host in self.hosts if self.limit is None or host in self.limit]
            self.mine = mine
            if mine:
                self._tasks(play.get("tasks", []), values, mine)

    def _tasks(self, tasks: list[Json], values: Json, mine: list[str]) -> None:
        for task in tasks:
            inner = {**values, **task.get("vars", {})}
            key = next((key for key in HANDLERS if key in task), "")
            if not key and "block" not in task:
                continue
            if key.endswith("_role") and task[key]["name"] not in ROLES:
                continue
            if "when" in task and not self._true(task["when"], inner):
                continue
            if "block" in task:
                self._tasks(task["block"], inner, mine)
            else:
                HANDLERS[key](self, self._later(task[key], key, inner), task, inner, mine)

    def _later(self, args: t.Any, key: str, values: Json) -> t.Any:
        """Return the arguments of a task, those left out that say so; a role's and an assertion's are read later."""
        if key.endswith(("_role", "assert", "notice")) or not isinstance(args, dict):
            return args
        return self._value({name: value for name, value in args.items() if name != "variables"}, values)

    # Variables

    def _variables(self, values: Json) -> Json:
        named = {"localhost": {**self.values, **self.facts, **self.more}}
        named.update({host: {"__site_preflight": answer} for host, answer in self.answers.items()})
        return {
            "ansible_check_mode": self.check,
            "ansible_run_tags": ["all"],
            "ansible_skip_tags": [],
            "inventory_hostname": (self.mine or ["localhost"])[0],
            "ansible_play_hosts": self.mine,
            "ansible_play_hosts_all": self.mine,
            "ansible_play_batch": self.mine,
            "groups": {"gpu_nodes": self.hosts},
            "hostvars": named,
            **self.values,
            **values,
            **self.facts,
            **self.more,
        }

    def _value(self, value: t.Any, values: Json) -> t.Any:
        return Templar(loader=LOADER, variables=self._variables(values)).template(value)

    def _true(self, condition: t.Any, values: Json) -> bool:
        rows = condition if isinstance(condition, list) else [condition]
        return all(bool(self._value(trust_as_template(f"{{{{ {row} }}}}"), values)) for row in rows)

    # What tasks do

    def _role(self, args: Json, task: Json, values: Json, mine: list[str]) -> None:
        name = args["name"].rpartition(".")[2]
        if name == "fabric":
            # A role's defaults give way to all other variables.
            lowest = {
                key: row for key, row in content("roles/fabric/defaults/main.yml").items() if key not in self.values
            }
            before, self.check = self.check, args.get("apply", {}).get("check_mode", self.check)
            self._tasks(content("roles/fabric/tasks/main.yml"), {**lowest, **values}, mine)
            self.check = before
        elif name == "rail_objects":
            lowest = {**content(f"{CLUSTER_ROLE}/defaults/main.yml"), **content(f"{CLUSTER_ROLE}/vars/main.yml")}
            for part in [args["tasks_from"]] if "tasks_from" in args else ["validate", "objects"]:
                self._tasks(content(f"{CLUSTER_ROLE}/tasks/{part}.yml"), {**lowest, **values}, mine)
        elif name == "rail_network" and not self.check:
            for host in mine:
                self._give(host)

    def _plan(self, args: Json, _task: Json, values: Json, _mine: list[str]) -> None:
        known = self._variables(values)
        given = {key: known[f"fabric_{key}"] for key in DEFAULTS if known.get(f"fabric_{key}") is not None}
        args = self._value(given, values) if args == {"variables_of": "fabric"} else args
        nodes = [{"host": host, **self.own.get(host, {})} for host in self.hosts]
        PlanAction._check_keys(t.cast("t.Any", None), args)
        fabric, namespace = args["name"], args["namespace"]
        copy = LockCopy(self._named(name_of(fabric)), fabric, namespace) if args["plan_from_cluster"] else None
        try:
            done = plan(args, nodes, check_mode=self.check, copy=copy)
        except RdmaError as exc:
            raise RefusedError(str(exc)) from None
        self.facts["fabric_result"] = done

    def _named(self, name: str) -> list[Json]:
        return [self.cluster[name]] if name in self.cluster else []

    def _read(self, args: Json, task: Json, _values: Json, _mine: list[str]) -> None:
        self.facts[task["register"]] = {"resources": self._named(args["name"])}

    def _objects(self, args: Json, _task: Json, _values: Json, _mine: list[str]) -> None:
        if not self.check:
            self.cluster.update({one["metadata"]["name"]: one for one in args.get("definitions", [])})

    def _host_plan(self, folder: str, host: str) -> Json:
        try:
            return t.cast("Json", read_host_plan(folder, host))
        except AnsibleActionFail as exc:
            raise RefusedError(str(exc)) from None

    def _verdict(self, args: Json, _task: Json, _values: Json, mine: list[str]) -> None:
        if args.get("planned"):
            for host in mine:
                self._host_plan(args["plan_dir"], host)

    def _look(self, args: Json, task: Json, values: Json, mine: list[str]) -> None:
        asked = task["railops.rdma.rail_audit"]["variables"][renumbered.NAME]
        allowed = self._variables(values).get(asked["allow"])
        for host in mine:
            have = self._host_plan(args["plan_dir"], host)
            rails = [{**rail, "port": rail["interface"]} for rail in have["rails"]]
            networks = [ipaddress.ip_network(text) for text in have["rdma_prefixes"]]
            live = set(self.fleet[host].live.items())
            checks, facts = ([], {}) if allowed else renumbered.decide(rails, networks, live, set())
            self.answers[host] = {"checks": checks, "facts": facts}

    def _give(self, host: str) -> None:
        folder = str(self._value(trust_as_template("{{ fabric_plan_dir }}"), {}))
        have = self._host_plan(f"{folder}/{self.values['fabric_name']}", host)
        self.given.append(host)
        self.fleet[host].live = {rail["interface"]: rail["addresses"][0]["address"] for rail in have["rails"]}

    def _assert(self, args: Json, task: Json, values: Json, _mine: list[str]) -> None:
        # What is asked of other things than plan and addresses has no answer here.
        if any(name in str(args) for name in ASSERTED) and not self._true(args["that"], values):
            raise RefusedError(str(self._value(args["fail_msg"], values)))

    def _notice(self, args: Json, _task: Json, values: Json, _mine: list[str]) -> None:
        known = any(name in str(args) for name in ASSERTED)
        if args.get("fail") and known and (lines := self._value(args["lines"], values)):
            raise RefusedError("\n".join([args["heading"], *lines]))

    def _tempfile(self, _args: Json, task: Json, _values: Json, _mine: list[str]) -> None:
        self.facts[task["register"]] = {"path": self.scratch}

    def _file(self, args: Json, _task: Json, _values: Json, _mine: list[str]) -> None:
        if args["state"] == "directory":
            os.makedirs(args["path"], exist_ok=True)

    def _copy(self, args: Json, _task: Json, _values: Json, _mine: list[str]) -> None:
        shutil.copy(args["src"], args["dest"])

    def _set_fact(self, args: Json, _task: Json, _values: Json, _mine: list[str]) -> None:
        self.facts.update(args)


HANDLERS: dict[str, t.Callable[..., None]] = {
    "ansible.builtin.import_role": Playbooks._role,
    "ansible.builtin.include_role": Playbooks._role,
    "railops.rdma.ippool_plan": Playbooks._plan,
    "railops.rdma.verdict": Playbooks._verdict,
    "railops.rdma.rail_audit": Playbooks._look,
    "railops.rdma.cluster_objects": Playbooks._objects,
    "kubernetes.core.k8s_info": Playbooks._read,
    "ansible.builtin.assert": Playbooks._assert,
    "railops.rdma.notice": Playbooks._notice,
    "ansible.builtin.tempfile": Playbooks._tempfile,
    "ansible.builtin.file": Playbooks._file,
    "ansible.builtin.copy": Playbooks._copy,
    "ansible.builtin.set_fact": Playbooks._set_fact,
}

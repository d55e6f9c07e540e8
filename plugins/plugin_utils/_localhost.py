# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Keep hosts from deciding for the run: paths on the controller, the cluster, the gate.

localhost, the implicit one too, has what is in group_vars/all and what -e sets, whatever --limit is. The check of the
settings, with which the playbooks begin, compares every host with it, and a task that runs once compares its own
variables: it uses those of one host for all. No host's facts set one of these variables.
"""

from __future__ import annotations

import json
import re
import typing as t
from functools import cache, lru_cache
from pathlib import Path

import yaml
from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ..module_utils._errors import RdmaError
from ..module_utils._validation import LETTERS, excerpt, shown
from ._refusal import HostUnreachable, Refusal, fail, once

INJECTED = (
    "inject_facts_as_vars is on: answers of a host can replace your variables. Put `inject_facts_as_vars = "
    "false` into the section [defaults] of ansible.cfg, as inventory/ansible.cfg has it. [facts_injected]"
)
LOCAL_FIX = (
    "Set it in group_vars/all or with -e, where localhost sees it, and remove it from hosts, other groups and the vars "
    "of plays and roles. [localhost_differs]"
)
ABSENT: t.Any = object()
ROLES = Path(__file__).resolve().parents[2] / "roles"
JSON_STRING = re.compile(
    r'[\n\t -\[\]-~]+|(?:\\["\\/nt]|\\r\\n|\r\n){1,99}|('
    r"(?:\\u[dD][89ABab]X{2}\\u[dD][C-Fc-f]X{2}|\\uX{4}|\\[bf]|\\r(?!\\n)|(?!\r\n)[^\n\t -~]){1,99})".replace(
        "X", "[0-9A-Fa-f]"
    )
)
"""JSON strings: plain characters, line breaks and usual escapes; the group matches other characters and escapes."""

DECIDING = (
    *("fabric_name", "fabric_group", "fabric_plan_dir", "fabric_verify_dir"),
    *("fabric_kubeconfig", "fabric_context", "fabric_namespace"),
    *("fabric_release", "fabric_rename", "fabric_allow_renumber"),
    *("site_all_hosts", "site_max_excluded", "site_sriov_guests", "discover_dir", "audit_gate"),
    *("lossless_roce_plan_dir", "nic_link_type_plan_dir", "rail_network_plan_dir", "rdma_host_plan_dir"),
    *("accept_plan_dir", "accept_verify_dir", "accept_kubeconfig", "accept_namespace"),
    *("accept_image", "accept_collectives", "upgrade_plan_dir", "upgrade_dir"),
    *("verify_plan_dir", "verify_dir", "verify_kubeconfig"),
    *("verify_gate", "verify_gate_taint", "verify_gate_failure_threshold", "verify_gate_success_threshold"),
    *("verify_gate_max_unavailable", "verify_gate_min_available", "verify_gate_max_age", "verify_gate_ignore"),
)
"""The variables that decide."""
CALLER_VALUES = {
    "verify_plan_dir": "{{ upgrade_plan_dir }}",
    "verify_dir": "{{ upgrade_dir }}",
    "verify_gate": "{{ audit_gate | default([]) }}",
}
"""What playbooks and roles of this collection set some of them to."""


@cache
def defaults() -> dict[str, t.Any]:
    """Return the defaults of all roles, templates as they are."""
    found: dict[str, t.Any] = {}
    for path in ROLES.glob("*/defaults/main.yml"):
        found.update(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    return found


def differing(
    host_vars: t.Mapping[str, t.Any], local_vars: t.Mapping[str, t.Any], resolved: t.Callable[[str], t.Any]
) -> list[str]:
    """Return a line for each variable of a host that decides and is not localhost's.

    :param host_vars: the host's variables, with their templates.
    :param local_vars: those of localhost, rendered.
    :param resolved: returns the value of a variable of the host.
    """
    found = []
    for name in DECIDING:
        own, other = host_vars.get(name, ABSENT), local_vars.get(name, ABSENT)
        usual = defaults().get(name, ABSENT) if other is ABSENT else other
        if own is other or own in (usual, CALLER_VALUES.get(name, usual)):
            continue
        if own is ABSENT and not name.startswith("fabric_"):
            continue  # of a role that is not this task's
        if own is ABSENT or other is ABSENT or resolved(name) != other:
            place = "not set" if own is ABSENT else excerpt(str(own))
            found.append(f"{name} is {place}, and localhost has {'none' if other is ABSENT else excerpt(str(other))}")
    return found


def answered(host_vars: t.Mapping[str, t.Any]) -> list[str]:
    """Return the variables that decide and that a host set by its facts."""
    facts = host_vars.get("ansible_facts") or ()
    injected = constants.config.get_config_value("INJECT_FACTS_AS_VARS")
    return [name for name in DECIDING if name in facts] if injected else []


def _spelled(found: re.Match[str]) -> str:
    """Replace unusual characters of a module's JSON text, as `shown` does."""
    return found[0] if found[1] is None else _replaced(found[1])


@lru_cache(maxsize=4096)
def _replaced(odd: str) -> str:
    own = shown(text := json.loads(f'"{odd}"', strict=False) if "\\" in odd else odd)
    return odd if own == text else json.dumps(own, ensure_ascii=False)[1:-1]


class FabricAction(ActionBase):
    """The action in front of every module of the collection."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Reject variables that a host sets in localhost's place, and run the task.

        :raises Refusal: with each of these variables; or with the task's own error.
        """
        super().run(tmp, task_vars)
        host_vars = task_vars or {}
        host, hostvars = str(host_vars.get("inventory_hostname")), host_vars.get("hostvars") or {}
        self._task_host = host
        if host != "localhost" and (facts := answered(host_vars)):
            fail(f"{host} set {', '.join(facts)} by its facts.", INJECTED)
        if host != "localhost" and self._task.run_once and "localhost" in hostvars:
            template = self._templar.template
            if found := differing(host_vars, hostvars["localhost"], lambda name: template(host_vars[name])):
                fail(f"Variables of {host} differ from localhost's: {'; '.join(found)}.", LOCAL_FIX)
        try:
            return once(self._task, self.act(dict(self._task.args), host_vars))
        except RdmaError as exc:
            raise Refusal(str(exc), exc.facts) from None
        except AnsibleConnectionFailure as exc:
            raise HostUnreachable(str(exc)) from None

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the task, and return its result.

        :param args: the task's arguments. They stay unchanged: Ansible renders them once for all attempts of a task.
        :raises RdmaError: with all conflicts.
        """
        raise NotImplementedError

    def _execute_module(self, *args: t.Any, **more: t.Any) -> dict[str, t.Any]:
        """Run a module; what it answers sets no variable of anybody."""
        result: dict[str, t.Any] = super()._execute_module(*args, **more)
        facts = result.pop("ansible_facts", None) or {}
        # Core's own, which it takes out of what modules say: the interpreter that it found.
        if discovered := {key: value for key, value in facts.items() if key.startswith("discovered_interpreter_")}:
            result["ansible_facts"] = discovered
        host = (more.get("task_vars") or {}).get("inventory_hostname")
        if host != "localhost" and constants.config.get_config_value("INJECT_FACTS_AS_VARS"):
            # Not displayed here: a worker of core 2.16 does not know the warnings of other workers.
            result["warnings"] = [*(result.get("warnings") or ()), INJECTED]
        return result

    def _parse_returned_data(self, res: dict[str, t.Any], *profile: str) -> t.Any:
        """Read what a module wrote, with nothing in it that a terminal would obey; core shows some before we see it."""
        size = sum(len(res.get(key) or "") for key in ("stdout", "stderr"))
        if size > LETTERS and self._task_host != "localhost":
            text = f"The host's answer has {size:,} characters; the limit is {LETTERS:,}."
            fail(text, "Check what answers there: it is not this collection's module. [answer_too_long]")
        clean = {key: JSON_STRING.sub(_spelled, res[key]) for key in ("stdout", "stderr") if res.get(key)}
        return super()._parse_returned_data({**res, **clean}, *profile)

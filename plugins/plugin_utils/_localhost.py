# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""What decides on the controller or in the cluster is what localhost has: the controller believes no host.

localhost, the implicit one too, has what stands in group_vars/all and what -e gives, whatever --limit says. A task over
the fabric's hosts is rendered with a host's variables, and some of these may be another's: of the host itself (facts,
where inject_facts_as_vars is on), of its host_vars and groups, of a caller's vars. So each action compares them first.
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ..module_utils._errors import RdmaError
from ..module_utils._intake import excerpt, shown
from ._refusal import Lost, Refusal, fail, once

PLAN = "{{ fabric_plan_dir | default('plan') }}/{{ fabric_name | default('fabric') }}"
VERIFY = "{{ fabric_verify_dir | default('verify') }}/{{ fabric_name | default('fabric') }}"
CLUSTER = "{{ fabric_kubeconfig | default('') }}"
GATE = {"_taint": "false", "_bad": 2, "_good": 3, "_max_out": "'10%'", "_keep": 1, "_max_age": 7200, "_ignore": []}
INJECTED = (
    "inject_facts_as_vars is on: what a host answers can stand in for variables of yours. Put `inject_facts_as_vars = "
    "false` into the section [defaults] of ansible.cfg, as inventory/ansible.cfg has it. [facts_injected]"
)
ABSENT: t.Any = object()
ODD = re.compile(
    r'[\n\t -\[\]-~]+|(?:\\["\\/nt]|\\r\\n|\r\n){1,99}|('
    r"(?:\\u[dD][89ABab]X{2}\\u[dD][C-Fc-f]X{2}|\\uX{4}|\\[bf]|\\r(?!\\n)|(?!\r\n)[^\n\t -~]){1,99})".replace(
        "X", "[0-9A-Fa-f]"
    )
)
"""In JSON's spelling: plain letters, what makes lines and what it escapes anyway; as a group, all odd letters."""

DECIDING: dict[str, tuple[t.Any, ...]] = {
    **dict.fromkeys(("fabric_name", "fabric_group", "fabric_plan_dir", "fabric_verify_dir"), ()),
    **dict.fromkeys(("fabric_kubeconfig", "fabric_context", "fabric_namespace"), ()),
    **dict.fromkeys(("fabric_release", "fabric_rename"), ()),
    **dict.fromkeys(("discover_dir", "fabric_allow_renumber"), ()),
    **dict.fromkeys(("site_max_unreachable", "site_sriov_guests"), ()),
    **{f"{role}_plan_dir": (PLAN,) for role in ("accept", "lossless_roce", "nic_mode", "rail_network", "rdma_host")},
    "upgrade_plan_dir": (PLAN,),
    "upgrade_dir": (f"{VERIFY}/upgrade",),
    "verify_plan_dir": (PLAN, "{{ upgrade_plan_dir }}"),
    "verify_dir": (VERIFY, "{{ upgrade_dir }}"),
    "verify_kubeconfig": (CLUSTER,),
    "accept_verify_dir": (VERIFY,),
    "accept_kubeconfig": (CLUSTER,),
    "accept_namespace": ("default",),
    "accept_image": ("",),
    "accept_collectives": ({},),
    **dict.fromkeys((f"audit_gate{key}" for key in ("", *GATE)), ()),
    "verify_gate": (False, "{{ audit_gate | default(false) }}"),
    **{f"verify_gate{key}": (f"{{{{ audit_gate{key} | default({value}) }}}}",) for key, value in GATE.items()},
}
"""Each variable that decides, with the role's own default, and after it what our playbooks and roles give it."""


def differing(
    mine: t.Mapping[str, t.Any], theirs: t.Mapping[str, t.Any], template: t.Callable[[t.Any], t.Any]
) -> dict[str, str]:
    """Return what is wrong with the variables of a host that are not localhost's, by their names.

    :param mine: the host's variables as its task has them, templates as they are.
    :param theirs: those of localhost, rendered.
    :param template: renders a value of the host.
    """
    found = {}
    for name, given in DECIDING.items():
        own, other = mine.get(name, ABSENT), theirs.get(name, ABSENT)
        if any(own == text for text in (given if other is ABSENT else given[1:])) or own is other:
            continue
        if own is ABSENT and not name.startswith("fabric_"):
            continue  # of a role that is not this task's
        if own is ABSENT or other is ABSENT or template(own) != other:
            place = "not set" if own is ABSENT else excerpt(str(own))
            found[name] = f"{name} is {place}, and localhost has {'none' if other is ABSENT else excerpt(str(other))}"
    return found


def _spelled(found: re.Match[str]) -> str:
    """Return odd letters of a module's text as `shown` has them, in JSON's spelling."""
    if found[1] is None or (own := shown(text := json.loads(f'"{found[1]}"', strict=False))) == text:
        return found[0]
    return json.dumps(own, ensure_ascii=False)[1:-1]


class FabricAction(ActionBase):
    """The action in front of every module of the collection."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Refuse variables that decide and are not localhost's, and do what the task asks.

        :raises Refusal: naming each; or with what is in the way, where that has a sentence of ours.
        """
        super().run(tmp, task_vars)
        mine = task_vars or {}
        host, hostvars = str(mine.get("inventory_hostname")), mine.get("hostvars") or {}
        if host != "localhost" and "localhost" in hostvars:
            self._refuse(host, differing(mine, hostvars["localhost"], self._templar.template), mine)
        try:
            return once(self._task, self.act(dict(self._task.args), mine))
        except RdmaError as exc:
            raise Refusal(str(exc), exc.facts) from None
        except AnsibleConnectionFailure as exc:
            raise Lost(str(exc)) from None

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Do what the task asks, and return its result.

        :param args: the task's arguments. They stay as they are: Ansible renders them once for all attempts of a task.
        :raises RdmaError: with what is in the way.
        """
        raise NotImplementedError

    @staticmethod
    def _refuse(host: str, found: t.Mapping[str, str], mine: t.Mapping[str, t.Any]) -> None:
        if not found:
            return
        told = (
            f"What decides on the controller or in the cluster is localhost's. For {host} {'; '.join(found.values())}."
        )
        if answered := [name for name in found if name in mine.get("ansible_facts", ())]:
            fail(f"{host} itself answered {', '.join(answered)} as facts. {told}", INJECTED)
        fail(
            told,
            f"Write {', '.join(found)} into group_vars/all (or give them with -e), where localhost sees them, and take "
            "them out of hosts, other groups and the vars of plays and roles. [localhost_decides]",
        )

    def _execute_module(self, *args: t.Any, **more: t.Any) -> dict[str, t.Any]:
        """Run a module; what it answers sets no variable of anybody."""
        result: dict[str, t.Any] = super()._execute_module(*args, **more)
        facts = result.pop("ansible_facts", None) or {}
        # Core's own, which it takes out of what modules say: the interpreter that it found.
        if kept := {key: value for key, value in facts.items() if key.startswith("discovered_interpreter_")}:
            result["ansible_facts"] = kept
        host = (more.get("task_vars") or {}).get("inventory_hostname")
        if host != "localhost" and constants.config.get_config_value("INJECT_FACTS_AS_VARS"):
            # Not shown here: a worker of core 2.16 does not know what others have shown.
            result["warnings"] = [*(result.get("warnings") or ()), INJECTED]
        return result

    def _parse_returned_data(self, res: dict[str, t.Any], *profile: str) -> t.Any:
        """Read what a module wrote, with nothing in it that a terminal would obey; core shows some before we see it."""
        clean = {key: ODD.sub(_spelled, res[key]) for key in ("stdout", "stderr") if res.get(key)}
        return super()._parse_returned_data({**res, **clean}, *profile)

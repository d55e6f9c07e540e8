# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The variables of playbooks and roles, by name and value, over all hosts: checked before anything is touched."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import typing as t
from functools import cache, partial
from pathlib import Path

import yaml
from ansible import context
from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.inventory import detect_range, expand_hostname_range

from ..module_utils._errors import InputError, Problem, grouped
from ..module_utils._formatting import group_by, shortened
from ._localhost import DECIDING, LOCAL_FIX, ROLES, answered, differing
from ._report.equal import folded
from ._verdict.require import unknown_checks

Spec = dict[str, t.Any]
Groups = t.Mapping[str, t.Sequence[str]]

PLAYBOOK_DIR = ROLES.with_name("playbooks")
# The planner checks these, with their meaning.
PLANNED = "fabric"
OTHER_OPTIONS = ("fabric_kubeconfig", "fabric_context", "fabric_verify_dir")
"""Variables of the other roles that begin like the fabric's."""
HOST_KEYS = {
    "name": "fabric_node_name",
    "interfaces": "fabric_interfaces",
    "cables": "fabric_cables",
    "slot": "fabric_slot",
}
"""The variable of a host for each key of its node."""
# Neither null, which means unset, nor the placeholder of an undefined or omitted value.
PLAIN = (str, bool, int, float, list, dict)
BATCH = re.compile(r"[1-9]\d*|[1-9]\d?%|100%")
PERCENT = re.compile(r"\d{1,2}(\.\d+)?|100")
SHARE = re.compile(r"\d+%?")
_HOST_ROLES = ["rdma_driver", "nic_link_type", "rdma_host", "gpudirect", "rail_network", "lossless_roce"]

PLAYBOOKS: dict[str, Spec] = {
    "site_host_roles": {"type": "list", "elements": "str", "choices": _HOST_ROLES},
    **{f"site_{name}": {"type": "bool"} for name in ("sriov_guests", "all_hosts")},
    "audit_gate": {"type": "list", "elements": "str", "choices": ["kubernetes"]},
    "audit_traffic": {"type": "str", "choices": ["none", "ping", "rdma"]},
    "audit_pods": {"type": "str", "choices": ["none", "status", "look", "latency"]},
    **{f"teardown_{name}": {"type": "bool"} for name in ("in_use", "spiderpool")},
    "discover_dir": {"type": "path"},
    "merge_folders": {"type": "list", "elements": "str"},
    "discover_rail_names": {"type": "list", "elements": "str"},
}
"""Variables of playbooks as an argument spec has them."""

PATTERNS: dict[str, tuple[re.Pattern[str], str]] = {
    "site_serial": (BATCH, "a number of hosts such as 2, a share such as 20%, or a list of these"),
    "site_max_fail_percentage": (PERCENT, "a number from 0 to 100"),
    "site_max_excluded": (SHARE, "a number of hosts or a share such as 5%"),
    "audit_loss_percent": (PERCENT, "a number from 0 to 100"),
    "verify_gate_max_unavailable": (SHARE, "a number of nodes or a share such as 10%"),
}
"""Variables of playbooks that a pattern says better, with its words."""

IMPORTED = ("fabric", "verify")
"""The roles that playbooks import: --tags finds their steps."""

CHECKS = {"verify_gate_ignore": True, "verify_require": False}
"""Lists of check IDs, and whether each entry is a complete ID and not only the beginning of some."""


@cache
def role_options() -> dict[str, Spec]:
    """Return the options of each role, as its argument spec has them."""
    found: dict[str, Spec] = {}
    for path in ROLES.glob("*/meta/argument_specs.yml"):
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values()
        found[path.parts[-3]] = {name: row for entry in entries for name, row in (entry.get("options") or {}).items()}
    return found


@cache
def specs() -> dict[str, Spec]:
    """Return what each variable of playbooks and roles may be, by its name."""
    rows = [options for role, options in role_options().items() if role != PLANNED]
    return {**{name: row for options in rows for name, row in options.items()}, **PLAYBOOKS}


@cache
def tags(*, select: bool) -> frozenset[str]:
    """Return the tags that tasks of this collection have.

    :param select: only those that --tags finds: the playbooks include other roles when they run.
    """
    roles = IMPORTED if select else ("*",)
    paths = [*PLAYBOOK_DIR.glob("*.yml"), *(path for role in roles for path in ROLES.glob(f"{role}/tasks/*.yml"))]
    rows = (re.findall(r"^ *tags: \[(.*)\]$", path.read_text(encoding="utf-8"), re.MULTILINE) for path in paths)
    return frozenset(word for row in rows for words in row for word in words.split(", "))


def tag_problems(requested: t.Iterable[str], *, own: bool = False, select: bool = False) -> list[str]:
    """Return a line for each tag that no task has, with the nearest that one has.

    :param requested: of --tags or --skip-tags; those of Ansible itself are known.
    :param own: nothing where a playbook of the site imports ours: it may have tags of its own.
    :param select: whether they are of --tags.
    """
    found: list[str] = []
    played = [str(one) for one in context.CLIARGS.get("args", ())]
    if own and not all(one.startswith("railops.rdma.") or Path(one).resolve().parent == PLAYBOOK_DIR for one in played):
        return found
    known = tags(select=select)
    for tag in sorted({*requested} - known - {"all", "always", "never", "tagged", "untagged"}):
        close = difflib.get_close_matches(tag, sorted(known), 1, 0)
        found.append(f"{tag}: the nearest is {close[0]}. docs/reference/playbooks.md lists them. [tag_unknown]")
    return found


def closest_name(name: str, known: t.Iterable[str]) -> str:
    """Return the known name that this one is a slip of: one letter, two changed about, case or dashes; else nothing."""
    plain = name.lower().replace("-", "_")
    candidates = [other for other in known if abs(len(other) - len(plain)) <= 1 and other != name]
    return next(iter(difflib.get_close_matches(plain, candidates, 1, max(0.0, 1 - 1.01 / len(plain)))), "")


@cache
def known_variables() -> tuple[str, ...]:
    """Return the names of all variables, sorted."""
    # It is read from documentation: not when a filter of this file's neighbors is loaded.
    from ._fabric.options import DEFAULTS

    # `ROLE_result` is registered by tasks.
    results = (f"{role}_result" for role in role_options())
    fabric = (*HOST_KEYS.values(), *OTHER_OPTIONS, *(f"fabric_{key}" for key in DEFAULTS))
    return tuple(sorted({*specs(), *PATTERNS, *results, *fabric}))


def name_problems(places: t.Mapping[str, str]) -> list[Problem]:
    """Return a problem for each name that is a slip of one of ours; any other is the site's own.

    :param places: where each variable is set, by its name.
    """
    known = known_variables()
    return [
        Problem(
            places[name], "No variable has this name, so it would do nothing.", f"Write {meant}. [variable_unknown]"
        )
        for name in sorted(places.keys() - known)
        if not name.startswith(("ansible_", "_")) and (meant := closest_name(name, known))
    ]


def name_warnings(places: t.Mapping[str, str]) -> list[str]:
    """Return a warning for each name that begins like an option and is none, with the option it resembles.

    :param places: where each variable is set, by its name.
    """
    known, prefixes = known_variables(), ("fabric_", *(f"{role}_" for role in role_options()))
    found = []
    for name in sorted(places.keys() - known):
        if prefix := next(filter(name.startswith, prefixes), ""):
            options = [other.removeprefix(prefix) for other in known if other.startswith(prefix)]
            matches = difflib.get_close_matches(name.removeprefix(prefix), options, 1, 0.65)
            hint = f"; did you mean {prefix}{matches[0]}?" if matches else "."
            found.append(f"{places[name]} is not a variable of this collection{hint}")
    return found


def template_problem(place: str, exc: Exception) -> Problem:
    """Return the problem of a variable whose template fails."""
    problem = f"It cannot be resolved: {str(exc).rstrip('.')}."
    return Problem(place, problem, "Correct the template. [template_broken]")


def group_problem(groups: Groups, group: str, sources: object) -> Problem | None:
    """Return why no host of the inventory is in the group.

    :param sources: the inventories that Ansible read.
    """
    if groups.get(group):
        return None
    if not groups.get("all"):
        read = ", ".join(sources) if isinstance(sources, (list, tuple)) else ""
        problem = f"No inventory was read: {read or 'none is named'} has no hosts (working directory {os.getcwd()})."
        fix = "Set inventory in ansible.cfg and run the playbook in that folder, or pass -i. [inventory_empty]"
        return Problem("inventory", problem, fix)
    there = [f"{name} ({len(hosts)})" for name, hosts in sorted(groups.items()) if hosts and name != "all"]
    problem = f"Group {group!r} has no hosts. Groups with hosts: {shortened(there, 10) or 'none'}."
    return Problem("fabric_group", problem, "Set fabric_group to one of them, or add hosts to it. [group_empty]")


def repeated_hosts(group: str, sources: object) -> t.Iterator[Problem]:
    """Yield the hosts that an INI inventory lists twice in a group: Ansible makes one host of them.

    :param sources: the inventories that Ansible read. It warns itself where YAML repeats a key.
    """
    for source in map(Path, map(str, sources if isinstance(sources, (list, tuple)) else ())):
        if not source.is_file() or source.suffix in (".yml", ".yaml", ".json") or os.access(source, os.X_OK):
            continue
        section, lines = "", dict[str, list[int]]()
        for number, line in enumerate(source.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            # A comment begins with ";" at the start of a line, with "#" anywhere.
            name = re.split(r"^;|[#\s]", line.strip(), maxsplit=1)[0]
            if name.startswith("["):
                section = name.strip("[]")
            elif name and section == group:
                for host in expand_hostname_range(name) if detect_range(name) else [name]:
                    lines.setdefault(host, []).append(number)
        for host, where in lines.items():
            if len(where) > 1:
                text = f"{host} is twice in [{group}], lines {where[0]} and {where[1]}: Ansible makes one host of them."
                yield Problem(str(source), text, "Correct the name, or remove the second line. [host_duplicate]")


def collect(
    raw: dict[str, t.Any], groups: Groups, hostvars: t.Mapping[str, t.Any], places: dict[str, str]
) -> tuple[list[dict[str, t.Any]], list[Problem], str]:
    """Return the hosts of the group with what they say about themselves, what is wrong with that, and a warning.

    :param raw: the options of the fabric; those that only hosts have are added.
    :param places: where each variable of localhost is, by its name; those of hosts are added.
    """
    from ._fabric.options import DEFAULTS
    from ._plan.check import still_templates

    zones = raw.get("zones") if isinstance(raw.get("zones"), (list, tuple)) else []
    names = [zone.get("group") or zone.get("name") for zone in zones or [] if isinstance(zone, dict)]
    member = group_by((host, one) for one in names if isinstance(one, str) for host in groups.get(one, ()))
    group = str(raw.get("group") or DEFAULTS["group"])
    outside = sorted(set(member) - set(groups.get(group, ())))
    warning = f"In a zone's group but not in {group}, so without a slot: {shortened(outside, 5)}." if outside else ""
    # Defaults of the role are variables of its tasks, too.
    unset = {f"fabric_{key}": key for key, usual in DEFAULTS.items() if raw.get(key, usual) == usual}
    unset = {name: key for name, key in unset.items() if name not in hostvars["localhost"]}
    hidden: dict[str, list[str]] = {}
    nodes = []
    problems = []
    for host in groups.get(group, ()):
        node: dict[str, t.Any] = {"host": str(host), "groups": member.get(host, [])}
        host_vars = hostvars[host]
        have = set(host_vars)
        places.update({name: f"hosts.{host}.{name}" for name in have - places.keys()})
        for name in have & unset.keys():
            hidden.setdefault(name, []).append(str(host))
        for key, variable in HOST_KEYS.items():
            if variable not in host_vars:
                continue
            place = f"hosts.{host}.{variable}"
            try:
                node[key] = host_vars[variable]
            except AnsibleError as exc:
                problems.append(template_problem(place, exc))
            # ansible-core before 2.19 returns the text of a template that it could not resolve.
            problems += still_templates(place, node.get(key))
        nodes.append(node)
    for name, hosts in sorted(hidden.items()):
        with contextlib.suppress(AnsibleError):
            raw[unset[name]] = hostvars[hosts[0]][name]
        text = f"It is set for {folded(hosts, 4)}, and localhost does not see it."
        problems.append(Problem(name, text, "Move it to group_vars/all. [localhost_differs]"))
    if empty := group_problem(groups, group, hostvars["localhost"].get("ansible_inventory_sources")):
        if empty.place == "inventory":
            raise InputError([empty])
        problems.append(empty)
    problems += repeated_hosts(group, hostvars["localhost"].get("ansible_inventory_sources"))
    return nodes, problems, warning


def planner_problems(hostvars: t.Any) -> list[str]:
    """Return a line for each thing wrong with the values of the fabric's own variables."""
    from ._fabric.options import DEFAULTS
    from ._plan.run import read_problems

    local_vars = hostvars["localhost"]
    raw: dict[str, t.Any] = {}
    for key in DEFAULTS:
        with contextlib.suppress(AnsibleError):  # the planner refuses it
            raw |= {key: value} if (value := local_vars.get(f"fabric_{key}")) is not None else {}
    nodes, found, _warning = collect(raw, local_vars["groups"], hostvars, {})
    found += [one for one in read_problems(raw, nodes) if one.place not in {own.place for own in found}]
    return grouped((f"{one.place}: {one.problem}", one.fix) for one in found)


def value_problems(values: t.Mapping[str, t.Any]) -> list[str]:
    """Return a sentence for each value that its variable cannot have.

    :param values: by name, templates resolved.
    """
    found = []
    for name, (pattern, words) in PATTERNS.items():
        given = values.get(name)
        for item in given if name == "site_serial" and isinstance(given, list) else [given] if name in values else []:
            if not pattern.fullmatch(str(item)):
                found.append(f"{name} is {str(item)[:40]!r}: it is {words}. [variable_value]")
    for name in sorted(set(values) & set(specs())):
        spec = {**specs()[name], "required": False, "default": None}
        result = ArgumentSpecValidator({name: spec}).validate({name: values[name]})
        found += [f"{name}: {text[:300].rstrip('.')}. [variable_value]" for text in result.error_messages]
        if name in CHECKS and not result.error_messages:
            names = result.validated_parameters[name]
            found += [f"{name} has {text}" for text in unknown_checks(names, ids_only=CHECKS[name])]
    return found


def _deciding(own: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the variables of a host that decide, and those that their templates name; none of its facts."""
    facts = answered(own)
    names = [name for name in DECIDING if name in own and name not in facts]
    for name in names:
        words = re.findall(r"\w+", text) if "{{" in (text := str(own[name])) else ()
        names += [word for word in dict.fromkeys(words) if word in own and word not in (*names, "groups")]
    return {name: own[name] for name in names}


def problems(hosts: t.Mapping[str, t.Mapping[str, t.Any]], resolved: t.Callable[[str, str], t.Any]) -> list[str]:
    """Return all that is wrong with the variables of hosts, equal sentences once with the folded names of their hosts.

    :param hosts: the variables of each host, localhost too, templates as they are.
    :param resolved: gives a variable of a host by host and name.
    """

    def value(host: str, name: str) -> t.Any:
        try:
            return resolved(host, name)
        except AnsibleError:
            return hosts[host][name]

    known = [*specs(), *PATTERNS]
    groups: dict[str, list[str]] = {}
    for host, own in hosts.items():
        key = repr([[(name, own[name]) for name in known if name in own], _deciding(own)])
        groups.setdefault(key, []).append(host)
    local = {name: value("localhost", name) for name in DECIDING if name in hosts["localhost"]}
    hosts_of: dict[str, list[str]] = {}
    for first, *others in groups.values():
        values = {name: value(first, name) for name in known if name in hosts[first]}
        # What depends on what a run finds is its role's: undefined yet, or for core 2.16 the template's text.
        found = value_problems({name: item for name, item in values.items() if _is_plain(item)})
        found += [f"{line}. {LOCAL_FIX}" for line in differing(_deciding(hosts[first]), local, partial(value, first))]
        for text in found:
            hosts_of.setdefault(text, []).extend([first, *others])
    lines = [text if len(members) == len(hosts) else f"{folded(members)}: {text}" for text, members in hosts_of.items()]
    return [*map(str, name_problems({name: name for own in hosts.values() for name in own})), *lines]


def _is_plain(value: t.Any) -> bool:
    return isinstance(value, PLAIN) and "{{" not in str(value) and not (isinstance(value, str) and "omit" in value)

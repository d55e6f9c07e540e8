# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What roles and playbooks ask of data in one step: the file beside this one with a filter's name documents it."""

from __future__ import annotations

import contextlib
import os
import typing as t
from importlib.util import find_spec

from ansible.errors import AnsibleActionFail

from ..module_utils._audit.renumbered import FIX as RESTORE
from ..module_utils._check import UNPLANNED_ADDRESSES, WARNING
from ..module_utils._errors import InputError, RdmaError
from ..module_utils._fabric.attachments import ATTACHMENTS
from ..module_utils._fabric.lock import LOCK, read_lock
from ..module_utils._fabric.shapes import planned_rails
from ..plugin_utils._arguments import for_this_run
from ..plugin_utils._host_plan import hosts_out_of_service, planned_hosts, read_host_plan, read_plan
from ..plugin_utils._release import checksums, custom_kinds, workloads
from ..plugin_utils._report.equal import folded
from ..plugin_utils._settings import group_problem, planner_problems, problems, tag_problems
from ..plugin_utils._verdict.dry_run import report
from ..plugin_utils._verdict.intake import answer_in
from ..plugin_utils._verdict.preflight import (
    HostPlace,
    Trouble,
    batches,
    kind_troubles,
    select_hosts,
    sentences_by_hosts,
    trouble_of,
    troubles_of,
)

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def cluster_access(kubeconfig: str | None) -> dict[str, t.Any]:
    """Return whether there is a cluster, and the kubeconfig that reaches it."""
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    inside = "KUBERNETES_SERVICE_HOST" in os.environ and os.path.isfile(SERVICE_ACCOUNT)
    try:
        collection = find_spec("ansible_collections.kubernetes.core") is not None
    except ImportError:
        collection = False
    missing = bool(path) and not any(os.path.exists(os.path.expanduser(one)) for one in path.split(os.pathsep))
    return {"there": bool(path) or inside, "kubeconfig": path, "missing": missing, "collection": collection}


def lock_copy(
    found: t.Iterable[dict[str, t.Any]],
    plan_dir: str,
    fabric: str,
    namespace: str,
    release: t.Iterable[str] = (),
    allow_renumber: bool = False,
) -> dict[str, t.Any]:
    """Return the conflicts, and the ConfigMap.

    :param found: the existing objects of that name: one, or none.
    :param plan_dir: the folder of plan.json.
    :param namespace: of the ConfigMap.
    :param release: the names in fabric_release.
    :param allow_renumber: whether nodes may get other addresses.
    """
    # The planner reads the options' documentation: import it only for this filter.
    from ..plugin_utils._plan.lock import parse_lock
    from ..plugin_utils._plan.lock_copy import LockCopy
    from ..plugin_utils._plan.store import read_text

    copy = LockCopy(found, fabric, namespace)
    place = os.path.join(plan_dir, LOCK)
    try:
        read_lock(plan_dir)
        text = read_text(place)
        problems = copy.problems(parse_lock(text, place), release, allow_renumber=allow_renumber)
        configmap = copy.configmap(text)
    except RdmaError as exc:
        rows: t.Sequence[object] = exc.problems if isinstance(exc, InputError) else [exc]
        return {"problems": [str(one) for one in rows], "object": {}}
    return {"problems": [str(one) for one in problems], "object": configmap}


def own_device(plan_dir: str, host: str) -> str:
    """Return the attachment by which pods get a device of their own; empty where they do not, or without a plan."""
    try:
        have = read_host_plan(os.path.expanduser(os.path.expandvars(plan_dir)), host)
    except AnsibleActionFail:
        # The filter that reads a value of the plan reports what is wrong with it.
        return ""
    kind = (have["network"], have.get("rdma_mode"))
    return next(
        (row.name for row in ATTACHMENTS.values() if row.own_device and (row.network, row.rdma_mode) == kind), ""
    )


def service_hosts(localhost: t.Mapping[str, t.Any]) -> str:
    """Return the pattern of the fabric's hosts, without those that the plan has out of service.

    :param localhost: the variables of localhost.
    """
    folder = os.path.join(
        str(localhost.get("fabric_plan_dir") or "plan"), str(localhost.get("fabric_name") or "fabric")
    )
    out = hosts_out_of_service(os.path.expanduser(os.path.expandvars(folder)))
    return ":!".join([str(localhost.get("fabric_group") or "gpu_nodes"), *out])


def run_hosts(
    results: t.Mapping[str, t.Mapping[str, t.Any]],
    lost: t.Sequence[str],
    plan_dir: str,
    groups: t.Mapping[str, t.Sequence[str]],
    most: t.Any = "5%",
    serial: t.Any = None,
    attachment: str = "",
    network: str = "roce",
    unfinished: t.Collection[str] = (),
    *,
    all_hosts: bool = True,
) -> dict[str, t.Any]:
    """Return what becomes of the hosts of a run, what they have of their own, and in which batches they are changed.

    :param results: of rail_audit, by host; `lost` are the hosts that did not answer.
    :param groups: of the inventory.
    :param most: site_max_excluded.
    :param serial: site_serial.
    :param attachment: by which pods get a device of their own; empty where none, or where guests may have one.
    :param unfinished: nodes that an earlier run left cordoned.
    :param all_hosts: whether hosts without drift are played too.
    """
    answers = {host: answer_in({"checks": None, **result}) for host, result in results.items()}
    places, owners = _planned(plan_dir)
    found = {host: troubles_of(result, answers[host]) for host, result in results.items()}
    for host, answer in answers.items():
        strange = [(text, owners[text]) for text in answer.facts.get(UNPLANNED_ADDRESSES) or [] if text in owners]
        found[host] += [
            Trouble("address_renumbered", None, f"{text} is here, and this plan gives it to {owner}.", RESTORE)
            for text, owner in strange
        ]
        facts = results[host].get("facts")
        found[host] += kind_troubles(facts.get("gathered") if isinstance(facts, dict) else None, attachment, network)
    made = select_hosts(found, lost, places, groups, most)
    same = [] if all_hosts else [host for host, result in results.items() if _as_planned(result, unfinished)]
    out = {*made.excluded, *made.deferred, *same}
    hosts, sizes = batches([host for host in results if host not in out], made.rails, places, serial)
    seen = sentences_by_hosts(
        (trouble_of(check), host)
        for host, answer in answers.items()
        for check in answer.checks
        if check["status"] == WARNING
    )
    unchanged = folded(host for host in same if host not in made.excluded)
    return {**vars(made), "warnings": seen, "hosts": hosts, "serial": sizes, "same": unchanged}


def _as_planned(result: t.Mapping[str, t.Any], unfinished: t.Collection[str]) -> bool:
    """Whether a host says that no role has anything to do there, and none was left in the middle."""
    facts = result.get("facts")
    if not isinstance(facts, dict) or facts.get("drift") != [] or facts.get("emptied") == "reboot":
        return False
    node = facts.get("node")
    return not isinstance(node, dict) or node.get("node") not in unfinished


def _planned(plan_dir: str) -> tuple[dict[str, HostPlace], dict[str, str]]:
    """Return where each host of the plan is, and the host of each address."""
    folder = os.path.expanduser(os.path.expandvars(plan_dir))
    places, owners = {}, {}
    with contextlib.suppress(AnsibleActionFail):
        nodes = read_plan(folder)["nodes"]
        for host in planned_hosts(folder):
            with contextlib.suppress(AnsibleActionFail):
                have = read_host_plan(folder, host)
                interfaces = {rail["name"]: rail["interface"] or rail["pci"] or "" for rail in have["rails"]}
                places[host] = HostPlace(nodes[have["node"]]["zone"], interfaces=interfaces)
                owners.update(
                    {row["address"]: have["node"] for rail in planned_rails(have) for row in rail["addresses"]}
                )
    return places, owners


def dry_run(
    hostvars: t.Any,
    hosts: t.Iterable[str],
    answering: t.Collection[str],
    problems: t.Iterable[str],
    command: t.Mapping[str, t.Any] | None,
) -> list[str]:
    """Return the lines."""
    answers = {host: hostvars.raw_get(host) if host in answering else None for host in hosts}
    return [for_this_run(line) for line in report(answers, problems, command)]


def reboot_plan(
    results: dict[str, t.Any], *, reboot: bool = True, drain: bool = False, due: t.Mapping[str, str] | None = None
) -> dict[str, t.Any]:
    """Return whether and why a host needs a reboot, and the steps of it.

    :param results: of the roles' modules, by role.
    :param reboot: whether one is allowed.
    :param drain: whether the node is drained before.
    :param due: who wants it in any case, with the reason.
    """
    reasons: list[str] = []
    waiting: list[str] = []
    lines: list[str] = []
    power_cycle = False
    rows = [
        (role, result)
        for role, given in results.items()
        for result in (given if isinstance(given, list) else [given])
        if isinstance(result, dict)
    ]
    for role, result in rows:
        lines += [
            f"skip ({role}): card {card['card']} ({', '.join(card['devices']) or 'no driver'}): {card['why']}"
            for card in result.get("skipped_cards", ())
        ]
        if result.get("power_cycle_required"):
            power_cycle = True
            pending = [card for card in result["cards"] if card["status"] in ("pending", "power_cycle")]
            lines += [f"power cycle ({role}): card {card['card']}: {card['note']}" for card in pending]
        if result.get("reboot_required"):
            waiting += [role] if role not in waiting else []
            reasons += [f"{role}: {why}" for why in result.get("reboot_reasons", [])]
    for role, why in (due or {}).items():
        if role not in waiting:
            waiting.append(role)
            reasons.append(f"{role}: {why}")
    if reasons:
        how = "reboot" if reboot else "no reboot (rdma_host_reboot is false), although one is needed"
        lines += ["drain: cordon the node and move its pods"] if drain and reboot else []
        lines += [f"{how}: {why}" for why in reasons]
        lines += ["uncordon: when all changes are active"] if drain and reboot else []
    return {
        "required": bool(reasons),
        "reasons": reasons,
        "roles": waiting,
        "power_cycle": power_cycle,
        "lines": lines,
    }


def release_parts(objects: t.Iterable[dict[str, t.Any] | None]) -> dict[str, t.Any]:
    """Return workloads, values and kinds."""
    rows = [row for row in objects if row]
    return {"workloads": workloads(rows), "values": checksums(rows), "kinds": custom_kinds(rows)}


def setting_problems(hostvars: t.Any, hosts: t.Iterable[str], group: str = "") -> list[str]:
    """Return what is wrong."""
    names = [str(name) for name in dict.fromkeys([*hosts, "localhost"]) if name in hostvars]
    found = problems({name: hostvars.raw_get(name) for name in names}, lambda host, name: hostvars[host][name])
    local_vars = hostvars["localhost"]
    empty = group and group_problem(local_vars["groups"], group, local_vars.get("ansible_inventory_sources"))
    if empty and empty.place == "inventory":
        return [str(empty)]
    if found or empty:
        # The planner refuses these later: all are shown at once.
        found += planner_problems(hostvars)
    return found


MELLANOX = "15b3"
Json = dict[str, t.Any]


def sriov_losing(states: t.Iterable[Json], policies: t.Sequence[Json], groups: t.Iterable[Json]) -> list[str]:
    """Return the cards that would lose their virtual functions."""
    found = []
    # Sets: the items of a templated mapping are a generator.
    labels = {node: set(group["labels"].items()) for group in groups for node in group["nodes"]}
    for state in states:
        node = state["metadata"]["name"]
        chosen = [
            row["spec"] for row in policies if labels.get(node, set()).issuperset(row["spec"]["nodeSelector"].items())
        ]
        if not chosen:
            continue
        named = {
            name.partition("#")[0]
            for spec in chosen
            for key in ("pfNames", "rootDevices")
            for name in (spec.get("nicSelector") or {}).get(key) or ()
        }
        found += [
            f"{node}: {card.get('name') or 'a card'} ({card['pciAddress']}, "
            f"{card.get('totalvfs') or card.get('numVfs')} functions)"
            for card in (state.get("status") or {}).get("interfaces") or ()
            if card.get("vendor") == MELLANOX
            and not card.get("externallyManaged")
            and not named & {card.get("name"), card["pciAddress"]}
            and (card.get("totalvfs") or card.get("numVfs"))
        ]
    return found


class FilterModule:
    """The filters."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return them by their names."""
        hosts = (dry_run, own_device, reboot_plan, run_hosts, service_hosts, setting_problems)
        cluster = (cluster_access, lock_copy, release_parts, sriov_losing)
        return {**{one.__name__: one for one in (*hosts, *cluster)}, "unknown_tags": tag_problems}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What roles and playbooks ask of data in one step: the file beside this one with a filter's name documents it."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._audit.renumbered import FIX as RESTORE
from ..module_utils._check import DEVIATION, STRANGE
from ..module_utils._cluster.nodes import listed
from ..module_utils._errors import InputError, RdmaError, grouped, with_id
from ..module_utils._fabric.attachments import ATTACHMENTS
from ..module_utils._fabric.lock import LOCK, read_host_plans, read_lock
from ..module_utils._intake import line
from ..plugin_utils._host_plan import read_host_plan
from ..plugin_utils._release import checksums, custom_kinds, workloads
from ..plugin_utils._report.equal import folded
from ..plugin_utils._settings import problems, tag_problems
from ..plugin_utils._verdict.intake import answer_in

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def cluster_access(kubeconfig: str | None) -> dict[str, t.Any]:
    """Return whether there is a cluster, and the kubeconfig that reaches it."""
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    inside = "KUBERNETES_SERVICE_HOST" in os.environ and os.path.isfile(SERVICE_ACCOUNT)
    return {"there": bool(path) or inside, "kubeconfig": path}


def host_problems(facts: t.Mapping[str, t.Mapping[str, t.Any]], attachment: str, network: str) -> list[str]:
    """Return which hosts do not go with the fabric."""
    found = []
    # Who did not answer the question is told of by who asked it.
    facts = {host: row for host, row in facts.items() if isinstance(row, dict)}
    guests = [host for host, row in facts.items() if row.get("virtualization_role") == "guest"]
    if guests and attachment in ATTACHMENTS and ATTACHMENTS[attachment].own_device:
        kinds = ", ".join(sorted({str(facts[host].get("virtualization_type")) for host in guests}))
        found.append(
            f"{len(guests)} of {len(facts)} hosts are virtual machines or containers ({kinds}): {listed(guests)}. "
            f"Attachment {attachment} is for bare metal. Use macvlan (RoCE) or ipoib, or, if these guests have "
            "physical functions with SR-IOV, set site_sriov_guests to true. [guests]"
        )
    if network == "infiniband" and (bare := [host for host, row in facts.items() if not _managed(row)]):
        found.append(
            f"{len(bare)} of {len(facts)} hosts have no Ethernet interface with a default route and an address: "
            f"{listed(bare)}. Kubernetes and Spiderpool's agents cannot speak over InfiniBand: give each host a "
            "management address. [no_management]"
        )
    return found


def _managed(facts: t.Mapping[str, t.Any]) -> bool:
    """Whether a default route leaves by something that is not InfiniBand, with an address."""
    routes = [facts.get(f"default_ipv{family}") or {} for family in (4, 6)]
    return any(row.get("address") and row.get("type") != "infiniband" for row in routes)


def lock_copy(
    found: t.Iterable[dict[str, t.Any]],
    plan_dir: str,
    fabric: str,
    namespace: str,
    release: t.Iterable[str] = (),
    allow_renumber: bool = False,
) -> dict[str, t.Any]:
    """Return what is in the way, and the ConfigMap.

    :param found: the objects of that name: one, or none.
    :param plan_dir: the folder of plan.json.
    :param namespace: of the ConfigMap.
    :param release: the names in fabric_release.
    :param allow_renumber: whether nodes may get other addresses.
    """
    # The planner reads the options' documentation: only who asks for this pays for that.
    from ..plugin_utils._plan.lock import parse_lock
    from ..plugin_utils._plan.lock_copy import LockCopy
    from ..plugin_utils._plan.store import read_text

    copy = LockCopy(found, fabric, namespace)
    place = os.path.join(plan_dir, LOCK)
    try:
        read_lock(plan_dir)
        text = read_text(place)
        problems = copy.problems(parse_lock(text, place), release, allow_renumber=allow_renumber)
        wanted = copy.wanted(text)
    except InputError as exc:
        return {"problems": [str(one) for one in exc.problems], "object": {}}
    except RdmaError as exc:
        return {"problems": [str(exc)], "object": {}}
    return {"problems": [str(one) for one in problems], "object": wanted}


def own_device(plan_dir: str, host: str) -> str:
    """Return the attachment by which pods get a device of their own; empty where they do not, or without a plan."""
    try:
        have = read_host_plan(os.path.expanduser(os.path.expandvars(plan_dir)), host)
    except AnsibleActionFail:
        # Who takes something of the plan says what is wrong with it.
        return ""
    kind = (have["network"], have.get("rdma_mode"))
    return next(
        (row.name for row in ATTACHMENTS.values() if row.own_device and (row.network, row.rdma_mode) == kind), ""
    )


def preflight_problems(
    results: t.Mapping[str, t.Mapping[str, t.Any]], status: str = DEVIATION, plan_dir: str = ""
) -> list[str]:
    """Return what the hosts' checks of that status say; a host that could not be looked at is in the way as well."""
    answers = {host: answer_in({"checks": None, **result}) for host, result in results.items()}
    strange = {host: answer.facts.get(STRANGE) or [] for host, answer in answers.items()}
    owners: dict[str, str] = {}
    if plan_dir and any(strange.values()):
        # Only where there are any: the fleet's plan is some thousand files.
        for piece in read_host_plans(plan_dir):
            owners.update({row["address"]: piece["node"] for rail in piece["rails"] for row in rail["addresses"]})
    hosts: dict[tuple[str, str], list[str]] = {}
    for host, result in results.items():
        for check in answers[host].checks:
            if check["status"] == status:
                place = f"{check['rail']}: " if check["rail"] and check["rail"] not in str(check["cause"]) else ""
                cause = str(check["cause"]).rstrip(".")
                hosts.setdefault((f"{place}{cause}.", with_id(str(check["fix"] or ""), check["id"])), []).append(host)
        failed = "" if "checks" in result else f"rail_audit: {line(result.get('msg')) or 'no answer'}"
        said = result.get("errors")
        errors = [failed, *(said if isinstance(said, list) else ()), answers[host].error]
        for error in filter(None, map(line, errors)) if status == DEVIATION else ():
            hosts.setdefault((with_id(error, "host_unread"), ""), []).append(host)
        for address in strange[host]:
            if address in owners:
                text = f"{address} is here, and this plan gives it to {owners[address]}."
                hosts.setdefault((text, RESTORE), []).append(host)
    return grouped((f"{listed(dict.fromkeys(names))}: {text}", fix) for (text, fix), names in hosts.items())


PARTS = ("links", "addresses", "routes", "rules", "sysctls")
LIVE = "__rail_network_live"
FILES = "__rail_network_files"
DRIVER = "rdma_driver_result"
OTHERS = {
    "nic_mode_result": "nic_mode",
    "__rdma_host_netns": "rdma_host",
    "__rdma_host_result": "rdma_host",
    "gpudirect_result": "gpudirect",
    "__lossless_roce_result": "lossless_roce",
}
"""The registered results that change something else, each with its role."""


def _count(result: t.Any, count: t.Callable[[t.Any], int]) -> str:
    """Return the number of something in a result; the host says what is in there."""
    if not isinstance(result, dict) or result.get("skipped"):
        return "-"
    try:
        return "?" if result.get("failed") or result.get("problems") else str(count(result))
    except (TypeError, KeyError, AttributeError):
        return "?"


def _changed(part: str) -> t.Callable[[t.Any], int]:
    """Return what counts the lines of a part that go or come, whichever are more: one that changes does both."""
    sides = (("before", "after"), ("after", "before"))
    return lambda result: max(len(set(result[one][part]) - set(result[other][part])) for one, other in sides)


def _files(result: t.Any) -> int:
    return sum(check["status"] == DEVIATION for check in answer_in(result).checks)


def _cells(values: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    """Return the row of a host."""
    cells = [_count(values.get(LIVE), _changed(part)) for part in PARTS]
    cells += [_count(values.get(FILES), _files), _count(values.get(DRIVER), lambda result: len(result["packages"]))]
    found = {name: values[name] for name in (DRIVER, *OTHERS) if isinstance(values.get(name), dict)}
    boots = any(one.get("reboot_required") is True for one in found.values())
    also = {role: True for name, role in OTHERS.items() if found.get(name, {}).get("changed") is True}
    return (*cells, "yes" if boots else "no", ", ".join(also))


def preview_table(hostvars: t.Any, hosts: t.Sequence[str], answering: t.Collection[str]) -> list[str]:
    """Return the lines."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        cells = _cells(hostvars.raw_get(host)) if host in answering else ("no answer", *[""] * (len(PARTS) + 3))
        rows.setdefault(cells, []).append(host)
    table: list[tuple[str, ...]] = [("host", *PARTS, "files", "packages", "reboot", "also")]
    table += [(folded(names, 4), *cells) for cells, names in rows.items()]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def reboot_plan(
    results: dict[str, t.Any], *, reboot: bool = True, drain: bool = False, due: t.Mapping[str, str] | None = None
) -> dict[str, t.Any]:
    """Return whether and why a host needs a reboot, and what a run would do to it.

    :param results: of the roles' modules, by role.
    :param reboot: whether one is allowed.
    :param drain: whether the node is drained before.
    :param due: who wants it in any case, with the reason.
    """
    reasons: list[str] = []
    waiting: list[str] = []
    lines: list[str] = []
    power_cycle = False
    asked = [
        (role, result)
        for role, given in results.items()
        for result in (given if isinstance(given, list) else [given])
        if isinstance(result, dict)
    ]
    for role, result in asked:
        lines += [
            f"leave alone ({role}): card {card['card']} ({', '.join(card['devices']) or 'no driver'}): {card['why']}"
            for card in result.get("left_alone", ())
        ]
        lines += [f"write ({role}): {what}" for what in _written(result)]
        if result.get("power_cycle_required"):
            power_cycle = True
            lines += [f"power cycle by hand ({role}): {why}" for why in _power_cycle(result)]
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
        lines += ["uncordon: when all of it is in force"] if drain and reboot else []
    return {
        "required": bool(reasons),
        "reasons": reasons,
        "roles": waiting,
        "power_cycle": power_cycle,
        "lines": lines or ["nothing: the host is as planned"],
    }


def _written(result: dict[str, t.Any]) -> list[str]:
    """Return what is written: what the checks found to differ, or that there is something."""
    if not result.get("changed"):
        return []
    found = [
        f"{' '.join(filter(None, (check['id'], check.get('rail'), check.get('object'))))}: {_difference(check)}"
        for check in result.get("checks", ())
        if check.get("status") == "deviation"
    ]
    return found or ["changes that its own task shows (run with --diff)"]


def _difference(check: dict[str, t.Any]) -> str:
    if check["observed"] == check["planned"]:
        return str(check.get("cause") or check["planned"])
    return f"{check['observed'] or 'nothing'} -> {check['planned']}"


def _power_cycle(result: dict[str, t.Any]) -> list[str]:
    cards = [
        f"card {card['card']}: {card['note']}"
        for card in result.get("cards", ())
        if card.get("status") in ("pending", "power_cycle")
    ]
    return cards or ["a value that no reboot brings into force"]


def release_parts(objects: t.Iterable[dict[str, t.Any] | None]) -> dict[str, t.Any]:
    """Return workloads, values and kinds."""
    rows = [row for row in objects if row]
    return {"workloads": workloads(rows), "values": checksums(rows), "kinds": custom_kinds(rows)}


def setting_problems(hostvars: t.Any, hosts: t.Iterable[str]) -> list[str]:
    """Return what is wrong."""
    names = [str(name) for name in dict.fromkeys([*hosts, "localhost"]) if name in hostvars]
    return problems({name: hostvars.raw_get(name) for name in names}, lambda host, name: hostvars[host][name])


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
        return {
            "cluster_access": cluster_access,
            "host_problems": host_problems,
            "lock_copy": lock_copy,
            "own_device": own_device,
            "preflight_problems": preflight_problems,
            "preview_table": preview_table,
            "reboot_plan": reboot_plan,
            "release_parts": release_parts,
            "setting_problems": setting_problems,
            "sriov_losing": sriov_losing,
            "unknown_tags": tag_problems,
        }

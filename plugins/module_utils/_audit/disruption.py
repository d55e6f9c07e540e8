# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports workloads that a run would disrupt on a host, and the host's identity in a cluster.

The roles' modules return in check mode what the run would do, and only on a host with workloads.
"""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from .._card import run as card_run
from .._check import DEVIATION, deviation
from .._driver import run as driver_run
from .._errors import RdmaError
from .._files import HostFiles
from .._gpudirect import run as gpudirect_run
from .._netns import run as netns_run
from .._persist import run as persist_run
from .._qos import run as qos_run
from .._rdma import host_run, workload
from .._route import rollback
from .._route import run as route_run
from .groups import RUN_KEY, Checks, Facts, Request, compare, runs_role

IDENTITY = ("machine_id", "boot_id", "kubelet")
Row = tuple[str, str, t.Any]
# What changes a driver, a mode or a name, and wants the reboot: the role, its module, and where that works.
CHANGES: tuple[Row, ...] = (
    ("rdma_driver", "rdma_driver_info", driver_run),
    ("nic_link_type", "nic_link_type", card_run),
    ("rdma_host", "rdma_netns", netns_run),
    ("rdma_host", "rdma_host", host_run),
    ("gpudirect", "gpudirect", gpudirect_run),
)
PENDING_KEYS = ("changed", "packages", "reboot_required", "problems", "warnings", "power_cycle_required")
"""The keys of a result by which a role has something to do or to say."""
NETWORK: tuple[Row, ...] = (
    ("rail_network", "policy_route", route_run),
    ("rail_network", "rail_persist", persist_run),
    ("lossless_roce", "roce_qos", qos_run),
)


def check_drift(request: Request) -> tuple[Checks, Facts]:
    """Return as fact `drift` the roles that would change or report something; none where the host is as planned."""
    persist = boolean(request.settings.get(RUN_KEY, {}).get("persist", True))
    found = ["rail_network"] if rollback.pending() else []
    packages = [row for row in (*CHANGES, *NETWORK) if persist or row[1] != "rail_persist"]
    for role, name, result in _results(request, packages):
        due = any(result.get(key) for key in PENDING_KEYS)
        # A cable is no role's work; what another module's check names, its role may refuse.
        bad = name != "policy_route" and any(check["status"] == DEVIATION for check in result.get("checks") or ())
        found += [role] if due or bad else []
    return [], {"drift": [*dict.fromkeys(found)]}


def _results(request: Request, packages: t.Iterable[Row]) -> t.Iterator[Row]:
    """Yield role, module and result of each module that would run; what a module refuses is a problem."""
    for role, name, package in packages:
        if runs_role(request, role):
            try:
                yield role, name, compare(name, package, request)
            except RdmaError as exc:
                yield role, name, {"problems": [str(exc)]}


def check_workloads(request: Request) -> tuple[Checks, Facts]:
    """Return what would be disturbed, and as fact `node` the host's identity."""
    run = request.settings.get(RUN_KEY, {})
    found = workload.read(HostFiles())
    facts = {
        "node": {**{key: run.get(key) for key in ("host", "node")}, **{key: found[key] for key in IDENTITY}},
        "emptied": found["emptied"],
    }
    undrained = found["kubelet"] and run.get("drain") is None and not (run.get("cluster") or {}).get("there")
    work = found["work"] if run.get("busy") != "allow" else []
    if not undrained and not work:
        return [], facts
    reboots, at_once = changes_of(request, run)
    checks = []
    if undrained and reboots:
        cause = f"A {found['kubelet']} runs here, no cluster is given to drain the node, and the run would reboot it"
        fix = "Set fabric_kubeconfig (or KUBECONFIG), or set rdma_host_drain: false."
        checks.append(deviation("node_drain", "a cluster", None, f"{cause}: {reboots[0]}.", fix))
    disturbed = at_once + (reboots if not run.get("drain_command") else [])
    if work and disturbed:
        cause = f"{'; '.join(work[:5])}: at work, and would be disturbed: {disturbed[0]}."
        fix = (
            "Wait until the work ends, set rdma_host_drain_command to a command that drains the host in its scheduler, "
            "or rdma_host_busy to allow."
        )
        checks.append(deviation("host_in_use", "no work", work, cause, fix))
    return checks, facts


def changes_of(request: Request, run: dict[str, t.Any]) -> tuple[list[str], list[str]]:
    """Return why the run would reboot the host, and what it would change of it at once.

    :param run: the run's own settings: whether it may `reboot`.
    """
    reboots: list[str] = []
    at_once: list[str] = []
    for _role, name, result in _results(request, CHANGES):
        reboots += result.get("reboot_reasons") or ()
        at_once += [f"{package} is replaced" for package in result.get("replaced") or ()]
        at_once += ["the RDMA namespace mode changes"] if name == "rdma_netns" and result.get("live") == "set" else []
    if runs_role(request, "rail_network"):
        files = HostFiles()
        at_once += [
            f"the MTU of {name} changes from {have} to {rail['mtu']}"
            for rail in request.params.get("rails") or ()
            if (name := files.rail_interface(rail))
            if (have := files.number(f"/sys/class/net/{name}/mtu")) not in (None, rail.get("mtu") or have)
        ]
    return reboots if boolean(run.get("reboot", True)) else [], at_once

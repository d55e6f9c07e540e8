# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks a host before the first change: conflicts that would stop a run there, and what the host would lose.

A function takes the rails of the host plan and its settings, and returns checks and facts. A deviation stops the
complete run before any change, so it reports only problems that a run cannot repair. It needs no RDMA tools, which a
new host does not have yet. To add one: its row in PREFLIGHT_CHECKS, its ids in
plugin_utils/_verdict/ids.py, the variables that it reads in playbooks/preflight.yml.
"""

from __future__ import annotations

import os
from dataclasses import replace

from ansible.module_utils.parsing.convert_bool import boolean

from .._card.pci import CLASS_NETWORK, VENDOR_MELLANOX, normal_address, read_pci
from .._check import conflicting, deviation
from .._errors import Problem
from .._files import ETHERNET, INFINIBAND, HostFiles, Sysfs
from .._management_network import read_management_network
from .._persist import run as persist_run
from .._rdma import host_run
from .._route import model, rollback
from .._route.checks import leaving_checks, lost_interface_check
from .._route.options import SPEC
from .._route.ownership import Ownership
from .._route.path_checks import existing_routes_check
from .._route.path_kernel import PathLookup
from .._route.problems import problems_of
from .._route.route_options import RailOptions, named, parse_options, without
from . import renumbered
from .disruption import check_drift, check_workloads
from .groups import RUN_KEY, CheckFunction, Checks, Facts, Request, check_neighbors, options_of, role_check, runs_role
from .ports import port_checks

# The kernel's module for VLANs.
VLANS = "8021q"
CNI_PLUGINS = "/opt/cni/bin"
PERSIST_CHECKS = ("persist_preflight", "persist_precedence", "persist_existing")


def with_ids(function: CheckFunction, *ids: str) -> CheckFunction:
    """Return the function with only the given checks; a run repairs the others automatically.

    :param ids: of the checks to keep.
    """

    def filtered(request: Request) -> tuple[Checks, Facts]:
        checks, facts = function(request)
        return [check for check in checks if check["id"] in ids], facts

    return filtered


def for_role(role: str, name: str, function: CheckFunction) -> CheckFunction:
    """Return a function that checks only when the run plays a role and the role does not only remove.

    :param role: the role that would change what the function checks; empty for any.
    :param name: the module whose settings say what the role shall do.
    """

    def filtered(request: Request) -> tuple[Checks, Facts]:
        run = request.settings.get(RUN_KEY, {})
        if os.geteuid() and function is not check_user:
            return [], {}  # What it lacks would be said of each file.
        absent = request.settings.get(name, {}).get("state") == "absent"
        not_persistent = name == "rail_persist" and not boolean(run.get("persist", True))
        if absent or not_persistent or not runs_role(request, role):
            return [], {}
        checks, facts = function(request)
        return [check for check in checks if check["status"] != "ok"], facts

    return filtered


def check_user(_request: Request) -> tuple[Checks, Facts]:
    """Find that this user may change nothing: without it a preview is green, and the run fails halfway."""
    if not os.geteuid():
        return [], {}
    cause = f"Ansible works here as the user {os.geteuid()}, and only root may change a host's network."
    fix = "Set ansible_become: true in group_vars of the fabric's group (in group_vars/all: for localhost too)."
    return [deviation("host_root", "root", f"user {os.geteuid()}", cause, fix)], {}


def check_kernel(request: Request) -> tuple[Checks, Facts]:
    """Find that the kernel has no VLANs where the plan wants them."""
    sysfs = Sysfs()
    tagged = [rail["name"] for rail in request.params.get("rails") or () if rail.get("vlan")]
    if not tagged or VLANS in {*sysfs.names("/sys/module"), *sysfs.kernel_modules()}:
        return [], {}
    cause = f"The kernel {os.uname().release} has no module {VLANS}, and the plan has a VLAN for {', '.join(tagged)}."
    fix = "Install the kernel's further modules (Ubuntu: linux-modules-extra), or plan without fabric_vlan."
    return [deviation("host_kernel", VLANS, "no such module", cause, fix)], {}


def check_cni(request: Request) -> tuple[Checks, Facts]:
    """Find that a node lacks CNI plugins that the plan needs, where nothing of this run installs them."""
    settings = request.settings.get("cni", {})
    folder = settings.get("programs") or CNI_PLUGINS
    have = Sysfs().names(folder)
    # An empty folder is no node yet; the agent of a release has reached a node with `spiderpool`.
    if not have or "spiderpool" in have or str(settings.get("install")).lower() != "auto":
        return [], {}
    lacks = ", ".join(name for name in settings.get("needs") or () if name not in have)
    if not lacks:
        return [], {}
    cause = f"The node lacks CNI plugins that the plan needs, below {folder}: {lacks}"
    fix = (
        "Install them there (the package containernetworking-plugins or kubernetes-cni), or set spiderpool_install_cni "
        "to true: that replaces all standard plugins on all nodes, as the chart has one switch for all of them."
    )
    return [deviation("host_cni", lacks, "not there", cause, fix)], {}


def check_ports(request: Request) -> tuple[Checks, Facts]:
    """Find host ports of Spiderpool that another program holds, on a node that Spiderpool is brought to."""
    return port_checks(request.settings.get("cni", {}).get("ports") or {}, HostFiles()), {}


def check_network(request: Request) -> tuple[Checks, Facts]:
    """Find conflicts between a host and the plan: links, addresses, unmanaged rules and routes."""
    sysfs = Sysfs()
    options = options_of("policy_route", SPEC, request)
    want = parse_options(options)
    network = read_management_network(sysfs)
    called = {name for link in network.links.values() for name in (link["ifname"], *link.get("altnames", ()))}
    ports = {rail.identifier: rail.interface for rail in want.rails}
    if runs_role(request, "rdma_host") and request.settings.get("rdma_host", {}).get("naming") != "none":
        # By its address a rail with a name is found only where it gets that name.
        for rail in want.rails:
            at = sysfs.pci_interfaces(rail.pci) if rail.pci and rail.interface not in called else []
            ports[rail.identifier] = next(iter(at), rail.interface)
    with PathLookup() as kernel:
        rails = tuple(replace(rail, interface=ports[rail.identifier]) for rail in want.rails)
        host = kernel.read(named(replace(want, rails=rails), ports), network)
        routes = kernel.existing_routes(want)
    names = {**host.names, **{text: host.names[name] for text, name in ports.items() if name in host.names}}
    host = replace(host, names=names)
    if runs_role(request, "nic_link_type"):
        # The role sets the link type before the network role runs.
        kind = "infiniband" if want.network == "infiniband" else "ethernet"
        links = {name: link if link.managed else replace(link, kind=kind) for name, link in host.snapshot.links.items()}
        host = replace(host, snapshot=replace(host.snapshot, links=links))
    owned = Ownership(want, host)
    missing = [rail for rail in want.rails if rail.identifier not in names]
    pending = [rail for rail in missing if _driver_may_create(rail, request, sysfs)]
    lost = [rail for rail in missing if rail not in pending and model.missing(rail, host, known=True)]
    checks: Checks = []
    facts: Facts = {}
    if not boolean(request.settings.get(renumbered.CHECK, {}).get("allow") or False):
        parts = (host.addresses, owned.addresses | host.retained.addresses)
        apart = host.out_of_service
        live, managed = ({(row.interface, row.address) for row in part if row.interface not in apart} for part in parts)
        checks, facts = renumbered.checks_of(want, names, live, managed)
    want = without(replace(want, rails=tuple(rail for rail in want.rails if rail not in pending)), missing)
    want = named(replace(want, lost=frozenset(rail.name for rail in lost)), names)
    problems = problems_of(want, host, owned)
    if options["confirm_timeout"] and rollback.full():
        text = f"{rollback.STATE_FOLDER} has no room for what the rollback timer keeps."
        problems.append(Problem(rollback.STATE_FOLDER, text, rollback.MAKE_ROOM))
    existing = existing_routes_check(want, host, routes)
    place = {f"rails[{number}]": rail.name for number, rail in enumerate(want.rails)}
    checks += [conflicting("network_preflight", row, place.get(row.place.partition(".")[0])) for row in problems]
    checks += [lost_interface_check(rail, host) for rail in lost]
    return [*checks, *leaving_checks(want, host), existing], facts


def _driver_may_create(rail: RailOptions, request: Request, sysfs: Sysfs) -> bool:
    """Whether a driver or link type that this run sets may bring an interface that is not there."""
    cards = [item for item in read_pci(sysfs).functions.values() if item.class_code >> 8 == CLASS_NETWORK]
    if rail.pci:
        cards = [item for item in cards if item.address == normal_address(rail.pci)]
    driver, types = runs_role(request, "rdma_driver"), runs_role(request, "nic_link_type")
    other = request.settings.get("rdma_driver_info", {}).get("source", "inbox") != "inbox"
    waits = driver and other and not sysfs.exists("/sys/module/mlx5_core/version")
    wanted = {INFINIBAND if request.params.get("network") == "infiniband" else ETHERNET}
    return any(
        (driver and not card.netdevs and card.driver != "vfio-pci")
        or (
            card.vendor == VENDOR_MELLANOX  # a port's name changes with its link type
            and (waits or (types and {sysfs.number(f"/sys/class/net/{one}/type") for one in card.netdevs} != wanted))
        )
        for card in cards
        if not card.is_vf
    )


# The role that would do harm, the module whose settings the function reads, and the function. One of the form
# (rails, settings) -> (checks, facts) is `rail_check(NAME, function)`.
PREFLIGHT_CHECKS: tuple[CheckFunction, ...] = tuple(
    for_role(*row)
    for row in (
        ("", "", check_user),
        ("", "", check_workloads),
        ("rail_network", "cni", check_cni),
        ("rail_network", "cni", check_ports),
        ("rail_network", "policy_route", check_kernel),
        ("rail_network", "policy_route", check_network),
        ("rail_network", "policy_route", check_neighbors),
        ("rdma_host", "rdma_host", with_ids(role_check("rdma_host", host_run), "rdma_rename")),
        ("rail_network", "rail_persist", with_ids(role_check("rail_persist", persist_run), *PERSIST_CHECKS)),
        ("", "", check_drift),
    )
)

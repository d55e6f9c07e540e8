# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides a host's kernel modules, the stable names of its rails, and whether IPoIB can carry their MTU.

Sources: systemd.link(5), modules-load.d(5), Documentation/infiniband/ipoib.rst.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._check import Check, by_role, compared, deviation
from .._errors import Problem
from .._fabric.numbers import IPOIB_CONNECTED_MTU, IPOIB_DATAGRAM_MTU, IPOIB_HEADER
from .host_model import LinkFile, Netdev, RdmaOptions, RdmaRail, RdmaState
from .link_files import applicable, fits, named_by_rule, settings_of

MODULES_FILE = "/etc/modules-load.d/railops-rdma.conf"
SECRET = "WakeOnLanPassword"
LINK_FOLDER = "/etc/systemd/network"
# Before netplan's own 10-netplan-*.link: the first file that matches a device is the only one that counts.
LINK_FILE = "05-railops-{rail}.link"
OWNED_LINK = re.compile(r"05-railops-(?P<rail>.+)\.link")
HEADER = "# Written by railops.rdma (module rdma_host): do not edit; to remove it, set state: absent.\n"

# rdma_ucm serves librdmacm (perftest -R, storage); ib_umad serves ibstat and the subnet manager.
MODULES = {
    "roce": ("ib_uverbs", "rdma_ucm"),
    "infiniband": ("ib_uverbs", "rdma_ucm", "ib_umad", "ib_ipoib"),
}
# With these, pods get the node's device from the shared device plugin, which skips a device without a umad file.
# rdma-core loads ib_umad automatically for InfiniBand only.
SHARED = "shared"
SHARED_DEVICE_MODULE = "ib_umad"


@dataclass
class RdmaPlan:
    """The planned changes; files and names before and after. No run can repair the `problems`."""

    want: RdmaOptions
    have: RdmaState
    files: dict[str, str | None] = field(default_factory=dict)
    load: list[str] = field(default_factory=list)
    reboot_reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything will change."""
        return bool(self.files or self.load)


def wanted_modules(want: RdmaOptions) -> tuple[str, ...]:
    """Return the modules to be loaded at every boot."""
    if want.modules is not None:
        return tuple(name.replace("-", "_") for name in want.modules)
    shared = (SHARED_DEVICE_MODULE,) if want.rdma_mode == SHARED else ()
    return tuple(dict.fromkeys((*MODULES[want.network], *shared)))


def link_text(rail: str, pci: str, interface: str, existing: LinkFile | None = None) -> str:
    """Return the exact content of a rail's .link file, which names the interface when the device appears.

    The other settings are those of the file that applied before, or of systemd's own 99-default.link.

    :param pci: the PCI address of the port.
    :param existing: the file that would apply without the managed one.
    """
    usual = {"AlternativeNamesPolicy": "database onboard slot path", "MACAddressPolicy": "persistent"}
    link, more = settings_of(existing, usual)
    lines = [f"# {rail}", *([f"# with the settings of {existing.path}"] if existing else [])]
    lines += ["[Match]", f"Path=pci-{pci}", "", "[Link]", f"Name={interface}", *link, *more]
    return HEADER + "\n".join(lines) + "\n"


def ipoib_mtu_limit(mode: str | None, port_mtu: int | None) -> int:
    """Return the largest MTU (bytes) of an IPoIB interface.

    :param mode: what /sys/class/net/IF/mode says. Current mlx5 has enhanced IPoIB: datagram only.
    :param port_mtu: the port's active MTU, when known.
    """
    if mode == "connected":
        return IPOIB_CONNECTED_MTU
    return IPOIB_DATAGRAM_MTU if port_mtu is None else port_mtu - IPOIB_HEADER


def plan_host(want: RdmaOptions, have: RdmaState) -> RdmaPlan:
    """Return how the host gets to what is wanted."""
    plan = RdmaPlan(want, have)
    wanted = {**_modules(plan), **_names(plan)} if want.present else {}
    plan.files = {path: text for path, text in wanted.items() if have.files.get(path) != text}
    plan.files.update({path: None for path in have.files if path not in wanted})
    given = [
        f"the name {match['name']} was given by {path} and holds until the host starts again"
        for path, text in have.files.items()
        if (match := re.search(r"^Name=(?P<name>\S+)$", text, re.MULTILINE))
    ]
    if not want.present:
        plan.reboot_reasons = given
    elif want.naming == "none":
        plan.warnings = [f"{one}. Set fabric_interfaces to its next name, or rdma_host_naming: name." for one in given]
    for rail in want.rails if want.present and want.network == "infiniband" else ():
        _ipoib(plan, rail)
    return plan


def _modules(plan: RdmaPlan) -> dict[str, str]:
    """Plan the kernel's modules, and return the file that names them for the next boot."""
    have, modules = plan.have, wanted_modules(plan.want)
    files = {MODULES_FILE: HEADER + "".join(f"{name}\n" for name in modules)} if modules else {}
    there = have.loaded | have.builtin
    plan.load = [name for name in modules if name in have.available and name not in there]
    absent = [name for name in modules if name not in there]
    missing = [name for name in absent if name not in have.available]
    problem = Problem(
        "host",
        f"kernel {have.kernel} has no module {', '.join(missing)}",
        "Install the kernel's RDMA modules (Ubuntu: linux-modules-extra of this kernel) or the vendor's driver "
        "(role rdma_driver); or list the existing modules in rdma_host_modules. [module_missing]",
    )
    plan.problems += [problem] if missing else []
    unlisted = f"{MODULES_FILE} does not list the RDMA modules for the next boot"
    cause = f"not loaded: {', '.join(absent)}" if absent else unlisted
    found = " ".join(name for name in modules if name in there)
    fix = problem.fix if missing else by_role("rdma_host")
    good = not absent and have.files.get(MODULES_FILE) == files.get(MODULES_FILE)
    plan.checks.append(compared("rdma_modules", " ".join(modules), found, cause, fix, good=good))
    return files


def _names(plan: RdmaPlan) -> dict[str, str]:
    """Plan the names of the rails' interfaces, and return the files that give them."""
    want, have = plan.want, plan.have
    files: dict[str, str] = {}
    for rail in want.rails if want.naming != "none" else ():
        if rail.pci is None:
            continue
        device = next((device for device in have.netdevs if device.pci == rail.pci), Netdev("", rail.pci))
        name, existing = LINK_FILE.format(rail=rail.name), applicable(have.link_files, device)
        files[f"{LINK_FOLDER}/{name}"] = link_text(rail.name, rail.pci, rail.interface, existing)
        if problem := next(_obstacles(rail, device, name, existing, have), None):
            plan.problems.append(problem)
            cause, fix = problem.problem, problem.fix
            plan.checks.append(deviation("rdma_rename", rail.interface, cause, cause, fix, rail=rail.name))
            continue
        observed, fix = device.name, by_role("rdma_host")
        if not device.name:
            observed, cause = f"no interface at {rail.pci}", f"there is no network interface at {rail.pci}"
            fix = "Check with lspci that the card is there, and that its driver and link type are right."
        elif rail.interface == device.name:
            cause = ""
        else:
            cause = f"the interface at {rail.pci} is {device.name} and becomes {rail.interface} when the host starts"
            plan.reboot_reasons.append(cause)
            fix = by_role("rdma_host,reboot")
        plan.checks.append(compared("rdma_name", rail.interface, observed, cause, fix, rail=rail.name))
    return files


def renamed(want: RdmaOptions, netdevs: t.Iterable[Netdev]) -> list[str]:
    """Return the interfaces that get another name when the host starts again."""
    wanted = {rail.pci: rail.interface for rail in want.rails if rail.pci and want.present and want.naming == "name"}
    return [device.name for device in netdevs if wanted.get(device.pci, device.name) != device.name]


def _obstacles(
    rail: RdmaRail, device: Netdev, name: str, existing: LinkFile | None, have: RdmaState
) -> t.Iterator[Problem]:
    """Yield why a rail's interface cannot get its name: the first of them counts.

    :param name: of the rail's own .link file, and `existing` the file that would apply without it.
    """
    holder = next((one.pci for one in have.netdevs if one.pci != device.pci and rail.interface == one.name), None)
    if holder is not None:
        yield Problem(
            rail.name,
            f"the name {rail.interface} belongs to the interface at {holder}, and the rail's card is at {device.pci}",
            "Set fabric_rails[].interface to names that the kernel assigns to no card, or name the right card. "
            "[name_in_use]",
        )
    if role := have.roles.get(device.name):
        more = (
            f" List {device.name} in rail_network_adopt_ports if intended." if role.startswith("has the addr") else ""
        )
        yield Problem(
            rail.name,
            f"{device.name} {role}, and would be {rail.interface} when the host starts, without it",
            f"Name the rail's own card; or, if {device.name} really is the rail, use its present name "
            f"(fabric_interfaces), or set rdma_host_naming: none.{more} [name_not_persistent]",
        )
    if existing and existing.name < name:
        yield Problem(
            rail.name,
            f"{existing.path} comes before {name} and would decide the name of {rail.interface}",
            "Rename it so that it sorts later (10-...), or set rdma_host_naming: none. [name_by_link]",
        )
    elif existing and not fits(existing, device):
        problem = f"whether {existing.path} is for {device.name or device.pci} is not clear from its [Match]"
        fix = "Match by Path, Driver, Type or MACAddress there, or set rdma_host_naming: none. [link_file_lost]"
        yield Problem(rail.name, f"{problem}, and its settings would be lost", fix)
    elif existing and SECRET in (key for part, rows in existing.sections if part == "Link" for key, _value in rows):
        yield Problem(
            rail.name,
            f"{existing.path} sets {SECRET}=, and the rail's own file is readable by all users",
            f"Move that line to a [Link] in {LINK_FOLDER}/{name}.d/wol.conf, for root only (0600). [link_file_secret]",
        )
    path, ruled = named_by_rule(have.rules, device) or ("", rail.interface)
    if ruled != rail.interface:
        yield Problem(
            rail.name,
            f'a rule in {path} sets NAME="{ruled}" for {device.name}, which precedes any .link file: it would not '
            f"be {rail.interface}",
            f"Remove that rule from {path}, or name the rail {ruled} (fabric_interfaces), or set rdma_host_naming: "
            "none. [name_by_rule]",
        )


def _ipoib(plan: RdmaPlan, rail: RdmaRail) -> None:
    """Check whether the interface can carry the rail's MTU."""
    device = next((one for one in plan.have.netdevs if rail.interface == one.name or one.pci == rail.pci), None)
    if device is None or not device.infiniband or rail.mtu is None:
        return
    limit = ipoib_mtu_limit(device.ipoib_mode, device.port_mtu)
    good, mode = rail.mtu <= limit, device.ipoib_mode or "datagram"
    cause = f"an MTU of {rail.mtu} is more than {device.name} can carry: {limit} in IPoIB mode {mode}"
    fix = f"Set fabric_mtu to {limit} or less (fabrics of 2 KiB: 2044, of 4 KiB: 4092) and plan again. [ipoib_mtu]"
    plan.problems += [] if good else [Problem(rail.name, cause, fix)]
    seen = f"at most {limit}"
    plan.checks.append(compared("rdma_ipoib_mtu", str(rail.mtu), seen, cause, fix, good=good, rail=rail.name))

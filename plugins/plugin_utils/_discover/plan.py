# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proposes the rails of a fleet from what its hosts have, and names the hosts that differ. No files, no sockets.

A rail is a position: the first GPU's NIC, the second one's, ... What most hosts have is taken for what is meant.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from ...module_utils._cabling.lldp import named_by_mac, received_on
from ...module_utils._card.pci import pci_key
from ...module_utils._formatting import natural
from ...module_utils._validation import INTERFACE, LINK, PCI, InvalidData, excerpt, sanitize, validate

NETWORKS = {"Ethernet": "roce", "InfiniBand": "infiniband"}

_PORT = {"netdev": (None, INTERFACE), "link_layer": (None, str), "state": (None, str)}
_DEVICE: dict[str, t.Any] = {"name": INTERFACE, "pci": (None, PCI), "vf": bool, "serves": (None, str)}
_DEVICE |= {"nearest_gpus": [str], "ports": [_PORT]}
INFO: dict[str, t.Any] = {"gpus": [{"pci": str, "index": int}], "devices": [_DEVICE], "default_interfaces": [str]}
INFO |= {"lldp": (None, {INTERFACE: (None, {"is_switch": bool, "others": (None, [{"is_switch": bool}])})})}
"""The keys of rdma_info's result that a proposal uses."""


class Nic(t.NamedTuple):
    """One port of a host that could be a rail."""

    device: str
    pci: str | None
    interface: str | None
    link_layer: str | None
    state: str | None
    gpu: int | None  # the nearest GPU's number on this host
    switch: str | None = None
    switch_port: str | None = None
    odd: str = ""
    """Why its cable is left out, as a clause about the other end; empty where it is not."""

    @property
    def name(self) -> str:
        """What fabric_interfaces names it by."""
        return self.interface or self.pci or self.device


class HostFinding(t.NamedTuple):
    """One way in which a host differs from the others, or needs a look."""

    host: str
    rail: str | None
    kind: str
    text: str
    fix: str


class ProposedRail(t.NamedTuple):
    """A rail as most hosts have it."""

    name: str
    interface: str
    gpu: int | None
    pci: str | None
    switches: tuple[str, ...]


class Proposal(t.NamedTuple):
    """Proposed inventory values, and the hosts to check."""

    network: str
    rails: tuple[ProposedRail, ...]
    interfaces: dict[str, dict[str, str]]  # host: {rail: name}, where a host differs
    nics: dict[str, tuple[Nic | None, ...]]  # host: the NIC of each rail
    findings: tuple[HostFinding, ...]


def leaves_received(received: t.Mapping[str, t.Any] | None, hosts: t.Container[str]) -> list[t.Mapping[str, t.Any]]:
    """Return the neighbors of a port that can be its leaf, each name once: switches that are no host of the fleet.

    Others are the NIC's own firmware, or hosts that bridge: those name their ports by MAC addresses.

    :param received: the port's neighbor (`lldp.best`).
    :param hosts: the fleet's hosts, in lower case, without a domain.
    """
    switches = [item for item in received_on(dict(received or {})) if item["is_switch"] and not named_by_mac(item)]
    names = {str(item.get("switch")): item for item in reversed(switches)}
    return [item for name, item in names.items() if name.lower().split(".")[0] not in hosts]


def candidates(info: t.Mapping[str, t.Any], hosts: t.Container[str] = ()) -> tuple[list[Nic], list[Nic]]:
    """Return the ports of a host that could be rails in their order, and its other RDMA ports.

    Physical functions next to a GPU, in the GPUs' order. Without such a NIC (no GPU, or a guest that does not show
    the switches) all RDMA ports in PCI order. Never an interface with a default route, nor a function that serves the
    NVSwitches: it has the PCI ID of a NIC and is next to GPUs too.
    """
    gpus = {gpu["pci"]: gpu["index"] for gpu in info["gpus"]}
    lldp = info.get("lldp") or {}
    found: list[Nic] = []
    for device in info["devices"]:
        if device["vf"] or device.get("serves"):
            continue
        near = sorted(gpus[gpu] for gpu in device["nearest_gpus"] if gpu in gpus)
        for port in device["ports"]:
            if port.get("netdev") and port["netdev"] in info["default_interfaces"]:
                continue
            received = leaves_received(lldp.get(port.get("netdev")), hosts)
            names = [received[0].get("switch"), received[0].get("port")] if received else [None, None]
            no_name = next(
                (name for name in names if name and not (isinstance(name, str) and LINK.fullmatch(name))), ""
            )
            odd = f"announces {excerpt(no_name)}, which is not a name" if no_name else ""
            if len(received) > 1:
                odd = f"is one of several switches: {', '.join(sorted(excerpt(one.get('switch')) for one in received))}"
            found.append(
                Nic(
                    device=device["name"],
                    pci=device.get("pci"),
                    interface=port.get("netdev"),
                    link_layer=port.get("link_layer"),
                    state=port.get("state"),
                    gpu=near[0] if near else None,
                    switch=None if odd else names[0],
                    switch_port=None if odd else names[1],
                    odd=odd,
                )
            )
    found.sort(key=lambda nic: (nic.gpu or 0, pci_key(nic.pci) if nic.pci else (), natural(nic.name)))
    affine = [nic for nic in found if nic.gpu is not None]
    return (affine, [nic for nic in found if nic.gpu is None]) if affine else (found, [])


def discover(infos: t.Mapping[str, t.Mapping[str, t.Any] | None], names: t.Sequence[str] | None = None) -> Proposal:
    """Return the proposal for a fleet.

    :param infos: what rdma_info returned, by inventory name; None for a host that did not answer.
    :param names: names for the rails, from the first on.
    """
    findings: list[HostFinding] = []
    valid: dict[str, t.Mapping[str, t.Any]] = {}
    for host in sorted(infos, key=natural):
        try:
            if info := infos[host]:
                valid[host] = validate(sanitize(info), INFO, "info")
            else:
                fix = "Make it reachable and run discover again."
                findings.append(HostFinding(host, None, "no answer", "It did not answer.", fix))
        except InvalidData as exc:
            fix = "Look at the host: what answers there is not this collection's module."
            findings.append(HostFinding(host, None, "nonsense", f"Its answer is refused: {exc}.", fix))
    known = {name.lower().split(".")[0] for name in infos}
    ports = {host: candidates(valid[host], known) for host in valid}
    have = {host: nics for host, (nics, _others) in ports.items()}
    count = _most(len(nics) for nics in have.values()) or 0
    profile = _profile(have, count)
    rail_names = [*(names or ())][:count]
    rail_names += [f"rail{number:0{len(str(count))}d}" for number in range(len(rail_names) + 1, count + 1)]
    placed: dict[str, tuple[Nic | None, ...]] = {}
    for host in valid:
        placed[host], more = _place(host, *ports[host], profile, rail_names)
        findings += more
    rails = tuple(_rails(rail_names, placed))
    network = NETWORKS.get(_most(nic.link_layer for nics in placed.values() for nic in nics if nic) or "", "roce")
    findings += _port_findings(placed, rail_names, network)
    if not count:
        fix = "Check card and driver: lspci -d 15b3:, dmesg, `rdma link`; rdma_driver installs the driver."
        findings += [HostFinding(host, None, "no rail", "No RDMA port of it can be a rail.", fix) for host in valid]
    fix = "Nothing: it is no rail, and this collection never changes it."
    findings += [
        HostFinding(host, None, "skipped", f"{device['name']} ({device.get('pci')}) {device['serves']}.", fix)
        for host in valid
        for device in valid[host]["devices"]
        if device.get("serves")
    ]
    return Proposal(
        network=network,
        rails=rails,
        interfaces=_differing(placed, rails),
        nics=placed,
        findings=tuple(sorted(findings, key=lambda item: (natural(item.host), natural(item.rail or ""), item.kind))),
    )


def _most(values: t.Iterable[t.Any]) -> t.Any:
    """Return the most frequent value; among equals the greatest, so that the answer does not depend on the order."""
    counts = Counter(value for value in values if value is not None)
    return max(counts, key=lambda value: (counts[value], value)) if counts else None


def _profile(have: t.Mapping[str, t.Sequence[Nic]], count: int) -> t.Sequence[Nic]:
    """Return the NICs of a host as most hosts are, as the measure for those that lack one."""
    complete = [nics for nics in have.values() if len(nics) == count]
    shapes = [tuple((nic.pci, nic.name) for nic in nics) for nics in complete]
    return complete[shapes.index(Counter(shapes).most_common(1)[0][0])] if complete else []


def _place(
    host: str, nics: t.Sequence[Nic], others: t.Sequence[Nic], profile: t.Sequence[Nic], rails: t.Sequence[str]
) -> tuple[tuple[Nic | None, ...], list[HostFinding]]:
    """Give each rail a NIC of the host: by position when the number is right, else by PCI place, name and GPU."""
    if len(nics) == len(rails):
        return tuple(nics), []
    left = list(nics)
    placed: list[Nic | None] = [None] * len(rails)
    for key in ("pci", "name", "gpu"):
        for index, wanted in enumerate(profile):
            value = getattr(wanted, key)
            match = None if value is None else next((nic for nic in left if getattr(nic, key) == value), None)
            if placed[index] is None and match:
                placed[index] = match
                left.remove(match)
    findings = []
    for index, wanted in enumerate(profile):
        # Its GPU fell off the bus: the NIC is there, and no longer next to one.
        spare = next((nic for nic in others if nic.pci and (nic.pci, nic.name) == (wanted.pci, wanted.name)), None)
        if placed[index] is None and spare:
            placed[index] = spare
            text = f"{spare.name} exists, but no GPU is next to it."
            findings.append(HostFinding(host, rails[index], "missing GPU", text, "Look at the GPU: lspci, dmesg."))
        elif placed[index] is None:
            text = f"It has no NIC where others have {wanted.name} ({wanted.pci or 'no PCI address'})."
            fix = "Check that the card is seated and its driver loaded: lspci -d 15b3:, dmesg."
            findings.append(HostFinding(host, rails[index], "missing NIC", text, fix))
    for nic in left:
        text = f"It has {nic.name} ({nic.pci or 'no PCI address'}) beside the rails."
        fix = "Nothing, if it is meant for storage or management; rails are not made of it."
        findings.append(HostFinding(host, None, "one NIC more", text, fix))
    return tuple(placed), findings


def _rails(names: t.Sequence[str], placed: t.Mapping[str, t.Sequence[Nic | None]]) -> t.Iterator[ProposedRail]:
    for index, name in enumerate(names):
        column = [nics[index] for nics in placed.values()]
        there = [nic for nic in column if nic]
        addresses = {nic.pci for nic in there}
        yield ProposedRail(
            name=name,
            interface=_most(nic.name for nic in there),
            gpu=_most(nic.gpu for nic in there),
            pci=addresses.pop() if len(addresses) == 1 else None,
            switches=tuple(sorted({nic.switch for nic in there if nic.switch}, key=natural)),
        )


def _differing(
    placed: t.Mapping[str, t.Sequence[Nic | None]], rails: t.Sequence[ProposedRail]
) -> dict[str, dict[str, str]]:
    found = {
        host: {
            rail.name: nic.name for rail, nic in zip(rails, nics, strict=False) if nic and nic.name != rail.interface
        }
        for host, nics in placed.items()
    }
    return {host: names for host, names in found.items() if names}


def _port_findings(
    placed: t.Mapping[str, t.Sequence[Nic | None]], rails: t.Sequence[str], network: str
) -> t.Iterator[HostFinding]:
    """Yield ports with another link layer, no link, a neighbor without a name, a cable on another rail's switch."""
    layer = {kind: name for name, kind in NETWORKS.items()}[network]
    owner = _owners(placed)
    for host, nics in placed.items():
        for index, nic in enumerate(nics):
            if nic is None:
                continue
            if nic.link_layer and nic.link_layer != layer:
                text = f"{nic.name} runs {nic.link_layer}; the fleet runs {layer}."
                fix = "Set it with the role nic_link_type; it takes effect after a reset or reboot."
                yield HostFinding(host, rails[index], "other link layer", text, fix)
            if nic.state and nic.state != "ACTIVE":
                fix = "Bring the interface up (role rail_network); if it stays down look at cable and switch port."
                yield HostFinding(host, rails[index], "no link", f"{nic.name} is {nic.state}.", fix)
            if nic.odd:
                text = f"The other end of {nic.name} {nic.odd}."
                fix = "Check what sends LLDP there; a name has 1 to 100 of A-Z a-z 0-9 _ . : / + - and spaces."
                yield HostFinding(host, rails[index], "cable left out", text, fix)
            if nic.switch and owner.get(nic.switch, index) != index:
                usual = sorted((switch for switch, rail in owner.items() if rail == index), key=natural)
                place = f"{nic.switch} {nic.switch_port or ''}".rstrip()
                text = f"{nic.name} is on {place}, which serves {rails[owner[nic.switch]]}."
                fix = f"Move the cable to {' or '.join(usual)}." if usual else "Find the right switch port."
                yield HostFinding(host, rails[index], "wrong leaf", text, fix)


def _owners(placed: t.Mapping[str, t.Sequence[Nic | None]]) -> dict[str, int]:
    """Return the rail that each switch serves: the one that more than half of its cables come from.

    A switch that serves several rails equally (such as a leaf in the rack) has none. The result does not depend on
    scalable units: each has switches of its own.
    """
    served: dict[str, Counter[int]] = {}
    for nics in placed.values():
        for index, nic in enumerate(nics):
            if nic and nic.switch:
                served.setdefault(nic.switch, Counter())[index] += 1
    most = {switch: counts.most_common(1)[0] for switch, counts in served.items()}
    return {switch: index for switch, (index, count) in most.items() if count * 2 > served[switch].total()}

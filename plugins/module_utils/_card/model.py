# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a card is, and what each card and each of its ports shall be: by the rails of the plan, or named by address."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._errors import InputError, Problem
from .pci import normal_address, pci_key
from .vpd import NO_NIC

# TLV "VPI link type" of the firmware; one a port.
LINK_TYPES = {"ib": 1, "eth": 2}
LAYERS = {"InfiniBand": "ib", "Ethernet": "eth"}
RAILS, PCI = "rails", "pci"
# The more exactly a selection names a card, the more it counts.
RANKS = {RAILS: 0, PCI: 1}
VFS = "vfs"
"""The key of a wish for virtual functions beside those of its ports."""


@dataclass(frozen=True)
class Selection:
    """Which cards, and what they shall be. None leaves a thing as it is."""

    select: str
    addresses: tuple[str, ...] = ()
    link_type: str | None = None
    vfs: int | None = None


@dataclass(frozen=True)
class PlacedRail:
    """A rail of the plan and the PCI function that it lies on; None when the host has no such interface."""

    name: str
    interface: str
    address: str | None


@dataclass(frozen=True)
class Card:
    """One card of the host, whatever the number of its functions.

    `role` says what else it does ("carries the default route (eno1)", "serves the NVSwitches (...)"): such a card is
    never written. `standing` says what would go with its link type ("carries ens1np0.30 (ens1np0)"):
    that stays as it is, too. `layers` holds the link layer of each function's port as the kernel sees it now.
    `devices` are its RDMA devices, or interfaces where it has none.
    """

    name: str
    addresses: tuple[str, ...]
    devices: tuple[str, ...] = ()
    layers: dict[str, str] = field(default_factory=dict)
    total_vfs: int = 0
    bluefield: bool = False
    role: str | None = None
    standing: str | None = None

    @property
    def address(self) -> str:
        """The function that is asked: the first one."""
        return self.addresses[0]

    def layer(self, port: int) -> str | None:
        """Return the link layer of a port (from 1) as `ib` or `eth`; None when no driver shows it."""
        found = next((layer for address, layer in self.layers.items() if port_of(address) == port), None)
        return LAYERS.get(found or "")


@dataclass(frozen=True)
class Wish:
    """What one card shall be: the link type of ports by their number from 1, and the virtual functions of each."""

    links: tuple[tuple[int, str], ...] = ()
    vfs: int | None = None
    rails: tuple[str, ...] = ()


def port_of(address: str) -> int:
    """Return the number of the port that a function drives: the first function the first port."""
    return int(address.rsplit(".", 1)[1], 16) + 1


def left_alone(cards: t.Sequence[Card], wishes: t.Mapping[str, Wish]) -> list[dict[str, t.Any]]:
    """Return the cards that nobody selected, each with the reason why it is none of ours."""
    return [
        {"card": card.name, "devices": list(card.devices), "why": card.role or "no rail of the plan lies on it"}
        for card in cards
        if card.name not in wishes
    ]


def unplaced(rails: t.Iterable[PlacedRail], cards: t.Sequence[Card]) -> list[Problem]:
    """Return the rails whose card cannot be told, although the host has cards: their firmware would be forgotten."""
    if not cards:
        return []
    return [
        Problem(
            f"rail {rail.name}",
            f"this host has no interface {rail.interface}, so which card carries the rail cannot be told.",
            "Give its PCI address (fabric_rails[].pci or fabric_interfaces), or load the card's driver.",
        )
        for rail in rails
        if rail.address is None
    ]


def choose(
    selections: t.Sequence[Selection], cards: t.Sequence[Card], rails: t.Sequence[PlacedRail] = ()
) -> dict[str, Wish]:
    """Return what each selected card shall be, by card name.

    :raises InputError: for addresses that are no card, for cards that have another role and are named or carry a
        rail beside it, and for things of a card that two selections of one rank want differently.
    """
    problems: list[Problem] = []
    chosen: dict[str, dict[int | str, tuple[int, t.Any, str]]] = {}
    on_card: dict[str, list[str]] = {}
    for index, selection in enumerate(selections):
        place = f"cards[{index}]"
        rank = RANKS[selection.select]
        if selection.select == RAILS:
            found = _of_rails(rails, cards, problems, on_card)
        else:
            found = _of_addresses(selection.addresses, cards, place, problems)
        for card, ports in found:
            things = chosen.setdefault(card.name, {})
            wanted: dict[int | str, t.Any] = {}
            if selection.link_type:
                wanted.update(dict.fromkeys(ports, selection.link_type))
            if selection.vfs is not None:
                wanted[VFS] = selection.vfs
            for key, value in wanted.items():
                before = things.get(key)
                if before and before[0] == rank and before[1] != value:
                    problems.append(
                        Problem(
                            place,
                            f"card {card.name} is also selected by {before[2]}, which wants it otherwise.",
                            "Let one selection name it.",
                        )
                    )
                elif before is None or rank >= before[0]:
                    things[key] = (rank, value, place)
    if problems:
        raise InputError(dict.fromkeys(problems))
    return {
        name: Wish(
            links=tuple(sorted((key, value[1]) for key, value in things.items() if isinstance(key, int))),
            vfs=things[VFS][1] if VFS in things else None,
            rails=tuple(on_card.get(name, ())),
        )
        for name, things in sorted(chosen.items(), key=lambda item: pci_key(f"{item[0]}.0"))
    }


def _of_rails(
    rails: t.Sequence[PlacedRail], cards: t.Sequence[Card], problems: list[Problem], on_card: dict[str, list[str]]
) -> list[tuple[Card, list[int]]]:
    found = []
    for rail in rails:
        card = next((card for card in cards if rail.address in card.addresses), None)
        if card is None or rail.address is None:
            continue
        if (card.role or "").startswith(NO_NIC):
            problems.append(
                Problem(
                    f"rail {rail.name}",
                    f"card {card.name} {card.role}: a rail on it would take the switches from their manager.",
                    "Correct the rail's interface or PCI address in the inventory and plan again.",
                )
            )
        found.append((card, [port_of(rail.address)]))
        on_card.setdefault(card.name, []).append(rail.name)
    return found


def _of_addresses(
    addresses: t.Sequence[str], cards: t.Sequence[Card], place: str, problems: list[Problem]
) -> list[tuple[Card, list[int]]]:
    """Return the cards of addresses, with the ports that are meant: a function's, or all when it names the card."""
    found = []
    for number, address in enumerate(addresses):
        wanted = normal_address(address)
        whole = "." not in wanted
        card = next((card for card in cards if wanted in (card.name, *card.addresses)), None)
        if card is None:
            there = ", ".join(card.address for card in cards) or "none"
            problems.append(
                Problem(
                    f"{place}.pci[{number}]",
                    f"there is no NVIDIA (Mellanox) network card at {address} on this host.",
                    f"Use one of the addresses that are there: {there}.",
                )
            )
            continue
        if card.role:
            problems.append(
                Problem(
                    f"{place}.pci[{number}]",
                    f"card {card.name} {card.role}: it is never changed by this module.",
                    "Take it out of the list; change it from the console if it must be.",
                )
            )
        found.append((card, [port_of(item) for item in card.addresses] if whole else [port_of(wanted)]))
    return found

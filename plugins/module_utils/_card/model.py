# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cards, and the options of each card and each of its ports: selected by the plan's rails, or by address."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._errors import InputError, Problem
from .pci import normal_address, pci_key
from .vpd import NO_NIC

# TLV "VPI link type" of the firmware; one a port.
LINK_TYPES = {"ib": 1, "eth": 2}
RAILS, OTHERS, PCI = "rails", "others", "pci"
VFS = 0
"""The key of a wish for virtual functions beside those of its ports, which begin at 1."""


@dataclass(frozen=True)
class PlacedRail:
    """A rail of the plan and the PCI function that it is on; None when the host has no such interface."""

    name: str
    interface: str
    address: str | None


@dataclass(frozen=True)
class Card:
    """One card of the host, whatever the number of its functions.

    `role` says what else it does ("carries the default route (eno1)", "serves the NVSwitches (...)"): such a card is
    never written. `standing` says what would go with its link type ("carries ens1np0.30 (ens1np0)"):
    that stays as it is, too. `layers` holds the link layer of each function's port as the kernel sees it now, `ib` or
    `eth`. `devices` are its RDMA devices, or interfaces where it has none.
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
        """The function that is queried: the first one."""
        return self.addresses[0]

    def layer(self, port: int) -> str | None:
        """Return the link layer of a port (from 1); None when no driver shows it."""
        return next((layer for address, layer in self.layers.items() if port_of(address) == port), None)


@dataclass(frozen=True)
class CardOptions:
    """The options of one card: the link type of ports by number from 1, and the virtual functions of each."""

    links: tuple[tuple[int, str], ...] = ()
    vfs: int | None = None


def port_of(address: str) -> int:
    """Return the number of the port that a function drives: the first function the first port."""
    return int(address.rsplit(".", 1)[1], 16) + 1


def unselected_cards(cards: t.Sequence[Card], selected: t.Mapping[str, CardOptions]) -> list[dict[str, t.Any]]:
    """Return the cards that the plan does not select, each with the reason."""
    return [
        {"card": card.name, "devices": list(card.devices), "why": card.role or "carries no rail of the plan"}
        for card in cards
        if card.name not in selected
    ]


def rails_without_card(rails: t.Iterable[PlacedRail], cards: t.Sequence[Card]) -> list[Problem]:
    """Return the rails without a known card on a host that has cards: their firmware settings would be skipped."""
    return [
        Problem(
            f"rail {rail.name}",
            f"this host has no interface {rail.interface}, so which card carries the rail is not known.",
            "Give its PCI address (fabric_rails[].pci or fabric_interfaces), or load the card's driver. [card_unknown]",
        )
        for rail in rails
        if cards and rail.address is None
    ]


def select_cards(
    selections: t.Sequence[t.Mapping[str, t.Any]], cards: t.Sequence[Card], rails: t.Sequence[PlacedRail] = ()
) -> dict[str, CardOptions]:
    """Return what each selected card shall be, by card name.

    :param selections: as the module's option `cards` has them.
    :raises InputError: for addresses that are no card, for cards that have another role and are named or carry a
        rail beside it, and for things of a card that two selections of one kind want differently.
    """
    problems: list[Problem] = []
    chosen: dict[str, dict[int, tuple[str, t.Any, str]]] = {}
    # What names a card by its address counts more than what names it by its rails.
    for index, item in sorted(enumerate(selections), key=lambda row: row[1]["select"] == PCI):
        place, kind = f"cards[{index}]", item["select"]
        found: t.Iterable[tuple[Card, list[int]]]
        if kind == RAILS:
            found = _of_rails(rails, cards, problems)
        elif kind == OTHERS:
            of_rails = {rail.address for rail in rails}
            rest = [card for card in cards if not card.role and of_rails.isdisjoint(card.addresses)]
            found = [(card, [port_of(address) for address in card.addresses]) for card in rest]
        else:
            found = _of_addresses(item["pci"], cards, place, problems)
        for card, ports in found:
            own = chosen.setdefault(card.name, {})
            wanted = {**dict.fromkeys(ports, item["link_type"]), VFS: item["vfs"]}
            for key, value in wanted.items():
                by, before, where = own.get(key, ("", value, ""))
                if value is not None and by == kind and before != value:
                    text = f"card {card.name} is also selected by {where}, with other settings."
                    problems.append(Problem(place, text, "Name it in one selection only. [card_duplicate]"))
                elif value is not None:
                    own[key] = (kind, value, place)
    if problems:
        raise InputError(dict.fromkeys(problems))
    return {
        name: CardOptions(
            tuple((port, row[1]) for port, row in sorted(own.items()) if port != VFS),
            own[VFS][1] if VFS in own else None,
        )
        for name, own in sorted(chosen.items(), key=lambda item: pci_key(f"{item[0]}.0"))
    }


def _of_rails(
    rails: t.Sequence[PlacedRail], cards: t.Sequence[Card], problems: list[Problem]
) -> t.Iterator[tuple[Card, list[int]]]:
    for rail in rails:
        card = next((card for card in cards if rail.address in card.addresses), None)
        if card is None or rail.address is None:
            continue
        if (card.role or "").startswith(NO_NIC):
            text = f"card {card.name} {card.role}: a rail on it would take the switches from their manager."
            fix = "Correct the rail's interface or PCI address in the inventory and plan again. [card_excluded]"
            problems.append(Problem(f"rail {rail.name}", text, fix))
        yield card, [port_of(rail.address)]


def _of_addresses(
    addresses: t.Sequence[str], cards: t.Sequence[Card], place: str, problems: list[Problem]
) -> t.Iterator[tuple[Card, list[int]]]:
    """Yield the cards of addresses, with the ports that are meant: a function's, or all when it names the card."""
    for number, address in enumerate(addresses):
        wanted = normal_address(address)
        entire = "." not in wanted
        card = next((card for card in cards if wanted in (card.name, *card.addresses)), None)
        where = f"{place}.pci[{number}]"
        if card is None:
            text = f"there is no NVIDIA (Mellanox) network card at {address} on this host."
            there = ", ".join(card.address for card in cards) or "none"
            problems.append(Problem(where, text, f"Use one of the existing addresses: {there}. [card_not_found]"))
            continue
        if card.role:
            text = f"card {card.name} {card.role}: it is never changed by this module."
            problems.append(
                Problem(
                    where, text, "Remove it from the list; change it from the console if it must be. [card_protected]"
                )
            )
        yield card, [port_of(item) for item in card.addresses] if entire else [port_of(wanted)]

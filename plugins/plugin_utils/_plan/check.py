# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check single values of the fabric's input and collect what is wrong with them: place, value, limit and fix.

ipaddress parses and canonicalises here, at the edge. A check returns the value, or a harmless stand-in after it has
noted the problem, so that one run finds all problems.
"""

from __future__ import annotations

import contextlib
import difflib
import ipaddress
import re
import typing as t

from ...module_utils._errors import InputError, Problem
from ...module_utils._fabric.numbers import IFNAME_MAX, vlan_interface
from ...module_utils._validation import excerpt
from .._fabric.model import Prefix

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""The value of a label that is not empty."""

SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")
"""DNS-1123 subdomain, at most 253 characters: the name of a Kubernetes node."""

INTERFACE = re.compile(r"(?!(?i:\.{1,2}|none|null|na|absent|missing)$)[A-Za-z0-9_.-]{1,15}")
"""What the kernel takes as an interface name (IFNAMSIZ 16 with its zero), without what shells and YAML trip over.

Nor a word for no interface.
"""

RESOURCE = re.compile(r"[A-Za-z0-9_]{1,63}")
"""What the SR-IOV operator and the shared device plugin both take."""

TEMPLATE = re.compile(r"\{[{%#]")

SHOWN = 10
"""Problems of one kind that are listed: each node of a big fleet may have it."""

UNUSABLE = ("multicast", "loopback", "link_local", "reserved", "unspecified")
"""Kinds of addresses that no rail can have, as ipaddress knows them."""


def shown(value: object) -> str:
    """Show a value of the input, shortened, on one line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def still_templates(place: str, value: object) -> list[Problem]:
    """Return a problem where a value is still a template after Ansible's own pass: nothing is templated twice."""
    if isinstance(value, dict):
        return [found for pair in value.items() for part in pair for found in still_templates(place, part)]
    if isinstance(value, (list, tuple)):
        return [found for part in value for found in still_templates(place, part)]
    if isinstance(value, str) and TEMPLATE.search(value):
        problem = f"It cannot be resolved: {excerpt(value)} is still a template after Ansible has resolved it."
        return [Problem(place, problem, "Correct it; no name has {{, {% or {#. [template_in_value]")]
    return []


class Checker:
    """The problems found so far, and the checks that add to them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._places: dict[str, list[str]] = {}

    def add(self, place: str, problem: str, fix: str) -> None:
        """Record a problem. The first SHOWN of a kind (the ID in its fix) are listed, the rest counted."""
        places = self._places.setdefault(fix.rpartition("[")[2], [])
        places.append(place)
        if len(places) <= SHOWN:
            self.problems.append(Problem(place, problem, fix))

    def raise_any(self) -> None:
        """Raise everything that was found, at once."""
        for places in self._places.values():
            if count := len(places[SHOWN:]):
                place, problem = f"{places[SHOWN]} and others", f"{count} more places have the same problem."
                self.problems.append(Problem(place, problem, "Correct them in the same way. [more_places]"))
        self._places.clear()
        if self.problems:
            raise InputError(self.problems)

    def integer(self, place: str, value: object, low: int, high: int, *, default: int = 0) -> int:
        """Validate an integer from low to high; digits in a string count (extra variables are strings).

        :param value: the input.
        :param low: the minimum; `high` is the maximum.
        :param default: replaces an invalid value.
        """
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value.strip()):
            value = int(value)
        fix = f"Give a number from {low} to {high}. [number_range]"
        if isinstance(value, bool) or not isinstance(value, int):
            self.add(place, f"{shown(value)} is not a whole number.", fix)
        elif not low <= value <= high:
            self.add(place, f"{value} is out of range.", fix)
        else:
            return value
        return default

    def choice(self, place: str, value: object, choices: t.Sequence[str], *, why: str = "") -> str:
        """Take one of the choices.

        :param value: what was given.
        :param choices: what may be given.
        :param why: no other one.
        """
        if isinstance(value, str) and value in choices:
            return value
        listed = ", ".join(choices)
        problem = f"{shown(value)} is not one of: {listed}{why}."
        self.add(place, problem, f"Give {listed.replace(', ', ' or ')}. [choice_unknown]")
        return choices[0]

    def text(self, place: str, value: object, pattern: re.Pattern[str], what: str, *, default: str = "") -> str:
        """Validate a string that matches the complete pattern, which `what` describes.

        :param value: the input.
        :param pattern: of the complete string.
        :param default: replaces an invalid value.
        """
        if isinstance(value, str) and pattern.fullmatch(value):
            return str(value)
        why = " YAML reads no, yes, on and off as booleans: put it in quotes." if isinstance(value, bool) else ""
        self.add(place, f"{shown(value)} is not {what}.", f"Give {what}.{why} [type_differs]")
        return default

    def printable(self, place: str, value: object) -> str:
        """Take a text as people write it, such as the name of a switch or its port."""
        if isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= 100:
            return value
        self.add(place, f"{shown(value)} is not a name or a text.", "Set 1 to 100 printable characters. [text_format]")
        return ""

    def listing(self, place: str, value: object, of: str) -> list[t.Any]:
        """Take a list; nothing at all counts as an empty one."""
        if value is None:
            return []
        if isinstance(value, (list, tuple)):
            return list(value)
        self.add(place, f"{shown(value)} is not a list.", f"Give a list of {of}. [not_a_list]")
        return []

    def entries(self, place: str, value: object, of: str) -> t.Iterator[tuple[str, t.Any]]:
        """Take a list, and return each entry with its place."""
        return ((f"{place}[{index}]", item) for index, item in enumerate(self.listing(place, value, of)))

    def dictionary(self, place: str, value: object, example: str) -> dict[t.Any, t.Any]:
        """Take a dictionary."""
        if isinstance(value, dict):
            return value
        self.add(place, f"{shown(value)} is not a dictionary.", f"Write it as {example}. [not_a_dict]")
        return {}

    def mapping(self, place: str, value: object, known: t.Iterable[str], example: str) -> dict[str, t.Any]:
        """Take a dictionary with known keys only.

        :param value: what was given.
        :param known: the keys that there are.
        :param example: of what may be given.
        """
        names = list(known)
        given = self.dictionary(place, value, example)
        for key in given:
            if key not in names:
                close = difflib.get_close_matches(str(key), names, 1)
                fix = f"Write {close[0]!r}." if close else f"Remove it; known are: {', '.join(names)}."
                self.add(f"{place}.{key}", f"{shown(key)} is not a known key.", f"{fix} [key_unknown]")
        return {key: item for key, item in given.items() if key in names and item is not None}

    def unique(self, place: t.Callable[[int], str], values: t.Sequence[str | None], what: str) -> None:
        """Record every value that an earlier entry has already."""
        first: dict[str, int] = {}
        for index, value in enumerate(values):
            if value and first.setdefault(value, index) != index:
                problem = f"{what} {value!r} is already taken by {place(first[value])}."
                self.add(place(index), problem, "Give each its own. [value_in_use]")

    def vlan_interface(self, place: str, interface: str, vlan: int) -> None:
        """Check that the name of the interface that a VLAN gets is one that the kernel takes."""
        name = vlan_interface(interface, vlan)
        if vlan and len(name) > IFNAME_MAX:
            fix = f"Give the rail a name of at most {IFNAME_MAX - len(name) + len(interface)} characters. [vlan_name]"
            self.add(place, f"Its VLAN's interface would be {name!r}, longer than {IFNAME_MAX} characters.", fix)

    def address(self, place: str, value: object) -> tuple[int, int] | None:
        """Take an address: (family, number)."""
        family = 6 if ":" in str(value) else 4
        if isinstance(value, str) and re.fullmatch(r"[0-9a-fA-F:.]+", value.strip()):
            with contextlib.suppress(ValueError):
                return family, int(ipaddress.ip_address(value.strip()))
        problem = f"{shown(value)} is not an IP address."
        self.add(place, problem, "Give an address such as 172.17.0.1 or fd00::1. [address_not_ip]")
        return None

    def prefix(self, place: str, value: object, *, rail: bool = True) -> Prefix | None:
        """Take a canonical network; with `rail`, one that a rail can have."""
        text = value.strip() if isinstance(value, str) else ""
        try:
            if not re.fullmatch(r"[0-9a-fA-F:.]+/[0-9]{1,3}", text):
                raise ValueError
            found = ipaddress.ip_network(text, strict=False)
        except ValueError:
            problem = f"{shown(value)} is not a network in CIDR form."
            self.add(place, problem, "Give one such as 172.17.0.0/16. [network_not_cidr]")
            return None
        if found.network_address != ipaddress.ip_address(text.partition("/")[0]):
            problem = f"{text!r} has host bits set, so the API would refuse it."
            self.add(place, problem, f"Write the network as {found}. [network_host_bits]")
            return None
        wrong = [kind for kind in UNUSABLE if any(getattr(end, f"is_{kind}") for end in (found[0], found[-1]))]
        if rail and wrong:
            problem = f"{found} has {wrong[0].replace('_', '-')} addresses."
            self.add(place, problem, "Give a private or global unicast network. [network_not_usable]")
            return None
        return Prefix(found.version, int(found.network_address), found.prefixlen)

    def span(self, place: str, value: object) -> tuple[int, int, int] | None:
        """Take an address, a range `a-b` or a network: (family, first, last)."""
        text = value.strip() if isinstance(value, str) else ""
        if "/" in text:
            prefix = self.prefix(place, text, rail=False)
            return None if prefix is None else (prefix.family, prefix.network, prefix.last)
        head, dash, tail = text.partition("-")
        low = self.address(place, head if dash else value)
        high = self.address(place, tail) if dash and low else low
        if low is None or high is None:
            return None
        if low[0] != high[0] or high[1] < low[1]:
            problem = f"{text!r} is not a range from a lower to a higher address of one family."
            self.add(place, problem, "Give the lower address first, both of one family. [range_reversed]")
            return None
        return *low, high[1]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may stand in a record as it is: numbers, addresses, interfaces, and words that everybody's hosts have.

A value is typed when it is made of these alone. What is not is left out, or has a stand-in for each other word in it.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import typing as t

from .sources import COMMANDS, EXPRESSIONS, TABLE, VERSIONS, WORDS

# A host or a person that is called like one of our own words has no stand-in: paths and keys would be destroyed.
KNOWN = frozenset(
    re.sub(r"\d", "", word)
    for word in re.findall(r"[a-z\d]+", f"{COMMANDS} {EXPRESSIONS} {TABLE} {VERSIONS} {WORDS}".lower())
)
# The names that kernels and udev give to interfaces and RDMA devices.
MADE = r"(?:en|ib|wl|ww|sl|roce|rdma|iw)(?:x[\da-f]{12}|(?:[Pabcdfinoprsuv]{1,2}\d+)+)|(?:veth|cali|br)[\da-f]{4,12}"
NUMBER = r"[01x]{2,8}|\d{1,10}|0x[\da-fA-F]{1,16}"
HARDWARE = re.compile(
    r"(?:[\da-fA-F]{2}[:-]){5}[\da-fA-F]{2}|(?:[\da-f]{2}:){19}[\da-f]{2}|(?:[\da-f]{4}:){3}[\da-f]{4}"
    r"|[\da-fA-F]{8}-(?:[\da-fA-F]{4}-){3}[\da-fA-F]{12}|(?:pci-)?[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.[0-7]"
)
PLAIN = re.compile(r"[A-Za-z0-9_\s.,:;/@*?!|\[\](){}<>\"'=+%-]*")
BREAKS = re.compile(r"[\s,;=@|()\[\]{}<>\"'+!]+")
# Of ifupdown these are no settings.
COMMANDS_OF_USERS = ("up", "down")
# A stand-in is one part, and whole.
STAND_IN = r"name-[\da-f]{8}"
PART = re.compile(rf"{STAND_IN}|[^\W_]+")


@functools.cache
def known(word: str) -> bool:
    """Whether a word tells nobody whose host it is from: one of the tables, also with a number in it."""
    own, digits = re.subn(r"\d", "", word.lower())
    made = re.fullmatch(f"{NUMBER}|{MADE}|{STAND_IN}", word)
    return bool(made) or (digits < 5 and own in KNOWN)


def plain(key: str) -> str:
    """Return a key's letters, by which WORDS has it; nothing for a key that is none of them."""
    own = re.sub(r"[^a-z]", "", key.lower())
    fits = re.fullmatch(r"[A-Za-z][\w.-]*\+?", key, re.ASCII) and len(re.findall(r"\d", key)) < 4
    return own if fits and own in KNOWN and own not in COMMANDS_OF_USERS else ""


def address(text: str) -> bool:
    """Whether a text is an IP or hardware address, a GUID, a UUID or a PCI address."""
    try:
        return bool(HARDWARE.fullmatch(text) or ipaddress.ip_interface(text))
    except ValueError:
        return False


class Allow:
    """Says what is typed, and makes the rest so.

    :param names: matches names that have stand-ins later, whatever they are.
    :param name: returns the stand-in of any other word.
    """

    def __init__(self, names: re.Pattern[str], name: t.Callable[[str], str]) -> None:
        self._names = names
        self._part = re.compile(f"{names.pattern}|{PART.pattern}")
        self._name = name

    def typed(self, text: str) -> bool:
        """Whether a value is made of what may stay."""
        words = BREAKS.split(self._names.sub("id", text))
        fitting = (address(word) or all(map(known, PART.findall(word))) for word in words)
        return bool(PLAIN.fullmatch(text)) and all(fitting)

    def label(self, text: str) -> str | None:
        """Return a value with a stand-in for each word in it that may not stay; None where that is not enough."""
        text = " ".join(text.split())
        done = text if self.typed(text) else self._part.sub(self._stand_in, text)
        return done if self.typed(done) else None

    def _stand_in(self, match: re.Match[str]) -> str:
        return match[0] if self._names.fullmatch(match[0]) or known(match[0]) else self._name(match[0])

    def data(self, value: t.Any, whole: str | None = None) -> t.Any:
        """Return JSON with known keys and typed values; None stands for what is left out.

        :param whole: the key of what has been looked through before.
        """
        if isinstance(value, dict):
            kept = {
                key: item if key == whole else self.data(item, whole) for key, item in value.items() if self.typed(key)
            }
            # Whose a process is nobody needs to know.
            return {
                key: item for key, item in kept.items() if item is not None and (key != "comm" or "pid" not in value)
            }
        if isinstance(value, list):
            return [item for item in (self.data(item, whole) for item in value) if item is not None]
        return self.label(value) if isinstance(value, str) else value

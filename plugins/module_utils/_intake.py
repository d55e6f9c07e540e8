# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where what hosts, leaves, pods and parts of runs say comes in: it is data until it has been here. Pure.

Values are measured and copied: types, depth, number, letters. Names have a set of ASCII letters. In free text every
other printable letter stays; control and format characters are shown by their numbers, which is no error. What is
refused is named by its kind, with at most 40 printable characters of it.
"""

from __future__ import annotations

import json
import math
import re
import typing as t
import unicodedata

DEPTH, VALUES, LETTERS = 16, 200_000, 8_000_000
"""How deep one answer may be nested, how many values and how many letters it may have."""
EXCERPT = 40
LINK = re.compile(r"[A-Za-z0-9_.:/ +-]{1,100}")
"""The name of a neighbour, or of its port, as LLDP says it."""
INTERFACE = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,63}")
"""The name of an interface or RDMA device."""
PCI = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]")
RAIL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")

Json = t.Dict[str, t.Any]  # noqa: UP006 - evaluated on Python 3.9


class Nonsense(ValueError):
    """Something that no host of ours says: of which kind it is, and its beginning."""


def shown(text: str) -> str:
    """Return text as people may read it: its control and format characters, and what ends a line, by their numbers."""
    return text if text.isprintable() else "".join(map(_letter, text))


def _letter(char: str) -> str:
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def excerpt(value: t.Any) -> str:
    """Return what a refusal repeats of a value: the beginning of a text, and of others their kind."""
    if isinstance(value, str):
        return f"'{shown(value[:EXCERPT])[:EXCERPT]}'"
    return "nothing" if value is None else f"a {_KINDS.get(type(value), 'number')}"


_KINDS = {bool: "truth value", dict: "dictionary", list: "list", tuple: "list"}


def measured(value: t.Any, depth: int = DEPTH) -> t.Any:
    """Return a copy of an answer: JSON's types, text as `shown` has it.

    :raises Nonsense: it is deeper, larger or of other types than an answer can be.
    """
    return _Measure().copy(value, depth)


class _Measure:
    """What one answer may still have."""

    def __init__(self) -> None:
        self._values, self._letters = VALUES, LETTERS

    def copy(self, value: t.Any, depth: int) -> t.Any:
        if isinstance(value, str):
            self._letters -= len(value)
            if self._letters < 0:
                raise Nonsense(f"more than {LETTERS:,} letters")
            return shown(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            if not math.isfinite(value) if isinstance(value, float) else abs(value) >> 64:
                raise Nonsense("a number that is infinite, none or of more than 64 bits")
            return value
        if not isinstance(value, (dict, list, tuple)):
            raise Nonsense("a value that JSON does not have")
        self._values -= len(value)
        if not depth or self._values < 0:
            raise Nonsense(f"nested more than {DEPTH} deep" if not depth else f"more than {VALUES:,} values")
        if isinstance(value, dict):
            return {self.copy(str(key), 0): self.copy(item, depth - 1) for key, item in value.items()}
        return [self.copy(item, depth - 1) for item in value]


def parsed(text: str | bytes, most: int = LETTERS) -> t.Any:
    """Return what a JSON text holds, not yet measured.

    :param most: the letters that it may have.
    :raises Nonsense: it is longer, nested too deep, or no JSON.
    """
    if len(text) > most:
        raise Nonsense(f"more than {most:,} letters of JSON")
    try:
        return json.loads(text)
    except RecursionError:
        raise Nonsense("JSON that is nested too deep") from None
    except ValueError:
        raise Nonsense(f"no JSON: {excerpt(text[:EXCERPT] if isinstance(text, str) else '')}") from None


def named(value: t.Any, pattern: re.Pattern[str], what: str) -> str:
    """Return a name.

    :raises Nonsense: it is none of the pattern's.
    """
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Nonsense(f"{excerpt(value)} is no {what}")
    return value


def typed(value: t.Any, kinds: Json, what: str) -> Json:
    """Return a dictionary whose keys have the types that are told; others stay, and those that lack are None.

    :param kinds: a type, or several, by key.
    :param what: it is, for the refusal.
    :raises Nonsense: it is no dictionary, or a value is of another type.
    """
    if not isinstance(value, dict):
        raise Nonsense(f"{what} is {excerpt(value)} and no dictionary")
    for key, kind in kinds.items():
        if (have := value.get(key)) is not None and (
            not isinstance(have, kind) or (isinstance(have, bool) and kind is not bool)
        ):
            raise Nonsense(f"{key} of {what} is {excerpt(have)}")
    return {**dict.fromkeys(kinds), **value}

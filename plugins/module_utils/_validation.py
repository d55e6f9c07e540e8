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
import re
import typing as t
import unicodedata

DEPTH, VALUES, LETTERS = 16, 200_000, 8_000_000
"""The limits of one answer: nesting, number of values and of characters."""
FILE = 2**29
"""Characters that a verdict of a large fleet may have."""
EXCERPT, LONG = 40, 4000
"""Characters of a value that an error repeats, and of an error that a result keeps."""
LINK = re.compile(r"[A-Za-z0-9_.:/ +-]{1,100}")
"""The name of a neighbor, or of its port, as LLDP says it."""
INTERFACE = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,63}")
"""The name of an interface or RDMA device, or a MAC address."""
PCI = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]")
ADDRESS = re.compile(r"[0-9A-Fa-f.:]{2,45}")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A rail."""
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


class InvalidData(ValueError):
    """Something that no host of ours says: of which kind it is, and its beginning."""


def shown(text: str) -> str:
    """Return text as people may read it: its control and format characters, and what ends a line, by their numbers."""
    return text if text.isprintable() else "".join(map(_letter, text))


def _letter(char: str) -> str:
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def line(*texts: t.Any) -> str | None:
    """Return the texts that are not empty, each as one line; None where all are."""
    found = [shown(" ".join(text[:LONG].split())) for text in texts if isinstance(text, str)]
    return "; ".join(filter(None, found)) or None


def excerpt(value: t.Any) -> str:
    """Return what a refusal repeats of a value: the beginning of a text, and of others their kind."""
    if isinstance(value, str):
        return f"'{shown(value[:EXCERPT])[:EXCERPT]}'"
    return next((f"a {kind.__name__}" for kind in (bool, int, float, dict, list) if isinstance(value, kind)), "nothing")


def sanitize(value: t.Any, left: list[int] | None = None, depth: int = DEPTH) -> t.Any:
    """Return a copy of an answer: JSON's types, text as `shown` has it.

    :param left: the values and letters that it may have, from which it is taken.
    :raises InvalidData: it is deeper, larger or of other types than an answer can be.
    """
    left = [VALUES, LETTERS] if left is None else left
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        left[1] -= len(value)
        if left[1] < 0:
            raise InvalidData(f"more than {LETTERS:,} characters")
        return shown(value)
    if isinstance(value, (dict, list, tuple)):
        left[0] -= len(value)
        if not depth or left[0] < 0:
            raise InvalidData(f"nested more than {DEPTH} deep, or of more than {VALUES:,} values")
        if isinstance(value, dict):
            return {sanitize(str(key), left): sanitize(item, left, depth - 1) for key, item in value.items()}
        return [sanitize(item, left, depth - 1) for item in value]
    # What is no number is not between them.
    if isinstance(value, (int, float)) and -(2**64) < value < 2**64:
        return value
    raise InvalidData("a value that JSON does not have, or a number of more than 64 bits")


def parsed(text: str | bytes, most: int = LETTERS) -> t.Any:
    """Return what a JSON text holds, not yet measured.

    :param most: the letters that it may have.
    :raises InvalidData: it is longer, nested too deep, or no JSON.
    """
    if len(text) > most:
        raise InvalidData(f"more than {most:,} characters of JSON")
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidData("JSON that is nested too deep") from None
    except ValueError as exc:
        raise InvalidData(f"no JSON: {line(str(exc))}") from None


def validate(value: t.Any, shape: t.Any, what: str) -> t.Any:
    """Return a value that has a shape, as it is.

    :param shape: a type, a pattern or a set of texts; a list with the shape of its items; a dictionary with those of
        its keys, of which more may be there, and with a pattern or a set as its key those of all; (None, shape): it may
        lack.
    :param what: it is, for the refusal.
    :raises InvalidData: it has another.
    """
    if isinstance(shape, tuple):
        if value is None:
            return None
        shape = shape[1]
    if isinstance(shape, type):
        good = isinstance(value, shape) and isinstance(value, bool) == (shape is bool)
    elif isinstance(shape, list):
        good = isinstance(value, (list, tuple))
        for item in value if good else ():
            validate(item, shape[0], f"an item of {what}")
    elif isinstance(shape, dict):
        good = isinstance(value, dict)
        for key, inner in shape.items() if good else ():
            if isinstance(key, str):
                validate(value.get(key), inner, f"{key} of {what}")
                continue
            for name, item in value.items():
                validate(name, key, f"a name in {what}")
                validate(item, inner, f"{what} of {name}")
    else:
        held = shape.fullmatch if isinstance(shape, re.Pattern) else shape.__contains__
        good = isinstance(value, str) and bool(held(value))
    if not good:
        raise InvalidData(f"{what} is {excerpt(value)}")
    return value

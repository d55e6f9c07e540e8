# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write JSON values as block YAML, the way people write it: for the few free-form objects. Pools have a template."""

from __future__ import annotations

import json
import re
import typing as t

HEADING = (
    "# Made by railops.rdma from the fabric's declaration. Change the declaration and plan again, not this file.\n"
)
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./*-]*")
# What YAML 1.1 reads as something else than text.
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def scalar(value: t.Any) -> str:
    """Write one value; text without quotes where no YAML reader can take it for anything else."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)


def block(value: t.Any) -> str:
    """Write a mapping or a list; keys stay in their order."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: t.Any) -> list[str]:
    lines: list[str] = []
    mapping = isinstance(value, dict)
    pairs = value.items() if mapping else [(None, item) for item in value]
    for key, item in pairs:
        head = f"{scalar(key)}:" if mapping else "-"
        nested = isinstance(item, (dict, list)) and bool(item)
        first, *more = _lines(item) if nested else [scalar(item)]
        lines += [head, f"  {first}"] if mapping and nested else [f"{head} {first}"]
        lines += [f"  {line}" for line in more]
    return lines


def documents(objects: t.Iterable[t.Any], heading: str = HEADING) -> str:
    """Write objects as the documents of one file under a comment; with no objects the comment is all there is."""
    return heading + "".join(f"---\n{block(obj)}" for obj in objects)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The fixes that a host may choose from: sentences of the collection, with values of known types in their places.

fixes.txt beside this file has the sentences (python3 tests/site/fixes_table.py writes it from the code).
"""

from __future__ import annotations

import re
import typing as t
from functools import lru_cache
from pathlib import Path

from ...module_utils._check import Check
from ...module_utils._formatting import group_by
from ...module_utils._validation import ADDRESS, INTERFACE

# No URL. What a list has are names: prose has no digit or sign in each word.
_WORD = r"(?![^ ]*//)[A-Za-z0-9_.:/@%+=-]{1,300}(?<![.:])"
_NAME = rf"(?=[^ ,]*[0-9_.:/=-]){_WORD.replace('300', '63')}"
_SETTING = r"net[./][A-Za-z0-9_./-]{1,100}=\d{1,10}"
# `ip netns exec` and `ip -batch` would run what the host names.
_COMMAND = (
    rf"(?:ip(?: -6)? (?:address|link|neighbor|route|rule)(?: [A-Za-z0-9_.:/=-]{{1,100}}){{1,40}}|sysctl {_SETTING})"
)
TYPES = {
    "address": rf"{ADDRESS.pattern}(?:/\d{{1,3}})?",
    "command": _COMMAND,
    "commands": rf"`{_COMMAND}`(?: and `{_COMMAND}`)*",
    "interface": rf"{INTERFACE.pattern}(?<![.:])",
    "number": r"\d{1,10}",
    "path": _WORD,
    "settings": rf"{_SETTING}(?: {_SETTING}){{0,9}}",
    "words": rf"(?:{_WORD}|{_NAME}(?:, {_NAME}){{1,15}})",
}
"""What may be in each place of a sentence. No type has characters that a shell obeys, or a sentence's spaces."""
_BETWEEN = re.compile(r"[.;:]?(?: \[[a-z_]{1,60}\])?(?: |$)")
_PLACE = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=1)
def _table() -> dict[str, list[str]]:
    """Return the sentences by the subject of the check IDs that can give them."""
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    rows = (line.partition(": ") for line in lines)
    return group_by((subject, sentence) for subjects, _colon, sentence in rows for subject in subjects.split())


@lru_cache(maxsize=1024)
def _pattern(sentence: str) -> re.Pattern[str]:
    parts = _PLACE.split(sentence)
    return re.compile(
        "".join(f"({TYPES[part]})" if number % 2 else re.escape(part) for number, part in enumerate(parts))
    )


@lru_cache(maxsize=4096)
def values_of(check: str, fix: str) -> dict[str, list[str]] | None:
    """Return the values in a fix, by type and in order; None where it has a sentence that this check cannot give.

    :param check: its ID.
    """
    values: dict[str, list[str]] = {}
    at = 0
    while at < len(fix):
        best: re.Match[str] | None = None
        for sentence in _table().get(check.partition("_")[0], ()):
            found = _pattern(sentence).match(fix, at) if fix.startswith(sentence.partition("{")[0], at) else None
            if found and _BETWEEN.match(fix, found.end()) and (best is None or found.end() > best.end()):
                best, names = found, _PLACE.findall(sentence)
        if best is None:
            return None
        for name, value in zip(names, best.groups(), strict=True):
            values.setdefault(name, []).append(value)
        end = _BETWEEN.match(fix, best.end())
        at = end.end() if end else len(fix)
    return values


def with_known_fix(check: Check) -> Check:
    """Return a host's check. A fix that is not the collection's is part of its cause, as the host's report."""
    fix = check.get("fix")
    if not fix:
        return check
    values = values_of(check["id"], fix)
    if values is None:
        cause = f"{check.get('cause') or ''} The host reports: {fix}".strip()
        return t.cast("Check", {**check, "cause": cause, "fix": ""})
    return t.cast("Check", {**check, "values": values}) if values else check

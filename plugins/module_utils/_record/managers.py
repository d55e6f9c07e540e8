# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of network managers and our own, parsed: known keys with typed values, in the form that their readers know.

What we have written comes out as it was. Comments of others, sections and keys that are not in the tables, and values
that are not typed are left out, and a last line says how many.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import typing as t

from .._gpudirect import run as gpudirect
from .._netns.plan import owned_text
from .._persist.model import HEADER
from .._qos import device
from .._qos import files as qos
from .._rdma.host_plan import HEADER as RDMA_HEADER
from .allow import plain

if t.TYPE_CHECKING:
    from .allow import Allow

try:
    import yaml
    from yaml import YAMLError
except ImportError:
    # What is YAML cannot be read then: AttributeError.
    yaml, YAMLError = None, ValueError

UNITS = [
    gpudirect.UNIT_TEXT.format(note=gpudirect.NOTE, start=""),
    qos.UNIT_TEXT.format(note=qos.NOTE, python=sys.executable, program=qos.PROGRAM, settings=qos.SETTINGS),
]
# A line of the first of them for each bridge.
BRIDGE = re.escape(gpudirect.start_line("@", "@")).replace("@", r"[\da-z/:.]+")
# The lines that this collection writes beside settings.
OURS = frozenset("".join([HEADER, RDMA_HEADER, *map(owned_text, ("shared", "exclusive")), *UNITS]).splitlines())
# The programs that modules of this collection leave on a host.
PROGRAMS = [inspect.getsource(device)]
# Below these keys of netplan's the keys are names.
OPEN = frozenset(("ethernets", "bonds", "bridges", "vlans"))
# What stands before a key, the key, its mark, its value.
SETTING = {"ini": r"\s*()([^=\s]+)\s*(=)\s*(.*)", "words": r"(\s*)(\S+)( )\s*(.*)"}
BIGGEST = 20_000
PARSED = ("yaml", "ini", "script", "words", "ours", "json", "program")


class Reader:
    """Reads the files of one host.

    :param allow: what is typed there.
    """

    def __init__(self, allow: Allow) -> None:
        self._allow = allow
        self._left = 0

    def read(self, kind: str, text: str) -> str | None:
        """Return a file without what is not known; None for one that is not understood.

        :param kind: of PARSED.
        """
        self._left, self._count = 0, 0
        rows = text.replace("\\\n", " ").splitlines()
        ours = rows[:1] != [] and rows[0] in OURS
        try:
            if kind == "program":
                return text if text in PROGRAMS else "# (not recorded)\n"
            if kind == "json":
                return json.dumps(self._allow.data(json.loads(text)), indent=1) + "\n"
            if kind == "yaml":
                lines = [*rows[:ours], *self._pairs(yaml.compose(text, Loader=yaml.SafeLoader), "", "")]
            else:
                lines = [line for line in self._lines(kind, rows, ours) if line is not None]
        except (YAMLError, AttributeError, TypeError, ValueError, RecursionError):
            return None
        return "\n".join([*lines, *([f"# ({self._left} not recorded)"] if self._left else [])]) + "\n"

    def _value(self, key: str, text: str) -> str | None:
        """Return a key's value, with stand-ins where it is a name; None, and counted, where it may not stay."""
        found = self._allow.label(text) if plain(key) else None
        self._left += found is None
        return found

    def _lines(self, kind: str, rows: list[str], ours: bool) -> t.Iterator[str | None]:
        section = kind != "ini"
        for line in map(str.rstrip, rows):
            mark = line.strip()[:1]
            setting = re.fullmatch(SETTING.get(kind, SETTING["ini"]), line)
            found = None
            if mark in ("", "#", ";") or kind == "ours":
                # Of comments the rail's name.
                known = self._allow.typed(line) if mark != "#" else re.fullmatch(r"# rail\d+", line)
                known = known or line in OURS or re.fullmatch(BRIDGE, line)
                found = line if not mark or (ours and known) else None
                self._left += kind == "ours" and found is None
            elif kind == "ini" and mark == "[":
                name = line.strip("[ ]")
                section = bool(plain(name.replace("802-3-", "")) or name.startswith("device-"))
                found = f"[{self._allow.label(name)}]" if section else None
                self._left += not section
            elif not section or not setting:
                self._left += 1
            elif (value := self._value(setting[2], setting[4])) is not None:
                found = f"{setting[1]}{setting[2]}{setting[3]}{value}"
            yield found

    def _pairs(self, node: t.Any, pad: str, above: str) -> list[str]:
        """Return the lines of a mapping.

        :param above: the key that it is the value of.
        """
        lines: list[str] = []
        for key, value in node.value:
            text = key.value if isinstance(key, yaml.ScalarNode) else ""
            shown = self._allow.label(text) if above in OPEN else text
            if not shown or not (plain(text) or above in OPEN):
                self._left += 1
                continue
            shown = json.dumps(shown) if key.style else shown
            lines += self._entry(f"{pad}{shown}:", value, pad, "id" if above in OPEN else text)
        return lines

    def _entry(self, head: str, node: t.Any, pad: str, key: str) -> list[str]:
        self._count += 1
        if self._count > BIGGEST:
            raise ValueError("too many entries")
        if isinstance(node, yaml.ScalarNode):
            value = self._value(key, node.value)
            return [] if value is None else [f"{head} {json.dumps(value) if node.style else value}".rstrip()]
        if not node.value:
            return [f"{head} {'{}' if isinstance(node, yaml.MappingNode) else '[]'}"]
        if isinstance(node, yaml.MappingNode):
            below = self._pairs(node, f"{pad}  ", key)
        else:
            below = [line for item in node.value for line in self._item(item, f"{pad}  ", key)]
        return [head, *below] if below else []

    def _item(self, node: t.Any, pad: str, key: str) -> list[str]:
        if isinstance(node, yaml.MappingNode):
            lines = self._pairs(node, f"{pad}  ", "")
            return [f"{pad}- {lines[0].lstrip()}", *lines[1:]] if lines else []
        return self._entry(f"{pad}-", node, pad, key)

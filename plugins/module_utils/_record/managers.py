# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of network managers and our own, parsed: known keys with typed values, in the form that their readers know.

What we have written comes out as it was. Comments of others, sections and keys that are not in the tables, and values
that are not typed are left out, and a last line says how many.
"""

from __future__ import annotations

import json
import sys
import typing as t

from .._gpudirect import run as gpudirect
from .._netns.plan import owned_text
from .._persist.model import HEADER
from .._qos import files as qos
from .._rdma.host_plan import HEADER as RDMA_HEADER
from .allow import plain

if t.TYPE_CHECKING:
    from .allow import Allow

try:
    import yaml
except ImportError:
    yaml = None

UNITS = [
    module.UNIT_TEXT.format(note=module.NOTE, python=sys.executable, program=module.PROGRAM, settings=module.SETTINGS)
    for module in (gpudirect, qos)
]
# The lines that this collection writes beside settings.
OURS = frozenset("".join([HEADER, RDMA_HEADER, *map(owned_text, ("shared", "exclusive")), *UNITS]).splitlines())
# Below these keys of netplan's the keys are names.
OPEN = frozenset(("ethernets", "bonds", "bridges", "vlans"))
BIGGEST = 20_000
PARSED = ("yaml", "ini", "script", "words", "ours")


class Reader:
    """Reads the files of one host.

    :param allow: what is typed there.
    """

    def __init__(self, allow: Allow) -> None:
        self._allow = allow
        self._left = 0

    def read(self, kind: str, text: str) -> str | None:
        """Return a file without what is not known; None for one that is not understood.

        :param kind: of sources.FILES: yaml, ini, script, words, ours.
        """
        self._left, self._count = 0, 0
        rows = text.replace("\\\n", " ").splitlines()
        ours = rows[:1] != [] and rows[0] in OURS
        if kind != "yaml":
            lines = [line for line in getattr(self, f"_{kind}")(rows, ours) if line is not None]
        elif yaml is None:
            return None
        else:
            try:
                root = yaml.compose(text, Loader=yaml.SafeLoader)
                lines = [*rows[:ours], *self._pairs(root, "", "")]
            except (yaml.YAMLError, AttributeError, TypeError, ValueError, RecursionError):
                return None
        lines += [f"# ({self._left} not recorded)"] if self._left else []
        return "\n".join(lines) + "\n"

    def _value(self, key: str, text: str) -> str | None:
        """Return a key's value, with stand-ins where it is a name; None, and counted, where it may not stay."""
        found = self._allow.label(text) if plain(key) else None
        self._left += found is None
        return found

    def _note(self, line: str, ours: bool) -> str | None:
        """Return a line that is no setting: an empty one, or one of ours."""
        return line if not line or (ours and (line in OURS or self._allow.typed(line.lstrip("# ")))) else None

    def _ini(self, rows: list[str], ours: bool) -> t.Iterator[str | None]:
        taken = False
        for line in map(str.strip, rows):
            if line[:1] in ("", "#", ";"):
                yield self._note(line, ours)
            elif line.startswith("[") and line.endswith("]"):
                name = line[1:-1]
                taken = bool(plain(name.replace("802-3-", "")) or name.startswith("device-"))
                self._left += not taken
                yield f"[{self._allow.label(name)}]" if taken else None
            else:
                key, mark, text = line.partition("=")
                value = self._value(key.strip(), text.strip()) if taken and mark else None
                self._left += not (taken and mark)
                yield None if value is None else f"{key.strip()}={value}"

    def _script(self, rows: list[str], _ours: bool) -> t.Iterator[str | None]:
        for line in map(str.strip, rows):
            key, mark, text = line.partition("=")
            value = self._value(key, text.strip("\"'")) if mark and line[0] != "#" else None
            yield None if value is None else f"{key}={value}"

    def _words(self, rows: list[str], _ours: bool) -> t.Iterator[str | None]:
        for line in rows:
            key, _blank, text = line.strip().partition(" ")
            value = self._value(key, text.strip()) if key and key[0] != "#" else None
            yield None if value is None else f"{line[: len(line) - len(line.lstrip())]}{key} {value}"

    def _ours(self, rows: list[str], ours: bool) -> t.Iterator[str | None]:
        for line in rows:
            taken = self._note(line, ours)
            self._left += taken is None
            yield taken

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

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of rails that are out of service: they stay as they are, and so do their lines in files of all rails."""

from __future__ import annotations

import contextlib
import json
import re
import typing as t
from dataclasses import replace

from .._errors import RdmaError
from .._route.desired import exclusion_rules
from .._route.managed_state import MANAGED_STATE, read_retained
from .._route.model import KINDS, from_data, snapshot_of_rails
from .model import HEADER, PUBLIC, File
from .plan import IPOIB_FILE, MANAGERS, SYSCTL_FILE, state_text

if t.TYPE_CHECKING:
    from .._route.route_options import RouteOptions
    from .host import PersistHost


class OutOfServiceFiles:
    """The parts of a host's files that belong to rails out of service."""

    def __init__(self, want: RouteOptions, host: PersistHost) -> None:
        """Find the names of their interfaces, and the paths of their own files.

        :param want: with these rails.
        """
        self.names: set[str] = set()
        self.paths: set[str] = set()
        self._host, self._rails = host, want.out
        rules = [*exclusion_rules(want)]
        for rail in want.out:
            # A card that is gone has no name, and its rail is declared by its address only.
            with contextlib.suppress(RdmaError):
                port = host.interface(rail)
                interface = rail.device if rail.vlan else port
                self.names |= {port, interface}
                for manager in MANAGERS.values():
                    files = manager.files(rail, port, interface, [], rules, infiniband=want.network == "infiniband")
                    self.paths |= {file.path for file in files}

    def merged(self, files: t.Sequence[File], have: t.Mapping[str, str]) -> tuple[File, ...]:
        """Return the files of all rails with what they have of these rails now.

        :param have: the present texts, by path.
        """
        if not self.names:
            return tuple(files)
        made = {file.path: file for file in files}
        for path in (SYSCTL_FILE, IPOIB_FILE):
            lines = [line for line in have.get(path, "").splitlines(keepends=True) if self._names(line)]
            if lines:
                file = made.get(path, File(path, HEADER, PUBLIC))
                rows = {*file.text[len(HEADER) :].splitlines(keepends=True), *lines}
                made[path] = replace(file, text=HEADER + "".join(sorted(rows, key=lambda row: row.partition(" = ")[0])))
        if MANAGED_STATE in made:
            planned = from_data(json.loads(made[MANAGED_STATE].text))
            own = snapshot_of_rails(read_retained(self._host), self._rails, self.names)
            parts = {part: getattr(planned, part) | getattr(own, part) for part in KINDS}
            made[MANAGED_STATE] = replace(made[MANAGED_STATE], text=state_text(**parts))
        return tuple(made[path] for path in sorted(made))

    def _names(self, line: str) -> bool:
        return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", line) for name in self.names)

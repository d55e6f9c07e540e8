# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Alternative names of network interfaces, by iproute2: they do not show in sysfs."""

from __future__ import annotations

import json
import typing as t

from .._errors import RdmaError

if t.TYPE_CHECKING:
    from .._module import Run


class AltNames:
    """Reads, adds and removes alternative names.

    :param tool: the path of `ip`; without one there are none.
    """

    def __init__(self, run: Run, tool: str | None) -> None:
        self._run = run
        self._tool = tool

    def read(self) -> dict[str, tuple[str, ...]]:
        """Return all alternative names by interface."""
        output = self._run([self._tool, "-json", "link", "show"])[1] if self._tool else ""
        return {link["ifname"]: tuple(link.get("altnames", ())) for link in json.loads(output or "[]")}

    def change(self, add: t.Iterable[tuple[str, str]], drop: t.Iterable[tuple[str, str]]) -> None:
        """Remove and add names, as (interface, alternative name)."""
        for verb, pairs in (("del", drop), ("add", add)):
            for interface, name in pairs:
                argv = [self._tool or "ip", "link", "property", verb, "dev", interface, "altname", name]
                code, _output, errors = self._run(argv)
                if code:
                    raise RdmaError(
                        f"The alternative name {name} of {interface} cannot be changed: {errors.strip()}.",
                        "See with ip link show whether another interface has it; kernels before 5.5 have none.",
                        interface=interface,
                    )

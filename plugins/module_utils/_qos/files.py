# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that make RoCE settings last: a program, its settings, and one unit bound to each interface."""

from __future__ import annotations

import json
import typing as t

from .._files import Change
from .._programs import Machine

PROGRAM = "/usr/local/lib/railops-rdma/roce_qos.py"
SETTINGS = "/etc/railops-rdma/roce-qos.json"
UNITS = "/etc/systemd/system"
UNIT = f"{UNITS}/railops-roce-qos@.service"
NOTE = "Written by the module railops.rdma.roce_qos: change the inventory instead."

UNIT_TEXT = """\
# {note}
[Unit]
Description=RoCE quality of service of %I (railops.rdma)
BindsTo=sys-subsystem-net-devices-%i.device
After=sys-subsystem-net-devices-%i.device sys-kernel-config.mount sys-kernel-debug.mount

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=90
ExecStartPre=-/sbin/modprobe rdma_cm
ExecStart={python} {program} {settings} %I

[Install]
WantedBy=sys-subsystem-net-devices-%i.device
"""


def escape(text: str) -> str:
    """Return text as systemd writes it in a unit's name (systemd.unit(5), "String escaping")."""
    found = []
    for place, char in enumerate(text):
        if char == "/":
            found.append("-")
        elif (char.isascii() and char.isalnum()) or char in ":_" or (char == "." and place):
            found.append(char)
        else:
            found.extend(f"\\x{byte:02x}" for byte in char.encode())
    return "".join(found)


def link_of(interface: str) -> str:
    """Return the link by which an interface's device unit starts its settings."""
    name = escape(interface)
    return f"{UNITS}/sys-subsystem-net-devices-{name}.device.wants/railops-roce-qos@{name}.service"


class QosFiles(Machine):
    """The owned files on the host."""

    def settings(self) -> dict[str, t.Any]:
        """Return the settings by interface that are recorded; none when there is no readable file."""
        try:
            return dict(json.loads(self.read(SETTINGS) or "")["interfaces"])
        except (ValueError, KeyError, TypeError):
            return {}

    def record(self, interfaces: t.Mapping[str, t.Any]) -> None:
        """Write down what was there, beside what is recorded, while it still is there.

        A run that is cut off would otherwise be taken for what was before it.
        """
        both = {**self.settings(), **interfaces}
        self.apply(self.changes({SETTINGS: _text(both)} if both else {}, {}))

    def wanted_changes(
        self, interfaces: t.Mapping[str, t.Any], program: str, python: str, *, persist: bool = True
    ) -> list[Change]:
        """Return what has to be written, and removed, for the settings of exactly these interfaces.

        The settings file is also the record of what was there before: it is kept when nothing has to last.

        :param interfaces: settings by interface.
        :param program: the text that sets them at boot.
        :param python: the interpreter that runs it.
        :param persist: whether they have to last.
        """
        lasting = persist and bool(interfaces)
        unit = UNIT_TEXT.format(note=NOTE, python=python, program=PROGRAM, settings=SETTINGS)
        files = {
            PROGRAM: program if lasting else None,
            SETTINGS: _text(interfaces) if interfaces else None,
            UNIT: unit if lasting else None,
        }
        links: dict[str, str | None] = dict.fromkeys(self._our_links())
        links.update({link_of(name): UNIT for name in interfaces if lasting})
        return self.changes(files, links)

    def _our_links(self) -> list[str]:
        return [
            f"{UNITS}/{folder}/{name}"
            for folder in self.names(UNITS)
            if folder.startswith("sys-subsystem-net-devices-") and folder.endswith(".device.wants")
            for name in self.names(f"{UNITS}/{folder}")
            if name.startswith("railops-roce-qos@")
        ]


def _text(interfaces: t.Mapping[str, t.Any]) -> str:
    return json.dumps({"note": NOTE, "interfaces": interfaces}, indent=1, sort_keys=True) + "\n"

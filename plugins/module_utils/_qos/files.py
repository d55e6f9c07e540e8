# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that make RoCE settings last: the record of earlier values, and one unit bound to each interface."""

from __future__ import annotations

import json
import re
import shlex
import typing as t

from .._files import Change
from .._programs import Machine
from .backends import proof_of
from .device import RDMA_CM

if t.TYPE_CHECKING:
    from .backends import Operation
    from .device import Nic

SETTINGS = "/etc/railops-rdma/roce-qos.json"
UNITS = "/etc/systemd/system"
NOTE = "Written by the module railops.rdma.roce_qos: change the inventory instead."
RDMA_WAIT = 60  # seconds that a unit waits for the RDMA half of a driver

# Without Restart=: systemd before 244 (RHEL 8's 239 until July 2022) refuses a oneshot unit that has it.
UNIT_TEXT = """\
# {note}
[Unit]
Description=RoCE quality of service of {interface} (railops.rdma)
BindsTo={device}
After={device} sys-kernel-config.mount sys-kernel-debug.mount

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=90
ExecStartPre=-/sbin/modprobe rdma_cm
{lines}

[Install]
WantedBy={device}
"""


def escape(text: str) -> str:
    """Return text as systemd writes it in a unit's name (systemd.unit(5), "String escaping")."""
    found = re.sub(r"^\.|[^A-Za-z0-9:_./]", lambda char: "".join(f"\\x{byte:02x}" for byte in char[0].encode()), text)
    return found.replace("/", "-")


def device_of(interface: str) -> str:
    """Return the device unit of an interface."""
    return f"sys-subsystem-net-devices-{escape(interface)}.device"


def unit_of(interface: str) -> str:
    """Return the unit that sets an interface."""
    return f"{UNITS}/railops-roce-qos@{escape(interface)}.service"


def link_of(interface: str) -> str:
    """Return the link by which an interface's device unit starts its settings."""
    return f"{UNITS}/{device_of(interface)}.wants/{unit_of(interface).rpartition('/')[2]}"


def quoted(argv: t.Iterable[str]) -> str:
    """Return a command as a unit has it (systemd.service(5), "Command lines")."""
    words = (re.sub(r'([\\"])', r"\\\1", word).replace("%", "%%").replace("$", "$$") for word in argv)
    return " ".join(word if re.fullmatch(r"[\w./:,=@+-]+", word) else f'"{word}"' for word in words)


class QosFiles(Machine):
    """The owned files on the host."""

    def settings(self) -> dict[str, t.Any]:
        """Return the settings by interface that are recorded; none when there is no file."""
        return dict(json.loads(self.read(SETTINGS) or '{"interfaces": {}}')["interfaces"])

    def record(self, interfaces: t.Mapping[str, t.Any]) -> None:
        """Write down what was there, beside what is recorded, while it still is there.

        A run that is cut off would otherwise be taken for what was before it.
        """
        both = {**self.settings(), **interfaces}
        self.apply(self.changes({SETTINGS: _text(both)} if both else {}, {}))

    def unit_text(self, nic: Nic, operations: t.Iterable[Operation]) -> str:
        """Return the unit that sets an interface that comes up with its driver's defaults.

        The shell writes the kernel's files: SELinux keeps configfs and debugfs from systemd-tmpfiles.
        """
        lines, files = [], {}
        for operation in operations:
            files.update(nic.files_of(operation))
            if argv := nic.argv_of(operation):
                # Twice where it fails, as `run` does it. The firmware may keep DCBX: that alone is no failure.
                twice = " || ".join([shlex.join(self._found(argv))] * 2)
                lines.append(("-" if operation[0] == "dcbx" else "") + quoted(["/bin/sh", "-c", twice]))
            if proof := proof_of(argv):
                check = f"{shlex.join(self._found(proof[0]))} | grep -qF {shlex.quote(proof[1])}"
                lines.append(quoted(["/bin/sh", "-c", check]))
        if files:
            there = shlex.join([*nic.rdma.values(), *files])
            homes = {path.partition("/ports/")[0]: None for path in files if path.startswith(RDMA_CM)}
            make = f"mkdir -p {shlex.join(homes)} && " if homes else ""
            wait = f"until {make}ls {there} >/dev/null; do sleep 1; done"
            lines.append(quoted(["/usr/bin/timeout", str(RDMA_WAIT), "/bin/sh", "-c", wait]))
            echoes = (f"echo {number} >{shlex.quote(path)}" for path, number in files.items())
            lines += [quoted(["/bin/sh", "-c", echo]) for echo in echoes]
        return UNIT_TEXT.format(
            note=NOTE,
            interface=nic.interface.replace("%", "%%"),
            device=device_of(nic.interface).replace("%", "%%"),
            lines="\n".join(f"ExecStart={line}" for line in lines),
        )

    def wanted_changes(self, interfaces: t.Mapping[str, t.Any], units: t.Mapping[str, str | None]) -> list[Change]:
        """Return what has to be written, and removed, for the settings of exactly these interfaces.

        :param interfaces: settings by interface.
        :param units: the text of the unit of each interface; None of one that has none.
        """
        files: dict[str, str | None] = dict.fromkeys(self._ours(UNITS))
        folders = [f"{UNITS}/{name}" for name in self.names(UNITS) if name.endswith(".device.wants")]
        links: dict[str, str | None] = {link: None for folder in folders for link in self._ours(folder)}
        files.update({unit_of(name): text for name, text in units.items()})
        links.update({link_of(name): unit_of(name) for name, text in units.items() if text})
        return self.changes({**files, SETTINGS: _text(interfaces) if interfaces else None}, links)

    def _found(self, argv: list[str]) -> list[str]:
        return [self.tool(argv[0]) or argv[0], *argv[1:]]

    def _ours(self, folder: str) -> list[str]:
        return [f"{folder}/{name}" for name in self.names(folder) if name.startswith("railops-roce-qos@")]


def _text(interfaces: t.Mapping[str, t.Any]) -> str:
    return json.dumps({"note": NOTE, "interfaces": interfaces}, indent=1, sort_keys=True) + "\n"

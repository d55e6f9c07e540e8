# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module util is PRIVATE to the collection.

"""The files that make RoCE settings last: a program, its settings, and one unit bound to each interface."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import dataclass

if t.TYPE_CHECKING:
    from collections.abc import Mapping

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


@dataclass(frozen=True)
class Change:
    """One file or link to write; None removes it."""

    path: str
    content: str | None
    link: bool = False


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


def wanted_files(interfaces: Mapping[str, t.Any], program: str, python: str) -> dict[str, str]:
    """Return the content of every file for those settings; none when there is no interface."""
    if not interfaces:
        return {}
    settings = json.dumps({"note": NOTE, "interfaces": interfaces}, indent=1, sort_keys=True) + "\n"
    unit = UNIT_TEXT.format(note=NOTE, python=python, program=PROGRAM, settings=SETTINGS)
    return {PROGRAM: program, SETTINGS: settings, UNIT: unit}


class Files:
    """The owned files on the host."""

    def __init__(self, root: str = "/") -> None:
        self._root = root

    def _path(self, path: str) -> str:
        return os.path.join(self._root, path.lstrip("/"))

    def settings(self) -> dict[str, t.Any]:
        """Return the settings by interface that are recorded; none when there is no readable file."""
        try:
            with open(self._path(SETTINGS), encoding="utf-8") as file:
                found = json.load(file)["interfaces"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return dict(found)

    def changes(self, interfaces: Mapping[str, t.Any], program: str, python: str) -> list[Change]:
        """Return what has to be written, and removed, for the settings of exactly these interfaces."""
        wanted = wanted_files(interfaces, program, python)
        found = [
            Change(path, wanted.get(path)) for path in (PROGRAM, SETTINGS, UNIT) if self._text(path) != wanted.get(path)
        ]
        links = {link_of(name) for name in interfaces}
        found += [Change(path, UNIT, link=True) for path in sorted(links) if self._link(path) != UNIT]
        found += [Change(path, None, link=True) for path in self._our_links() if path not in links]
        return found

    def apply(self, changes: list[Change]) -> None:
        """Write them; each file is replaced whole."""
        for change in changes:
            place = self._path(change.path)
            if change.content is None:
                os.unlink(place)
                if change.link and not os.listdir(os.path.dirname(place)):
                    os.rmdir(os.path.dirname(place))
                continue
            os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
            fresh = f"{place}.new"
            if os.path.lexists(fresh):
                os.unlink(fresh)
            if change.link:
                os.symlink(change.content, fresh)
            else:
                with open(fresh, "w", encoding="utf-8") as file:
                    file.write(change.content)
                os.chmod(fresh, 0o644)
            os.replace(fresh, place)

    def _text(self, path: str) -> str | None:
        try:
            with open(self._path(path), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return None

    def _link(self, path: str) -> str | None:
        try:
            return os.readlink(self._path(path))
        except OSError:
            return None

    def _our_links(self) -> list[str]:
        found: list[str] = []
        try:
            folders = sorted(os.listdir(self._path(UNITS)))
        except OSError:
            return found
        for folder in folders:
            if folder.startswith("sys-subsystem-net-devices-") and folder.endswith(".device.wants"):
                names = sorted(os.listdir(self._path(f"{UNITS}/{folder}")))
                found += [f"{UNITS}/{folder}/{name}" for name in names if name.startswith("railops-roce-qos@")]
        return found

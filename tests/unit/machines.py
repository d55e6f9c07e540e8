# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lays out machines, and single files of one, below a folder.

The recorded machines of fixtures/sysfs/ are one text file each. A line is a kind, a path and a content, parted by tabs:
`f` a file, `b` a file in base64, `l` a link with its target, `d` an empty folder.
"""

from __future__ import annotations

import base64
import typing as t
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent / "fixtures/sysfs"


def vpd(part: str, serial: str) -> bytes:
    """Return vital product data (PCI Local Bus Specification 3.0, appendix I): name, PN, SN, end."""
    name = b"NVIDIA ConnectX-7"
    fields = b"".join(
        key + bytes([len(value)]) + value for key, value in ((b"PN", part.encode()), (b"SN", serial.encode()))
    )
    fields += b"RV" + bytes([1, 0])
    return (
        b"\x82"
        + len(name).to_bytes(2, "little")
        + name
        + b"\x90"
        + len(fields).to_bytes(2, "little")
        + fields
        + b"\x78"
    )


def stand_for_the_host(monkeypatch: t.Any, root: Path) -> None:
    """Let the files of this host that modules read and write lie below a folder."""
    from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles

    monkeypatch.setattr(HostFiles.__init__, "__defaults__", (str(root), None))


def put(root: Path, path: str, text: str = "") -> None:
    """Write a file of a machine, with the folders above it."""
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def program(path: Path, text: str) -> None:
    """Write a program; what does not say what runs it is a shell's."""
    put(path.parent, path.name, text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def lay_out(name: str, root: Path) -> Path:
    """Make the tree of a recorded machine under a folder."""
    for line in (FIXTURES / f"{name}.tree").read_text(encoding="utf-8").splitlines():
        kind, path, content = line.split("\t")
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "d":
            target.mkdir(exist_ok=True)
        elif kind == "l":
            target.symlink_to(content)
        else:
            target.write_bytes(base64.b64decode(content) if kind == "b" else f"{content}\n".encode())
    return root

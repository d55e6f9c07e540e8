# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Others' .link files: udev takes the first whose [Match] fits a device, and no other. Pure; systemd.link(5)."""

from __future__ import annotations

import re
import typing as t

from .. import _systemd
from .host_model import LinkFile, Netdev

# On a merged /usr the last two are one folder.
FOLDERS = (*_systemd.FOLDERS, "/lib/systemd/network")
ADMIN_FOLDERS = FOLDERS[:2]
RULES = "/etc/udev/rules.d"
# systemd's own, whose settings the managed files have.
DEFAULT = "99-default.link"
NAMES = ("Name", "NamePolicy")


def fits(file: LinkFile, device: Netdev) -> bool | None:
    """Whether a file is for a device; None when it asks for what is not known here."""
    known = {
        "Path": [f"pci-{device.pci}"],
        "MACAddress": [device.mac],
        "PermanentMACAddress": [device.mac],
        "Driver": [device.driver],
        "Type": ["infiniband" if device.infiniband else "ether"],
        # The name that the kernel gave first; which number it had is not known any more.
        "OriginalName": [device.name, "ib0" if device.infiniband else "eth0"],
    }
    return _systemd.fits(_systemd.effective(file.sections, "Match"), known)


def applicable(files: t.Iterable[LinkFile], device: Netdev) -> LinkFile | None:
    """Return the first file that may be for a device; a distribution's, of which that is not known, is not."""
    for file in sorted(files, key=lambda file: file.name):
        answer = fits(file, device)
        if answer or (answer is None and file.path.startswith(ADMIN_FOLDERS)):
            return file
    return None


def named_by_rule(rules: t.Mapping[str, str], device: Netdev) -> tuple[str, str] | None:
    """Return the rule of udev that names a device whatever .link files say, by its file, and the name; udev(7).

    :param rules: the texts of the files, by their paths. Names that are made of variables do not count.
    """
    own = {f'"{value.lower()}"' for value in (device.mac, device.pci, device.name) if value}
    found = None
    for path, text in sorted(rules.items(), key=lambda item: item[0].rpartition("/")[2]):
        for line in re.sub(r"\\\n", " ", text).splitlines():
            name = re.search(r'\bNAME\s*:?="([^"$%]+)"', line)
            if name and not line.lstrip().startswith("#") and own & set(re.findall(r'==("[^"]*")', line.lower())):
                found = (path, name[1])
    return found


def settings_of(file: LinkFile | None, usual: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the lines of the section Link without names, and those of all further sections, with what others set.

    :param usual: what is set where they set nothing.
    """
    sections = [(name, rows) for name, rows in file.sections if name != "Match"] if file else []
    rows = [row for name, found in sections if name == "Link" for row in found if row[0] not in NAMES]
    link = [f"{key}={value}" for key, value in [*((k, v) for k, v in usual.items() if k not in dict(rows)), *rows]]
    more = [line for name, found in sections if name != "Link" for line in ("", f"[{name}]", *map("=".join, found))]
    return link, more

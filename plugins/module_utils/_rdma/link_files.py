# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Others' .link files: udev takes the first whose [Match] fits a device, and no other. Pure; systemd.link(5)."""

from __future__ import annotations

import fnmatch
import re
import typing as t

if t.TYPE_CHECKING:
    from .host_model import Netdev

# A file stands for those of its name in later folders; people write into the first two.
FOLDERS = (
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
    "/lib/systemd/network",
)
PEOPLES = FOLDERS[:2]
RULES = "/etc/udev/rules.d"
# systemd's own, whose settings ours have.
DEFAULT = "99-default.link"
NAMES = ("Name", "NamePolicy")
# A pair of a rule: its key, sign and value.
RULE = re.compile(r'(\w+(?:\{[^}]*\})?)\s*(==|!=|:=|\+=|-=|=)\s*"([^"]*)"')
Sections = t.List[t.Tuple[str, t.List[t.Tuple[str, str]]]]  # noqa: UP006 - evaluated on Python 3.9


class LinkFile(t.NamedTuple):
    """A .link file with its drop-ins: the sections in their order, each with its settings."""

    path: str
    sections: Sections

    @property
    def name(self) -> str:
        """What the order goes by."""
        return self.path.rpartition("/")[2]


def parse(text: str) -> Sections:
    """Return the sections of a file of systemd, each with its settings in their order."""
    found: Sections = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            found.append((line[1:-1], []))
        elif found and "=" in line and line[0] not in "#;":
            key, _equals, value = line.partition("=")
            found[-1][1].append((key.strip(), value.strip()))
    return found


def fits(file: LinkFile, device: Netdev) -> bool | None:
    """Whether a file is for a device; None when it asks for what is not known here."""
    known = {
        "Path": [f"pci-{device.pci}"],
        "MACAddress": [_plain(device.mac)],
        "PermanentMACAddress": [_plain(device.mac)],
        "Driver": [device.driver],
        "Type": ["infiniband" if device.infiniband else "ether"],
        # The name that the kernel gave first; which number it had is not known any more.
        "OriginalName": [device.name, "ib0" if device.infiniband else "eth0"],
    }
    wanted: dict[str, list[str]] = {}
    for name, settings in file.sections:
        for key, value in settings if name == "Match" else ():
            wanted[key] = [*wanted.get(key, []), *value.split()] if value else []
    answers = [_matches(key, patterns, known.get(key)) for key, patterns in wanted.items() if patterns]
    return False if False in answers else None if None in answers else True


def _matches(key: str, patterns: list[str], values: list[str] | None) -> bool | None:
    if values is None:
        return None
    inverted = patterns[0].startswith("!")
    patterns = [patterns[0].lstrip("!"), *patterns[1:]]
    patterns = [_plain(item) for item in patterns] if key.endswith("MACAddress") else patterns
    return inverted != any(fnmatch.fnmatchcase(value, pattern) for value in values for pattern in patterns)


def _plain(mac: str) -> str:
    return re.sub("[^0-9a-f]", "", mac.lower())


def kept(files: t.Iterable[LinkFile], device: Netdev) -> LinkFile | None:
    """Return the first file that may be for a device; a distribution's, of which that is not known, is not."""
    for file in sorted(files, key=lambda file: file.name):
        answer = fits(file, device)
        if answer or (answer is None and file.path.startswith(PEOPLES)):
            return file
    return None


def named_by_rule(rules: t.Mapping[str, str], device: Netdev) -> tuple[str, str] | None:
    """Return the rule of udev that names a device whatever .link files say, by its file, and the name; udev(7).

    :param rules: the texts of the files, by their paths. Names that are made of variables do not count.
    """
    known = {
        "SUBSYSTEM": "net",
        "ACTION": "add",
        "KERNEL": device.name,
        "KERNELS": device.pci,
        "DRIVERS": device.driver,
        "ATTR{address}": device.mac.lower(),
        "ATTR{type}": "32" if device.infiniband else "1",
    }
    found = None
    for path, text in sorted(rules.items(), key=lambda item: item[0].rpartition("/")[2]):
        for line in re.sub(r"\\\n", " ", text).splitlines():
            pairs = [] if line.lstrip().startswith("#") else RULE.findall(line.replace("ATTRS{", "ATTR{"))
            asked = [row for row in pairs if row[1] in ("==", "!=") and row[0] in known]
            fit = [(key, _rule_fits(value, known[key], key) == (sign == "==")) for key, sign, value in asked]
            name = next((value for key, sign, value in pairs if key == "NAME" and sign in ("=", ":=")), "")
            own = {key for key, good in fit if good} & {"KERNEL", "KERNELS", "DRIVERS", "ATTR{address}"}
            if name and not re.search("[$%]", name) and own and all(good for _key, good in fit):
                found = (path, name)
    return found


def _rule_fits(patterns: str, value: str, key: str) -> bool:
    # The kernel's first name is not known any more: a pattern of them may have been it.
    values = [value, "eth0", "ib0"] if key == "KERNEL" and re.search("[*?[]", patterns) else [value]
    lower = patterns.lower() if key == "ATTR{address}" else patterns
    return any(fnmatch.fnmatchcase(item, pattern) for item in values for pattern in lower.split("|"))


def settings_of(file: LinkFile | None, naming: str, usual: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the lines of the section Link, and those of all further sections, with what others set in them.

    :param naming: `name` leaves their names out.
    :param usual: what is set where they set nothing.
    """
    sections = [(name, rows) for name, rows in file.sections if name != "Match"] if file else []
    rows = [row for name, found in sections if name == "Link" for row in found]
    rows = [row for row in rows if naming != "name" or row[0] not in NAMES]
    theirs = {key for key, _value in rows} | ({"NamePolicy"} if any(key == "Name" for key, _value in rows) else set())
    link = [f"{key}={value}" for key, value in [*((k, v) for k, v in usual.items() if k not in theirs), *rows]]
    more = [line for name, found in sections if name != "Link" for line in ("", f"[{name}]", *map("=".join, found))]
    return link, more

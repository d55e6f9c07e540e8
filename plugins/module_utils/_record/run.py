# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records a host: reads what the tables name, replaces what tells whose it is, and refuses when any of it is left."""

from __future__ import annotations

import base64
import glob
import json
import os
import pwd
import re
import shutil
import struct
import subprocess
import sys
import typing as t
from fnmatch import fnmatch

from .._cabling.lldp import ARGV, parse_lldp
from .._card.vpd import parse_vpd
from .._errors import RdmaError
from .._files import Sysfs
from .._probe import nic
from .._qos.device import Dcb
from .._route import netlink as nl
from .._untouchable import BEYOND, connection_ends
from .links import DUMPS, scrubbed
from .scrub import Scrub, leaks, real_of
from .sources import COMMANDS, FILES, VERSIONS, Files, lines_with_keys

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ansible.module_utils.basic import AnsibleModule

FORMAT = 1
SPEC = {
    "key": {"type": "str", "required": True, "no_log": True},
    "names": {"type": "list", "elements": "str", "default": []},
    "folders": {"type": "list", "elements": "path", "default": []},
}
# Accounts that images bring: their names tell nobody, and stand for other things too.
ACCOUNT_WORDS = """
admin almalinux ansible centos cloud-user core debian ec2-user fedora nvidia rocky root test ubuntu user vagrant
"""
ACCOUNTS = frozenset(ACCOUNT_WORDS.split())
SECONDS = 30
BIGGEST = 1 << 22
SERIALS = ("product_serial", "board_serial", "chassis_serial", "product_uuid", "chassis_asset_tag")
# What a card says of itself that modules read; the serial number and the board's UUID have stand-ins.
KEYWORDS = ("PN", "EC", "SN", "V3", "VA")
DEVICE_SERIAL = 0x0003
BRIDGE = "0x0604"
Row = t.List[t.Any]  # noqa: UP006 - evaluated on Python 3.9
Ran = t.Dict[str, t.Any]  # noqa: UP006
Execute = t.Callable[[t.List[str], str], t.Optional[Ran]]  # noqa: UP006


def execute(argv: list[str], text: str = "") -> Ran | None:
    """Run a program that the host has, and return what it said; None where it has none of the name."""
    tool = shutil.which(argv[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if tool is None:
        return None
    ran: Ran = {"argv": argv, "stdin": text, "rc": 124, "out": "", "err": f"no answer in {SECONDS} seconds"}
    try:
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            [tool, *argv[1:]],
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=SECONDS,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired:
        return ran
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    return {**ran, "rc": done.returncode, "out": out, "err": err}


class Recorder:
    """Reads one host into an archive without a real name in it.

    :param sysfs: the host's files.
    :param run: the host's programs.
    :param names: of hosts, users and switches.
    """

    def __init__(self, sysfs: Sysfs, run: Execute, key: str, names: Iterable[str] = ()) -> None:
        self._sysfs = sysfs
        self._run = run
        cards = sysfs.names("/sys/bus/pci/devices")
        self._vpd = {card: parse_vpd(sysfs.data(f"/sys/bus/pci/devices/{card}/vpd") or b"") for card in cards}
        told = [sysfs.text(f"/sys/class/dmi/id/{name}") or "" for name in SERIALS]
        serials = {text for text in told if len(text) > 3 and any(map(str.isdigit, text))}
        serials |= {found[key] for found in self._vpd.values() for key in ("SN", "V3") if found.get(key)}
        self._nets = sysfs.names("/sys/class/net")
        macs = {sysfs.text(f"/sys/class/net/{name}/address") or "" for name in self._nets}
        addresses = json.loads((run(["ip", "-j", "address", "show"], "") or {}).get("out") or "[]")
        self._known = {
            "name": {text for name in {*names, *switches(run)} for text in parts_of(name)},
            "serial": serials,
            "mac": {mac for mac in macs if re.fullmatch("(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", mac) and mac.strip("0:")},
            "address": {item["local"] for link in addresses for item in link.get("addr_info", ()) if "local" in item},
        }
        self.scrub = Scrub(key, self._known["name"], serials)
        self._rows: dict[str, Row] = {}
        self.unread: list[str] = []

    def record(self) -> dict[str, t.Any]:
        """Return the archive.

        :raises RdmaError: when something real is left in it.
        """
        for row in FILES:
            folder = row.folder.replace("{release}", os.uname().release)
            for home in sorted(glob.glob(self._sysfs.path(folder))):
                self._folder("/" + os.path.relpath(home, self._sysfs.root), row)
        text = self.scrub.text
        ends = connection_ends(self._sysfs)
        archive = {
            "format": FORMAT,
            "host": self.scrub.name(os.uname().nodename),
            "kernel": os.uname().release,
            "python": sys.version.split()[0],
            "connection": [text(end) for end in ends or ()],
            "files": [
                [kind, text(path), content if kind == "b" else text(content), mode]
                for path, (kind, content, mode) in sorted(self._rows.items())
            ],
            "commands": [
                {"argv": list(map(text, ran["argv"])), "rc": ran["rc"], **{key: text(ran[key]) for key in STREAMS}}
                for ran in self._commands(ends)
            ],
            "netlink": {kind: [scrubbed(kind, body, self.scrub).hex() for body in dumped(kind)] for kind in DUMPS},
            "ethtool": {
                text(name): {"driver": nic.driver(name), "statistics": nic.statistics(name)} for name in self._nets
            },
            "dcb": {text(name): found for name in self._nets if (found := _dcb(name))},
            "unread": list(map(text, self.unread)),
        }
        refuse(leaks(real_of(self._known, self.scrub), places(archive)))
        return archive

    def _folder(self, home: str, row: Files) -> None:
        for name in self._sysfs.names(home):
            if any(fnmatch(name, pattern) for pattern in row.names.split()):
                self._take(f"{home}/{name}", row)

    def _take(self, path: str, row: Files) -> None:
        real = self._way(path)
        place = self._sysfs.path(real)
        if real in self._rows or (row.keep == "config" and not self._is_bridge(path)):
            return
        if os.path.isdir(place):
            self._rows[real] = ["d", "", 0]
        elif os.path.isfile(place):
            kind, content = ("f", "") if row.keep == "names" else self._content(path, row)
            if content is None or len(content) > BIGGEST:
                self.unread.append(real)
            else:
                self._rows[real] = [kind, content, os.stat(place).st_mode & 0o777]
        elif os.path.exists(place):
            self._rows[real] = ["f", "", 0]  # a device

    def _way(self, path: str) -> str:
        """Return where a path leads, and keep the links on the way."""
        own = ""
        for part in path.strip("/").split("/"):
            own = f"{own}/{part}"
            if os.path.islink(self._sysfs.path(own)):
                link, own = own, self._sysfs.real(own) or own
                if own != link:
                    self._rows[link] = ["l", os.path.relpath(own, os.path.dirname(link)), 0]
        return own

    def _content(self, path: str, row: Files) -> tuple[str, str | None]:
        data = self._sysfs.data(path)
        if data is None:
            return "f", None
        if row.keep == "vpd":
            data = vpd({key: self._told(key, value) for key, value in self._vpd[path.split("/")[-2]].items()})
        elif row.keep == "config":
            data = without_serial(data)
        if row.keep in ("vpd", "config", "bytes"):
            return "b", base64.b64encode(data).decode()
        text = data.decode("utf-8", "replace")
        if row.keep == "keys":
            return "f", lines_with_keys(path, text)
        if row.keep:
            # Lines stay lines, words stay words.
            end = "\n" if row.keep.startswith("(?m)") else ""
            return "f", "".join(found.expand(row.form) + end for found in re.finditer(row.keep, text))
        return "f", text

    def _told(self, key: str, value: str) -> str:
        return self.scrub.serial(value) if key in ("SN", "V3") else self.scrub.text(value)

    def _is_bridge(self, path: str) -> bool:
        return (self._sysfs.text(f"{os.path.dirname(path)}/class") or "").startswith(BRIDGE)

    def _commands(self, ends: tuple[str, str] | None) -> Iterable[Ran]:
        """Yield what each program said that the host has."""
        asked = [([tool, option], "") for tool, option in VERSIONS.items()]
        for family in (4, 6):
            lines = ["link show", "address show", "rule show", f"route show table all match {BEYOND[family]}"]
            if ends and (":" in ends[1]) == (family == 6) and not ends[1].startswith("fe80:"):
                lines.append(f"route get fibmatch {ends[1]}")
            asked.append((["ip", f"-{family}", "-json", "-force", "-batch", "-"], "\n".join(lines) + "\n"))
        asked.append((["ip", "-json", "-details", "address", "show"], ""))
        ports = [name for name in self._nets if self._sysfs.exists(f"/sys/class/net/{name}/device")]
        many = {"{interface}": ports, "{nic}": [card for card, found in self._vpd.items() if self._is_nic(card)]}
        for argv in COMMANDS:
            wild = next((word for word in argv if word in many), "")
            asked += [([item if word == wild else word for word in argv], "") for item in many.get(wild, [""])]
        return [ran for argv, text in asked if (ran := self._run(argv, text))]

    def _is_nic(self, card: str) -> bool:
        home = f"/sys/bus/pci/devices/{card}"
        kind = self._sysfs.text(f"{home}/class") or ""
        return self._sysfs.text(f"{home}/vendor") == "0x15b3" and kind.startswith("0x02") and card.endswith(".0")


STREAMS = ("stdin", "out", "err")
# The ends of files' names in the folders of plan and verdict.
TEXTS = (".json", ".yaml", ".yml", ".md", ".csv", ".txt", ".log", ".prom")
# Where plans and verdicts name hosts and switches.
NAMED = re.compile(r'"(?:switch|leaf|host|node|hostname)"\s*:\s*"([\w.-]{3,})"')
HOST_FILE = re.compile(r"/hosts/([^/]+)\.json$")
GENERIC = {"localhost", "host", "all", "none"}


def refuse(found: list[str]) -> None:
    """Refuse what real values were found in.

    :raises RdmaError: with the places, and not the values.
    """
    if found:
        raise RdmaError(
            f"The record still has something real in {len(found)} places: {'; '.join(found[:10])}.",
            "Nothing was kept. Run again: each run draws other stand-ins, and one may equal a real value. If it stays,"
            " report these places.",
        )


def parts_of(name: str) -> set[str]:
    """Return a host's name with its first part and its domain; an address is none."""
    first, _dot, domain = name.partition(".")
    return set() if re.fullmatch(r"[\d.]+|.*:.*", name) else {name, first, *([domain] if "." in domain else ())}


def users() -> set[str]:
    """Return the names of the people who have an account."""
    return {item.pw_name for item in pwd.getpwall() if 1000 <= item.pw_uid < 60000} - ACCOUNTS


def switches(run: Execute) -> set[str]:
    """Return the names of the switches that lldpd hears."""
    try:
        heard = parse_lldp((run(list(ARGV), "") or {}).get("out") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()
    return {found["switch"] for found in heard.values() if found["switch"]}


def vpd(keywords: Mapping[str, str]) -> bytes:
    """Return vital product data (PCI Local Bus Specification 3.0, appendix I) with the keywords that are taken."""
    words = {key: keywords[key].encode("ascii", "replace")[:255] for key in KEYWORDS if key in keywords}
    body = b"".join(key.encode() + bytes([len(value)]) + value for key, value in words.items())
    return b"\x90" + len(body).to_bytes(2, "little") + body + b"\x78" if body else b""


def without_serial(config: bytes) -> bytes:
    """Return a configuration space without the device's serial number (extended capability 0x0003)."""
    data, place, seen = bytearray(config), 0x100, set()
    while 0x100 <= place <= len(data) - 12 and place not in seen:
        seen.add(place)
        (header,) = struct.unpack_from("<I", data, place)
        if header & 0xFFFF == DEVICE_SERIAL:
            data[place + 4 : place + 12] = bytes(8)
        place = header >> 20 & 0xFFC
    return bytes(data)


def places(archive: Mapping[str, t.Any]) -> Iterable[tuple[str, str]]:
    """Yield every text of an archive with where it is; of bytes, those that are letters."""
    for number, (kind, path, content, _mode) in enumerate(archive["files"]):
        yield f"the path of file {number}", path
        yield path, base64.b64decode(content).decode("latin-1") if kind == "b" else content
    for ran in archive["commands"]:
        for key in STREAMS:
            yield f"{key} of {ran['argv'][0]}", ran[key]
    rest = {key: value for key, value in archive.items() if key not in ("files", "commands")}
    yield "what is beside files and commands", json.dumps(rest)


def dumped(kind: str) -> list[bytes]:
    """Return the kernel's answers of a kind of links.DUMPS."""
    number, size = DUMPS[kind]
    ask = nl.Socket()
    try:
        return ask.dump(nl.request(number, nl.NLM_F_DUMP, bytes(size)))
    finally:
        ask.close()


def _ethtool(interface: str) -> dict[str, t.Any]:
    return {"driver": nic.driver(interface), "statistics": nic.statistics(interface)}


def _dcb(interface: str) -> dict[str, t.Any] | None:
    try:
        return dict(Dcb().get(interface))
    except OSError:
        return None


def bundle(folders: Iterable[str], key: str, names: Iterable[str]) -> list[list[str]]:
    """Return the path and text of each file below some folders that is text, and not too big.

    :raises RdmaError: when something real is left in them.
    """
    found: list[tuple[str, str]] = []
    for folder in folders:
        above = os.path.dirname(os.path.abspath(folder))
        for home, _folders, files in sorted(os.walk(folder)):
            for path in sorted(os.path.join(home, name) for name in files if name.endswith(TEXTS)):
                if os.path.getsize(path) <= BIGGEST:
                    with open(path, encoding="utf-8", errors="replace") as file:
                        found.append((os.path.relpath(path, above), file.read()))
    # Those of hosts and switches that the inventory does not have any more, or never had.
    more = {name for _path, text in found for name in NAMED.findall(text)}
    more |= {match[1] for path, _text in found if (match := HOST_FILE.search(path))}
    scrub = Scrub(key, {text for name in {*names, *more} - GENERIC for text in parts_of(name)})
    done = [[scrub.text(path), scrub.text(text)] for path, text in found]
    refuse(leaks(scrub.found, ((path, f"{path} {text}") for path, text in done)))
    return done


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Record the host; with folders, what lies in these instead."""
    names = [*module.params["names"], os.uname().nodename, *users()]
    if module.params["folders"]:
        files = bundle(module.params["folders"], module.params["key"], names)
        return {"changed": False, "bundle": files}
    recorder = Recorder(Sysfs(), execute, module.params["key"], names)
    archive = recorder.record()
    summary = {
        "host": archive["host"],
        "files": len(archive["files"]),
        "commands": [" ".join(ran["argv"]) for ran in archive["commands"]],
        "bytes": len(json.dumps(archive)),
        "stand_ins": {kind: len(found) for kind, found in sorted(recorder.scrub.found.items())},
    }
    return {"changed": False, "record": archive, "summary": summary}

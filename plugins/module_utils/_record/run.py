# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records a host: reads what the tables name, replaces what tells whose it is, and refuses when any of it is left."""

from __future__ import annotations

import base64
import contextlib
import glob
import json
import os
import pwd
import re
import sys
import typing as t
import uuid
from fnmatch import fnmatch

from .._cabling.lldp import ARGV
from .._card.pci import VENDOR_MELLANOX, read_pci
from .._card.vpd import make_vpd, parse_vpd
from .._files import Sysfs
from .._persist.networkmanager import NAMESPACE
from .._persist.plan import owned
from .._probe import nic
from .._programs import ask
from .._qos.device import Dcb
from .._rdma import verbs
from .._route import netlink as nl
from .._untouchable import connection_ends, lists, questions
from .answers import answer, error
from .links import DUMPS, scrubbed
from .managers import PARSED, Reader
from .scrub import Scrub, leaks, parts_of, real_of, refuse
from .sources import COMMANDS, EXPRESSIONS, FILES, VERSIONS, Files

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

FORMAT = 1
SPEC = {
    "key": {"type": "str", "required": True, "no_log": True},
    "names": {"type": "list", "elements": "str", "default": []},
    "folders": {"type": "list", "elements": "path", "default": []},
}
SECONDS = 30
BIGGEST = 1 << 22
SERIALS = ("product_serial", "board_serial", "chassis_serial", "product_uuid", "chassis_asset_tag")
BRIDGE = 0x0604
Row = t.List[t.Any]  # noqa: UP006 - evaluated on Python 3.9
Ran = t.Dict[str, t.Any]  # noqa: UP006
Execute = t.Callable[[t.List[str], str], t.Optional[Ran]]  # noqa: UP006


def execute(argv: list[str], text: str = "") -> Ran | None:
    """Run a program that the host has, and return what it said; None where it has none of the name."""
    code, out, err = ask(argv, text, SECONDS)
    return None if code == 127 else {"argv": argv, "stdin": text, "rc": code, "out": out, "err": err}


class Recorder:
    """Reads one host into an archive without a real name in it.

    :param sysfs: the host's files.
    :param run: the host's programs.
    :param names: of hosts, users and switches.
    """

    def __init__(self, sysfs: Sysfs, run: Execute, key: str, names: t.Iterable[str] = ()) -> None:
        self._sysfs = sysfs
        self._run = run
        cards = sysfs.names("/sys/bus/pci/devices")
        self._vpd = {card: parse_vpd(sysfs.data(f"/sys/bus/pci/devices/{card}/vpd") or b"") for card in cards}
        told = [sysfs.text(f"/sys/class/dmi/id/{name}") or "" for name in SERIALS]
        serials = {text for text in told if len(text) > 3 and any(map(str.isdigit, text))}
        serials |= {found[key] for found in self._vpd.values() for key in ("SN", "V3") if found.get(key)}
        self._nets = sysfs.names("/sys/class/net")
        self._heard = run(list(ARGV), "")
        macs = {sysfs.text(f"/sys/class/net/{name}/address") or "" for name in self._nets}
        said = (run(["ip", "-j", "address", "show"], "") or {}).get("out", "")
        links = [link for links in lists(said)[:1] for link in links if isinstance(link, dict)]
        made = {*self._nets, *sysfs.names("/sys/class/infiniband")}
        made |= {str(name) for link in links for name in (link.get("ifname"), *link.get("altnames", ())) if name}
        typed = Scrub(key).allow.typed
        names = {*names, *switches((self._heard or {}).get("out", ""))}
        self._known = {
            "name": {text for name in names for text in parts_of(name)} | {name for name in made if not typed(name)},
            "serial": serials,
            "mac": {mac for mac in macs if re.fullmatch("(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", mac) and mac.strip("0:")},
            "address": {item["local"] for link in links for item in link.get("addr_info", ()) if "local" in item},
        }
        self.scrub = Scrub(key, self._known["name"], serials)
        # They are made of the interfaces' names, and tell no more.
        self.scrub.kept = {str(uuid.uuid5(NAMESPACE, name)) for name in self._nets}
        self._reader = Reader(self.scrub.allow)
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
            "kernel": self.scrub.label(os.uname().release),
            "python": sys.version.split()[0],
            "connection": [text(end) for end in ends or ()],
            "files": [
                [kind, self._path(path), content if kind == "b" else text(content), mode]
                for path, (kind, content, mode, _folder) in sorted(self._rows.items())
            ],
            "commands": [
                {**ran, "argv": list(map(text, ran["argv"])), **{key: text(ran[key]) for key in STREAMS}}
                for ran in self._commands(ends)
            ],
            "netlink": {kind: [scrubbed(kind, body, self.scrub).hex() for body in dumped(kind)] for kind in DUMPS},
            "ethtool": {
                text(name): {"driver": nic.driver(name), "statistics": nic.statistics(name)} for name in self._nets
            },
            "dcb": {text(name): found for name in self._nets if (found := _dcb(name))},
            "verbs": json.loads(text(json.dumps(None if verbs.PYVERBS_ERROR else verbs.read()[0]))),
            "unread": list(map(self._path, self.unread)),
        }
        folders = [row[3] for _path, row in sorted(self._rows.items())]
        refuse(leaks(real_of(self._known, self.scrub), places(archive, folders)))
        return archive

    def _path(self, path: str) -> str:
        """Return where a file is; outside of the kernel's own folders people name files."""
        return self.scrub.text(path) if path.startswith(("/sys/", "/proc/")) else self.scrub.label(path)

    def _folder(self, home: str, row: Files) -> None:
        for name in self._sysfs.names(home):
            if any(fnmatch(name, pattern) for pattern in row.names.split()):
                self._take(f"{home}/{name}", row)

    def _take(self, path: str, row: Files) -> None:
        if owned(path) and os.path.islink(self._sysfs.path(path)):
            # Of ours its own words count, also where it leads nowhere.
            self._rows[path] = ["l", self.scrub.label(os.readlink(self._sysfs.path(path))), 0, row.folder]
            return
        real = self._way(path, row.folder)
        place = self._sysfs.path(real)
        if real in self._rows:
            return
        if os.path.isdir(place):
            self._rows[real] = ["d", "", 0, row.folder]
        elif os.path.isfile(place):
            kind, content = ("f", "") if row.keep == "names" else self._content(path, row)
            self.unread += [real] if content is None else []
            # Whoever looks for a parsed file must find it.
            if content is not None or row.keep in PARSED:
                self._rows[real] = [kind, content or "", os.stat(place).st_mode & 0o777, row.folder]
        elif os.path.exists(place):
            self._rows[real] = ["f", "", 0, row.folder]  # a device

    def _way(self, path: str, folder: str) -> str:
        """Return where a path leads, and keep the links on the way."""
        own = ""
        for part in path.strip("/").split("/"):
            own = f"{own}/{part}"
            if os.path.islink(self._sysfs.path(own)):
                link, own = own, self._sysfs.real(own) or own
                if own != link:
                    # As the files that it leads to are called in the record.
                    there = os.path.relpath(self._path(own), os.path.dirname(self._path(link)))
                    self._rows[link] = ["l", there, 0, folder]
        return own

    def _content(self, path: str, row: Files) -> tuple[str, str | None]:
        data = self._sysfs.data(path)
        if data is None or (len(data) > BIGGEST and row.keep not in EXPRESSIONS):
            return "f", None
        if row.keep == "vpd":
            told, scrub = self._vpd[path.split("/")[-2]].items(), self.scrub
            data = make_vpd({key: (scrub.serial if key in ("SN", "V3") else scrub.text)(value) for key, value in told})
        if row.keep in ("vpd", "bytes"):
            return "b", base64.b64encode(data).decode()
        text = data.decode("utf-8", "replace")
        if row.keep in PARSED:
            return "f", self._reader.read(row.keep, text)
        if row.keep:
            # Lines stay lines, words stay words.
            pattern, _mark, form = EXPRESSIONS[row.keep].partition(" => ")
            found = (match.expand(form or r"\g<0>") for match in re.finditer(pattern, text))
            end = "\n" if pattern.startswith("(?m)") else ""
            return "f", "".join(item + end for item in found if self.scrub.allow.typed(item))
        return "f", text

    def _commands(self, ends: tuple[str, str] | None) -> t.Iterable[Ran]:
        """Yield what each program said that the host has."""
        asked = [(words.split(), "") for words in VERSIONS.split(", ")]
        asked += questions(ends)
        ports = [name for name in self._nets if self._sysfs.exists(f"/sys/class/net/{name}/device")]
        tree = read_pci(self._sysfs)
        nics = [nic.address for nic in tree.nics if nic.vendor == VENDOR_MELLANOX]
        bridges = [item.address for item in tree.functions.values() if item.class_code == BRIDGE]
        many = {"{interface}": ports, "{nic}": [nic for nic in nics if nic.endswith(".0")], "{bridge}": bridges}
        for argv in [list(ARGV), *map(str.split, COMMANDS.split("; "))]:
            wild = next((word for word in argv if word in many), "")
            asked += [([item if word == wild else word for word in argv], "") for item in many.get(wild, [""])]
        return [ran for argv, text in asked if (ran := self._answer(argv, text))]

    def _answer(self, argv: list[str], text: str) -> Ran | None:
        """Ask a program, and return what may be kept of its answer."""
        ran = self._heard if argv == list(ARGV) else self._run(argv, text)
        out = answer(argv, ran["out"], self.scrub.allow) if ran else None
        if ran and out is None:
            self.unread.append(f"/{argv[0]}")
        return {**ran, "out": out or "", "err": error(ran["err"])} if ran else None


STREAMS = ("stdin", "out", "err")


def users() -> set[str]:
    """Return the names of the people who have an account; those of directories have great numbers."""
    return {item.pw_name for item in pwd.getpwall() if item.pw_uid >= 1000}


def switches(said: str) -> set[str]:
    """Return the names of all neighbours that lldpd hears."""
    return set(re.findall(r'"name": *\[\s*\{\s*"value": *"([^"\\]+)"', said))


def places(archive: t.Mapping[str, t.Any], folders: list[str]) -> t.Iterable[tuple[str, str]]:
    """Yield every text of an archive with where it is, in our own words; of bytes, those that are letters.

    :param folders: of each file that of FILES.
    """
    for number, (kind, path, content, _mode) in enumerate(archive["files"]):
        text = base64.b64decode(content).decode("latin-1") if kind == "b" else content
        yield f"file {number} ({folders[number]})", f"{path} {text}"
    for number, ran in enumerate(archive["commands"]):
        yield f"command {number} ({ran['argv'][0]})", " ".join(ran[key] for key in STREAMS)
    rest = {key: value for key, value in archive.items() if key not in ("files", "commands")}
    yield "what is beside files and commands", json.dumps(rest)


def dumped(kind: str) -> list[bytes]:
    """Return the kernel's answers of a kind of links.DUMPS."""
    number, size = DUMPS[kind]
    with contextlib.closing(nl.Socket()) as ask:
        return ask.dump(nl.request(number, nl.NLM_F_DUMP, bytes(size)))


def _dcb(interface: str) -> dict[str, t.Any]:
    with contextlib.suppress(OSError):
        return dict(Dcb().get(interface))
    return {}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Record the host."""
    names = [*module.params["names"], os.uname().nodename, *users()]
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

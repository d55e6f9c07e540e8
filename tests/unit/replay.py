# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replays a record (host_record_info) as a host: modules read its files, programs and netlink answers, no more.

What a module asks for that the record lacks is in `Replay.lacks`. Of questions for a route the kernel's answer is
computed from the recorded main table alone: those with a source, a mark or an interface are lacking.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import struct
import sys
import typing as t
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.module_utils import basic

from ansible_collections.railops.rdma.plugins.module_utils import _files, _untouchable
from ansible_collections.railops.rdma.plugins.module_utils._persist import host as persist_host
from ansible_collections.railops.rdma.plugins.module_utils._probe import nic
from ansible_collections.railops.rdma.plugins.module_utils._qos import device as qos_device
from ansible_collections.railops.rdma.plugins.module_utils._rdma import verbs
from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub
from ansible_collections.railops.rdma.plugins.module_utils._record.sources import FILES
from ansible_collections.railops.rdma.plugins.module_utils._route import devices, read
from ansible_collections.railops.rdma.plugins.module_utils._route import netlink as nl
from ansible_collections.railops.rdma.tests.unit.machines import lay_out_rows, program

PROGRAM = """#!{python}
import json, sys
asked = {{"argv": [{name!r}, *sys.argv[1:]], "stdin": "" if sys.stdin.isatty() else sys.stdin.read()}}
for row in json.load(open({answers!r})):
    if row["argv"] == asked["argv"] and row["stdin"].strip() == asked["stdin"].strip():
        sys.stdout.write(row["out"])
        sys.stderr.write(row["err"])
        sys.exit(row["rc"])
open({lacks!r}, "a").write("answer of " + json.dumps(asked) + chr(10))
sys.exit("the record lacks this answer")
"""
GETADDR, GETROUTE, GETRULE = 22, 26, 34
MAIN, LOCAL, UNICAST = 254, 255, 1


class Replay:
    """A recorded host in a folder.

    :param record: of one host.
    :param home: an empty folder.
    """

    def __init__(self, record: dict[str, t.Any], home: Path) -> None:
        self.record = record
        self.root = home / "root"
        self._lacks = home / "lacks"
        self._lacks.touch()
        self.root.mkdir()
        lay_out_rows(sorted(record["files"], key=lambda row: row[0] != "d" and row[0] != "l"), self.root)
        answers = home / "answers.json"
        answers.write_text(json.dumps(record["commands"]), encoding="utf-8")
        self.programs = home / "bin"
        self.programs.mkdir()
        (self.root / "usr/sbin").mkdir(parents=True, exist_ok=True)
        for name in {row["argv"][0] for row in record["commands"]}:
            where = {"python": sys.executable, "name": name, "answers": str(answers), "lacks": str(self._lacks)}
            program(self.programs / name, PROGRAM.format(**where))
            for there in ("usr/bin", "usr/sbin"):
                (self.root / there / name).unlink(missing_ok=True)
            (self.root / "usr/sbin" / name).symlink_to(self.programs / name)
        self._index = {body[1]: body[0] for body in map(link_of, self._answers("link"))}

    @property
    def lacks(self) -> list[str]:
        """What was asked for that the record lacks."""
        return sorted(set(self._lacks.read_text(encoding="utf-8").splitlines()))

    def note(self, what: str) -> None:
        with self._lacks.open("a", encoding="utf-8") as stream:
            stream.write(f"{what}\n")

    def _answers(self, kind: str) -> list[bytes]:
        return [bytes.fromhex(text) for text in self.record["netlink"][kind]]

    # rtnetlink

    def socket(self) -> Replay:
        return self

    def close(self) -> None:
        """Nothing is open."""

    def dump(self, message: bytes) -> list[bytes]:
        return self.ask([message])[0][1]

    def ask(self, messages: list[bytes]) -> list[tuple[int, list[bytes], str]]:
        found = [self._answer(message) for message in messages]
        return [(0, rows, "") if rows is not None else (errno.ENODEV, [], "") for rows in found]

    def _answer(self, message: bytes) -> list[bytes] | None:
        kind, flags = struct.unpack_from("=HH", message, 4)
        body = message[16:]
        if kind == nl.RTM_GETLINK:
            return self._links(body) if not flags & nl.NLM_F_DUMP else self._answers("link")
        if kind == GETROUTE and not flags & nl.NLM_F_DUMP:
            return self._way(body)
        rows = {GETADDR: "address", GETROUTE: "route", GETRULE: "rule"}.get(kind)
        if rows is None:
            self.note(f"netlink message {kind}")
            return None
        return [row for row in self._answers(rows) if body[0] in (0, row[0])]

    def _links(self, body: bytes) -> list[bytes] | None:
        have = nl.attributes(body, nl.LINK_HEAD.size)
        (index,) = struct.unpack_from("=i", body, 4)
        name = nl.text_of(have.get(nl.IFLA_IFNAME) or have.get(nl.IFLA_ALT_IFNAME) or b"")
        rows = [row for row in self._answers("link") if link_of(row)[0] == index or name in names_of(row)]
        return rows or None

    def _way(self, body: bytes) -> list[bytes] | None:
        """Return the recorded route that covers an address best."""
        have = nl.attributes(body, 12)
        if set(have) != {1}:
            self.note(f"a route for attributes {sorted(have)}")
            return None
        wanted = int.from_bytes(have[1], "big")
        best: tuple[int, int, bytes] | None = None
        for row in self._answers("route"):
            own, table, kind = nl.attributes(row, 12), row[4], row[7]
            to = own.get(1, bytes(len(have[1])))
            away = len(have[1]) * 8 - row[1]
            covers = row[0] == body[0] and int.from_bytes(to, "big") >> away == wanted >> away
            metric = struct.unpack("=I", own.get(6, bytes(4)))[0]
            if covers and table in (MAIN, LOCAL) and kind < 3 and (best is None or (row[1], -metric) > best[:2]):
                best = (row[1], -metric, row)
        return [best[2]] if best else None

    def index_of(self, name: str) -> int:
        for row in self._answers("link"):
            if name in names_of(row):
                return link_of(row)[0]
        raise OSError(errno.ENODEV, "no such interface")

    def name_of(self, index: int) -> str:
        found = [name for name, number in self._index.items() if number == index]
        if not found:
            raise OSError(errno.ENXIO, "no such number")
        return found[0]

    # Files

    def covered(self, path: str) -> bool:
        """Whether a record has a path if the host has it: by its whole, or in /sys by the end of it."""
        for row in FILES:
            folder = row.folder.replace("{release}", self.record["kernel"])
            for pattern in row.names.split():
                if fnmatch(path, f"{folder}/{pattern}") or fnmatch(folder, f"{path}/*") or path == folder:
                    return True
                if path.startswith("/sys/") and fnmatch(os.path.basename(path), pattern) and pattern != "*":
                    return True
            # A folder of a folder that is read: it is not there.
            if path.startswith("/sys/") and os.path.basename(path) in folder.split("/"):
                return True
        return bool(path.startswith("/sys/") and self._under_wildcard(path))

    def _under_wildcard(self, path: str) -> bool:
        """Whether any name of that folder is taken."""
        last = os.path.basename(os.path.dirname(path))
        return any(row.names == "*" and row.folder.rpartition("/")[2] == last for row in FILES)

    def look(self, path: str) -> None:
        """Note a path that is not there and that no row reads."""
        if not os.path.lexists(self.root / path.lstrip("/")) and not self.covered(os.path.normpath(path)):
            self.note(path)

    def play(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the modules of this process have this host."""
        replay, begin = self, _files.Sysfs.__init__

        def init(files: _files.Sysfs, root: str = "/") -> None:
            begin(files, str(replay.root) if root == "/" else root)

        monkeypatch.setattr(_files.Sysfs, "__init__", init)
        for name in ("data", "names", "exists"):
            monkeypatch.setattr(_files.Sysfs, name, _watched(replay, getattr(_files.Sysfs, name)))
        monkeypatch.setattr(qos_device.Nic.__init__, "__defaults__", ("auto", str(self.root), None))
        monkeypatch.setattr(persist_host.Host, "live", True)
        monkeypatch.setattr(basic, "get_bin_path", self._bin_path)
        monkeypatch.setattr(shutil, "which", lambda name, *_more, **_words: self._which(name))
        monkeypatch.setenv("PATH", str(self.programs))
        ends = self.record["connection"]
        monkeypatch.setattr(_untouchable, "connection_ends", lambda _sysfs: tuple(ends) or None)
        uname = SimpleNamespace(
            sysname="Linux", nodename=self.record["host"], release=self.record["kernel"], version="", machine="x86_64"
        )
        monkeypatch.setattr(os, "uname", lambda: uname)
        for place in (read, devices):
            monkeypatch.setattr(place, "Socket", self.socket)
        monkeypatch.setattr(devices, "other_namespaces", dict)
        monkeypatch.setattr(socket, "if_nametoindex", self.index_of)
        monkeypatch.setattr(socket, "if_indextoname", self.name_of)
        monkeypatch.setattr(nic, "driver", lambda name: self.record["ethtool"].get(name, {}).get("driver", {}))
        monkeypatch.setattr(nic, "statistics", lambda name: self.record["ethtool"].get(name, {}).get("statistics", {}))
        monkeypatch.setattr(qos_device.Dcb, "get", lambda _dcb, name: self._dcb(name))
        said = self.record.get("verbs")
        monkeypatch.setattr(verbs, "PYVERBS_ERROR", "no pyverbs there" if said is None else None)
        monkeypatch.setattr(
            verbs, "read", lambda: (_by_number(said or {}), [] if said is not None else [verbs.MISSING])
        )

    def _which(self, name: str) -> str | None:
        path = self.programs / os.path.basename(name)
        return str(path) if path.exists() else None

    def _bin_path(self, arg: str, **_more: t.Any) -> str:
        found = self._which(arg)
        if found is None:
            raise ValueError(f"Failed to find required executable {arg}")
        return found

    def _dcb(self, name: str) -> dict[str, t.Any]:
        if name not in self.record["dcb"]:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return dict(self.record["dcb"][name])


def _by_number(said: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return what pyverbs said, with ports by their numbers: keys of JSON are texts."""
    return {
        name: {**device, "ports": {int(port): row for port, row in device["ports"].items()}}
        for name, device in said.items()
    }


def _watched(replay: Replay, real: t.Any) -> t.Any:
    def watched(files: _files.Sysfs, path: str) -> t.Any:
        with contextlib.suppress(ValueError):
            replay.look(path)
        return real(files, path)

    return watched


def link_of(body: bytes) -> tuple[int, str]:
    """Return a link's number and name."""
    return struct.unpack_from("=i", body, 4)[0], names_of(body)[0]


def names_of(body: bytes) -> list[str]:
    """Return a link's name and its alternative ones."""
    have = nl.attributes(body, nl.LINK_HEAD.size)
    return [nl.text_of(name) for name in (have[nl.IFLA_IFNAME], *(text for _kind, text in nl.parts(have.get(52, b""))))]


def stand_ins(key: str, names: t.Sequence[str]) -> t.Callable[[str], str]:
    """Return what puts the stand-ins of this key's records into a text."""
    return Scrub(key, names).text


def stood_in(value: t.Any, text: t.Callable[[str], str]) -> t.Any:
    """Return facts, or a plan, with the stand-ins of a record in them."""
    if isinstance(value, dict):
        return {stood_in(key, text): stood_in(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [stood_in(item, text) for item in value]
    return text(value) if isinstance(value, str) else value

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A kernel with mlx5 ports for the real `dcb`: it answers DCB netlink (include/uapi/linux/dcbnl.h).

A small library (fixtures/programs/netlink_double.c) leads the netlink socket of `dcb` to this process.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.tests.unit.machines import program

SOURCE = Path(__file__).parent / "fixtures/programs/netlink_double.c"
ATTR_IFNAME, ATTR_IEEE, ATTR_DCBX = 1, 13, 14
IEEE_ETS, IEEE_PFC, IEEE_APP_TABLE = 1, 2, 3
CMD_IEEE_SET, CMD_SDCBX, CMD_IEEE_DEL = 20, 23, 27
TSA = {"strict": 0, "cbs": 1, "ets": 2, "vendor": 255}
FRESH_ETS = [*range(8), *[100] * 8, *["vendor"] * 8]
"""What mlx5 reports of a port that nothing has been set on."""


@functools.cache
def library():
    """Build the library; return its folder, which goes with this process."""
    folder = tempfile.TemporaryDirectory(prefix="netlink-double-")
    argv = ["cc", "-shared", "-fPIC", "-o", f"{folder.name}/double.so", str(SOURCE), "-ldl"]
    subprocess.run(argv, check=True)
    return folder


def attribute(kind, payload):
    data = struct.pack("=HH", 4 + len(payload), kind) + payload
    return data + b"\0" * (-len(data) % 4)


def attributes(data):
    while data:
        size, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:size]
        data = data[size + -size % 4 :]


def answer(kind, sequence, body):
    return struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 0) + body


class DcbDouble:
    """The ports of a host. mlx5: only the DSCP selector, set replaces, the map decides on trust."""

    def __init__(self):
        self.ports = {}
        self.writes = []
        self.absent = False  # its driver has no DCB
        self.keeps_dcbx = False
        self.overridden = False
        self.broken = None  # the interface, and what cannot be done there
        self.late = 0  # the message from now whose acknowledgement is of the second before for `dcb`

    def port(self, interface):
        return self.ports.setdefault(interface, {"pfc": 0, "dscp": {}, "dcbx": 0x0A})

    def install(self, folder):
        """Put a `dcb` into a folder: the real one, on this kernel. Returns how to end it."""
        real = shutil.which("dcb", path="/usr/sbin:/sbin:/usr/bin")
        if not real or not shutil.which("cc"):
            pytest.skip("the real dcb on a kernel of the test needs iproute2 5.12 and gcc")
        place = tempfile.mkdtemp(prefix="dcb-")
        self.address = f"{place}/socket"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.address)
        listener.listen(16)
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
        program(folder / "dcb", f'NETLINK_DOUBLE={self.address} LD_PRELOAD={library().name}/double.so exec {real} "$@"')
        return lambda: (listener.shutdown(socket.SHUT_RDWR), listener.close(), shutil.rmtree(place))

    def connect(self, *dummy):
        """Give what represents a netlink socket of this process."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(self.address)
        return Waiting(sock)

    def _serve(self, listener):
        while True:
            try:
                sock, _peer = listener.accept()
            except OSError:
                return
            # A `dcb` that ends leaves the acknowledgement unread.
            with sock, contextlib.suppress(ConnectionError):
                while message := sock.recv(65536):
                    for reply in self.replies(message):
                        sock.send(reply)

    def replies(self, message):
        """Answer one message as net/dcb/dcbnl.c does: the answer, then the acknowledgement."""
        _size, kind, _flags, sequence, _port = struct.unpack_from("=IHHII", message)
        _family, command, _pad = struct.unpack_from("=BBH", message, 16)
        given = dict(attributes(message[20:]))
        interface = given[ATTR_IFNAME].rstrip(b"\0").decode()
        head = struct.pack("=BBH", 0, command, 0)
        code = 0
        if self.absent:
            code = -errno.EOPNOTSUPP
        elif kind == 78:
            yield answer(kind, sequence, head + attribute(ATTR_IFNAME, given[ATTR_IFNAME]) + self.ieee(interface))
        elif command == CMD_SDCBX:
            refused = self.set_dcbx(interface, given[ATTR_DCBX][0])
            yield answer(kind, sequence, head + attribute(ATTR_DCBX, bytes([refused])))
        else:
            failed = self.set(interface, command, given[ATTR_IEEE])
            yield answer(kind, sequence, head + attribute(ATTR_IEEE, bytes([-failed & 0xFF])))
        self.late -= 1
        yield answer(2, sequence - (not self.late), struct.pack("=i", code) + message[:16])

    def ieee(self, interface):
        port = self.port(interface)
        found = port.get("ets", FRESH_ETS)
        classes, names = bytes(found[:8]), found[16:]
        # mlx5 keeps no share of a class without ETS.
        share = bytes(found[8 + at] if names[at] == "ets" else 100 for at in range(8))
        ets = bytes([0, 8, 0]) + share + bytes(8) + bytes(TSA[name] for name in names) + classes + bytes(24)
        pfc = struct.pack("=BBBxH2x16Q", 8, port["pfc"], 0, 7, *range(16))
        apps = b"".join(attribute(1, struct.pack("=BBH", 5, prio, dscp)) for dscp, prio in port["dscp"].items())
        nested = attribute(IEEE_ETS, ets) + attribute(IEEE_PFC, pfc) + attribute(IEEE_APP_TABLE, apps)
        return attribute(ATTR_IEEE, nested) + attribute(ATTR_DCBX, bytes([port["dcbx"]]))

    def set(self, interface, command, nested):
        """Take a setting; return the error number."""
        port = self.port(interface)
        for kind, data in attributes(nested):
            if kind == IEEE_PFC:
                enabled = data[1]
                if self.broken == (interface, "pfc"):
                    return errno.EIO
                self.writes.append((interface, "pfc", enabled))
                if not self.overridden:
                    port["pfc"] = enabled
            elif kind == IEEE_ETS:
                names = {number: name for name, number in TSA.items()}
                share, algorithms, classes = data[3:11], data[19:27], data[27:35]
                assert data[11:19] == share, "receive as transmit"
                if sum(share[at] for at in range(8) if algorithms[at] == TSA["ets"]) not in (0, 100):
                    return errno.EINVAL
                port["ets"] = [*classes, *share, *(names[number] for number in algorithms)]
                self.writes.append((interface, "ets", port["ets"]))
            for _kind, entry in attributes(data) if kind == IEEE_APP_TABLE else ():
                _selector, priority, dscp = struct.unpack("=BBH", entry)
                if self.broken == (interface, "del") and command == CMD_IEEE_DEL:
                    return errno.EIO
                if self.broken == (interface, "set") and command == CMD_IEEE_SET:
                    return errno.EIO
                self.writes.append((interface, "set" if command == CMD_IEEE_SET else "del", dscp, priority))
                if command == CMD_IEEE_SET:
                    port["dscp"][dscp] = priority
                elif port["dscp"].get(dscp) != priority:
                    return errno.ENOENT
                else:
                    del port["dscp"][dscp]
        return 0

    def set_dcbx(self, interface, mode):
        """Take the DCBX mode; return what mlx5's setdcbx returns."""
        if self.keeps_dcbx or mode not in (0, 9):
            return 1
        self.port(interface)["dcbx"] = mode
        return 0


class Waiting:
    """A socket on which send returns when the kernel has acted, as netlink's does."""

    def __init__(self, sock):
        self._sock = sock

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        self._sock.close()

    def send(self, data):
        self._sock.send(data)
        self._sock.recv(65536)

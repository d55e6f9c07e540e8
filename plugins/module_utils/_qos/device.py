# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes the RoCE quality-of-service settings of one interface. Standard library only.

The module roce_qos uses this file, and installs it on the host as it is: a systemd unit runs it when the interface
appears, so that what was set lasts. It therefore imports nothing of the collection, and is longer than the others.

Kernel interfaces: include/uapi/linux/dcbnl.h; Documentation/ABI/testing/configfs-rdma_cm; the files of
drivers/infiniband/hw/mlx5/cong.c in debugfs. The vendor's: `mlnx_qos` and the sysfs folders `qos/`, `ecn/`, `tc/`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
import typing as t

RTM_GETDCB = 78
RTM_SETDCB = 79
NLMSG_ERROR = 2
NLM_F_REQUEST = 1
NLM_F_ACK = 4
NLA_TYPE = 0x3FFF
CMD_IEEE_SET = 20
CMD_IEEE_GET = 21
CMD_GDCBX = 22
CMD_SDCBX = 23
CMD_IEEE_DEL = 27
ATTR_IFNAME = 1
ATTR_IEEE = 13
ATTR_DCBX = 14
IEEE_ETS = 1
IEEE_PFC = 2
IEEE_APP_TABLE = 3
IEEE_APP = 1
SELECTOR_DSCP = 5
DCBX_HOST = 0x01
DCBX_IEEE = 0x08
# struct ieee_pfc: three bytes, a hole, a 16-bit delay, then sixteen 64-bit counters.
PFC = struct.Struct("=BBBxH2x16Q")
APP = struct.Struct("=BBH")
# struct ieee_ets: willing, capability, cbs, then rows of eight bytes: transmit and receive share, algorithm, class of
# each priority, and what is recommended to the other side.
ETS_SIZE, ETS_SHARE, ETS_RECEIVE, ETS_ALGORITHM, ETS_CLASS = 59, 3, 11, 19, 27
RDMA_WAIT = 60  # seconds that a unit waits for the RDMA half of a driver
# Of a congestion notification's values: the file of OFED below the interface's folder, and that of debugfs.
CNP_FILES = {
    "cnp_dscp": ("ecn/roce_np/cnp_dscp", "np_cnp_dscp"),
    "cnp_priority": ("ecn/roce_np/cnp_802p_prio", "np_cnp_prio"),
}

if t.TYPE_CHECKING:
    Values = dict[str, t.Any]
    Operation = tuple[str, t.Any]


class QosError(Exception):
    """A setting that could not be read or written."""


class Driver(t.NamedTuple):
    """What a kernel driver does beyond what DCB says."""

    set_replaces: bool = False  # a new priority for a DSCP takes the old entry's place in the map
    pfc_flaps: bool = False  # changing flow control takes the link down for a moment
    trust_follows_map: bool = False  # the first entry switches trust to DSCP, removing the last one back to PCP
    congestion: str = ""  # the folder of debugfs with the values of congestion notifications, by PCI address


# The one home of what drivers do. mlx5: mlx5e_dcbnl_ieee_setapp, _delapp and _getpfc of en_dcbnl.c.
DRIVERS = {
    "mlx5_core": Driver(
        set_replaces=True,
        pfc_flaps=True,
        trust_follows_map=True,
        congestion="/sys/kernel/debug/mlx5/{}/cc_params",
    )
}


def driver_of(name: str | None) -> Driver:
    """Return what a driver does, by its name in the kernel."""
    return DRIVERS.get(name or "", Driver())


def attribute(kind: int, payload: bytes) -> bytes:
    """Return a netlink attribute, padded to four bytes."""
    data = struct.pack("=HH", 4 + len(payload), kind) + payload
    return data + b"\0" * (-len(data) % 4)


def attributes(data: bytes) -> list[tuple[int, bytes]]:
    """Split netlink attributes."""
    found = []
    place = 0
    while place + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, place)
        if size < 4:
            break
        found.append((kind & NLA_TYPE, data[place + 4 : place + size]))
        place += size + (-size % 4)
    return found


def request(message: int, command: int, interface: str, payload: bytes = b"") -> bytes:
    """Return a DCB netlink request.

    :param message: RTM_GETDCB or RTM_SETDCB.
    :param command: one of CMD_*.
    :param payload: attributes behind the interface's name.
    """
    body = struct.pack("=BBH", socket.AF_UNSPEC, command, 0) + attribute(ATTR_IFNAME, interface.encode() + b"\0")
    body += payload
    return struct.pack("=IHHII", 16 + len(body), message, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body


def pfc_request(enabled: int, delay: int) -> bytes:
    """Return the nested attribute that sets priority flow control: a bit for each priority; delay 0 keeps it."""
    return attribute(ATTR_IEEE, attribute(IEEE_PFC, PFC.pack(0, enabled, 0, delay, *([0] * 16))))


def app_request(dscp: int, priority: int) -> bytes:
    """Return the nested attribute that names one entry of the DSCP map."""
    return attribute(ATTR_IEEE, attribute(IEEE_APP_TABLE, attribute(IEEE_APP, APP.pack(SELECTOR_DSCP, priority, dscp))))


def ets_request(was: bytes, wanted: t.Sequence[int]) -> bytes:
    """Return the nested attribute that sets the classes; what is recommended to the other side stays.

    :param was: the struct ieee_ets that was read.
    :param wanted: class of each priority, percent and algorithm of each class.
    """
    data = bytearray(was)
    classes, share, algorithm = wanted[:8], wanted[8:16], wanted[16:24]
    data[0] = 0  # not willing: the host decides
    for place, row in ((ETS_CLASS, classes), (ETS_SHARE, share), (ETS_RECEIVE, share), (ETS_ALGORITHM, algorithm)):
        data[place : place + 8] = bytes(row)
    return attribute(ATTR_IEEE, attribute(IEEE_ETS, bytes(data)))


def ets_values(data: bytes) -> list[int]:
    """Return class of each priority, percent and algorithm of each class out of a struct ieee_ets."""
    return [byte for place in (ETS_CLASS, ETS_SHARE, ETS_ALGORITHM) for byte in data[place : place + 8]]


def ieee_reply(data: bytes) -> Values:
    """Return the values in an answer to CMD_IEEE_GET."""
    found: Values = {"pfc": None, "pfc_cap": None, "delay": 0, "dscp": [], "ets": None}
    for kind, body in attributes(data):
        if kind != ATTR_IEEE:
            continue
        for inner, value in attributes(body):
            if inner == IEEE_PFC and len(value) >= 6:
                cap, enabled, _mbc, delay = struct.unpack_from("=BBBxH", value)
                found.update(pfc=enabled, pfc_cap=cap, delay=delay)
            elif inner == IEEE_ETS and len(value) >= ETS_SIZE:
                found["ets"] = value[:ETS_SIZE]
            elif inner == IEEE_APP_TABLE:
                apps = [APP.unpack_from(entry) for _kind, entry in attributes(value) if len(entry) >= APP.size]
                found["dscp"] = [(dscp, priority) for selector, priority, dscp in apps if selector == SELECTOR_DSCP]
    return found


class Dcb:
    """Speaks DCB netlink: one socket for each request, there are few of them."""

    def _query(self, message: int, command: int, interface: str, payload: bytes = b"") -> bytes:
        """Return the attributes of the answer. Errors of the kernel become OSError."""
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
            sock.settimeout(10)
            sock.bind((0, 0))
            sock.send(request(message, command, interface, payload))
            data = sock.recv(65536)
        size, kind = struct.unpack_from("=IH", data)
        if kind != NLMSG_ERROR:
            return data[20:size]
        if code := -struct.unpack_from("=i", data, 16)[0]:
            raise OSError(code, os.strerror(code))
        return b""

    def set(self, interface: str, payload: bytes, command: int = CMD_IEEE_SET) -> None:
        """Set what nested attributes say; with CMD_IEEE_DEL an entry of the DSCP map goes."""
        # The answer holds the negative error number in one byte.
        for kind, value in attributes(self._query(RTM_SETDCB, command, interface, payload)):
            if kind == ATTR_IEEE and value and value[0]:
                code = 256 - value[0]
                raise OSError(code, os.strerror(code))

    def get(self, interface: str) -> Values:
        """Return the IEEE settings and the DCBX mode (a set of DCB_CAP_DCBX bits, or None)."""
        found = ieee_reply(self._query(RTM_GETDCB, CMD_IEEE_GET, interface))
        found["dcbx"] = None
        with contextlib.suppress(OSError, KeyError):
            found["dcbx"] = dict(attributes(self._query(RTM_GETDCB, CMD_GDCBX, interface)))[ATTR_DCBX][0]
        return found

    def set_dcbx(self, interface: str, mode: int) -> None:
        """Choose who negotiates: the host or the firmware."""
        reply = self._query(RTM_SETDCB, CMD_SDCBX, interface, attribute(ATTR_DCBX, bytes([mode])))
        if any(kind == ATTR_DCBX and value[:1] != b"\0" for kind, value in attributes(reply)):
            raise OSError(errno.EPERM, "the device keeps DCBX to itself")


def bits(mask: int) -> list[int]:
    """Return the priorities of a bit mask."""
    return [priority for priority in range(8) if mask >> priority & 1]


def mask(priorities: t.Iterable[int]) -> int:
    """Return the bit mask of priorities."""
    return sum(1 << priority for priority in set(priorities))


def parse_mlnx_qos(text: str) -> Values:
    """Read what `mlnx_qos -i IF` prints (mlnx-tools); a value that it does not print is None."""
    found: Values = {"dcbx": None, "trust": None, "dscp_map": {}, "pfc": None}
    if match := re.search(r"^DCBX mode: (OS|Firmware) controlled", text, re.MULTILINE):
        found["dcbx"] = "host" if match.group(1) == "OS" else "firmware"
    if match := re.search(r"^Priority trust state: (\w+)", text, re.MULTILINE):
        found["trust"] = None if match.group(1) == "none" else match.group(1)
    for priority, numbers in re.findall(r"^\s*prio:(\d) dscp:([\d,]+)", text, re.MULTILINE):
        found["dscp_map"].update({int(dscp): int(priority) for dscp in numbers.strip(",").split(",")})
    if match := re.search(
        r"^PFC configuration:\s*\n\s*priority[\d\s]*\n\s*enabled((?:\s+[01]){8})", text, re.MULTILINE
    ):
        found["pfc"] = [place for place, state in enumerate(match.group(1).split()) if state == "1"]
    return found


class Backend:
    """What reads and writes flow control and the DSCP map of an interface."""

    writes_trust = False  # a word of its own for trust
    set_replaces = False  # a new priority for a DSCP takes the old entry's place in the map, whatever the driver

    def __init__(self, interface: str, dcb: Dcb) -> None:
        self._interface = interface
        self._dcb = dcb

    def read(self) -> Values:
        """Return what is there; raise QosError when nothing is offered."""
        raise NotImplementedError


class KernelQos(Backend):
    """The same by DCB over netlink, as the kernel's drivers offer it."""

    _delay = 0

    def read(self) -> Values:
        """Return what the driver has; raise QosError when it has none of it."""
        try:
            found = self._dcb.get(self._interface)
        except OSError as exc:
            raise QosError(f"DCB netlink: {exc.strerror}") from exc
        if found["pfc"] is None:
            raise QosError("DCB netlink: its driver has no IEEE flow control")
        self._delay = found["delay"]
        return {
            # DCB has no word for it: a driver that knows the map trusts the DSCP while it has an entry.
            "trust": "dscp" if found["dscp"] else "pcp",
            "pfc": bits(found["pfc"]),
            "pfc_cap": found["pfc_cap"],
            "dscp_map": [list(entry) for entry in sorted(found["dscp"])],
            "dcbx": None if found["dcbx"] is None else ("host" if found["dcbx"] & DCBX_HOST else "firmware"),
            "ets": None if found["ets"] is None else ets_values(found["ets"]),
        }

    def set_dcbx(self, value: str) -> None:
        """Let the host or the firmware negotiate."""
        self._dcb.set_dcbx(self._interface, DCBX_HOST | DCBX_IEEE if value == "host" else 0)

    def set_dscp(self, value: t.Sequence[int]) -> None:
        """Add an entry to the DSCP map: DSCP, priority."""
        self._dcb.set(self._interface, app_request(*value))

    def set_no_dscp(self, value: t.Sequence[int]) -> None:
        """Take an entry out of it."""
        self._dcb.set(self._interface, app_request(*value), CMD_IEEE_DEL)

    def set_pfc(self, value: t.Sequence[int]) -> None:
        """Pause these priorities and no others."""
        self._dcb.set(self._interface, pfc_request(mask(value), self._delay))

    def set_ets(self, value: t.Sequence[int]) -> None:
        """Set class of each priority, share and algorithm of each class."""
        was = self._dcb.get(self._interface)["ets"]
        if was is None:
            raise OSError(errno.EOPNOTSUPP, "its driver has no ETS")
        self._dcb.set(self._interface, ets_request(was, value))


class VendorQos(Backend):
    """The same by the vendor's `mlnx_qos`."""

    writes_trust = True
    set_replaces = True

    def read(self) -> Values:
        """Return what the tool prints; raise QosError when it is not there, or does not know the interface."""
        if not shutil.which("mlnx_qos"):
            raise QosError("mlnx_qos is not installed")
        found: Values = {"pfc": None}
        with contextlib.suppress(QosError):
            found = parse_mlnx_qos(self._tool())
        if found["pfc"] is None:
            raise QosError("mlnx_qos does not answer for it")
        classes = None
        with contextlib.suppress(OSError):
            # The tool prints classes for people; the kernel has the same as data.
            classes = self._dcb.get(self._interface)["ets"]
        return {
            **found,
            "dscp_map": [list(entry) for entry in sorted(found["dscp_map"].items())],
            "ets": None if classes is None else ets_values(classes),
            "pfc_cap": None,
        }

    def _tool(self, *options: str) -> str:
        argv = ["mlnx_qos", "-i", self._interface, *options]
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            argv, capture_output=True, text=True, check=False, timeout=60
        )
        if done.returncode:
            # It writes its errors to either stream.
            raise QosError(f"{' '.join(argv)}: {(done.stderr + done.stdout).strip() or done.returncode}")
        return done.stdout

    def set_dcbx(self, value: str) -> None:
        """Let the host or the firmware negotiate."""
        self._tool("-d", "os" if value == "host" else "fw")

    def set_trust(self, value: str) -> None:
        """Trust the DSCP or the PCP; never together with --dscp2prio, which the tool refuses."""
        self._tool(f"--trust={value}")

    def set_dscp(self, value: t.Sequence[int]) -> None:
        """Add an entry to the DSCP map: DSCP, priority."""
        self._tool("--dscp2prio=set,{},{}".format(*value))

    def set_no_dscp(self, value: t.Sequence[int]) -> None:
        """Take an entry out of it."""
        self._tool("--dscp2prio=del,{},{}".format(*value))

    def set_pfc(self, value: t.Sequence[int]) -> None:
        """Pause these priorities and no others."""
        self._tool("--pfc=" + ",".join(str(int(priority in value)) for priority in range(8)))

    def set_ets(self, value: t.Sequence[int]) -> None:
        """Set class of each priority, share and algorithm of each class."""
        words = {0: "strict", 2: "ets"}
        rows = [",".join(str(number) for number in value[place : place + 8]) for place in (0, 8)]
        algorithms = ",".join(words.get(number, "vendor") for number in value[16:24])
        self._tool("-p", rows[0], "-s", algorithms, "-t", rows[1])


# In the order in which they are tried.
BACKENDS: dict[str, type[Backend]] = {"kernel": KernelQos, "vendor": VendorQos}


class Nic:
    """One interface. What its driver does not offer reads as None, and is never written."""

    def __init__(self, interface: str, backend: str = "auto", root: str = "/", dcb: Dcb | None = None) -> None:
        self.interface = interface
        self._wanted_backend = backend
        self._root = root
        self._dcb = dcb or Dcb()
        self._backend: Backend | None = None

    # Files

    def _path(self, path: str) -> str:
        return os.path.join(self._root, path.lstrip("/"))

    def _text(self, path: str) -> str | None:
        try:
            with open(self._path(path), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return None

    def _number(self, path: str) -> int | None:
        try:
            return int(self._text(path) or "", 0)
        except ValueError:
            return None

    def _put(self, path: str, value: int) -> None:
        with open(self._path(path), "w", encoding="utf-8") as file:
            file.write(f"{value}\n")

    def _names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._path(path)))
        except OSError:
            return []

    @property
    def _net(self) -> str:
        return f"/sys/class/net/{self.interface}"

    @property
    def exists(self) -> bool:
        """Whether the interface is there."""
        return os.path.exists(self._path(self._net))

    @property
    def driver(self) -> str:
        """The kernel driver; empty for a virtual interface."""
        link = self._path(f"{self._net}/device/driver")
        return os.path.basename(os.path.realpath(link)) if os.path.exists(link) else ""

    @property
    def rdma(self) -> list[str]:
        """The RDMA devices of the interface, as `device/port`."""
        devices = self._names(f"{self._net}/device/infiniband")
        if not devices:
            # Soft-RoCE stands on an interface, not on its PCI function.
            base = "/sys/class/infiniband"
            return [f"{name}/1" for name in self._names(base) if self._text(f"{base}/{name}/parent") == self.interface]
        port = (self._number(f"{self._net}/dev_port") or 0) + 1
        found = []
        for name in devices:
            ports = self._names(f"{self._net}/device/infiniband/{name}/ports") or ["1"]
            found.append(f"{name}/{port if str(port) in ports else ports[0]}")
        return found

    def _cnp_path(self, name: str) -> str:
        """Return the file of a value of congestion notifications: OFED's, else the driver's in debugfs."""
        ofed, debugfs = CNP_FILES[name]
        device = os.path.basename(os.path.realpath(self._path(f"{self._net}/device")))
        path = f"{self._net}/{ofed}"
        return path if self._text(path) is not None else f"{driver_of(self.driver).congestion.format(device)}/{debugfs}"

    # Reading

    def read(self) -> Values:
        """Return all settings, with the back end that reads and writes flow control and the DSCP map."""
        return {
            **self._read_dcb(),
            "ecn_np": self._enabled(f"{self._net}/ecn/roce_np/enable"),
            "ecn_rp": self._enabled(f"{self._net}/ecn/roce_rp/enable"),
            **{name: self._number(self._cnp_path(name)) for name in CNP_FILES},
            "traffic_class": self._read_tos(),
            "forced_traffic_class": self._read_forced(),
            "driver": self.driver,
            "rdma": self.rdma,
        }

    def _read_dcb(self) -> Values:
        problems = []
        # Drivers of OFED with this folder keep trust and map there, not in the kernel's table: their tool knows.
        ofed = self._wanted_backend == "auto" and bool(shutil.which("mlnx_qos")) and self._names(f"{self._net}/qos")
        for name, kind in BACKENDS.items():
            if self._wanted_backend in ("auto", name) and not (ofed and name == "kernel"):
                self._backend = kind(self.interface, self._dcb)
                try:
                    return {**self._backend.read(), "backend": name, "problem": None}
                except QosError as exc:
                    problems.append(str(exc))
        empty: Values = dict.fromkeys(("trust", "pfc", "pfc_cap", "dscp_map", "dcbx", "ets"))
        return {**empty, "backend": None, "problem": "; ".join(problems)}

    def _enabled(self, folder: str) -> list[int] | None:
        names = [name for name in self._names(folder) if re.fullmatch("[0-7]", name)]
        return [int(name) for name in names if self._number(f"{folder}/{name}")] if names else None

    def _tos_files(self, *, make: bool) -> t.Iterator[str]:
        """Give the configfs file of each RDMA device; its folder is made when missing and, for reading, removed."""
        base = "/sys/kernel/config/rdma_cm"
        for item in self.rdma:
            name, port = item.split("/")
            home = f"{base}/{name}"
            made = not os.path.exists(self._path(home))
            if made:
                os.mkdir(self._path(home))
            try:
                yield f"{home}/ports/{port}/default_roce_tos"
            finally:
                if made and not make:
                    with contextlib.suppress(OSError):
                        os.rmdir(self._path(home))

    def _read_tos(self) -> int | None:
        if not self.rdma or not os.path.isdir(self._path("/sys/kernel/config/rdma_cm")):
            return None
        try:
            found = [self._number(path) for path in self._tos_files(make=False)]
        except OSError:
            return None
        return found[0] if found and len(set(found)) == 1 else (None if None in found else -1)

    def _forced_files(self) -> list[str]:
        paths = [f"/sys/class/infiniband/{item.replace('/', '/tc/')}/traffic_class" for item in self.rdma]
        return [path for path in paths if self._text(path) is not None]

    def _read_forced(self) -> int | None:
        # OFED prints a sentence when rules are set, and an empty text when none is.
        found = [re.search(r"(?:^|=)\s*(\d+)", self._text(path) or "") for path in self._forced_files()]
        if not found:
            return None
        return int(found[0].group(1)) if found[0] else 0

    # Writing

    def write(self, operation: Operation) -> None:
        """Make one change. read() must have been called: it chooses the back end."""
        kind, value = operation
        try:
            if kind in ("ecn_np", "ecn_rp"):
                self._enable(f"{self._net}/ecn/roce_{kind[4:]}/enable", value)
            elif kind in CNP_FILES:
                self._put(self._cnp_path(kind), value)
            elif kind == "traffic_class":
                for path in self._tos_files(make=True):
                    self._put(path, value)
            elif kind == "forced_traffic_class":
                for path in self._forced_files():
                    self._put(path, value)
            else:
                getattr(self._backend, f"set_{kind}")(value)
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise QosError(f"{self.interface}: setting {kind} to {value} failed: {exc}") from exc

    def _enable(self, folder: str, value: t.Sequence[int]) -> None:
        have = self._enabled(folder) or []
        for priority in range(8):
            if (priority in value) != (priority in have):
                self._put(f"{folder}/{priority}", int(priority in value))


def main(arguments: list[str]) -> int:
    """Apply the settings file's values of one interface: the program of the systemd unit."""
    path, interface = arguments
    with open(path, encoding="utf-8") as file:
        entry = json.load(file)["interfaces"].get(interface)
    if entry is None:
        return 0
    nic = Nic(interface, entry["backend"])
    failed = 0
    if entry["rdma"]:
        end = time.monotonic() + RDMA_WAIT
        while not nic.rdma and time.monotonic() < end:
            time.sleep(0.5)
        if not nic.rdma:
            # Without it the traffic class has no file: nothing would be written, and nothing would fail.
            print(f"{interface}: no RDMA device within {RDMA_WAIT} s", file=sys.stderr)  # pylint: disable=ansible-bad-function
            failed = 1
    nic.read()
    for kind, value in entry["operations"]:
        try:
            nic.write((kind, value))
        except QosError as exc:
            print(exc, file=sys.stderr)  # pylint: disable=ansible-bad-function
            failed = 1
    return failed


if __name__ == "__main__":
    # This file is also installed as a boot program.
    sys.exit(main(sys.argv[1:]))  # pylint: disable=ansible-bad-function

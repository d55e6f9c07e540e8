# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that read and set flow control and the DSCP map: iproute2's `dcb`, and the vendor's `mlnx_qos`.

Formats: dcb/ of iproute2 5.12 and later, mlnx-tools. Drivers: mlx5/core/en_dcbnl.c of the kernel.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import typing as t

from .._programs import run_program

RTM_SETDCB, CMD_SDCBX, ATTR_IFNAME, ATTR_DCBX = 79, 23, 1, 14  # include/uapi/linux/dcbnl.h
NO_DCB = "dcb is not installed: install iproute2 (RHEL: iproute) 5.12 or later"

if t.TYPE_CHECKING:
    Values = dict[str, t.Any]
    Operation = tuple[str, t.Any]


class QosError(Exception):
    """A setting that could not be read or written."""


class Driver(t.NamedTuple):
    """The behavior of a kernel driver beyond the standard."""

    set_replaces: bool = False  # a new priority for a DSCP takes the old entry's place in the map
    pfc_flaps: bool = False  # changing flow control takes the link down for a moment
    trust_follows_map: bool = False  # the first entry switches trust to DSCP, removing the last one back to PCP
    congestion: str = ""  # the folder of debugfs with the values of congestion notifications, by PCI address


# mlx5: mlx5e_dcbnl_ieee_setapp, _delapp and _getpfc.
DRIVERS = {
    "mlx5_core": Driver(
        set_replaces=True,
        pfc_flaps=True,
        trust_follows_map=True,
        congestion="/sys/kernel/debug/mlx5/{}/cc_params",
    )
}


def driver_of(name: str | None) -> Driver:
    """Return the behavior of a driver, by its name in the kernel."""
    return DRIVERS.get(name or "", Driver())


def run(argv: t.Sequence[str]) -> str:
    """Run a program and return its output.

    :raises QosError: when it fails, or is not there.
    """
    done = run_program(argv, seconds=60)
    if done.status and "Protocol error" in done.err:
        # `dcb` numbers its messages by the second: an acknowledgement of the second before is an error to it.
        done = run_program(argv, seconds=60)
    if done.status == 127:
        raise QosError(NO_DCB if argv[0] == "dcb" else f"{argv[0]} is not installed")
    if done.status:
        raise QosError(f"{' '.join(argv)}: {done.reported() or done.status}")
    return done.out


def show(interface: str, item: str) -> Values:
    """Return what `dcb` reads of an interface: its pfc, app, dcbx or ets."""
    found: Values = json.loads(run(["dcb", "-j", "-N", item, "show", "dev", interface]) or "{}")
    return found


def read_ets(interface: str) -> list[t.Any] | None:
    """Return class of each priority, percent and algorithm of each class; None where `dcb` or the driver has none."""
    try:
        found = show(interface, "ets")
    except QosError:
        return None
    share, algorithms = found["tc_bw"], found["tc_tsa"]
    if sum(share) != 100:
        # mlx5 reports 100 for each class without ETS, and `dcb` refuses to set that sum.
        share = [percent if kind == "ets" else 0 for percent, kind in zip(share, algorithms)]
    return [*found["prio_tc"], *share, *algorithms]


def release_dcbx(interface: str) -> None:
    """Hand DCBX to the firmware, as far as the driver lets it.

    The one message that `dcb` cannot send: its `dcbx set` without a flag prints the usage, and ends with 0.
    """
    body = struct.pack("=BBH", socket.AF_UNSPEC, CMD_SDCBX, 0)
    for kind, value in ((ATTR_IFNAME, interface.encode() + b"\0"), (ATTR_DCBX, b"\0")):
        body += struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        # The kernel has acted on it when send returns; what counts is what is read back.
        sock.send(struct.pack("=IHHII", 16 + len(body), RTM_SETDCB, 1, 1, 0) + body)


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


class Backend(t.NamedTuple):
    """A program that reads and sets flow control and the DSCP map."""

    read: t.Callable[[str], Values]  # the settings of an interface; QosError when it has none of them
    argv: t.Callable[[str, str, t.Any], list[str]]  # the command that carries out an operation
    writes_trust: bool = False  # it has an operation of its own for trust
    set_replaces: bool = False  # a new priority for a DSCP takes the old entry's place in the map, whatever the driver


def read_dcb(interface: str) -> Values:
    """Return the settings of an interface by `dcb`."""
    pfc = show(interface, "pfc")
    entries = sorted(entry[:2] for entry in show(interface, "app").get("dscp_prio", ()))
    dcbx = None
    with contextlib.suppress(QosError):
        dcbx = "host" if "host" in show(interface, "dcbx") else "firmware"
    return {
        # DCB does not know trust: a driver that has the map trusts the DSCP while it has an entry.
        "trust": "dscp" if entries else "pcp",
        "pfc": [priority for priority, enabled in enumerate(pfc["prio_pfc"]) if enabled],
        "dscp_map": entries,
        "dcbx": dcbx,
        "ets": read_ets(interface),
        "problem": None,
    }


def dcb_argv(interface: str, kind: str, value: t.Any) -> list[str]:
    """Return the command of `dcb` that carries out an operation."""
    if kind == "dcbx":
        return ["dcb", "dcbx", "set", "dev", interface, "host", "ieee"]
    if kind in ("dscp", "no_dscp"):
        # `app replace` ends with 0 where it fails, and removes what mlx5 has replaced already.
        action = "add" if kind == "dscp" else "del"
        return ["dcb", "app", action, "dev", interface, "dscp-prio", "{}:{}".format(*value)]
    if kind == "pfc":
        # It sends back the delay that it reads, which is mlx5's cable length.
        return ["dcb", "pfc", "set", "dev", interface, "prio-pfc", *numbered(kind, value)]
    rows = {"prio-tc": value[:8], "tc-tsa": value[16:], "tc-bw": value[8:16], "pg-bw": value[8:16]}
    words = [word for name, row in rows.items() for word in (name, *numbered(name, row))]
    return ["dcb", "ets", "set", "dev", interface, "willing", "off", *words]


def numbered(kind: str, value: t.Sequence[t.Any]) -> list[str]:
    """Return a row as `dcb` takes and prints it; of `pfc` the value lists the priorities that are on."""
    row = ["on" if priority in value else "off" for priority in range(8)] if kind == "pfc" else value
    return [f"{place}:{one}" for place, one in enumerate(row)]


def proof_of(argv: t.Sequence[str]) -> tuple[list[str], str] | None:
    """Return what prints which text after a command that ends with 0 where it fails, too: `pfc set` and `ets set`.

    Before iproute2 6.2 they take the acknowledgement of their read for that of their write.
    """
    if argv[:3] not in (["dcb", "pfc", "set"], ["dcb", "ets", "set"]):
        return None
    first = argv.index("prio-pfc" if argv[1] == "pfc" else "prio-tc")
    return [*argv[:2], "show", *argv[3:5], argv[first]], " ".join(argv[first + 1 : first + 9])


def read_mlnx_qos(interface: str) -> Values:
    """Return the settings of an interface by `mlnx_qos`."""
    found = parse_mlnx_qos(run(["mlnx_qos", "-i", interface]))
    if found["pfc"] is None:
        raise QosError("mlnx_qos does not answer for it")
    # The tool prints classes for people; `dcb` has the same as data.
    ets = read_ets(interface)
    dscp_map = [list(entry) for entry in sorted(found["dscp_map"].items())]
    missing = NO_DCB if ets is None and run_program(["dcb", "-V"]).status else None
    return {**found, "dscp_map": dscp_map, "ets": ets, "problem": missing}


def mlnx_qos_argv(interface: str, kind: str, value: t.Any) -> list[str]:
    """Return the command of `mlnx_qos` that carries out an operation; trust and map together it refuses."""
    if kind == "ets":
        rows = [",".join(map(str, value[place : place + 8])) for place in (0, 8, 16)]
        return ["mlnx_qos", "-i", interface, "-p", rows[0], "-t", rows[1], "-s", rows[2]]
    if kind == "dcbx":
        return ["mlnx_qos", "-i", interface, "-d", "os" if value == "host" else "fw"]
    if kind == "trust":
        option = f"--trust={value}"
    elif kind == "pfc":
        option = "--pfc=" + ",".join(str(int(priority in value)) for priority in range(8))
    else:
        option = "--dscp2prio={},{},{}".format("set" if kind == "dscp" else "del", *value)
    return ["mlnx_qos", "-i", interface, option]


OPERATIONS = ("dcbx", "trust", "dscp", "no_dscp", "pfc", "ets")
"""What a program carries out; all else is a file of the kernel."""
# In the order in which they are tried.
BACKENDS = {
    "kernel": Backend(read_dcb, dcb_argv),
    "vendor": Backend(read_mlnx_qos, mlnx_qos_argv, writes_trust=True, set_replaces=True),
}

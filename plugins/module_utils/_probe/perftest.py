# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The perftest programs as data: their command lines, what they print, and what their failures mean. Pure.

The formats are those of perftest 4.4 to 25.07 (its `perftest_parameters.h` prints the headings). Outputs of both
ends lie in tests/unit/fixtures/perftest.
"""

from __future__ import annotations

import math
import re
import typing as t
from dataclasses import dataclass

if t.TYPE_CHECKING:
    from .sysfs import Port


@dataclass(frozen=True)
class Tool:
    """One program: what it measures, and in which unit."""

    program: str
    metric: str
    unit: str


# A test's name in the module's options, and the program behind it.
TOOLS: dict[str, Tool] = {
    "read_lat": Tool("ib_read_lat", "latency_us", "us"),
    "write_bw": Tool("ib_write_bw", "gbits", "Gb/s"),
}


# How long a queue pair waits for an answer, 4.096 us * 2**18: 1.1 s, as NCCL's does (IB_TIMEOUT in net_ib.cc of 2.19).
# Under the load of all rails at once answers may be later than perftest's own 14, 67 ms, and are no loss.
ACK_TIMEOUT = 18


@dataclass(frozen=True)
class Failure:
    """Why a run failed and what to do: the first line that shows it, the cause, the fix."""

    line: str
    cause: str
    fix: str


def argv(
    test: str,
    end: Port,
    own: str,
    tcp_port: int,
    known: str,
    *,
    server: str | None = None,
    iterations: int | None = None,
    seconds: int = 0,
    gpu: int | None = None,
) -> list[str]:
    """Return the command line of one end. `server` is the peer's rail address; None makes this end the server.

    Both ends need the same iterations, or `seconds` instead of them, and port. `gpu` is the number of the GPU whose
    memory is used, with a perftest that has that (--use_cuda). The source address binds the TCP control connection to
    the rail, so that a server listens there only and a client proves the rail's policy route as well.

    :param test: a key of TOOLS.
    :param own: the rail's own address.
    :param tcp_port: the server's.
    :param known: what the program's --help says: options have changed their names between versions.
    :param iterations: how many exchanges; None: `seconds` say it.
    """
    line = [TOOLS[test].program, "-F", "-d", end.device, "-i", str(end.number), "-p", str(tcp_port)]
    if end.gid_index is not None:
        line += ["-x", str(end.gid_index)]
    if seconds:
        line += ["-D", str(seconds), "-u", str(ACK_TIMEOUT)]
    elif iterations is not None:
        line += ["-n", str(iterations)]
    if gpu is not None:
        line += [f"--use_cuda={gpu}", *(["--use_cuda_dmabuf"] if "--use_cuda_dmabuf" in known else [])]
    if test == "write_bw":
        line += ["--report_gbits"]
    if source := next((name for name in ("--bind_source_ip", "--source_ip") if name in known), ""):
        line += [f"{source}={own}"]
    if ":" in own and "--ipv6-addr" in known:
        line += ["--ipv6-addr"]
    if server is not None:
        line += [server]
    return line


# A column's title with its unit.
_COLUMN = re.compile(r"#?[A-Za-z0-9_.]+%?(?: (?:peak|average|percentile))?(?:\[[^\]]*\])?")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+|inf|nan)", re.IGNORECASE)


def last_row(output: str) -> dict[str, float]:
    """Return the last row of the result table, empty without one: column title to value.

    Warnings of the same process (the CPU frequency one) come between heading and row and are passed over.
    """
    row: dict[str, float] = {}
    columns: list[str] = []
    for line in map(str.strip, output.splitlines()):
        cells = line.split()
        if line.startswith("#bytes"):
            columns = _COLUMN.findall(line)
        elif columns and len(cells) > 2 and all(map(_NUMBER.fullmatch, cells)):
            row = {name: value for name, value in zip(columns, map(float, cells)) if 0 <= value < math.inf}
    return row


def parse(test: str, output: str) -> dict[str, float] | None:
    """Return what a client measured, or None when its output holds no complete result.

    `latency_us` and `latency_max_us` in microseconds for read_lat; `gbits` in 10**9 bits per second for write_bw.
    """
    row = last_row(output)
    if test == "read_lat":
        value = row.get("t_typical[usec]")
        return None if value is None else {"latency_us": value, "latency_max_us": row.get("t_max[usec]", value)}
    # argv() asks for this unit.
    value = row.get("BW average[Gb/sec]")
    return None if value is None else {"gbits": round(value, 3)}


# What a line means, the most telling first. The status numbers are enum ibv_wc_status of libibverbs.
_FAILURES: tuple[tuple[str, str, str], ...] = (
    (
        r"Failed status 12\b|transport retry counter exceeded",
        "the peer's NIC does not answer: its RDMA packets (RoCE v2: UDP port 4791) are lost on the way",
        "Look at the rail's route and rule on both ends (run the audit), at a firewall that drops UDP 4791, at the "
        "VLAN and at PFC on the leaf.",
    ),
    (
        r"Failed to modify QP \d* ?to RTR|Failed to create AH|Unable to Connect the HCA",
        "the path to the peer cannot be resolved: no route, no neighbor answer, or another GID type on the other end",
        "Ping the peer's rail address from this rail's address (ping -I), and compare both ends' GID types: both must "
        "be RoCE v2.",
    ),
    (
        r"Couldn't connect to|Unable to init the socket connection|Connection (?:refused|timed out)|No route to host",
        "the peer's test server cannot be reached over TCP on the rail's address",
        "Look at the rail's route and at a firewall on the peer that drops the test's TCP ports.",
    ),
    (
        r"Couldn't listen to port|Failed to bind socket|Address already in use",
        "the TCP port is taken",
        "Choose other ports with the option port (verify_port).",
    ),
    (
        r"unrecognized option '--use_cuda|Couldn't allocate GPU memory|cuInit.*failed|no CUDA-capable device",
        "this perftest cannot use GPU memory",
        "Install a perftest that is built with CUDA, and the GPU's driver.",
    ),
    (
        r"IB device .* not found|Unable to find the Infiniband/RoCE device|did not detect devices",
        "the RDMA device is not visible in this network namespace",
        "In RDMA namespace mode exclusive a pod may hold the device: run the test when no pod uses it (rdma dev show).",
    ),
    (
        r"Couldn't allocate (?:MR|PD|context)|Couldn't create (?:CQ|IB resources)|Cannot allocate memory",
        "the NIC's resources or the locked-memory limit are used up",
        "Raise the limit of locked memory (ulimit -l) and look at rdma resource show.",
    ),
)


def explain(output: str, code: int | None) -> Failure:
    """Return why a run failed. `code` is its exit code; None says that it was ended because its time was up."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for pattern, cause, fix in _FAILURES:
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return Failure(line, cause, fix)
    if code is None:
        return Failure(
            "",
            "the test did not end in its time",
            "Look for loss on the rail (ethtool -S, rdma statistic show) and at the peer; raise the option timeout on "
            "a slow machine.",
        )
    last = next((line for line in reversed(lines) if not line.startswith("---")), "")
    return Failure(
        last, f"the program ended with exit code {code}", "Run the command of the result manually on both ends."
    )


SLOW = "Look at the port's speed, the PCIe width (lspci -vv, LnkSta), the active MTU, pause and ECN counters."


def threshold_failure(test: str, measured: dict[str, float], limits: dict[str, float]) -> Failure | None:
    """Compare with the thresholds: `max_latency_us` and `min_gbits`; 0 or absent is no limit.

    Without `min_gbits` half of `expected_gbits` is the limit.
    """
    if test == "read_lat":
        limit, value = limits.get("max_latency_us") or 0.0, measured["latency_us"]
        cause = f"the read latency of {value:g} us is above the limit of {limit:g} us"
        fix = "Look for another path than planned (traceroute from the rail's address), congestion and power saving."
        return Failure("", cause, fix) if limit and value > limit else None
    limit, value = limits.get("min_gbits") or 0.0, measured["gbits"]
    expected = 0.0 if limit else limits.get("expected_gbits") or 0.0
    cause = f"the write bandwidth of {value:g} Gb/s is below the limit of {limit:g} Gb/s"
    if value < expected / 2:
        cause = (
            f"the write bandwidth of {value:g} Gb/s is below half of what port and PCIe slot carry, {expected:g} Gb/s"
        )
    return Failure("", cause, SLOW) if value < max(limit, expected / 2) else None


def below(measured: t.Mapping[str, float], limits: t.Mapping[str, t.Any], percent: float) -> str:
    """Return why a bandwidth is worth a warning: without a limit, it is below a percentage of `expected_gbits`."""
    expected = 0.0 if limits.get("min_gbits") else limits.get("expected_gbits") or 0.0
    if measured.get("gbits", expected) >= expected * percent / 100:
        return ""
    value = measured["gbits"]
    return f"the write bandwidth of {value:g} Gb/s is below {percent:g}% of {expected:g} Gb/s (port and PCIe slot)"

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses the output of nccl-tests and NetPIPE, and the transport that they used. Pure.

nccl-tests: `src/common.cu` and `src/util.cu` (versions 2.0 to 2.17; the columns differ, so they are read by the names
in the header row). The transport: NCCL's own lines with NCCL_DEBUG=INFO and the subsystems INIT and NET (source of
2.29.7, and logs in its issues from 2.8 on). NetPIPE 3.7.2 (Debian) over UCX 1.13 with UCX_LOG_LEVEL=info.
"""

from __future__ import annotations

import math
import re
import statistics
import typing as t
from collections import Counter
from dataclasses import dataclass, field

from ...module_utils._probe.perftest import Failure

# mpirun --tag-output and mpi-operator's examples mark each line with its rank.
_TAG = re.compile(r"^\[\d+,\d+\](?:<std(?:out|err|diag)>)?:", re.MULTILINE)
# NCCL writes to the same output, in the middle of a row; root is -1 where a row ends before its numbers. A match begins
# where a word does, or at the time in the middle of one: else a long word would be read again from each of its letters.
_TIME = r"\[\d{4}-\d\d-\d\d [\d:.]+\] "
_NCCL_LINE = re.compile(
    rf"(?:(?<![^\s:])(-1)?(?:{_TIME})?|{_TIME})[^\s:]*:\d+:\d+ (?:\[\d+\] )?(?:\S+ )?NCCL (?:INFO|WARN)[^\n]*\n?"
)
_CHANNEL = re.compile(r"\[(?:send|receive)\] via NET/(\w+)/\d+(?:\(\d+\))?(\S*)")
_NETWORK = re.compile(r"Using network (\S+)")
_RANK_0 = re.compile(r"^#\s+Rank\s+0 ", re.MULTILINE)
_AVERAGE = re.compile(r"^# Avg bus bandwidth\s*:\s*([-+.\deE]+|nan)", re.MULTILINE)

LINE, OUTPUT = 2000, 32 * 2**20
"""The largest parsed size of a line, and of an output, in characters."""

RANKS_LOST = "the ranks lost each other while they ran, or could not reach each other over the rails"
_PATH_FIX = "Run the playbook railops.rdma.verify: a rail that carries perftest carries NCCL."
# What a line means, the most telling first.
_FAILURES: tuple[tuple[str, str, str], ...] = (
    (
        r"NET/IB ?: No device found",
        "NCCL found no RDMA device",
        "Look at NCCL_IB_HCA, and at the pod's limits (workload/pod.yaml).",
    ),
    (r"Got completion .{0,300}(?:status=|error )12\b", RANKS_LOST, _PATH_FIX),
    (r"ibv_modify_qp failed|async fatal event", RANKS_LOST, _PATH_FIX),
    (
        r"Failed to open libibverbs",
        "the image has no libibverbs",
        "Add libibverbs1 and ibverbs-providers to the image.",
    ),
    (r"Test timeout", "the test did not end in its time", _PATH_FIX),
    (r"UD endpoint .{0,300} unhandled timeout|transport retry count exceeded", RANKS_LOST, _PATH_FIX),
    (
        r"PML ucx cannot be selected",
        "UCX has no usable device for the rail",
        "Look at UCX_NET_DEVICES and at ucx_info -d.",
    ),
    (
        r"Permission denied \(publickey|Host key verification|ORTE was unable to reliably start|ssh: connect to host",
        "mpirun could not start its processes on all nodes",
        "Look at sshd in the worker's log.",
    ),
    (
        r"A call to mkdir was unable to create|opal_os_dirpath_create|session_dir",
        "Open MPI's folders of concurrent runs conflicted",
        "Give each run a folder of its own with --mca orte_tmpdir_base (docs/guides/acceptance.md).",
    ),
    (
        r"unable to find the specified executable|not access\s+or execute an executable|executable file not found"
        r"|command not found|not found on this|\bsh: .{0,300}(?:No such file or directory|not found)",
        "a program of the test is missing",
        "Install it, or give an image that has it (accept_image).",
    ),
    (r"Test (?:NCCL|CUDA) failure.*|Test failure .*", "the test program failed", "Read its output in the run's log."),
)


@dataclass(frozen=True)
class CollectiveResult:
    """The result of one run of a benchmark over several nodes.

    :param by_size: bus bandwidth in GB/s (10**9 bytes per second) by message size in bytes, the median of out-of-place
        and in-place.
    :param gbytes: that of the largest size, what a run is compared by; None when there was none.
    :param wrong: wrong values; None when they were not checked.
    :param nets: how often each network of NCCL or transport of UCX was named, such as {"IB": 4}; empty: none was named.
    :param gpu_memory: whether the network reads and writes GPU memory itself; None when nothing is known.
    :param ended: whether the output is complete.
    :param problem: what the output says went wrong.
    """

    by_size: dict[int, float] = field(default_factory=dict)
    wrong: int | None = None
    nets: dict[str, int] = field(default_factory=dict)
    gpu_memory: bool | None = None
    ended: bool = False
    problem: Failure | None = None

    @property
    def gbytes(self) -> float | None:
        """Return the bandwidth of the largest size in GB/s."""
        return self.by_size[max(self.by_size)] if self.by_size else None


def parsed_part(text: str | None) -> str | None:
    """Return the parsed part of an output: hosts and pods print unlimited text."""
    return text and "\n".join(line[:LINE] for line in text[:OUTPUT].split("\n"))


def _failure(text: str) -> Failure | None:
    for pattern, cause, fix in _FAILURES:
        if found := re.search(pattern, text):
            start = text.rfind("\n", 0, found.start()) + 1
            return Failure(text[start:].partition("\n")[0].strip()[:300], cause, fix)
    return None


def _rows(text: str) -> tuple[dict[int, float], int | None]:
    """Return bus bandwidth by size, and the wrong values of all rows."""
    columns: list[str] = []
    rows: list[list[str]] = []
    for line in text.splitlines():
        cells = line.split()
        if line.startswith("#"):
            if {"size", "busbw"} <= set(cells):
                columns = line.lstrip("#").split()
        elif columns and len(cells) > 2 and _SIZE.fullmatch(cells[0]) and not _number(cells[2]):
            rows.append(cells)
        elif rows and all(_number(cell) or cell == "N/A" for cell in cells):
            # The rest of a row that another process's output split.
            rows[-1] += cells
    found: dict[int, float] = {}
    wrong: list[float] = []
    for row in rows:
        named = [(name, float(cell)) for name, cell in zip(columns, row, strict=False) if _number(cell)]
        if buses := [value for name, value in named if name == "busbw"]:
            found[int(row[0])] = statistics.median(buses)
        # The column `error` of old versions has a difference that rounding makes; their footer judges it.
        wrong += [value if name == "#wrong" else 0 for name, value in named if name in ("#wrong", "error")]
    return found, int(sum(wrong)) if wrong else None


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def nccl(text: str) -> CollectiveResult:
    """Return what nccl-tests and NCCL printed, standard output and NCCL's lines together or one after the other."""
    text = _TAG.sub("", text)
    channels = _CHANNEL.findall(text)
    nets = Counter(net for net, _more in channels) or Counter(_NETWORK.findall(text))
    table = _NCCL_LINE.sub(lambda found: f"{found[1] or ''}\n" if not found[1] else "-1 ", text)
    by_size, wrong = _rows(table)
    bounds = re.search(r"^# Out of bounds values\s*:\s*(\d{1,18}) (OK|FAILED)", table, re.MULTILINE)
    if bounds and bounds[2] == "FAILED":
        wrong = max(wrong or 0, int(bounds[1]), 1)
    problem = _failure(text)
    if len(_RANK_0.findall(table)) > 1:
        fix = "Build nccl-tests with MPI=1: each process measured only itself."
        problem = Failure("", "the tests were not built with MPI", fix)
    return CollectiveResult(
        by_size,
        wrong,
        dict(nets),
        any("GDRDMA" in more for _net, more in channels) if channels else None,
        _AVERAGE.search(table) is not None,
        problem,
    )


_SIZE = re.compile(r"[0-9]{1,18}")
_NETPIPE = re.compile(
    r"^[ \t]*\d+:[ \t]+(\d{1,18}) bytes\s+\d+ times -->\s+(\d{1,18}(?:\.\d*)?) Mbps in\s+([\d.]+) usec", re.MULTILINE
)
# `ep_cfg[1]: tag(rc_verbs/rxe1:1)`: the transports that UCX chose for messages to others, by kind of message.
_UCX = re.compile(r"(?:ep_cfg\[\d+\]:|cfg#\d+)(.*)")
_TRANSPORTS = re.compile(r"\btag\(([^()]*)\)")


def netpipe(text: str) -> CollectiveResult:
    """Return what NPopenmpi and UCX printed. The bandwidth is that of one direction at a time."""
    text = _TAG.sub("", text)
    rows = {int(size): float(mbps) / 8000 for size, mbps, _usec in _NETPIPE.findall(text)}
    groups = [group for more in _UCX.findall(text) for group in _TRANSPORTS.findall(more)[:1]]
    chosen = [part.split("/")[0] for group in groups for part in group.split()]
    nets = Counter("IB" if name.startswith(("rc", "ud", "dc")) else name for name in chosen)
    for inside in ("self", "sysv", "posix", "cma"):
        nets.pop(inside, None)
    wrong = 1 if "Integrity check failed" in text else 0 if "Integrity check passed" in text else None
    problem = _failure(text)
    return CollectiveResult(rows, wrong, dict(nets), None, bool(rows) and problem is None, problem)


READERS: dict[str, t.Callable[[str], CollectiveResult]] = {"all_reduce": nccl, "alltoall": nccl, "netpipe": netpipe}


def failure_of(found: CollectiveResult, code: int | None, *, gpu_memory: bool = False) -> Failure | None:
    """Return why a run does not pass; None when it does. Its stage has the limit.

    :param code: the exit code; None when its time was up.
    :param gpu_memory: whether the network must read GPU memory itself.
    """
    if others := {name: count for name, count in found.nets.items() if not name.startswith("IB")}:
        fix = "Look for NCCL_NET, NCCL_IB_HCA or UCX_TLS in the job, and for RDMA devices in its pods."
        shown = ", ".join(f"{name} {count} times" for name, count in sorted(others.items()))
        return Failure("", f"it did not use only RDMA: {shown} (fell back to sockets)", fix)
    if found.problem:
        return found.problem
    if code is None or not found.ended:
        why = "the test did not end in its time" if code is None else "its output is cut off"
        return Failure("", f"{why}{f' (exit code {code})' if code else ''}", _PATH_FIX)
    if found.wrong:
        fix = "Do not use these nodes: look at GPU errors (dmesg, Xid), at gpudirect and at ACS."
        return Failure("", f"{found.wrong} values were wrong", fix)
    if not found.nets:
        fix = "Let NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,NET, or UCX_LOG_LEVEL=info, reach the output."
        return Failure("", "the transport is unknown", fix)
    if gpu_memory and found.gpu_memory is False:
        fix = "Look at gpudirect_path and gpudirect_acs in the verdict, and at NCCL_NET_GDR_LEVEL."
        return Failure("", "it went through host memory, though GPU memory can be reached (no GDRDMA)", fix)
    if code:
        return Failure("", f"the test ended with exit code {code}", _PATH_FIX)
    if found.gbytes is None:
        return Failure("", "no bandwidth is in its output", "Read its output in the run's log.")
    return None

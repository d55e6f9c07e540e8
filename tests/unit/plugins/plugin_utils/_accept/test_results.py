# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nccl-tests and NetPIPE print, in the formats of several versions; fixtures/nccl/README.md says from where."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._accept.results import failure_of, nccl, netpipe

FOLDER = Path(__file__).resolve().parents[3] / "fixtures/nccl"


def read(name):
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return netpipe(text) if name.startswith("netpipe") else nccl(text)


@pytest.mark.parametrize(
    ("name", "gbytes", "nets", "gpu", "sizes"),
    [
        ("good-2.17", 48.055, {"IB": 4}, True, 3),
        ("slow-2.13", 11.255, {"IB": 4}, True, 3),
        ("good-2.0-error-column", 11.475, {"IB": 2}, True, 2),
        ("per-iteration-2.18", 48.055, {"IB": 4}, True, 1),
        ("alltoall-tagged", 48.055, {"IB": 4}, False, 3),
    ],
)
def test_complete_outputs(name, gbytes, nets, gpu, sizes):
    found = read(name)
    assert found.gbytes == pytest.approx(gbytes)
    assert (found.nets, found.gpu_memory, len(found.by_size)) == (nets, gpu, sizes)
    assert (found.wrong, found.ended, found.problem) == (0, True, None)
    assert failure_of(found, 0) is None


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("fell-back", 0, "fell back to sockets"),
        ("wrong", 0, "17 values were wrong"),
        ("lost", 3, "the ranks lost each other"),
        ("hung-split", None, "did not end in its time"),
        ("hung-split", 1, "cut off (exit code 1)"),
        ("no-mpi", 0, "not built with MPI"),
        ("good-2.17", 1, "exit code 1"),
        ("netpipe-tcp", 0, "tcp 1 times (fell back to sockets)"),
        ("netpipe-cut", 134, "lost each other"),
    ],
)
def test_what_does_not_pass(name, code, words):
    failure = failure_of(read(name), code)
    assert words in failure.cause
    assert failure.fix


def test_a_row_that_others_split_is_read():
    assert read("hung-split").by_size == {268435456: pytest.approx(47.795)}


def test_silence_about_the_transport_does_not_pass():
    text = "\n".join(line for line in (FOLDER / "good-2.17.txt").read_text().splitlines() if "NCCL INFO" not in line)
    assert "transport is unknown" in failure_of(nccl(text), 0).cause


def test_host_memory_where_gpu_memory_can_be_reached():
    assert failure_of(read("good-2.17"), 0, gpu_memory=True) is None
    assert "no GDRDMA" in failure_of(read("alltoall-tagged"), 0, gpu_memory=True).cause


@pytest.mark.parametrize("name", ["good-2.17", "hung-split", "netpipe-ucx"])
def test_no_cut_makes_it_pass_or_fall(name):
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    read_one = netpipe if name.startswith("netpipe") else nccl
    for place in range(0, len(text) - 120, 37):
        if name.startswith("netpipe"):
            assert read_one(text[:place]) is not None
        else:
            assert failure_of(read_one(text[:place]), 0) is not None


def test_netpipe():
    found = read("netpipe-ucx")
    assert found.by_size[4096] == pytest.approx(12.81 / 8000)
    assert found.gbytes == pytest.approx(101.40 / 8000)
    assert found.nets == {"IB": 1}
    assert failure_of(found, 0) is None


@pytest.mark.parametrize(
    "text",
    [
        "bash: line 1: NPopenmpi: command not found",
        # As Open MPI 4.1.4 prints it: the program by name, by path, and of a shell.
        "mpirun.openmpi was unable to find the specified executable file, and therefore\ndid not launch the job",
        "unable to launch the specified application as it could not access\nor execute an executable:",
        "sh: 1: exec: NPopenmpi: not found",
    ],
)
def test_a_program_that_is_not_there(text):
    assert failure_of(netpipe(text), 127).cause == "a program of the test is missing"


@pytest.mark.parametrize(
    "part",
    [
        *("a", "-1", "1:", "a:1:1 ", "a:1:1 [0] ", "[2024-01-01 1:1] ", "[2024-01-01 11", "NCCL INFO ", "\n", " \n"),
        *("Got completion ", "sh: ", "UD endpoint ", "cfg#1 ", "cfg#1 tag(", "tag(", "#\n", "not access ", "1 "),
        "0: 1 bytes ",
    ],
)
def test_program_output_is_read_in_time_that_grows_with_its_length(part):
    """Ten times as much may take twenty times as long; what goes back over it takes a hundred times."""

    def seconds(size):
        started = time.process_time()
        for reader in (nccl, netpipe):
            reader((part * size)[:size])
        return time.process_time() - started

    # Half a second at least, for machines that are slow just then.
    assert seconds(100_000) < 20 * max(seconds(10_000), 0.5)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The README's second command on a stranger's machine, and both commands where nothing may be installed.

Each is a run of its own on a pristine Debian; what it skipped is printed, for docs/project/test-evidence.md.
"""

from __future__ import annotations

import os
import re

import bare
import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a pristine Debian needs root; run the same with sudo")
# What no stranger has: other Pythons than Debian's, programs of a cluster.
NOBODY = {"unit-newest", "unit-oldest", "api"}
NAMESPACES = {"kernel", "main"}
SILENCE = 10  # seconds


@pytest.fixture
def machine():
    with bare.Machine() as made:
        yield made


def packages(machine):
    return machine.run(["dpkg-query", "--show"]).output


def both_commands(machine, capsys, *, skipped, **how):
    """Type both commands: the first shows plan, diff and report, the second skips what it has to and no more."""
    first = machine.run(["make", "demo"], **how)
    assert first.code == 0, first.output[-3000:]
    assert "Shown: plan, diff, report. Skipped, 3 of 4 parts:" in first.output.splitlines()[-2], first.output[-500:]
    assert "+node4 rail1: ens1np0" in first.output
    assert re.search(r"report +/\S+/plan/fabric/report.html", first.output)
    second_command(machine, capsys, skipped=skipped, **how)
    assert first.silence < SILENCE


def second_command(machine, capsys, *, skipped, command="test", **how):
    done = machine.run(["make", command], timeout=7200, **how)
    with capsys.disabled():
        print(f"\n{done.output}\n{done.seconds:.0f} s, at most {done.silence:.0f} s without a word\n")
    assert done.code == 0
    assert re.fullmatch(r"checks: \d+ passed, 0 failed, \d+ skipped.*", done.output.splitlines()[-1])
    assert set(re.findall(r"^skipped  (\S+)", done.output, re.MULTILINE)) == skipped
    assert "left running" not in done.output
    assert done.silence < SILENCE


def test_user(machine, capsys):
    before = packages(machine)
    both_commands(machine, capsys, skipped=NAMESPACES, user=True)
    assert packages(machine) == before


def test_forbidden(machine, capsys):
    before = packages(machine)
    both_commands(machine, capsys, skipped=NAMESPACES, RAILOPS_INSTALL="0")
    assert packages(machine) == before


def test_root(machine, capsys):
    second_command(machine, capsys, skipped=set())
    second_command(machine, capsys, skipped=NOBODY, command="test-all")
    # Nothing is left to do, and nothing runs.
    assert machine.run(["make", "deps"]).output == "Everything is here.\n"

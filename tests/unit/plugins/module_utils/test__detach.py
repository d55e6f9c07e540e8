# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that goes on when the module has ended."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest

PROGRAM = """
import fcntl, os, sys, time
from ansible_collections.railops.rdma.plugins.module_utils._detach import detach

lock, ended = sys.argv[1:]
early = [open(os.devnull) for _number in range(5)]
locked = os.open(lock, os.O_RDWR | os.O_CREAT)
fcntl.flock(locked, fcntl.LOCK_EX)

def work():
    mine = os.open(ended, os.O_WRONLY)
    for one in early:
        one.close()
    os.write(mine, b"went on")
    sys.stdin.close()
    while not os.path.exists(f"{lock}.over"):
        time.sleep(0.02)

detach(work, locked)
"""


def test_what_the_module_had_open_closes_nothing_of_the_process(tmp_path):
    lock, ended = tmp_path / "lock", tmp_path / "ended"
    os.mkfifo(ended)
    # The module ends although its process goes on: nobody waits for its output.
    argv = [sys.executable, "-c", PROGRAM, str(lock), str(ended)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    reader = os.open(ended, os.O_RDONLY | os.O_NONBLOCK)
    try:
        subprocess.run(argv, check=True, timeout=60, env=environment, capture_output=True)
        os.set_blocking(reader, True)
        assert os.read(reader, 100) == b"went on"
        with lock.open() as stream, pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        (tmp_path / "lock.over").touch()
        os.close(reader)
    with lock.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)

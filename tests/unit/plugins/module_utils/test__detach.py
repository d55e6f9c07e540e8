# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that goes on when the module has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

PROGRAM = """
import os, sys, time
from ansible_collections.railops.rdma.plugins.module_utils._detach import detach

folder = sys.argv[1]
early = [open(os.devnull) for _number in range(5)]

def work():
    mine = os.open(f"{folder}/mine", os.O_WRONLY | os.O_CREAT)
    for one in early:
        one.close()
    os.write(mine, b"went on")
    end = time.monotonic() + 120
    while not os.path.exists(f"{folder}/over") and time.monotonic() < end:
        time.sleep(0.02)

detach(work)
"""


def test_what_the_module_had_open_closes_nothing_of_the_process(tmp_path):
    mine = tmp_path / "mine"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        # The module ends although its process continues: no reader waits for its output.
        argv = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        subprocess.run(argv, check=True, timeout=300, env=environment, capture_output=True)
        end = time.monotonic() + 120
        while not (mine.exists() and mine.read_bytes()) and time.monotonic() < end:
            time.sleep(0.02)
        assert mine.read_bytes() == b"went on"
    finally:
        (tmp_path / "over").touch()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest of a running lab, for the tests of this folder: lab.py up --kind guests, then RAILOPS_LAB=its name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import env
import pytest

LAB_TOOL = Path(__file__).resolve().parents[1] / "lab/lab.py"
LAB = os.environ.get("RAILOPS_LAB", "")
HOME = env.cache() / "labs" / LAB
# Emulated processors on a busy machine.
PATIENCE = 900


def marks(there):
    """Return the marks of a file's tests: skipped where their guest is not there."""
    why = "no lab of guests: lab.py up --kind guests, then RAILOPS_LAB=its name"
    return [pytest.mark.guests, pytest.mark.skipif(not there, reason=why)]


def lab(*words, check=True, text=True, cwd=None):
    """Run the lab's tool. Ansible keeps its connections beside the lab: none outlives it."""
    reported = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_STDOUT_CALLBACK": "default"}
    done = subprocess.run(
        [sys.executable, str(LAB_TOOL), *words],
        capture_output=True,
        text=text,
        timeout=PATIENCE,
        check=False,
        cwd=cwd,
        env={**os.environ, **reported, "ANSIBLE_SSH_CONTROL_PATH_DIR": str(HOME / "cp")},
    )
    assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done


def shell(host, command, check=True):
    """Run a shell's line on a host and return what it printed."""
    return lab("exec", LAB, "--host", host, "--", "sh", "-c", command, check=check).stdout.strip()


def module(host, name, check_mode=False, **arguments):
    """Run a module of the collection on a host and return its result."""
    words = ["--check"] if check_mode else []
    words += ["-m", f"railops.rdma.{name}", "-a", json.dumps(arguments)]
    done = lab("exec", LAB, "--", "ansible", host, *words, check=False)
    assert " => " in done.stdout, done.stdout + done.stderr
    head, answer = done.stdout.split(" => ", 1)
    # The word is in front of the result; what follows the result is an explanation.
    return {**json.JSONDecoder().raw_decode(answer)[0], "failed": head.endswith("FAILED!")}

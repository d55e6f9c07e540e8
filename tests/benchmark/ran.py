# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a program and says what it cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import typing as t
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
ANSIBLE = {
    "ANSIBLE_PIPELINING": "true",
    "ANSIBLE_NOCOLOR": "true",
    "ANSIBLE_LOCALHOST_WARNING": "false",
    "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    "ANSIBLE_DEPRECATION_WARNINGS": "false",
}
# What a pair is: ours, and the baseline where there is one.
Pair = tuple[float, float | None]


class Took(t.NamedTuple):
    """Seconds on the wall, seconds of processor time, and the MiB of the largest process."""

    wall: float
    cpu: float
    memory: float


def run(argv: t.Sequence[str], folder: Path, codes: t.Container[int] = (0,), **environ: str) -> Took:
    """Run a program in a folder; what it prints is shown where it ends with another code than these."""
    started = time.perf_counter()
    with (folder / "log.txt").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            argv, cwd=folder, env={**os.environ, **ANSIBLE, **environ}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            _pid, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            process.terminate()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            log.seek(0)
            sys.exit(f"{log.read()[-4000:]}\n{' '.join(argv)} ended with {process.returncode}")
    return Took(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def playbook(folder: Path, *words: str, inside: str = "", codes: t.Container[int] = (0,), **environ: str) -> Took:
    """Run a playbook, in a network namespace if one is named."""
    enter = ["ip", "netns", "exec", inside] if inside else []
    return run([*enter, str(Path(sys.executable).parent / "ansible-playbook"), *words], folder, codes, **environ)

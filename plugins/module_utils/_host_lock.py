# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run at a time on a host: where there is no lease of a cluster, each module call renews a file there."""

from __future__ import annotations

import fcntl
import os
import time

from ._errors import RdmaError

# Variable of the environment: the run, then the processes of Ansible on its controller where these are known.
RUN = "RAILOPS_RUN"
SECONDS = 60.0
# A call locks the file for an instant; any reader can lock it indefinitely.
TRIES, PAUSE = 100, 0.1


def lock_held(holder: str) -> RdmaError:
    """Return the refusal."""
    fix = "Wait until that run has ended and run again. After a killed run, wait a minute. [run_in_progress]"
    return RdmaError(f"Another run is under way: {holder}.", fix)


def acquire_host_lock(run: str, path: str = "") -> None:
    """Acquire or renew the host lock. Wait until another holder's lock expires; fail if that holder renews it."""
    run_id, known, live = run.partition("|")
    seen = None
    try:
        # A network namespace is a host of its own.
        path = path or f"/run/railops-rdma-{os.stat('/proc/self/ns/net').st_ino}.run"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return  # A user without write permission there changes no host.
    try:
        while True:
            _lock(file, path)
            other, stamp = os.pread(file, 4096, 0).decode(errors="replace"), os.fstat(file).st_mtime_ns
            age = abs(time.time() - stamp / 1e9)
            if other in ("", run_id) or age >= SECONDS or (known and _ended(other, run_id, live)):
                os.ftruncate(file, 0)
                os.pwrite(file, run_id.encode(), 0)
                return
            if seen not in (None, stamp):
                raise lock_held(other)
            seen = stamp
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(SECONDS - age)
    finally:
        os.close(file)


def _lock(file: int, path: str) -> None:
    for _try in range(TRIES):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
    raise RdmaError(
        f"Another process keeps {path} locked.",
        f"See which one with `fuser -v {path}`, end it, then run again. [lock_held]",
    )


def _ended(other: str, run_id: str, live: str) -> bool:
    """Whether a run of our controller has ended, by the processes that live there."""
    (holder, _mark, pid), (own, _mark, _pid) = (name.partition(", process ") for name in (other, run_id))
    return holder == own and pid not in live.split(",")

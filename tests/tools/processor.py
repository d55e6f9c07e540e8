# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command, then print the seconds of a processor that it used, its daemons (QEMU) included."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> int:
    """Run it, and return its exit code."""
    # Processes whose parent ends become this one's children: their time counts once they end.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The command gets the signal too, and cleans up.
    signal.signal(signal.SIGTERM, lambda *_dummy: None)
    command = os.posix_spawnp(argv[0], argv, os.environ)
    pid = 0
    while pid != command:
        pid, status = os.wait()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor: {used.ru_utime + used.ru_stime:.1f} s", flush=True)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that goes on when the module has ended."""

from __future__ import annotations

import os
import typing as t


def detach(work: t.Callable[[], object]) -> None:
    """Do the work in a separate process, which outlives module and connection and has only what was imported.

    Every other open file becomes /dev/null under its own number. If it were closed, the kernel would reuse the number,
    and the owner of the old file would later close the new one.
    """
    if os.fork():
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for number in {0, 1, 2, *map(int, os.listdir("/dev/fd"))} - {null}:
            os.dup2(null, number)
        work()
    finally:
        os._exit(0)

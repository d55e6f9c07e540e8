# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that goes on when the module has ended."""

from __future__ import annotations

import os
import typing as t


def detach(work: t.Callable[[], object], keep: int | None = None) -> None:
    """Do the work in a process of its own, which outlives module and connection; what was imported is all it has.

    Every other open file becomes /dev/null under its own number. Were it closed, the number would be given anew, and
    whatever had the old file would some time close the new one.

    :param keep: a file that stays open there, such as one that is locked.
    """
    if os.fork():
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for number in {0, 1, 2, *map(int, os.listdir("/dev/fd"))} - {null, keep}:
            os.dup2(null, number)
        work()
    finally:
        os._exit(0)

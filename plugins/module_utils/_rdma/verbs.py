# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads port attributes that sysfs does not have from RDMA devices, by `ibv_devinfo`; an optional source."""

from __future__ import annotations

import re

from .._programs import run_program

Mtus = dict[str, dict[int, dict[str, int]]]
"""`active_mtu` and `max_mtu` in bytes, where a driver reports them, by device and port."""

MISSING = (
    "ibv_devinfo is not installed: the active MTU is derived from the interface's MTU, for InfiniBand it is unknown."
    " Install ibverbs-utils (RHEL: libibverbs-utils)."
)


def read() -> tuple[Mtus, list[str]]:
    """Query every device once; return the answers, and the reasons of missing answers."""
    done = run_program(["ibv_devinfo"])
    if done.status == 127:
        return {}, [MISSING]
    found: Mtus = {}
    for block in re.split(r"^hca_id:\s*", done.out, flags=re.MULTILINE)[1:]:
        head, *ports = re.split(r"^\s*port:\s*", block, flags=re.MULTILINE)
        found[head.split()[0]] = {
            int(port.split()[0]): {
                key: int(size) for key, size in re.findall(r"^\s*((?:active|max)_mtu):\s*(\d+)", port, re.MULTILINE)
            }
            for port in ports
        }
    silent = done.status and "No IB devices found" not in done.err
    return found, [f"ibv_devinfo does not answer for each device: {done.err.strip()}"] if silent else []

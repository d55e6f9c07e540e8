# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads port attributes that sysfs does not have from RDMA devices, by pyverbs; an optional source."""

from __future__ import annotations

import typing as t

PYVERBS_ERROR: str | None = None
try:
    import pyverbs.device as pyverbs_device
except ImportError as exc:
    PYVERBS_ERROR = repr(exc)

# enum ibv_mtu of infiniband/verbs.h; zero is what a driver leaves when it does not say.
MTUS = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}

MISSING = (
    "pyverbs is not installed: the active MTU is derived from the interface's MTU, for InfiniBand it is unknown."
    " Install python3-pyverbs (Debian, Ubuntu, RHEL 8 and later)."
)


def read() -> tuple[dict[str, dict[str, t.Any]], list[str]]:
    """Query every device once; return the answers by device name, and the reasons of missing answers."""
    answers: dict[str, dict[str, t.Any]] = {}
    if PYVERBS_ERROR:
        return answers, [MISSING]
    problems: list[str] = []
    for item in pyverbs_device.get_device_list():
        name = item.name.decode() if isinstance(item.name, bytes) else str(item.name)
        try:
            answers[name] = _ask(name)
        except Exception as exc:  # pyverbs raises classes of its own, which differ between releases
            problems.append(f"pyverbs could not ask device {name}: {exc}".strip())
    return answers, problems


def _ask(name: str) -> dict[str, t.Any]:
    with pyverbs_device.Context(name=name) as context:
        count = context.query_device().phys_port_cnt
        ports = {number: context.query_port(number) for number in range(1, count + 1)}
    keys = ("active_mtu", "max_mtu")
    return {"ports": {number: {key: MTUS.get(getattr(said, key)) for key in keys} for number, said in ports.items()}}

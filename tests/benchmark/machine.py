# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine of a round: what it is."""

from __future__ import annotations

import os
import platform
from importlib import metadata

PACKAGES = ("ansible-core", "pyroute2", "kubernetes", "PyYAML", "netaddr")


def machine() -> dict[str, str]:
    """Say what the machine is, and the versions of what is measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    versions = [f"Python {platform.python_version()}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)]
    return {"machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}", "versions": ", ".join(versions)}

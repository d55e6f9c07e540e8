# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files in /dev/infiniband that the shared device plugin hands to pods.

It passes over a device without all three, and the node then offers none of the rail's resource.
"""

from __future__ import annotations

import typing as t

from .._check import Check, compared
from .checks import find_port

if t.TYPE_CHECKING:
    from .._files import Sysfs

CHECK = "rdma_device_files"
FOLDER = "/dev/infiniband"
# The class in /sys whose entries name their device, and the module that makes them.
CLASSES = (("/sys/class/infiniband_verbs", "ib_uverbs"), ("/sys/class/infiniband_mad", "ib_umad"))
SHARED_FILE, SHARED_MODULE = f"{FOLDER}/rdma_cm", "rdma_ucm"


def read_files(sysfs: Sysfs, device: str) -> dict[str, str | None]:
    """Return the path of each file of a device, None where it is missing, by the module that makes it."""
    found: dict[str, str | None] = {}
    for folder, module in CLASSES:
        names = [name for name in sysfs.names(folder) if sysfs.text(f"{folder}/{name}/ibdev") == device]
        there = [f"{FOLDER}/{name}" for name in names if sysfs.exists(f"{FOLDER}/{name}")]
        found[module] = there[0] if there else None
    found[SHARED_MODULE] = SHARED_FILE if sysfs.exists(SHARED_FILE) else None
    return found


def file_checks(
    sysfs: Sysfs,
    info: t.Mapping[str, t.Any],
    rails: t.Sequence[t.Mapping[str, t.Any]],
    rdma_mode: str | None,
    names: t.Mapping[str, str],
) -> t.Iterator[Check]:
    """Yield a check for each rail with a device, where pods share the node's devices.

    :param rdma_mode: shared or exclusive; None where the plan has none.
    :param names: the present name of an interface by its planned name.
    """
    for rail in rails if rdma_mode == "shared" else ():
        found = find_port(info["devices"], rail, names)
        if found is None:
            continue
        files = read_files(sysfs, found[0]["name"])
        missing = [module for module, path in files.items() if path is None]
        there = ", ".join(path for path in files.values() if path) or "none"
        cause = f"{found[0]['name']} lacks the file that {' and '.join(missing)} makes in {FOLDER}."
        fix = "Load what is missing with the role rdma_host, then delete the device plugin's pod on this node."
        planned = "uverbs, umad and rdma_cm files"
        yield compared(CHECK, planned, there, cause, fix, good=not missing, rail=rail["name"])

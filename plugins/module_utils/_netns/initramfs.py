# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the initramfs images that hold ib_core and rebuilds them.

Such an image carries its own copy of modprobe.d: files written to disk afterwards come too late for ib_core.
"""

from __future__ import annotations

import re
import typing as t

from .._errors import RdmaError

if t.TYPE_CHECKING:
    from .._programs import Machine
    from .plan import Image

# What Debian and Ubuntu, the RHEL family, and SUSE call them.
IMAGE_NAMES = re.compile(r"initrd\.img-(.+)|initramfs-(.+)\.img|initrd-(.+)")
IB_CORE = re.compile(r"/ib_core\.ko(\.\w+)?\s*$", re.MULTILINE)
# Where the Boot Loader Specification has them: FOLDER/MACHINE-ID (or another token)/KERNEL/initrd.
BOOT_FOLDERS = ("/boot", "/boot/efi", "/efi")
LISTERS = ("lsinitramfs", "lsinitrd")


def images(files: Machine, owned: str, *, older_than: int | None, still_holding: bool) -> t.Iterator[Image]:
    """Yield the images that hold ib_core and need a rebuild, and read each image once.

    :param owned: the path of the owned file.
    :param older_than: read only images older than this (nanoseconds); None reads all.
    :param still_holding: an image is stale only when it still holds the owned file, which is missing on disk.
    """
    for path, kernel in _paths(files) if _builder(files) else ():
        written = files.changed_at(path)
        if written is None or (older_than is not None and written >= older_than):
            continue
        listing = _listing(files, path)
        stale = not still_holding or listing is None or owned.lstrip("/") in listing
        if stale and (listing is None or IB_CORE.search(listing)):
            yield path, kernel


def rebuild(files: Machine, image: Image) -> None:
    """Rebuild one image, by the distribution's own tool."""
    tool, (path, kernel) = _builder(files) or "", image
    argv = [tool, *(("-u", "-k") if tool.endswith("update-initramfs") else ("-f", files.path(path))), kernel]
    done = files.run(argv)
    if done.status:
        raise RdmaError(
            f"{' '.join(argv)} failed with exit code {done.status}: {(done.err or done.out).strip()[-400:]}",
            f"Fix that and run again: until {path} is built again, a boot sets the old RDMA mode. [initramfs_failed]",
        )


def _builder(files: Machine) -> str | None:
    return files.tool("update-initramfs") or files.tool("dracut")


def _listing(files: Machine, path: str) -> str | None:
    for name in LISTERS:
        done = files.run([name, files.path(path)])
        if done.status == 0 and done.out:
            return done.out
    # Unknown: a rebuild does no harm, a stale image may.
    return None


def _paths(files: Machine) -> t.Iterator[tuple[str, str]]:
    kernels = set(files.names("/lib/modules")) | set(files.names("/usr/lib/modules"))
    for name in files.names("/boot"):
        match = IMAGE_NAMES.fullmatch(name)
        if match and (kernel := match[match.lastindex or 0]) in kernels:
            yield f"/boot/{name}", kernel
    tokens = [f"{folder}/{token}" for folder in BOOT_FOLDERS for token in files.names(folder)]
    for folder in (*tokens, "/usr/lib/modules"):
        for kernel in sorted(kernels.intersection(files.names(folder))):
            images = {"initrd", "initrd.img"}.intersection(files.names(f"{folder}/{kernel}"))
            yield from ((f"{folder}/{kernel}/{name}", kernel) for name in sorted(images))

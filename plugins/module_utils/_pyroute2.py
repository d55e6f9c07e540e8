# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pyroute2 for a host whose Python has none, or one that is too old: out of the wheel that this collection carries.

Nothing is installed. What only reads imports it from Ansible's temporary folder. What changes the host keeps it in one
folder of ours, since the rollback timer outlives the temporary one; it goes when the rails are taken away.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys

# Variables of the environment: the wheel that came with the task, to be read there, or to be kept on this host.
SENT, KEEP = "RAILOPS_PYROUTE2", "RAILOPS_PYROUTE2_KEEP"
SHA256 = "01a2a3afe565a6acb0a0d5d8ac86c9682b6564407e3d9589070191ae94b737e8"  # pypi.org/project/pyroute2/0.9.7
FOLDER = "/var/lib/railops-rdma/library"
WHEEL_NAME = "pyroute2.whl"


def add_wheel() -> None:
    """Add the wheel to the module search path, where one came with the task or is kept on this host.

    :raises ImportError: when the wheel cannot be kept.
    """
    path = os.environ.get(SENT) or f"{FOLDER}/{WHEEL_NAME}"
    if sent := os.environ.get(KEEP):
        try:
            _keep(sent, path)
        except OSError as exc:
            raise ImportError(f"{path} cannot be written: {exc.strerror}") from exc
    if path not in sys.path and wheel_at(path):
        sys.path.insert(0, path)


def remove_wheel() -> None:
    """Take the kept wheel away."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    with contextlib.suppress(OSError):  # there is more of ours
        os.rmdir(os.path.dirname(FOLDER))


def wheel_at(path: str) -> bytes:
    """Return the wheel at a path; nothing where it is not the one of this collection."""
    with contextlib.suppress(OSError), open(path, "rb") as stream:
        wheel = stream.read()
        return wheel if hashlib.sha256(wheel).hexdigest() == SHA256 else b""
    return b""


def _keep(sent: str, path: str) -> None:
    wheel = wheel_at(sent)
    if not wheel or wheel_at(path):
        return
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    os.chmod(FOLDER, 0o700)
    new = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(wheel)
    os.rename(new, path)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module util is PRIVATE to the collection.

"""Files of the host that belong to this collection: read, replaced atomically, removed. Tests choose the root."""

from __future__ import annotations

import os
import tempfile
import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError

MODE = 0o644


class HostFiles:
    """Owned text files. Paths are the host's, with their leading slash.

    :param root: the folder that stands for the host's root.
    :param move: puts a finished file in its place; AnsibleModule.atomic_move keeps SELinux contexts.
    """

    def __init__(self, root: str = "/", move: t.Callable[[str, str], None] = os.replace) -> None:
        self.root = root
        self._move = move

    def path(self, path: str) -> str:
        """Return where that path of the host lies on this machine."""
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str | None:
        """Return a file's text, or None when it is not there."""
        try:
            with open(self.path(path), encoding="utf-8", errors="replace") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise RdmaError(f"{path} cannot be read: {exc.strerror}.", "Run the task with become: true.") from exc

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none when there is no such folder."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def changed_at(self, path: str) -> int | None:
        """Return when a file was last written, in nanoseconds, or None when it is not there."""
        try:
            return os.stat(self.path(path)).st_mtime_ns
        except OSError:
            return None

    def put(self, path: str, text: str | None) -> None:
        """Make a file hold exactly that text; None removes it."""
        target = self.path(path)
        try:
            if text is None:
                if os.path.lexists(target):
                    os.unlink(target)
                return
            os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".railops-", dir=os.path.dirname(target))
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(temporary, MODE)
                self._move(temporary, target)
            except BaseException:
                if os.path.lexists(temporary):
                    os.unlink(temporary)
                raise
        except OSError as exc:
            raise RdmaError(
                f"{path} cannot be written: {exc.strerror}.",
                "Run the task with become: true, on a file system that is not read-only.",
            ) from exc

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection's own files on a host, each replaced whole."""

from __future__ import annotations

import os
import tempfile
import typing as t
from dataclasses import dataclass

from ._errors import RdmaError

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ansible.module_utils.basic import AnsibleModule

# The ends of folders that systemd or a network manager reads, and that one file of ours may be the only one in.
MADE = (".wants", ".network.d")


@dataclass(frozen=True)
class Change:
    """One file or link to write; None removes it."""

    path: str
    content: str | None
    link: bool = False


class HostFiles:
    """The collection's own files and links. Paths are the host's, with their leading slash.

    Each is replaced whole and is on the disk before it has its name: a host that is cut off has the old or the new one.

    :param root: the folder that stands for the host's root.
    :param module: gives what is written the SELinux context of its place; None where there is none.
    """

    def __init__(self, root: str = "/", module: AnsibleModule | None = None) -> None:
        self.root = root
        self._module = module

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

    def link(self, path: str) -> str | None:
        """Return where a link leads, or None."""
        try:
            return os.readlink(self.path(path))
        except OSError:
            return None

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

    def changes(self, files: Mapping[str, str | None], links: Mapping[str, str | None]) -> list[Change]:
        """Return what has to be written for these contents and targets; None wants the path away."""
        found = [Change(path, content) for path, content in files.items() if self.read(path) != content]
        return found + [Change(path, target, link=True) for path, target in links.items() if self.link(path) != target]

    def apply(self, changes: Iterable[Change]) -> None:
        """Write them."""
        for change in changes:
            self.put(change.path, change.content, link=change.link)

    def put(self, path: str, content: str | None, mode: int = 0o644, *, link: bool = False) -> None:
        """Make a file hold exactly that text, with that mode from its first moment, or a link lead there; None removes.

        A folder that was made for what is removed, and is empty now, goes along.

        :param path: on the host.
        :param content: the text, or where the link leads.
        :param mode: of the file, such as 0o644.
        :param link: make a symbolic link.
        """
        target = self.path(path)
        folder = os.path.dirname(target)
        try:
            if content is not None:
                self._replace(target, content, mode, link=link)
            elif os.path.lexists(target):
                os.unlink(target)
                if folder.endswith(MADE) and not os.listdir(folder):
                    os.rmdir(folder)
        except OSError as exc:
            raise RdmaError(
                f"{path} cannot be written: {exc.strerror}.",
                "Run the task with become: true, on a file system that is not read-only and has room.",
            ) from exc

    def _replace(self, target: str, content: str, mode: int, *, link: bool) -> None:
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        # The name ends in something that neither systemd nor a network manager reads.
        handle, temporary = tempfile.mkstemp(prefix=".railops-", suffix=".tmp", dir=os.path.dirname(target))
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write("" if link else content)
                file.flush()
                os.fsync(file.fileno())
            if link:
                os.unlink(temporary)
                os.symlink(content, temporary)
            else:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
        except BaseException:
            if os.path.lexists(temporary):
                os.unlink(temporary)
            raise
        if self._module:
            self._module.set_default_selinux_context(target, False)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module util is PRIVATE to the collection.

"""Files and links that the collection owns on a host, each replaced whole."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Change:
    """One file or link to write; None removes it."""

    path: str
    content: str | None
    link: bool = False


class OwnedFiles:
    """The owned files under one root."""

    def __init__(self, root: str = "/") -> None:
        self._root = root

    def path(self, path: str) -> str:
        """Return where that path of the host lies on this machine."""
        return os.path.join(self._root, path.lstrip("/"))

    def text(self, path: str) -> str | None:
        """Return a file's text, or None."""
        try:
            with open(self.path(path), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return None

    def link(self, path: str) -> str | None:
        """Return where a link leads, or None."""
        try:
            return os.readlink(self.path(path))
        except OSError:
            return None

    def changes(self, files: Mapping[str, str | None], links: Mapping[str, str | None]) -> list[Change]:
        """Return what has to be written for these contents and targets; None wants the path away."""
        found = [Change(path, content) for path, content in files.items() if self.text(path) != content]
        return found + [Change(path, target, link=True) for path, target in links.items() if self.link(path) != target]

    def apply(self, changes: Iterable[Change]) -> None:
        """Write them."""
        for change in changes:
            try:
                self._write(change)
            except OSError as exc:
                raise RdmaError(
                    f"{change.path} cannot be written: {exc.strerror}.",
                    "Run the task with become: true, on a file system that is not read-only and has room.",
                ) from exc

    def _write(self, change: Change) -> None:
        place = self.path(change.path)
        if change.content is None:
            os.unlink(place)
            if change.link and not os.listdir(os.path.dirname(place)):
                os.rmdir(os.path.dirname(place))
            return
        os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
        fresh = f"{place}.new"
        if os.path.lexists(fresh):
            os.unlink(fresh)
        if change.link:
            os.symlink(change.content, fresh)
        else:
            with open(fresh, "w", encoding="utf-8") as file:
                file.write(change.content)
            os.chmod(fresh, 0o644)
        os.replace(fresh, place)

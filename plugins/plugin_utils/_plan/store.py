# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only file I/O of the planner: read the plan folder, and replace what differs so that a kill leaves no mixture.

A run that changes files works in this order (docs/concepts/slots.md has the readers' side):

1. every file that differs is written below `.staging/`; a full disk ends the run here and nothing has changed;
2. one sync;
3. plan.json is replaced by one whose digest is empty and whose frozen part no host plan matches: readers refuse it;
4. the staged files are renamed into place, stale ones are deleted;
5. plan.json is replaced by the new one.

Killed before 3, the old plan is complete; after 5, the new one; between, readers refuse and the next run finishes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import typing as t

from ...module_utils._errors import RdmaError
from ...module_utils._fabric.lock import LOCK, PARTS, paths_of
from .lock import Lock, parse_lock, unfinished_lock

STAGING = ".staging"


class Change(t.NamedTuple):
    """The files that a run would write: paths relative to the plan folder."""

    written: dict[str, str]
    removed: tuple[str, ...]
    lock: str | None
    """The new text of plan.json, when it differs."""

    def __bool__(self) -> bool:
        return bool(self.written or self.removed or self.lock is not None)


def read_text(path: str) -> str:
    """Read a file of UTF-8 text. Raises OSError or UnicodeDecodeError."""
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def sync_filesystem(folder: str) -> None:
    """Bring what was written to the disk: of the folder's file system only, for os.sync() waits for dead mounts too."""
    if subprocess.run(["sync", "-f", folder], check=False).returncode:
        raise OSError(errno.EIO, os.strerror(errno.EIO), folder)


class PlanStore:
    """One fabric's plan folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lock_path = os.path.join(folder, LOCK)
        self._seen: str | None = None
        """The text of plan.json that this run decides by, once it was read."""

    def read_lock(self, *, accept: bool = False) -> Lock | None:
        """Read plan.json; None when there is none. Raises InputError when it cannot be trusted."""
        self._seen = self._read(LOCK)
        return None if self._seen is None else parse_lock(self._seen, self.lock_path, accept=accept)

    def read_files(self) -> dict[str, str]:
        """Read every file of the layout that is there, by its path relative to the folder.

        :raises RdmaError: for a linked folder, whose files are another's.
        """
        for path in (os.path.join(self.folder, part) for part in PARTS):
            if os.path.islink(path):
                raise RdmaError(f"{path!r} is a link.", "Move it away and plan again. [plan_folder_conflict]")
        texts = {path: self._read(path) for part in ("facts", "report", *PARTS) for path in paths_of(self.folder, part)}
        return {path: text for path, text in texts.items() if text is not None}

    def compare(self, files: t.Mapping[str, str], lock: str, have: t.Mapping[str, str]) -> Change:
        """Return what has to be written and removed so that the folder holds exactly `files` and `lock`."""
        written = {path: text for path, text in files.items() if have.get(path) != text}
        removed = tuple(sorted(path for path in have if path not in files))
        return Change(written, removed, lock if self._read(LOCK) != lock or written or removed else None)

    def apply(self, change: Change, old: Lock | None) -> None:
        """Bring the folder to the change's state, in the order that this file's head describes."""
        if not change:
            return
        placing = False
        try:
            os.makedirs(self.folder, exist_ok=True)
            with self._locked() as handle:
                self._check_unchanged()
                self._stage(change, old)
                placing = True
                self._place(change, old, handle)
        except OSError as exc:
            raise self._error(exc, half=placing) from None

    def _stage(self, change: Change, old: Lock | None) -> None:
        self._clear_staging()
        staged = {**change.written, LOCK: change.lock or ""}
        if old is not None:
            staged[f"{LOCK}.unfinished"] = unfinished_lock(old)
        try:
            os.mkdir(os.path.join(self.folder, STAGING))
            for part in sorted({os.path.dirname(path) for path in staged} - {""}):
                os.mkdir(os.path.join(self.folder, STAGING, part))
                folder = os.path.join(self.folder, part)
                os.makedirs(folder, exist_ok=True)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
            top = os.path.join(self.folder, STAGING)
            for path, text in staged.items():
                with open(f"{top}/{path}", "wb") as stream:
                    stream.write(text.encode())
            sync_filesystem(self.folder)
        except OSError:
            with contextlib.suppress(OSError):
                self._clear_staging()
            raise

    def _place(self, change: Change, old: Lock | None, handle: int) -> None:
        if old is not None:
            self._rename(f"{LOCK}.unfinished", LOCK)
        os.fsync(handle)
        for path in change.written:
            self._rename(path, path)
        for path in change.removed:
            os.unlink(os.path.join(self.folder, path))
        os.fsync(handle)
        self._rename(LOCK, LOCK)
        # The plan is complete: what fails from here on is no failure of the run, and the next one clears the rest.
        with contextlib.suppress(OSError):
            os.fsync(handle)
            self._clear_staging()

    def _rename(self, staged: str, path: str) -> None:
        os.replace(os.path.join(self.folder, STAGING, staged), os.path.join(self.folder, path))

    def _clear_staging(self) -> None:
        """Remove what a killed run left: files of ours in folders of ours, and no link is followed."""
        top = os.path.join(self.folder, STAGING)
        if os.path.lexists(top):
            shutil.rmtree(top)

    @contextlib.contextmanager
    def _locked(self) -> t.Iterator[int]:
        """Keep a second planner out of the folder, whose descriptor this is; the kernel unlocks it at the end."""
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield handle
        except BlockingIOError:
            busy = f"Another run is writing the plan in {self.folder!r}."
            raise RdmaError(busy, "Wait for it and plan again. [plan_being_written]") from None
        finally:
            os.close(handle)

    def _check_unchanged(self) -> None:
        """Refuse to write by a lock that another run has replaced meanwhile: it may have given away the same slots."""
        if self._seen != self._read(LOCK):
            raise RdmaError(
                f"Another run has changed the plan in {self.folder!r} meanwhile.", "Plan again. [plan_changed]"
            )

    def _read(self, path: str) -> str | None:
        try:
            with open(os.path.join(self.folder, path), "rb") as stream:
                # What is no text is not what the planner wrote: it differs, and plan.json is refused.
                return stream.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise self._error(exc) from None

    def _error(self, exc: OSError, *, half: bool = False) -> RdmaError:
        place = exc.filename or self.folder
        state = "The plan is marked as unfinished, so that no playbook uses it" if half else "Nothing was half done"
        return RdmaError(
            f"The plan folder {self.folder!r} cannot be used: {exc.strerror or exc} ({place}).",
            f"{state}: correct that, or set fabric_plan_dir to a folder that this user may write, and plan again. "
            "[plan_folder_unusable]",
            errno=exc.errno,
        )

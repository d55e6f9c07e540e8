# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rolls a change of the host network back unless it is confirmed in time.

A rollback timer is a folder below /run (a reboot removes it) and a process that waits: a transient systemd unit where
systemd runs this host, else a process of its own session. Renaming the folder's file `armed` decides: the confirmation
renames it to `confirmed`, the process to `fired`. Only one of the two succeeds. A user can end the wait with a file
`now` in the folder.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import secrets
import shutil
import sys
import time
import typing as t
from dataclasses import dataclass

from .._detach import detach
from .._errors import RdmaError
from .._programs import NO_ANSWER, run_program
from .kernel import Kernel
from .model import RouteHost, Scope, Snapshot, as_data, from_data
from .transaction import revert, revert_operations

STATE_FOLDER = "/run/railops-rdma"
READY_SECONDS = 60.0
# For what a rollback timer that has just fired takes back.
OUTCOME_SECONDS = 10.0
POLL_SECONDS = 0.1
# Bytes that must be free where its state lies; tmpfs counts pages of up to 64 KiB.
ROOM = 256 * 1024
MAKE_ROOM = "Make room there (`df -h /run; df -i /run`), or run without confirm_timeout. [rollback_no_space]"


@dataclass(frozen=True)
class RollbackTimer:
    """A change that waits for its confirmation."""

    token: str
    before: Snapshot
    seconds_left: float


def timers_folder() -> str:
    """Return the folder of this host's rollback timers; a network namespace is a host of its own."""
    return f"{STATE_FOLDER}/{os.stat('/proc/thread-self/ns/net').st_ino}"


def armed(token: str) -> bool:
    """Whether the rollback timer with this token has not fired; without a token there is none."""
    folder = f"{timers_folder()}/{token}"
    return not token or os.path.exists(f"{folder}/armed") or os.path.exists(f"{folder}/confirmed")


def pending() -> RollbackTimer | None:
    """Return the rollback timer that waits on this host, or None."""
    folder = timers_folder()
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not os.path.exists(f"{folder}/{name}/armed"):
            continue
        with contextlib.suppress(OSError, ValueError, KeyError):
            state = _state(f"{folder}/{name}")
            # A run that was killed in between leaves what no timer takes back.
            started = os.path.exists(f"{folder}/{name}/ready")
            left = state["deadline"] - time.monotonic() if started else -math.inf
            return RollbackTimer(name, from_data(state["before"]), left)
    return None


def _state(folder: str) -> dict[str, t.Any]:
    with open(f"{folder}/state.json", encoding="utf-8") as stream:
        return t.cast("dict[str, t.Any]", json.load(stream))


def _saved_snapshots(state: dict[str, t.Any]) -> tuple[RouteHost, Snapshot, Snapshot]:
    """Return the state of a rollback timer: the host to read again, and its network before and after the change."""
    before, after = from_data(state["before"]), from_data(state["after"])
    return RouteHost(before, Scope(*state["scope"]), pending_links=frozenset(after.links)), before, after


def arm(host: RouteHost, before: Snapshot, after: Snapshot, seconds: int) -> str:
    """Start a rollback timer that restores `before` after these seconds; return the token that confirms the change.

    :param seconds: until it acts.
    """
    token = secrets.token_hex(8)
    top = timers_folder()
    folder = f"{top}/{token}"
    state = {
        "seconds": seconds,
        "deadline": time.monotonic() + seconds,
        "before": as_data(before),
        "after": as_data(after),
        "scope": [sorted(part) for part in host.scope],
    }
    try:
        os.makedirs(folder, mode=0o700)
        _forget_old(top)
        state["path"] = [_library(folder), *(entry for entry in sys.path if entry and not entry.endswith(".zip"))]
        text = json.dumps(state)
        _write(f"{folder}/state.json", text)
        _write(f"{folder}/armed", "")
        # The timer writes its state once more, and what came of it.
        if full(2 * len(text)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _start(folder, token)
        _await_ready(folder)
    except BaseException as exc:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(exc, OSError):
            text = f"The rollback timer cannot keep its state in {STATE_FOLDER}: {exc.strerror}; nothing was changed."
            raise RdmaError(text, MAKE_ROOM) from exc
        raise
    return token


def full(size: int = 0) -> bool:
    """Whether a rollback timer's state of so many bytes finds no room."""
    place = STATE_FOLDER
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    room = os.statvfs(place)
    return bool(room.f_blocks) and room.f_bavail * room.f_frsize < size + ROOM


def confirm(token: str) -> None:
    """Confirm the change with this token; raise when it was rolled back already, or the token is unknown."""
    folder = f"{timers_folder()}/{token}"
    try:
        os.rename(f"{folder}/armed", f"{folder}/confirmed")
    except OSError as exc:
        if os.path.exists(f"{folder}/confirmed"):
            return
        if os.path.exists(f"{folder}/fired"):
            raise _fired(folder) from exc
        fix = "Run the change again: a reboot or a later run may have ended that one. [token_expired]"
        raise RdmaError(f"There is no change with the token {token!r} on this host.", fix) from exc


def _fired(folder: str) -> RdmaError:
    """Return the error for a change whose rollback timer has fired, by what the host has now."""
    _until(lambda: os.path.getsize(f"{folder}/fired"), OUTCOME_SECONDS)
    host, before, after = _saved_snapshots(_state(folder))
    with Kernel() as kernel:
        left = [str(op) for op in revert_operations(kernel, host, before, after)]
    if not left:
        text = "The confirmation came too late: the rollback timer has reverted the change."
        fix = (
            "Find out why the new connection took so long, or set a longer confirm_timeout. [confirm_timeout_exceeded]"
        )
        return RdmaError(text, fix, rolled_back=True)
    return RdmaError(
        "The confirmation came too late: the rollback timer has fired, and the host is not as it was before:"
        f" `{left[0]}`{f' and {len(left) - 1} more' if left[1:] else ''} would lead there.",
        "Run the playbook again; look for another program that manages these interfaces. [rollback_fired]",
        rolled_back=False,
        left=left,
    )


def _forget_old(folder: str) -> None:
    for name in os.listdir(folder):
        if any(os.path.exists(f"{folder}/{name}/{end}") for end in ("confirmed", "fired")):
            shutil.rmtree(f"{folder}/{name}", ignore_errors=True)


def _write(path: str, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)


def _library(folder: str) -> str:
    """Return a place from which this file can be imported later; Ansible deletes the archive that it sends."""
    root = __file__.partition("/ansible_collections/")[0]
    if os.path.isfile(root):
        shutil.copyfile(root, f"{folder}/library.zip")
        return f"{folder}/library.zip"
    return root


def _systemd_runs_this() -> bool:
    if not os.path.isdir("/run/systemd/system") or not shutil.which("systemd-run"):
        return False
    return os.stat("/proc/1/ns/net").st_ino == os.stat("/proc/thread-self/ns/net").st_ino


START = (
    "import json,sys;folder=sys.argv[1];sys.path[:]=json.load(open(folder+'/state.json'))['path'];"
    "from ansible_collections.railops.rdma.plugins.module_utils._route.rollback import watch;watch(folder)"
)


def _start(folder: str, token: str) -> None:
    if _systemd_runs_this():
        argv = ["systemd-run", "--quiet", "--collect", f"--unit=railops-rdma-guard-{token}"]
        argv += ["--description=Reverts an unconfirmed change of the host network", "--property=Type=exec"]
        # One that got no answer may still start: a second timer beside it would take the change back twice.
        if run_program([*argv, sys.executable, "-c", START, folder], seconds=READY_SECONDS).status in (0, NO_ANSWER):
            return
    detach(lambda: watch(folder))


def _await_ready(folder: str) -> None:
    if not _until(lambda: os.path.exists(f"{folder}/ready"), READY_SECONDS, 0.01):
        fix = "Look at `journalctl -u 'railops-rdma-guard-*'`, or run without confirm_timeout. [rollback_not_started]"
        raise RdmaError(f"The rollback timer did not start within {READY_SECONDS:.0f} s; nothing was changed.", fix)


def _until(done: t.Callable[[], object], seconds: float, pause: float = POLL_SECONDS) -> bool:
    """Wait for a condition, at most so many seconds; return whether it is met."""
    end = time.monotonic() + seconds
    while not (so := bool(done())) and time.monotonic() < end:
        time.sleep(pause)
    return so


def undo(token: str, seconds: int) -> str:
    """Revert a confirmed change, under a rollback timer of its own; return the token that confirms the reversal.

    :param token: of the change; the rest is as of arm().
    """
    try:
        host, before, after = _saved_snapshots(_state(f"{timers_folder()}/{token}"))
    except (OSError, ValueError, KeyError) as exc:
        fix = "Remove the rails with state: absent (rail_network_state), or run again. [rollback_state_missing]"
        raise RdmaError(f"The state before the change with the token {token!r} is lost.", fix) from exc
    with Kernel() as kernel:
        new = arm(host, kernel.again(host), before, seconds)
        if left := revert(kernel, host, before, after):
            # The caller never gets this token. Its timer would restore what the user now removes.
            confirm(new)
            text = "The change could not be rolled back completely."
            raise RdmaError(text, f"Do the rest: {'; '.join(left)} [rollback_partial]", left=left)
    return new


def watch(folder: str) -> None:
    """Wait for the confirmation; without one, restore the earlier state. The rollback timer's process runs this."""
    state = _state(folder)
    host, before, after = _saved_snapshots(state)
    # The time begins now: on a loaded host the start alone may take as long as the host has for its answer.
    state["deadline"] = time.monotonic() + state["seconds"]
    _write(f"{folder}/state.new", json.dumps(state))
    os.rename(f"{folder}/state.new", f"{folder}/state.json")
    _write(f"{folder}/ready", "")
    _until(lambda: os.path.exists(f"{folder}/now") or not os.path.exists(f"{folder}/armed"), state["seconds"])
    try:
        os.rename(f"{folder}/armed", f"{folder}/fired")
    except OSError:
        return
    with Kernel() as kernel:
        left = revert(kernel, host, before, after)
    _write(f"{folder}/fired", json.dumps({"left": left}))

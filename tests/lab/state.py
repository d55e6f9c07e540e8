# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is remembered of a running lab: its declaration and the processes that it started, below the cache folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import typing as t
from dataclasses import asdict
from pathlib import Path

from shell import LabError, environments
from topology import Lab

SCHEMA = 1


def labs_folder() -> Path:
    """Return the folder of all labs."""
    return environments.cache() / "labs"


def folder(name: str) -> Path:
    """Return the folder of one lab."""
    return labs_folder() / name


def names() -> list[str]:
    """Return the labs that are there, running or left over."""
    return sorted(path.parent.name for path in labs_folder().glob("*/lab.json"))


def create(lab: Lab) -> Path:
    """Make the folder of a new lab and write its declaration down."""
    home = folder(lab.name)
    if (home / "lab.json").exists():
        raise LabError(
            f"There is a lab {lab.name!r} already.",
            f"Use it (`lab.py list`), end it (`lab.py down {lab.name}`), or take another --name.",
        )
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    content = {"schema": SCHEMA, "boot": boot_id(), "started": int(time.time()), **asdict(lab)}
    (home / "lab.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return home


def read(name: str) -> dict[str, t.Any]:
    """Return what was written of a lab."""
    path = folder(name) / "lab.json"
    if not path.exists():
        known = ", ".join(names()) or "none"
        raise LabError(f"There is no lab {name!r} (there are: {known}).", f"Start it: lab.py up --name {name}")
    content = t.cast("dict[str, t.Any]", json.loads(path.read_text(encoding="utf-8")))
    if content.get("schema") != SCHEMA:
        raise LabError(
            f"{path} is of another version of the lab.", f"Remove what runs of it manually and {path.parent}."
        )
    return content


def load(name: str) -> Lab:
    """Return the declaration of a lab that is there."""
    content = read(name)
    keys = ("name", "kind", "nodes", "manager", "memory")
    known = {key: content[key] for key in keys}
    more = {"cluster": content.get("cluster", False), "names": tuple(content.get("names", ()))}
    more["suite"] = content.get("suite", "bookworm")
    return Lab(interfaces=tuple(content["interfaces"]), **more, **known)


def survived_reboot(name: str) -> bool:
    """Say whether the machine has not been rebooted since the lab was started."""
    return bool(read(name)["boot"] == boot_id())


def forget(name: str) -> None:
    """Remove everything that was written of a lab."""
    shutil.rmtree(folder(name), ignore_errors=True)
    with contextlib.suppress(OSError):
        labs_folder().rmdir()


def boot_id() -> str:
    """Return what distinguishes one run of this machine's kernel from another."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


# Processes: a number may by now be another process's, a number with its start time is not.


def _stat(pid: int | str) -> list[str]:
    """Return what the kernel says of a process, from its state on; nothing when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return []
    fields = stat.rpartition(")")[2].split()
    return [] if fields[0] in "ZX" else fields


def _start_time(pid: int) -> str | None:
    """Return the start time of a process in clock ticks, or None when it has ended."""
    fields = _stat(pid)
    return fields[19] if fields else None


def record_process(path: Path, pid: int) -> None:
    """Write down a process that the lab started."""
    path.write_text(json.dumps({"pid": pid, "start": _start_time(pid)}) + "\n", encoding="utf-8")


def start(namespace: str, command: list[str], home: Path, name: str) -> None:
    """Start a process with file systems and processes of its own in a network namespace: `NAME.log` and `NAME.pid`."""
    unshared = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with (home / f"{name}.log").open("w", encoding="utf-8") as log:
        started = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *unshared, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    record_process(home / f"{name}.pid", started.pid)


def recorded_process(path: Path) -> int | None:
    """Return the process that was written down, if it still runs and is the same one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    started = _start_time(content["pid"])
    return int(content["pid"]) if started is not None and started == content["start"] else None


def end_process(path: Path, *, seconds: float = 10) -> None:
    """End a process that was written down: politely, then not."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + seconds
        pid = recorded_process(path)
        if pid is None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sent)
        while recorded_process(path) and time.monotonic() < deadline:
            time.sleep(0.02)
    path.unlink(missing_ok=True)


def end_group(path: Path, *, seconds: float = 10) -> None:
    """Kill a recorded process with its whole process group, and wait until each of them has ended.

    `unshare --kill-child` dies first: its child ends later, and a child that has just started does not hear of it.
    """
    if leader := recorded_process(path):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
        deadline = time.monotonic() + seconds
        while _has_members(leader) and time.monotonic() < deadline:
            time.sleep(0.01)
    path.unlink(missing_ok=True)


def _has_members(group: int) -> bool:
    """Return whether a process of a group still runs."""
    numbers = (path.name for path in Path("/proc").glob("[0-9]*"))
    return any(_stat(number)[2:3] == [str(group)] for number in numbers)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first process of a root: furnishes it, becomes its own world, runs one command and ends with everything in it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "net/tun", "kvm")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def mount(*words: str) -> None:
    """Mount one thing or stop."""
    subprocess.run(["mount", *words], check=True)


def bind(source: str, target: Path, *, writable: bool) -> None:
    """Show a file or folder of the machine in the root."""
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount("--bind", source, str(target))
    if not writable:
        mount("-o", "remount,bind,ro", str(target))


def furnish(room: dict[str, object]) -> None:
    """Turn the mount namespace into the root's, and leave the machine's behind."""
    root = Path(str(room["root"]))
    mount("--make-rprivate", "/")
    mount("--bind", str(root), str(root))
    mount("-t", "proc", "proc", str(root / "proc"))
    mount("-t", "sysfs", "sysfs", str(root / "sys"))
    for place in ("dev", "run"):
        mount("-t", "tmpfs", "-o", "mode=0755", "railops-root", str(root / place))
    for name in DEVICES:
        if Path("/dev", name).exists():
            bind(f"/dev/{name}", root / "dev" / name, writable=True)
    for name, kind, options in (("pts", "devpts", "newinstance,ptmxmode=0666"), ("shm", "tmpfs", "mode=1777")):
        (root / "dev" / name).mkdir()
        mount("-t", kind, "-o", options, f"railops-{name}", str(root / "dev" / name))
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1")):
        (root / "dev" / name).symlink_to(target)
    (root / "dev/stderr").symlink_to("fd/2")
    (root / "run/lock").mkdir()
    for source, target, writable in room["binds"]:  # type: ignore[attr-defined]
        bind(source, root / target.lstrip("/"), writable=writable)
    if not room["writable"]:
        mount("-o", "remount,bind,ro", str(root))
    socket.sethostname(root.name.split("-")[0])
    before = root / "run/.machine"
    before.mkdir()
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "run/.machine"], check=True)
    os.chroot(".")
    subprocess.run(["umount", "-l", "/run/.machine"], check=True, env={"PATH": PATH})
    Path("/run/.machine").rmdir()


def start(room: dict[str, object]) -> int:
    """Start the command; return its number."""
    child = os.fork()
    if child:
        return child
    user = int(str(room["user"]))
    if user:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    os.chdir(str(room["folder"]))
    environ = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", **room["environ"]}  # type: ignore[dict-item]
    argv = room["argv"]
    try:
        os.execvpe(argv[0], argv, environ)  # type: ignore[index,arg-type]
    finally:
        os._exit(127)


def wait(child: int) -> int:
    """Bury the dead until the command ends; return its exit code."""
    while True:
        with contextlib.suppress(InterruptedError):
            number, status = os.wait()
            if number == child:
                return os.waitstatus_to_exitcode(status)


def survivors() -> list[str]:
    """Return the command lines of what still runs."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if words and int(path.parent.name) != os.getpid():
                found.append(words)
    return found


def main() -> None:
    """Furnish, run, and say what the command has left behind."""
    room = json.loads(sys.argv[1])
    furnish(room)
    child = start(room)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda sent, _frame: os.kill(child, sent))
    code = wait(child)
    until = time.monotonic() + float(room["grace"])
    while (left := survivors()) and time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.1)
    for words in left:
        print(f"left running: {words}", file=sys.stderr)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()

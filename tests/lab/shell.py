# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run commands and say what went wrong: the one place of the lab that starts processes and waits for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/tools"))

import env
import roots as roots

# The sibling tool: caches and virtual environments.
environments = env


class LabError(Exception):
    """Something that the person at the keyboard can act on."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}\n  {fix}")
        self.problem = problem
        self.fix = fix


def run(
    argv: Sequence[str],
    *,
    stdin: str | None = None,
    check: bool = True,
    timeout: float = 120,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, bounded in time (seconds), and keep what it says."""
    try:
        done = subprocess.run(
            list(argv), input=stdin, capture_output=True, text=True, check=False, timeout=timeout, env=env
        )
    except subprocess.TimeoutExpired as exc:
        raise LabError(
            f"`{' '.join(argv)}` did not end within {timeout:.0f} s.", "Try again when the machine is less busy."
        ) from exc
    if check and done.returncode:
        text = (done.stderr or done.stdout).strip()[-2000:]
        raise LabError(f"`{' '.join(argv)}` failed ({done.returncode}).", text or "It said nothing.")
    return done


def ip(namespace: str, commands: Iterable[Sequence[object]], *, force: bool = False) -> None:
    """Run many `ip` commands in one namespace with one process; `force` goes on after a failure and ignores it."""
    lines = "".join(" ".join(str(word) for word in command) + "\n" for command in commands)
    if lines:
        run(["ip", "-netns", namespace, *(["-force"] if force else []), "-batch", "-"], stdin=lines, check=not force)


def require_root() -> None:
    """Stop with the reason when this is not root."""
    if os.geteuid():
        raise LabError(
            "The lab makes network namespaces, which only root may.",
            "Run the same command with sudo, or as root in a virtual machine or a privileged container.",
        )


def require_tools(tools: dict[str, str], what: str) -> None:
    """Stop with the packages to install when a command is not there; tools maps commands to Debian packages."""
    if missing := missing_tools(tools):
        packages = " ".join(sorted({tools[name] for name in missing}))
        raise LabError(
            f"{what} needs {', '.join(missing)}, not found on PATH.", f"On Debian or Ubuntu: apt-get install {packages}"
        )


def missing_tools(tools: dict[str, str]) -> list[str]:
    """Return the commands that are not on PATH."""
    return [name for name in tools if shutil.which(name) is None]


def wait_for(
    what: str,
    ready: Callable[[], bool],
    *,
    seconds: float,
    step: float,
    fix: str,
    moved: Callable[[], object] = lambda: None,
) -> None:
    """Ask `ready` every `step` seconds until it says yes; give up after `seconds` in which `moved` said nothing new.

    A busy machine is slow and no reason to give up; after five times as long it is one.
    """
    began = last = time.monotonic()
    seen = moved()
    while not ready():
        now = time.monotonic()
        if moved() != seen:
            last, seen = now, moved()
        if now > last + seconds or now > began + 5 * seconds:
            raise LabError(f"{what} was not ready within {now - began:.0f} s.", fix)
        time.sleep(step)


def say(text: str) -> None:
    """Print progress on stderr: stdout is for answers."""
    print(text, file=sys.stderr, flush=True)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Show what is going on: a step prints a dot at least every five seconds, and a failure ends in four lines.

    pip install ............................................... done  31.4 s

Standard library and old syntax only: this runs before anything is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

COLOR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
WIDTH = 72
# The dots of a step: one a second while there is room for them, then one every five.
FAST, SLOW = 1.0, 5.0
TIMED_OUT, NOT_STARTED = 124, 127


def paint(text: str, code: str) -> str:
    """Color text when the terminal has colors."""
    return f"\033[{code}m{text}\033[0m" if COLOR else text


def say(text: str = "", stream: t.TextIO | None = None) -> None:
    """Print at once: steps take seconds."""
    print(text, flush=True, file=stream)


class Failure(Exception):
    """What a person needs when a command has failed: what did, why, what to do, and where to read on."""

    def __init__(self, what: str, why: str, fix: str, log: Path | None = None) -> None:
        super().__init__(what)
        self.what, self.why, self.fix, self.log = what, why, fix, log

    def __str__(self) -> str:
        lines = [f"what:  {self.what}", f"why:   {self.why}", f"to do: {self.fix}"]
        return "\n".join([*lines, *([f"log:   {self.log}"] if self.log else [])])


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code (124 when its time was over), what it printed, and the seconds it took."""

    code: int
    output: str
    seconds: float


def step(
    title: str,
    argv: t.Sequence[str],
    *,
    log: Path,
    timeout: float = 600,
    env: t.Mapping[str, str] | None = None,
    cwd: Path | None = None,
    fails: bool = False,
    stream: t.TextIO | None = None,
) -> Done:
    """Run a command with its output in a log, and print dots behind its title meanwhile.

    :param timeout: seconds, after which the command is killed.
    :param fails: a failure is what the step is meant to show.
    :param stream: where title and dots go; stdout when None.
    """
    column = len(title) + 3
    print(f"  {title} ", end="", flush=True, file=stream)
    started = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a+b") as output:
        output.write(f"$ {' '.join(argv)}\n".encode())
        output.flush()
        start = output.tell()
        code: int | None = None
        try:
            process = subprocess.Popen(
                list(argv), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        except OSError as exc:
            output.write(f"ERROR: {exc}\n".encode())
            code = NOT_STARTED
        try:
            while code is None and time.monotonic() < started + timeout:
                try:
                    code = process.wait(FAST if column < WIDTH else SLOW)
                except subprocess.TimeoutExpired:
                    print(".", end="", flush=True, file=stream)
                    column += 1
        finally:
            if code is None:
                process.kill()
                process.wait()
        output.seek(start)
        text = output.read().decode(errors="replace")
        output.write(b"\n")
    code = TIMED_OUT if code is None else code
    seconds = time.monotonic() - started
    well = bool(code) is fails
    word = paint("done", "32") if well else paint("failed", "31")
    say(f"{'.' * (WIDTH - column)} {word} {seconds:5.1f} s", stream)
    return Done(code, text, seconds)

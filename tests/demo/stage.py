# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the demos share: steps that are shown, timed and logged, and a lab that always ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import typing as t
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
LAB = CHECKOUT / "tests/lab/lab.py"
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, code: str) -> str:
    """Colour text when the terminal has colours."""
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def say(text: str = "") -> None:
    """Print at once: steps take seconds."""
    print(text, flush=True)


def end_on_signals() -> None:
    """Make a request to end an exception, so that the lab is taken down."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


class Stage:
    """Runs steps in a working folder of its own, and keeps what they print in one log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "demo.log"
        folder.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")
        self._begun = time.monotonic()
        end_on_signals()

    def seconds(self) -> float:
        """Return how long the demo has run."""
        return time.monotonic() - self._begun

    def run(self, title: str, argv: t.Sequence[str], *, timeout: float = 600, fails: bool = False) -> str:
        """Run a command, show its title and time, and return what it printed.

        :param fails: a failure is what the step is meant to show.
        """
        label = f"  {title} "
        print(f"{label:.<72}", end=" ", flush=True)
        begun = time.monotonic()
        env = {**os.environ, "ANSIBLE_FORCE_COLOR": "false", "ANSIBLE_NOCOLOR": "true", "PYTHONUNBUFFERED": "1"}
        env |= {"ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_DEPRECATION_WARNINGS": "false"}
        done = subprocess.run(
            list(argv),
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(argv)}\n{done.stdout}\n")
        took = f"{time.monotonic() - begun:5.1f} s"
        if bool(done.returncode) is not fails:
            say(f"{paint('failed', '31')} {took}")
            say("\n".join(done.stdout.splitlines()[-40:]))
            sys.exit(f"The step failed (exit code {done.returncode}). The whole output: {self.log}")
        say(f"{paint('done', '32')} {took}")
        return done.stdout

    def lab(self, *words: str) -> list[str]:
        """Return a command line of the lab."""
        return [sys.executable, str(LAB), *words]

    @contextmanager
    def started(self, title: str, name: str, *options: str, timeout: float = 600) -> t.Iterator[str]:
        """Start a lab; return its inventory's folder; end it whatever happens."""
        try:
            self.run(title, self.lab("up", "--name", name, *options), timeout=timeout)
            yield self.output("inventory", name).strip()
        finally:
            subprocess.run(self.lab("down", name), capture_output=True, check=False, timeout=120)

    def output(self, *words: str) -> str:
        """Return what a command of the lab prints."""
        return subprocess.run(self.lab(*words), stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout


def changed(output: str) -> int:
    """Return how many changes an ansible-playbook run reported."""
    return sum(int(word.partition("=")[2]) for word in output.split() if word.startswith("changed="))

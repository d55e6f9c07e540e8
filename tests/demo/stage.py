# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the demos share: an environment made when missing, steps that are shown and logged, a lab that always ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import typing as t
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
LAB = CHECKOUT / "tests/lab/lab.py"
sys.path.insert(0, str(CHECKOUT / "tests/tools"))

import env
import packages
from progress import COLOR, Failure, say, step


def main(function: t.Callable[[], None]) -> None:
    """Run a demo; a failure is reported in the lines that a person needs."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # An exception, so that the lab is taken down.
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    try:
        function()
    except Failure as exc:
        sys.exit(f"\n{exc}")
    except KeyboardInterrupt:
        sys.exit(130)


def prepare() -> None:
    """Make the environment and take it over: Ansible on PATH, this checkout as the collection."""
    env.stream = sys.stdout
    binaries, tree = env.runtime(), str(env.tree())
    os.environ["PATH"] = f"{binaries}{os.pathsep}{packages.PLACES}"
    os.environ |= {"PYTHONPATH": tree, "ANSIBLE_COLLECTIONS_PATH": tree, "PYTHONUNBUFFERED": "1"}
    os.environ |= {"ANSIBLE_FORCE_COLOR": "false", "ANSIBLE_NOCOLOR": "true", "LC_ALL": "C.UTF-8"}
    os.environ |= {"ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_DEPRECATION_WARNINGS": "false"}
    sys.path.insert(0, tree)


class Stage:
    """Runs steps in a working folder of its own, and keeps what they print in one log."""

    def __init__(self, folder: Path) -> None:
        self.folder = env.emptied(folder)
        self.log = folder / "demo.log"

    def run(self, title: str, argv: t.Sequence[str], *, timeout: float = 600, fails: bool = False) -> str:
        """Run a command and return what it printed.

        :param fails: a failure is what the step is meant to show.
        :raises Failure: it ended otherwise.
        """
        done = step(title, argv, log=self.log, timeout=timeout, cwd=self.folder, fails=fails)
        if bool(done.code) is not fails:
            raise Failure(f"The step `{title}` ended with exit code {done.code}.", *cause(done.output), self.log)
        return done.output

    def lab(self, *words: str) -> list[str]:
        """Return a command line of the lab."""
        return [str(env.runtime() / "python"), str(LAB), *words]

    @contextmanager
    def started(self, title: str, name: str, *options: str, timeout: float = 600) -> t.Iterator[str]:
        """Start a lab; return its inventory's folder; end it whatever happens."""
        try:
            self.run(title, self.lab("up", "--name", name, *options), timeout=timeout)
            yield self.output("inventory", name).strip()
        finally:
            subprocess.run(self.lab("down", name), capture_output=True, check=False, timeout=600)

    def output(self, *words: str) -> str:
        """Return what a command of the lab prints."""
        return subprocess.run(self.lab(*words), stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout

    def picture(self) -> str:
        """Return the verdict as the terminal shows it, colored where it can."""
        from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import text

        verdict = json.loads((self.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
        return text.picture(verdict, "fabric", color=COLOR)

    def places(self) -> None:
        """Say where the results lie."""
        for name in ("report.html", "verdict.json"):
            say(f"  {name.partition('.')[0]:7} {self.folder / 'verify/fabric' / name}")
        say(f"  log     {self.log}")


def cause(output: str) -> tuple[str, str]:
    """Return why a command failed and what to do, as far as what it printed shows."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["It said nothing."]
    messages = re.findall(r'"msg": "((?:[^"\\]|\\.)+)"', output)
    fixes = re.findall(r'"fix": "((?:[^"\\]|\\.)+)"', output)
    said = [line for line in lines if re.match(r"\[?ERROR\]?:|lab:|fatal:", line)]
    why = messages[-1] if messages else (said or lines)[-1]
    return why[:400], fixes[-1] if fixes else "Read the end of the log; `make demo` starts again."


def changed(output: str) -> int:
    """Return how many changes an ansible-playbook run reported."""
    return sum(int(word.partition("=")[2]) for word in output.split() if word.startswith("changed="))

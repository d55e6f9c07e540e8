# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The complete path on this machine: three nodes with eight rails each, leaves and a spine, in network namespaces.

It plans inventory/demo, diffs a fourth node, configures the hosts, verifies, deletes a rule, and repairs it.
No packet leaves the machine. Without root it shows plan, diff and report.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import typing as t
from contextlib import contextmanager
from pathlib import Path

sys.dont_write_bytecode = True
CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/tools"))

import env
import packages
from progress import COLOR, Failure, paint, say, step

LAB = CHECKOUT / "tests/lab/lab.py"
FOLDER = CHECKOUT / "tests/output/demo"
INVENTORY = str(CHECKOUT / "inventory/demo")
PLAN = ["ansible-playbook", "-i", INVENTORY, "railops.rdma.plan"]
SHOWN = 5


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

    def run(self, title: str, argv: t.Sequence[str], *, fails: bool = False) -> str:
        """Run a command and return what it printed.

        :param fails: a failure is what the step is meant to show.
        :raises Failure: it ended otherwise.
        """
        done = step(title, argv, log=self.log, cwd=self.folder, fails=fails)
        if bool(done.code) is not fails:
            raise Failure(f"The step `{title}` ended with exit code {done.code}.", *cause(done.output), self.log)
        return done.output

    def lab(self, *words: str) -> list[str]:
        """Return a command line of the lab."""
        return [str(env.runtime() / "python"), str(LAB), *words]

    @contextmanager
    def started(self, title: str, name: str, *options: str) -> t.Iterator[str]:
        """Start a lab; return its inventory's folder; end it whatever happens."""
        try:
            self.run(title, self.lab("up", "--name", name, *options))
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
        return text.terminal(verdict, "fabric", color=COLOR)

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
    errors = [line for line in lines if re.match(r"\[?ERROR\]?:|lab:|fatal:", line)]
    why = messages[-1] if messages else (errors or lines)[-1]
    return why[:400], fixes[-1] if fixes else "Read the end of the log; `make demo` starts again."


def changed(output: str) -> int:
    """Return how many changes an ansible-playbook run reported."""
    return sum(int(word.partition("=")[2]) for word in output.split() if word.startswith("changed="))


def show_plan(stage: Stage) -> None:
    """Plan, and show what the next change of the plan looks like; this part needs no root."""
    say(paint("\n1. The inventory declares the fabric once; plan turns it into files.", "1"))
    for line in messages(stage.run("plan", PLAN)):
        say(f"     {line}")
    files = [path for path in (FOLDER / "plan").rglob("*") if path.is_file()]
    say(f"     {len(files)} files under {FOLDER / 'plan'}: hosts/*.json, cluster/*.yaml, switch/*.csv, report.html")
    more = FOLDER / "fourth.ini"
    more.write_text("[gpu_nodes]\nnode4\n", encoding="utf-8")
    output = stage.run("diff: what a fourth node would change", [*PLAN, "-i", str(more), "--check", "--diff"])
    nodes = [line for line in output.splitlines() if re.match(r"[-+]node\d+", line)]
    if others := [line for line in nodes if not line.startswith("+node4")]:
        raise Failure(
            "A fourth node changes the others.", others[0], "Report it: no node may be renumbered.", stage.log
        )
    for line in nodes[:SHOWN]:
        say(f"     {line}")
    say(f"     and {len(nodes) - SHOWN} more lines of node4. No line of node1, node2 and node3: their addresses stay.")


def messages(output: str) -> list[str]:
    """Return the plan's summary out of what Ansible printed."""
    reported = output.partition("\nFabric ")[2].partition("\n  The plan in ")[0]
    return [line.strip() for line in f"Fabric {reported}".splitlines()]


def lacking() -> str | None:
    """Say why this machine cannot run the hosts."""
    if missing := packages.lacking("demo"):
        return f"not found: {', '.join(package.gives for package in missing)}; run: {packages.manual(missing)}"
    return packages.no_namespaces()


def show_hosts(stage: Stage) -> None:
    """Build the fabric, configure it, break it, repair it."""
    name = f"demo{os.getpid() % 100000}"
    say(paint("\n2. Three nodes, eight rails, a leaf for each rail and a spine, in network namespaces.", "1"))
    options = ("--kind", "netns", "--nodes", "3", "--plan", str(FOLDER / "plan/fabric"))
    with stage.started("start the lab", name, *options) as inventory:

        def play(title: str, playbook: str, *words: str, fails: bool = False) -> str:
            book = ["ansible-playbook", "-i", INVENTORY, "-i", inventory, f"railops.rdma.{playbook}", *words]
            return stage.run(title, stage.lab("exec", name, "--", *book), fails=fails)

        say(paint("\n3. Hosts, objects and verification: ansible-playbook railops.rdma.site", "1"))
        play("dry run: site --check --diff", "site", "--check", "--diff")
        say(f"     {changed(play('site', 'site'))} changes")
        say(f"     {changed(play('site again', 'site'))} changes")
        say(paint("\n4. A rule is deleted on node2: audit reports it, hosts repairs it.", "1"))
        stage.run(
            "delete the rule", stage.lab("exec", name, "--host", "node2", "--", "ip", "rule", "del", "pref", "10003")
        )
        play("audit", "audit", fails=True)
        say(stage.picture())
        # README's picture is made of it: tests/report/browser.py.
        shutil.copy(FOLDER / "verify/fabric/report.html", FOLDER / "deviation.html")
        play("hosts", "hosts", "--limit", "node2")
        play("verify", "verify")


def demo() -> None:
    """Run the demo."""
    start = time.monotonic()
    say(paint("railops.rdma: from an inventory to verified rails", "1"))
    say("Two minutes on two cores; the first run needs a minute more for its Python environment.")
    packages.provide("demo")
    prepare()
    stage = Stage(FOLDER)
    show_plan(stage)
    if why := lacking():
        say(f"\n  report  {FOLDER / 'plan/fabric/report.html'}")
        say(f"  {time.monotonic() - start:.0f} seconds. Shown: plan, diff, report. Skipped, 3 of 4 parts: {why}\n")
        return
    show_hosts(stage)
    say(stage.picture())
    stage.places()
    say(f"  {time.monotonic() - start:.0f} seconds\n")


def main() -> None:
    """Run the demo; a failure is reported in the lines that a person needs."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # An exception, so that the lab is taken down.
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    try:
        demo()
    except Failure as exc:
        sys.exit(f"\n{exc}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet of namespace hosts, and playbooks of the collection run against it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import entered

CHECKOUT = Path(__file__).resolve().parents[2]
LAB = CHECKOUT / "tests/lab/lab.py"
INVENTORY = CHECKOUT / "inventory/demo"
RAILS = 8
"""As many as the inventory has."""
Made = t.TypeVar("Made")


@dataclass
class Run:
    """What a playbook did."""

    code: int
    output: str
    tasks: list[dict[str, t.Any]] = field(default_factory=list)

    def changed(self) -> list[str]:
        """Return `host: task` of everything that reported a change."""
        return [f"{task['host']}: {task['task']}" for task in self.tasks if task["changed"]]

    def commands(self) -> list[str]:
        """Return the commands that repair the causes, as printed."""
        return re.findall(r"^ {6}(ansible-playbook .+)$", self.output.partition("-e options of this run:")[2], re.M)


def commit() -> str:
    """Return the commit that draws the cases of a push; empty without git."""
    words = ["git", "rev-parse", "HEAD"]
    return subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False).stdout


def fabric_rails(count: int) -> list[dict[str, str]]:
    """Return the variable fabric_rails for the first rails of a namespace host."""
    return [{"name": f"rail{rail}", "interface": f"ens{rail}np0"} for rail in range(1, count + 1)]


class Fleet:
    """Namespace hosts and the folder that an administrator works in; `words` are variables of all its playbooks."""

    def __init__(self, name: str, folder: Path, nodes: int, rails: int) -> None:
        self.name = name
        self.folder = folder
        self.words: dict[str, t.Any] = {} if rails == RAILS else {"fabric_rails": fabric_rails(rails)}
        self.tasks = folder / "tasks.jsonl"
        self.extra = folder / "extra.yml"
        hosts = {f"node{number}": None for number in range(1, nodes + 1)}
        (folder / "group_vars").mkdir()
        self.extra.write_text(json.dumps({"all": {"children": {"gpu_nodes": {"hosts": hosts}}}}), encoding="utf-8")

    def lab(self, *words: str, check: bool = True) -> str:
        """Run a command of the lab's tool and return what it prints."""
        code, output = self._program([sys.executable, str(LAB), *words], None, 300)
        assert code == 0 or not check, output
        return output

    def command(self, playbook: str, *words: str) -> list[str]:
        """Return the command line of a playbook run from where the switches are."""
        inventory = self.lab("inventory", self.name).strip()
        sources = [INVENTORY, self.extra, inventory]
        options = [word for source in sources for word in ("-i", str(source))]
        book = playbook if "/" in playbook else f"railops.rdma.{playbook}"
        own = ["-e", json.dumps(self.words)] if self.words else []
        words = ("ansible-playbook", *options, book, *own, *words)
        return [sys.executable, str(LAB), "exec", self.name, "--", *words]

    def environ(self, **more: str) -> dict[str, str]:
        """Return the environment of a run."""
        return {
            **os.environ,
            "ANSIBLE_CALLBACK_PLUGINS": str(CHECKOUT / "tests/site/callback"),
            "ANSIBLE_CALLBACKS_ENABLED": "count_tasks",
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "RAILOPS_TASKS": str(self.tasks),
            **more,
        }

    def play(self, playbook: str, *words: str, code: int | None = 0, **environ: str) -> Run:
        """Run a playbook, which ends with this code; with any where it is None."""
        return self._run(self.command(playbook, *words), code, environ)

    def plan(self, **words: t.Any) -> None:
        """Plan the fleet by these variables, and give its switches the gateways of the plan."""
        self.words |= words
        self.play("plan")
        self.lab("gateways", self.name, "--plan", str(self.folder / "plan/fabric"))

    def begin(self, playbook: str, done: t.Callable[[], bool]) -> subprocess.Popen[bytes]:
        """Start a playbook, and return when something is done, or it ended before."""
        self.tasks.write_text("", encoding="utf-8")
        running = subprocess.Popen(
            self.command(playbook),
            cwd=self.folder,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 300
        while not done() and running.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return running

    def paste(self, line: str) -> Run:
        """Run a line as printed, in the folder of an administrator with the ansible.cfg of the example inventories."""
        words = [sys.executable, str(LAB), "exec", self.name, "--", "bash", "-c", line]
        return self._run(words, 0, {"ANSIBLE_CONFIG": str(CHECKOUT / "inventory/ansible.cfg")})

    def _run(self, argv: t.Sequence[str], code: int | None, environ: t.Mapping[str, str]) -> Run:
        self.tasks.write_text("", encoding="utf-8")
        ended, output = self._program(argv, self.environ(**environ), 900)
        lines = self.tasks.read_text(encoding="utf-8").splitlines()
        assert code in (None, ended), output
        return Run(ended, output, [json.loads(line) for line in lines])

    def _program(self, argv: t.Sequence[str], environ: t.Mapping[str, str] | None, limit: int) -> tuple[int, str]:
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
        )
        return done.returncode, done.stdout

    def inside(self, make: t.Callable[[], Made]) -> Made:
        """Make something with its socket in the playbooks' network namespace: a socket stays where it was opened."""
        namespace = self.lab("exec", self.name, "--", "ip", "netns", "identify").strip()
        with entered(namespace):
            return make()

    def ip(self, host: str, *words: str) -> str:
        """Run ip on a host."""
        return self.lab("exec", self.name, "--host", host, "--", "ip", *words)

    def dump(self, host: str) -> dict[str, t.Any]:
        """Return links, addresses, rules and routes of a host, without what changes by itself."""
        links = json.loads(self.ip(host, "-j", "link"))
        addresses = json.loads(self.ip(host, "-j", "address"))
        routes = {
            family: sorted(self.ip(host, family, "route", "show", "table", "all").splitlines())
            for family in ("-4", "-6")
        }
        rules = {family: self.ip(host, family, "rule").splitlines() for family in ("-4", "-6")}
        return {
            "links": [(link["ifname"], link["mtu"], sorted(link["flags"])) for link in links],
            "addresses": [
                (link["ifname"], sorted(info["local"] for info in link["addr_info"] if info["scope"] != "link"))
                for link in addresses
            ],
            # What the kernel makes by itself for every link that is up comes and goes with the link.
            "routes": {
                family: [row for row in rows if "ff00::/8" not in row and "fe80::" not in row]
                for family, rows in routes.items()
            },
            "rules": rules,
        }

    def verdict(self) -> dict[str, t.Any]:
        """Return the verdict of the last run."""
        path = self.folder / "verify/fabric/verdict.json"
        return t.cast("dict[str, t.Any]", json.loads(path.read_text(encoding="utf-8")))

    def deviations(self) -> list[tuple[str, str | None, str]]:
        """Return (host, rail, check) of every deviation that follows from no other."""
        return [
            (host, check["rail"], check["id"])
            for host, entry in self.verdict()["hosts"].items()
            for check in entry["checks"]
            if check["status"] == "deviation" and "caused_by" not in check
        ]


@contextlib.contextmanager
def started(name: str, folder: Path, nodes: int, rails: int = RAILS) -> t.Iterator[Fleet]:
    """Give hosts, untouched, that end with it."""
    if os.geteuid() != 0:
        pytest.skip("namespace hosts need root")
    fleet = Fleet(f"{name}{os.getpid() % 100000}", folder, nodes, rails)
    try:
        fleet.lab("up", "--name", fleet.name, "--kind", "netns", "--nodes", str(nodes), "--rails", str(rails))
        yield fleet
    finally:
        fleet.lab("down", fleet.name, check=False)


@pytest.fixture(scope="module")
def fleet(request, tmp_path_factory):
    """Three hosts, untouched; a file of tests says how many rails they have."""
    rails = getattr(request.module, "FLEET_RAILS", RAILS)
    with started("site", tmp_path_factory.mktemp("site"), 3, rails) as made:
        yield made

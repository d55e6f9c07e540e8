# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fixtures of a case of the matrix: its lab of guests, inventory and log, and its assertions."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
LAB = [sys.executable, str(HERE / "lab.py")]

if t.TYPE_CHECKING:
    from collections.abc import Callable


class CaseError(Exception):
    """What a case found wrong."""


@dataclass(frozen=True)
class Case:
    """One row of the matrix; `limit` in seconds."""

    name: str
    shows: str
    limit: int
    function: Callable[[Fleet], str]
    manager: str = "networkd"
    nodes: int = 2
    cluster: bool = False
    suite: str = "bookworm"


class Fleet:
    """The lab of one case, and a folder with its inventory, plan and log."""

    def __init__(self, case: Case, rails: int) -> None:
        self.rails = rails
        self.name = f"mx-{case.name}"[:20]
        self.folder = CHECKOUT / "tests/output/matrix" / case.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.log = self.folder / "case.log"
        self.plan = self.folder / "plan/fabric"
        self.case = case
        self.hosts = [f"node{number}" for number in range(1, case.nodes + 1)]

    def run(self, argv: list[str], *, fails: bool = False) -> str:
        """Run a command with its output in the case's log; return what it printed."""
        code, output = self.ended(argv)
        if bool(code) != fails:
            words = "succeeded, a failure was due" if fails else f"failed ({code})"
            reported = messages(output)
            text = reported[-1] if reported else " / ".join(output.strip().splitlines()[-6:])
            raise CaseError(f"`{' '.join(argv[-2:])}` {words}: {text[-400:]}")
        return output

    def ended(self, argv: list[str]) -> tuple[int, str]:
        """Run a command however it ends; return its exit code and what it printed."""
        with self.log.open("a", encoding="utf-8") as log:
            print(f"\n+ {' '.join(argv)}", file=log, flush=True)
        done = subprocess.run(
            argv, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        with self.log.open("a", encoding="utf-8") as log:
            log.write(done.stdout)
        return done.returncode, done.stdout

    def lab(self, *words: str, fails: bool = False) -> str:
        """Run a command of the lab."""
        return self.run([*LAB, *words], fails=fails)

    def up(self) -> None:
        """Start the guests."""
        case = self.case
        self.lab(
            *("up", "--name", self.name, "--kind", "guests", "--nodes", str(case.nodes)),
            *("--rails", str(self.rails), "--manager", case.manager),
            *("--suite", case.suite, *(["--cluster"] if case.cluster else [])),
        )

    def down(self) -> None:
        """End them."""
        subprocess.run([*LAB, "down", self.name], capture_output=True, check=False)

    def on(self, host: str, *argv: str) -> str:
        """Run a command on a guest."""
        return self.lab("exec", self.name, "--host", host, "--", *argv)

    def kubectl(self, *words: str) -> str:
        """Ask the lab's cluster."""
        return self.lab("exec", self.name, "--", "kubectl", *words)

    def declare(self, example: str, **changes: object) -> None:
        """Take an example inventory's fabric over for the lab's hosts, with changes."""
        inventory = self.folder / "inventory"
        variables = inventory / "group_vars/all"
        shutil.rmtree(inventory, ignore_errors=True)
        shutil.copytree(CHECKOUT / "inventory" / example / "group_vars/all", variables)
        nodes = "\n".join(self.hosts)
        (inventory / "hosts").write_text(f"[gpu_nodes]\n{nodes}\n", encoding="utf-8")
        rails = [{"name": f"rail{number}", "interface": f"ens{number}np0"} for number in range(1, self.rails + 1)]
        content = {**GUESTS, "site_serial": [self.case.nodes], "fabric_rails": rails, **changes}
        # JSON is YAML; the last file of a folder wins.
        (variables / "zz_lab.yml").write_text(json.dumps(content) + "\n", encoding="utf-8")

    def play(self, playbook: str, *words: str, fails: bool = False) -> str:
        """Run a playbook of the collection the way a user does."""
        return self.ansible(f"railops.rdma.{playbook}", *words, fails=fails)

    def ansible(self, playbook: str | Path, *words: str, fails: bool = False) -> str:
        """Run a playbook with the inventory of the fabric and that of the lab."""
        return self.run(self.book(playbook, *words), fails=fails)

    def book(self, playbook: str | Path, *words: str) -> list[str]:
        """Return the command that runs a playbook so."""
        lab_inventory = self.lab("inventory", self.name).strip().splitlines()[-1]
        book = ["ansible-playbook", "-i", str(self.folder / "inventory"), "-i", lab_inventory]
        return [*LAB, "exec", self.name, "--", *book, str(playbook), *words]

    def converge(self, *words: str) -> None:
        """Plan, give the switches their addresses, and bring the hosts to the plan."""
        self.play("plan")
        self.lab("gateways", self.name, "--plan", str(self.plan))
        self.play("hosts", *words)

    def prove(self, *words: str) -> str:
        """Prove the plan without the collection."""
        return self.lab("prove", self.name, "--plan", str(self.plan), *words)

    def dump(self) -> dict[str, dict[str, list[str]]]:
        """Return what the kernels hold, sysctls included, and the files that a role may write."""
        found = t.cast("dict[str, dict[str, list[str]]]", json.loads(self.lab("dump", self.name)))
        for host, parts in found.items():
            rows = self.on(host, "sh", "-c", STATE).splitlines()
            parts["files and sysctls"] = sorted(row for row in rows if not VOLATILE.match(row))
        return found

    def reboot(self) -> None:
        """Reboot all guests and wait for them."""
        self.lab("exec", self.name, "--", "ansible", "gpu_nodes", "-m", "reboot", "-a", "reboot_timeout=900")

    def same(self, before: dict[str, dict[str, list[str]]], what: str) -> None:
        """Insist that the kernels hold what they held; what a manager sets up after ssh answers gets a moment."""
        deadline = time.monotonic() + 60
        while (now := self.dump()) != before and time.monotonic() < deadline:
            time.sleep(5)
        differences = []
        for host, parts in before.items():
            for part, rows in parts.items():
                lost, new = set(rows) - set(now[host][part]), set(now[host][part]) - set(rows)
                if lost or new:
                    differences.append(f"{host} {part} lost {sorted(lost)[:2]}, got {sorted(new)[:2]}")
        if differences:
            raise CaseError(f"{what}: {'; '.join(differences)}")


# The content of files, the targets of links, everything of ours by its name, and what the kernel's network is set to.
STATE = """
find /etc /usr/local /run/systemd/network /run/udev/rules.d -xdev -type f -exec sha256sum {} + 2>&-
find /etc -xdev -type l -printf '%p -> %l\\n'
find / /run -xdev -name '*railops-r*' ! -empty ! -name '*.run' ! -path '/run/systemd/units/*' 2>&-
sysctl --all --pattern '^net[.](ipv[46][.](conf|neigh|route)|core)[.]' 2>&-
exit 0
"""
# systemd-networkd sets the first on its links, the boot files leave accept_dad on; the rest is drawn at each boot.
VOLATILE = re.compile(
    r"net\.ipv4\.(conf\..*\.promote_secondaries|route\.)|net\.ipv6\.conf\..*\.accept_dad|net\.core\.netdev_rss_key"
)


def messages(output: str) -> list[str]:
    """Return what a playbook's failures say."""
    return re.findall(r'"msg": "((?:[^"\\]|\\.)+)"', output)


def unchanged(output: str) -> None:
    """Insist that a playbook changed nothing."""
    changed = {name: int(count) for name, count in re.findall(r"^(\S+)\s*: ok=\d+\s+changed=(\d+)", output, re.M)}
    if not changed or any(changed.values()):
        raise CaseError(f"the second run changed something: {changed}")


# Soft-RoCE has no link type and no DCB, there is no GPU, and an emulated processor takes its time.
GUESTS = {
    "fabric_max_nodes": 8,
    "site_host_roles": ["rdma_driver", "rdma_host", "rail_network"],
    # The rollback timer is tested in namespaces, where time passes as it should.
    "rail_network_confirm_timeout": 0,
    "lossless_roce_unsupported": "report",
    "fabric_lossless": {"priority": 5, "dscp": 40},
    "verify_traffic": "rdma",
    "verify_latency_iterations": 50,
    "verify_bandwidth_iterations": 50,
    "verify_timeout": 90,
}
DUAL_STACK = {"fabric_supernets": ["172.17.0.0/16", "fd00:172:17::/48"], "fabric_mtu": 4200}


# (host, rail, the check that has to name it, what is done to the host)
BROKEN = (
    ("node2", "rail3", "network_rules", ["ip", "rule", "del", "pref", "10003"]),
    ("node2", "rail2", "network_mtu", ["ip", "link", "set", "ens2np0", "mtu", "1500"]),
    # A service of systemd with a network of its own makes the kernel refuse for a while.
    (
        "node1",
        None,
        "rdma_netns_current",
        ["sh", "-c", "for _ in 1 2 3 4 5 6; do rdma system set netns exclusive && exit 0; sleep 10; done; exit 1"],
    ),
)


def named(fleet: Fleet, *wanted: tuple[str, str | None, str]) -> list[list[str]]:
    """Insist that an audit fails and names these (host, rail, check) in its verdict; return its commands' words."""
    fleet.play("audit", fails=True)
    verdict = json.loads((fleet.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    found = {
        (host, check["rail"], check["id"])
        for host, entry in verdict["hosts"].items()
        for check in entry["checks"]
        if check["status"] == "deviation" and check["cause"] and check["fix"]
    }
    if missing := set(wanted) - found:
        raise CaseError(f"the audit does not name {sorted(missing, key=str)}, only {sorted(found, key=str)}")
    return [shlex.split(cause["command"])[1:] for cause in verdict["causes"] if cause.get("command")]

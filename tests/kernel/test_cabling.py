# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cables by LLDP: the real lldpd on leaves and on a host, cables moved and swapped."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cabling import host as cabling_host
from ansible_collections.railops.rdma.plugins.module_utils._cabling.host import check_cables
from ansible_collections.railops.rdma.tests.kernel.managers import in_managers, needs_managers
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import inside, own_sysfs, run
from ansible_collections.railops.rdma.tests.lab.leaves import end, lldpd

pytestmark = needs_managers

LEAVES = [{"zone": "su1", "rail": f"rail{n}", "leaf": f"su1-leaf{n}*"} for n in (1, 2)]
SWITCHES = ("su1-leaf1", "su1-leaf2")
RAILS = [{"name": f"rail{n}", "interface": f"ens{n}np0", "addresses": []} for n in (1, 2)]
CABLES = {f"rail{n}": {"leaf": f"su1-leaf{n}*", "port": f"swp{n}"} for n in (1, 2)}
# What a leaf with lossless RoCE says: PFC on priority 3, DSCP 26 to priority 3 (IEEE 802.1Q annex D).
DCBX = {11: "08,08", 12: "00,65,00,1a"}


class Wiring:
    """Leaves and a host as namespaces; a cable is a veth pair."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.folder.chmod(0o755)
        self.prefix = f"rr-net-{os.getpid()}-cable"
        self.host = f"{self.prefix}-host"
        self.running: list[subprocess.Popen] = []

    def space(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def add(self, name: str, *lines: str) -> None:
        run("ip", "netns", "add", self.space(name))
        run("ip", "-n", self.space(name), "-batch", "-", stdin="\n".join(["link set lo up", *lines]) + "\n")

    def lldpd(self, name: str, *lines: str) -> None:
        """Start lldpd in a namespace, under the system name, and wait until it answers."""
        self.running.append(lldpd(self.space(name), name, self.folder, *lines))
        deadline = time.monotonic() + 120
        while self.client(name, ["lldpcli", "show", "configuration"])[0]:
            assert time.monotonic() < deadline, (self.folder / f"{name}.log").read_text(encoding="utf-8")
            time.sleep(0.2)

    def client(self, name: str, argv: list[str]) -> tuple[int, str, str]:
        words = in_managers([argv[0], "-u", f"/mnt/{name}.sock", *argv[1:]], self.folder)
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def cable(self, interface: str, leaf: str, port: str) -> None:
        """Put the host's interface on a leaf's port; the port's LLDP name is its own."""
        run("ip", "-n", self.host, "link", "del", interface, check=False)
        there = self.space(leaf)
        run("ip", "-n", there, "link", "del", port, check=False)
        run("ip", "-n", self.host, "link", "add", interface, "type", "veth", "peer", "name", port, "netns", there)
        run("ip", "-n", there, "link", "set", port, "master", "br0", "up")
        run("ip", "-n", self.host, "link", "set", interface, "up")

    def read_cables(self):
        def run_program():
            # It is a process of its own.
            cabling_host.run_program = lambda argv: self.client("host", argv)
            own_sysfs()
            checks, _facts = check_cables(RAILS, {"cables": CABLES, "leaves": LEAVES, "zone": "su1"})
            return {f"{check['rail']} {check['id']}": check for check in checks}, cabling_host.ask_lldpd()[0]

        return inside(self.host, run_program)

    def until(self, wanted: dict[str, str]):
        """Look again until lldpd has heard of the cables; return what was found."""
        deadline = time.monotonic() + 120
        while True:
            checks, seen = self.read_cables()
            if {key: checks[key]["status"] for key in wanted} == wanted or time.monotonic() > deadline:
                return checks, seen
            time.sleep(0.5)

    def close(self) -> None:
        end(self.running)
        for name in ("host", *SWITCHES):
            run("ip", "netns", "del", self.space(name), check=False)


@pytest.fixture
def wiring(tmp_path):
    """Give cables as planned. Each test has its own: what a leaf says on a port goes with the port."""
    made = Wiring(tmp_path)
    try:
        made.add("host")
        for name in SWITCHES:
            # A bridge makes lldpd call its system one.
            made.add(name, "link add br0 type bridge", "link set br0 up")
        made.cable("ens1np0", "su1-leaf1", "swp1")
        made.cable("ens2np0", "su1-leaf2", "swp2")
        for name in SWITCHES:
            made.lldpd(name, "configure lldp portidsubtype ifname")
        for kind, value in DCBX.items():
            add = ["lldpcli", "configure", "ports", "swp1", "lldp", "custom-tlv", "add"]
            add += ["oui", "00,80,c2", "subtype", str(kind), "oui-info", value]
            assert made.client("su1-leaf1", add)[0] == 0
        made.lldpd("host")
        yield made
    finally:
        made.close()


ALL = [f"rail{n} {check}" for n in (1, 2) for check in ("cable_leaf", "cable_port")]


def test_cables_as_planned_and_what_the_leaf_says_of_lossless_traffic(wiring):
    checks, seen = wiring.until(dict.fromkeys(ALL, "ok"))
    assert {checks[key]["status"] for key in ALL} == {"ok"}, checks
    assert checks["rail1 cable_leaf"]["observed"] == "su1-leaf1.dc.example swp1"
    assert seen["ens1np0"]["dcbx"] == {"pfc": [3], "dscp": {"26": 3}}
    assert seen["ens2np0"]["dcbx"] is None


def test_two_cables_swapped(wiring):
    wiring.cable("ens1np0", "su1-leaf2", "swp2")
    wiring.cable("ens2np0", "su1-leaf1", "swp1")
    wrong = {"rail1 cable_leaf": "deviation", "rail2 cable_leaf": "deviation"}
    checks, _seen = wiring.until(wrong)
    assert {key: checks[key]["status"] for key in wrong} == wrong
    assert checks["rail1 cable_leaf"]["cause"] == (
        "rail1 and rail2 are swapped: ens1np0 is on su1-leaf2.dc.example swp2, ens2np0 on su1-leaf1.dc.example swp1."
    )

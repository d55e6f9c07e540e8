# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an audit of a large fleet costs the controller: the run itself, and the verdict with its pages.

The fleet is an inventory whose hosts share one stand-in for their Python: it answers every module with what a host that
is as planned answers. So everything of the controller is real (templating, forks, building modules, results, verdict),
and nothing of the hosts, whose work runs on themselves, nor of ssh. Needs no root.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import typing as t
from pathlib import Path

from ran import Pair, Took, playbook

FIX = "ansible-playbook railops.rdma.hosts --tags rail_network --limit HOST (no reboot, no drain)"

RAILS = 8
CHECKS = 12  # of each rail
BAD = 100  # every such host deviates
PARTS = 10
SHELL = """#!/bin/sh
exec cat {answer}
"""
AUDIT_VARIABLES = """---
fabric_mode: exclusive
fabric_supernets: [10.64.0.0/10]
fabric_max_nodes: {slots}
fabric_rails: [{rails}]
ansible_connection: local
ansible_python_interpreter: {interpreter}
verify_show: false
"""
PING_BOOK = """---
- hosts: gpu_nodes
  gather_facts: false
  tasks:
    - ansible.builtin.ping:
"""
VERDICT_BOOK = """---
- hosts: localhost
  gather_facts: false
  tasks:
    - railops.rdma.verdict:
        plan_dir: plan/fabric
        verify_dir: verify/fabric
        hosts: "{{ lookup('ansible.builtin.file', 'hosts.json') | from_json }}"
        fail: false
        show: false
"""


def checks(bad: bool) -> list[dict[str, t.Any]]:
    """Return the checks of one host: as planned, or with a rail that lost its rule and its route."""
    from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.ids import IDS

    known = [name for name in sorted(IDS) if name.startswith("network_")][:CHECKS]
    made = []
    for rail in range(1, RAILS + 1):
        for number, name in enumerate(known):
            wrong = bad and rail == 3 and number < 2
            made.append(
                {
                    "id": name,
                    "rail": f"rail{rail}",
                    "status": "deviation" if wrong else "ok",
                    "planned": f"1000{rail}: from 10.64.{rail}.2 lookup 100{rail}",
                    "observed": None if wrong else f"1000{rail}: from 10.64.{rail}.2 lookup 100{rail}",
                    "cause": f"missing: 1000{rail}: from 10.64.{rail}.2 lookup 100{rail}" if wrong else "",
                    "fix": FIX if wrong else "",
                }
            )
    return made


def facts(host: int) -> dict[str, t.Any]:
    """Return what an audit says of a host's eight ports: all alike, but for one host in fifty with older firmware."""
    firmware = "28.39.1002" if host % 50 == 0 else "28.40.1000"
    pcie = {
        f"{what}{kind}": number for what in ("", "card_", "slot_") for kind, number in (("width", 16), ("speed", 32))
    }
    port = {
        **{"port": 1, "pcie": pcie, "pci_id": "15b3:1021:15b3:0041", "speed": 400_000, "rate": "400 Gb/sec (4X NDR)"},
        **{"driver": "mlx5_core", "version": "24.10-0.7.0", "firmware": f"{firmware} (MT_0000000838)"},
    }
    own = {
        f"rail{rail}": {
            **{
                "interface": f"ens{rail}np0",
                "ifindex": rail + 3,
                "device": f"mlx5_{rail}",
                "pci": f"0000:{rail:02x}:00.0",
            },
            **port,
        }
        for rail in range(1, RAILS + 1)
    }
    macs = {rail: f"b8:3f:d2:{host >> 8:02x}:{host & 255:02x}:{rail[4:]:0>2}" for rail in own}
    return {"health": {"boot": "3f0e1a52-6c1c-4a0c-9b57-0123456789ab", "rails": own}, "macs": macs}


def declare(folder: Path, hosts: int) -> None:
    """Write an inventory, its plan, the stand-in, and the playbook that pings."""
    inventory = folder / "inventory"
    (inventory / "group_vars/all").mkdir(parents=True)
    (inventory / "hosts").write_text(f"[gpu_nodes]\nnode[1:{hosts}]\n", encoding="utf-8")
    answer = folder / "answer.json"
    reported = {"changed": False, "ping": "pong", "checks": checks(bad=False), "facts": {}, "errors": []}
    answer.write_text(json.dumps(reported) + "\n", encoding="utf-8")
    interpreter = folder / "python3"
    interpreter.write_text(SHELL.format(answer=answer), encoding="utf-8")
    interpreter.chmod(0o755)
    rails = ", ".join(f"{{interface: ens{number}np0}}" for number in range(1, RAILS + 1))
    variables = AUDIT_VARIABLES.format(slots=hosts, rails=rails, interpreter=interpreter)
    (inventory / "group_vars/all/fabric.yml").write_text(variables, encoding="utf-8")
    (folder / "ping.yml").write_text(PING_BOOK, encoding="utf-8")
    playbook(folder, "-i", "inventory", "railops.rdma.plan", "-e", "ansible_python_interpreter=auto")


class Fleet:
    """A fleet, declared in a folder that goes with it."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self._folder = tempfile.TemporaryDirectory(prefix="railops-bench-")
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Fleet:
        declare(self.folder, self.hosts)
        return self

    def __exit__(self, *dummy: object) -> None:
        self._folder.cleanup()

    def ping(self) -> Took:
        """Ping all hosts."""
        return playbook(self.folder, "-i", "inventory", "ping.yml")

    def audit(self, *words: str) -> Took:
        """Audit all hosts: each is as planned."""
        took = playbook(self.folder, "-i", "inventory", "railops.rdma.audit", *words)
        verdict = json.loads((self.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
        assert (verdict["status"], len(verdict["hosts"])) == ("pass", self.hosts), verdict["status"]
        return took


QUICK = ("-e", "audit_traffic=none")


def fleet() -> t.Iterator[dict[str, Pair]]:
    """Audits of many hosts, against their ping."""
    with Fleet(200) as many:
        while True:
            ping = many.ping().cpu
            yield {"quick": (many.audit(*QUICK).cpu, ping), "pings": (many.audit().cpu, ping)}


def start() -> t.Iterator[dict[str, Pair]]:
    """An audit of one host, against its ping."""
    with Fleet(1) as one:
        while True:
            yield {"start": (one.audit(*QUICK).cpu, one.ping().cpu)}


def growth() -> t.Iterator[dict[str, Pair]]:
    """How much the largest process grows with the fleet."""
    with Fleet(500) as many, Fleet(100) as few:
        while True:
            ours, theirs = (
                many.audit(*QUICK).memory - few.audit(*QUICK).memory,
                many.ping().memory - few.ping().memory,
            )
            yield {"growth": (ours, theirs)}


def verdicts() -> t.Iterator[dict[str, Pair]]:
    """The step that merges all results and writes the pages, of one run and of ten parts."""
    from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.files import result_path, write_json
    from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result
    from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.outliers import compared

    with Fleet(10_000) as all_of_it:
        folder = all_of_it.folder
        names = [f"node{number}" for number in range(1, all_of_it.hosts + 1)]
        digest = json.loads((folder / "plan/fabric/plan.json").read_text(encoding="utf-8"))["digest"]
        for number, name in enumerate(names):
            made = host_result(name, name, digest, checks(number % BAD == 0), facts=compared(facts(number)))
            write_json(result_path(str(folder / "verify/fabric"), name), made)
        (folder / "hosts.json").write_text(json.dumps(names), encoding="utf-8")
        (folder / "book.yml").write_text(VERDICT_BOOK, encoding="utf-8")
        while True:
            whole = playbook(folder, "book.yml")
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder / "parts")
            cut(folder, PARTS)
            words = ("-i", "localhost,", "railops.rdma.merge", "-e", "fabric_verify_dir=merged")
            merge = playbook(folder, *words, codes=(0, 2))
            yield {"verdict": (whole.cpu, None), "merge": (merge.cpu, whole.cpu), "merged": (merge.memory, None)}


def cut(folder: Path, parts: int) -> None:
    """Cut what a run wrote into parts, as several controllers would have written them."""
    verify = folder / "verify/fabric"
    part = json.loads((verify / "sections.json").read_text(encoding="utf-8"))
    for number in range(parts):
        hosts = part["hosts"][number::parts]
        place = folder / f"parts/{number}"
        (place / "hosts").mkdir(parents=True)
        (place / "sections.json").write_text(json.dumps({**part, "hosts": hosts}), encoding="utf-8")
        for host in hosts:
            (place / f"hosts/{host}.json").hardlink_to(verify / f"hosts/{host}.json")

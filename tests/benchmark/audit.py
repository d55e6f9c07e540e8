# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an audit of a large fleet costs the controller: the run itself, and the verdict with its pages.

The fleet is an inventory whose hosts share one stand-in for their Python: it answers every module with what a host that
is as planned answers, 64 checks in all. So everything of the controller is real (templating, forks, building modules,
results, verdict), and nothing of the hosts, whose work runs on themselves, nor of ssh. Needs no root.

    audit.py                    200 hosts against a playbook that only pings them; the verdict of 1,000 and 10,000
    audit.py --memory           also the memory of 200 and 1,000 hosts, so an audit of 1,000
    audit.py --hosts 300        another fleet
    audit.py --verdicts-only    no fleet
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from table import enter_environment

FIX = "ansible-playbook railops.rdma.hosts --tags rail_network --limit HOST (no reboot, no drain)"

RAILS = 8
CHECKS = 12  # of each rail
BAD = 100  # every such host deviates
PARTS = 10
# What an audit may cost beside a playbook that only pings the same hosts.
QUICK, PINGS, GROWTH = 2.2, 3.5, 1.2
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


def run(argv: list[str], folder: Path, codes: t.Container[int] = (0,), **environ: str) -> tuple[float, float, float]:
    """Run a command; return its seconds, its seconds of processor and the MiB of its largest process."""
    begun = time.monotonic()
    env = {
        **os.environ,
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        **environ,
    }
    with (folder / "log.txt").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        text = (folder / "log.txt").read_text(encoding="utf-8")
        sys.exit(f"{process.returncode}: {' '.join(argv)}\n{text[:2000]}\n...\n{text[-4000:]}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def declare(folder: Path, hosts: int) -> None:
    """Write an inventory, its plan and the stand-in."""
    inventory = folder / "inventory"
    (inventory / "group_vars/all").mkdir(parents=True)
    (inventory / "hosts").write_text(f"[gpu_nodes]\nnode[1:{hosts}]\n", encoding="utf-8")
    answer = folder / "answer.json"
    told = {"changed": False, "ping": "pong", "checks": checks(bad=False), "facts": {}, "errors": []}
    answer.write_text(json.dumps(told) + "\n", encoding="utf-8")
    interpreter = folder / "python3"
    interpreter.write_text(SHELL.format(answer=answer), encoding="utf-8")
    interpreter.chmod(0o755)
    rails = ", ".join(f"{{interface: ens{number}np0}}" for number in range(1, RAILS + 1))
    variables = AUDIT_VARIABLES.format(slots=hosts, rails=rails, interpreter=interpreter)
    (inventory / "group_vars/all/fabric.yml").write_text(variables, encoding="utf-8")
    run(["ansible-playbook", "-i", "inventory", "railops.rdma.plan", "-e", "ansible_python_interpreter=auto"], folder)


def fleet(hosts: int) -> dict[str, tuple[float, float, float]]:
    """Measure both sides on one fleet: by name, seconds, seconds of processor and MiB of the largest process."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as temporary:
        folder = Path(temporary)
        declare(folder, hosts)
        (folder / "ping.yml").write_text(PING_BOOK, encoding="utf-8")
        books = {
            "ping": ["ping.yml"],
            "quick audit": ["railops.rdma.audit", "-e", "audit_traffic=none"],
            "audit with pings": ["railops.rdma.audit"],
        }
        for name, words in books.items():
            found[name] = run(["ansible-playbook", "-i", "inventory", *words], folder)
            wall, cpu, memory = found[name]
            if name != "ping":
                verdict = json.loads((folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
                assert verdict["status"] == "pass", verdict["status"]
                assert len(verdict["hosts"]) == hosts
            print(
                f"  {name:<17} {hosts:>6} hosts  {wall:7.1f} s  {cpu / hosts * 1000:5.0f} ms of processor a host"
                f"  {memory:5.0f} MiB",
                flush=True,
            )
    return found


def compare(hosts: list[int], memory: bool) -> None:
    """Print what an audit costs beside a playbook that only pings."""
    for count in hosts:
        found = fleet(count)
        for name, limit in (("quick audit", QUICK), ("audit with pings", PINGS)):
            ratio = found[name][1] / found["ping"][1]
            print(f"  {name}: {ratio:.2f} x the processor time of the ping (at most {limit})")
        if memory:
            large = fleet(5 * count)
            for name in ("quick audit", "audit with pings"):
                grown = (large[name][2] - found[name][2]) / (large["ping"][2] - found["ping"][2])
                print(f"  {name}: memory grows {grown:.2f} x as much to {5 * count} hosts (at most {GROWTH})")


def verdict(hosts: int, every: int) -> None:
    """Measure the step that merges all results and writes the pages; every such host deviates."""
    from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.files import result_path, write_json
    from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result

    with tempfile.TemporaryDirectory(prefix="railops-bench-") as temporary:
        folder = Path(temporary)
        declare(folder, hosts)
        names = [f"node{number}" for number in range(1, hosts + 1)]
        digest = json.loads((folder / "plan/fabric/plan.json").read_text(encoding="utf-8"))["digest"]
        begun = time.monotonic()
        for number, name in enumerate(names):
            made = host_result(name, name, digest, checks(number % every == 0), facts=facts(number))
            write_json(result_path(str(folder / "verify/fabric"), name), made)
        wrote = time.monotonic() - begun
        (folder / "hosts.json").write_text(json.dumps(names), encoding="utf-8")
        (folder / "book.yml").write_text(VERDICT_BOOK, encoding="utf-8")
        wall, _cpu, memory = run(["ansible-playbook", "book.yml"], folder)
        sizes = {path.name: path.stat().st_size / 2**20 for path in (folder / "verify/fabric").glob("*.*")}
        shown = ", ".join(f"{name} {size:.1f} MiB" for name, size in sorted(sizes.items()))
        share = "every host deviates" if every == 1 else f"1 of {every} deviates"
        print(
            f"  verdict of {hosts:>6} hosts, {share}: {wall:6.1f} s  {memory:5.0f} MiB"
            f"  ({wrote / hosts * 1000:.1f} ms to write one host's result; {shown})",
            flush=True,
        )
        if every == BAD:
            cut(folder, PARTS)
            words = ["railops.rdma.merge", "-e", "fabric_verify_dir=merged"]
            wall, _cpu, memory = run(["ansible-playbook", "-i", "localhost,", *words], folder, (0, 2))
            size = (folder / "merged/fabric/verdict.json").stat().st_size / 2**20
            print(
                f"  the same of {PARTS} parts: {wall:6.1f} s  {memory:5.0f} MiB  (verdict.json {size:.1f} MiB)",
                flush=True,
            )


def cut(folder: Path, parts: int) -> None:
    """Cut a verdict into those of parts, as several controllers would have written them."""
    whole = json.loads((folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    names = list(whole["hosts"])
    for number in range(parts):
        hosts = {name: whole["hosts"][name] for name in names[number::parts]}
        place = folder / f"parts/{number}"
        place.mkdir(parents=True)
        (place / "verdict.json").write_text(json.dumps({**whole, "hosts": hosts}), encoding="utf-8")


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[200])
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--verdicts-only", action="store_true")
    args = parser.parse_args()
    enter_environment()
    print(f"audit, controller only, Ansible's own number of forks, {os.cpu_count()} cores:")
    compare([] if args.verdicts_only else args.hosts, args.memory)
    for hosts in (1000, 10_000):
        verdict(hosts, BAD)
        verdict(hosts, 1)


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has the collection of 971e458 or b0302bd is taken along: plan, hosts' files and verdict, made by that commit.

The folder taken_along holds what 971e458's plan, site and audit made of its inventory/demo on namespace hosts, and its
folder b0302bd the same of that commit: a network manager on each host, both policies, and in `machine` what
the roles rdma_host (alternative names) and gpudirect (access control) wrote on a recorded machine. A file of the plan
that a later version renders differently has its row here, with the reason that the changelog gives.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import KEEP_POOL
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import REBOOTED
from ansible_collections.railops.rdma.tests.unit import machines

BEFORE = Path(__file__).parent / "taken_along"
# Files of the plan that may differ, and why.
RENDERED = {
    "plan.json": "its version is called format, and the gateway is frozen as a map per family",
    **{f"hosts/node{number}.json": "frozen_digest is that of what is frozen" for number in (1, 2, 3)},
}
# Files that no host reads: of what the planner or its page has learned since.
GROWN = {
    "facts.json": "what the collection itself asks of a plan",
    "cluster/ippools.yaml": "pools have annotations by which GitOps does not prune them",
    "cluster/kustomization.yaml": "the list of the manifests",
    "cluster/values.yaml": "whether the nodes' CNI programs are replaced is the role's to say",
    "report.html": "the style of its page",
}
# Files that the next plan takes away.
FORMER = {
    "cluster/networks.json": "facts.json says what pods get",
    "workload/topology.yaml": "Slurm reads topology.conf where there is no topology.yaml",
}
LATER = BEFORE / "b0302bd"
HOSTS = ("node1", "node2", "node3")
# Tasks that change a host of 971e458 once, and why; and of b0302bd.
ONCE = {
    "railops.rdma.rail_network : Write the files of the host's network manager": (
        "networkd's files are called 0-railops-* in place of 05-railops-*, so that no other file comes first"
    )
}
ONCE_LATER: dict[str, str] = {}


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def numbers(plan):
    """What decides addresses, and the addresses themselves."""
    lock = json.loads((plan / "plan.json").read_bytes())
    hosts = [json.loads(path.read_bytes()) for path in sorted((plan / "hosts").glob("*.json"))]
    rows = [
        (host["node"], rail["name"], rail["interface"], rail["addresses"]) for host in hosts for rail in host["rails"]
    ]
    return {name: node["slot"] for name, node in lock["nodes"].items()}, rows


def on(fleet, host, *words):
    return fleet.lab("exec", fleet.name, "--host", host, "--", *words)


def links_of(kept):
    """Return the links of a folder, by their places in it: they lead to a host's own files, and so stand in a list."""
    found = {BEFORE / place: target for place, target in json.loads((BEFORE / "links.json").read_bytes()).items()}
    return {str(place.relative_to(kept)): target for place, target in found.items() if place.is_relative_to(kept)}


def replace_files(fleet, host, kept, links=None):
    """Put the files of an earlier version in place of ours, with the modes that git does not keep, and their links."""
    on(fleet, host, "sh", "-c", "find /etc -path '*railops*' -not -type d -delete")
    on(fleet, host, "cp", "-rT", str(kept), "/etc")
    for place, target in (links_of(kept) if links is None else links).items():
        on(fleet, host, "sh", "-c", f"mkdir -p /etc/{Path(place).parent} && ln -sfn {target} /etc/{place}")
    on(fleet, host, "sh", "-c", "chmod -f 600 /etc/netplan/*railops* /etc/NetworkManager/system-connections/*; true")


def play(folder, inventory, book, **values):
    """Run a playbook that needs no host."""
    command = ["ansible-playbook", "-i", str(inventory), f"railops.rdma.{book}", "-e", json.dumps(values)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_planning_again_moves_nobody(tmp_path):
    shutil.copytree(BEFORE / "plan", tmp_path / "plan")
    play(tmp_path, BEFORE / "inventory", "plan")
    before, after = BEFORE / "plan/fabric", tmp_path / "plan/fabric"
    assert numbers(after) == numbers(before)
    old, new = files(before), files(after)
    assert {name for name in {*old, *new} if old.get(name) != new.get(name)} == {*RENDERED, *GROWN, *FORMER}
    kept = "".join(f"    {key}: {value}\n" for key, value in KEEP_POOL.items())
    pools = new["cluster/ippools.yaml"].replace(f"  annotations:\n{kept}".encode(), b"")
    assert pools == old["cluster/ippools.yaml"]
    lock, was = json.loads(new["plan.json"]), json.loads(old["plan.json"])
    assert lock["frozen"] == {**was["frozen"], "gateway": {"ipv4": was["frozen"]["gateway"]}}
    for name in set(RENDERED) - {"plan.json"}:
        assert json.loads(new[name]) | {"frozen_digest": ""} == json.loads(old[name]) | {"frozen_digest": ""}


def test_its_hosts_keep_their_files_and_addresses(fleet):
    """On a host that has that commit's files site changes what the changelog names, once, and no address."""
    shutil.copytree(BEFORE / "plan", fleet.folder / "plan")
    fleet.lab("gateways", fleet.name, "--plan", str(BEFORE / "plan/fabric"))
    for book in ("plan", "site"):
        fleet.play(book)
    kept = [fleet.dump(host) for host in HOSTS]
    for host in HOSTS:
        on(fleet, host, "rm", *on(fleet, host, "grep", "-rls", "railops", "/etc").split())
        on(fleet, host, "cp", "-rT", str(BEFORE / "etc" / host), "/etc")
    run = fleet.play("site")
    assert {row.partition(": ")[2] for row in run.changed()} == set(ONCE)
    assert [fleet.dump(host) for host in HOSTS] == kept


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
def test_planning_again_makes_the_same_files(tmp_path, policy):
    shutil.copytree(LATER / policy / "plan", tmp_path / "plan")
    play(tmp_path, LATER / "inventory", "plan", fabric_policy=policy)
    old, new = files(LATER / policy / "plan/fabric"), files(tmp_path / "plan/fabric")
    # plan.json has the digests of the parts.
    assert {name for name in {*old, *new} if old.get(name) != new.get(name)} == {"plan.json", *GROWN, *FORMER}
    assert numbers(tmp_path / "plan/fabric") == numbers(LATER / policy / "plan/fabric")


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
def test_hosts_of_all_managers_keep_files_addresses_and_routes(fleet, policy):
    """As they run, and as a boot left them: site changes what ONCE_LATER names and nothing of the network."""
    values = ("-i", str(LATER / "inventory"), "-e", f"fabric_policy={policy}")
    if (fleet.folder / "plan").exists():
        fleet.play("teardown")
        shutil.rmtree(fleet.folder / "plan")
    shutil.copytree(LATER / policy / "plan", fleet.folder / "plan")
    fleet.lab("gateways", fleet.name, "--plan", str(LATER / policy / "plan/fabric"))
    for book in ("plan", "hosts"):
        fleet.play(book, *values)
    for host in HOSTS:
        replace_files(fleet, host, LATER / policy / "etc" / host)
    kept = [fleet.dump(host) for host in HOSTS]
    run = fleet.play("hosts", *values)
    assert {row.partition(": ")[2] for row in run.changed()} == set(ONCE_LATER)
    assert [fleet.dump(host) for host in HOSTS] == kept
    for host in HOSTS:
        replace_files(fleet, host, LATER / policy / "etc" / host)
        on(fleet, host, "sh", "-c", REBOOTED)
    kept = [fleet.dump(host) for host in HOSTS]
    assert not [host for host, dump in zip(HOSTS, kept, strict=True) if "proto 143" in str(dump)]
    run = fleet.play("site", *values)
    assert {row.partition(": ")[2] for row in run.changed()} == set(ONCE_LATER)
    assert [fleet.dump(host) for host in HOSTS] == kept


SETPCI = """#!/bin/sh
test -e {folder}/$2 || {{ echo "setpci: $2: Instance #0 of Capability 000d not found." >&2; exit 1; }}
case $3 in *=*) echo "${{3#*=}}" > {folder}/$2;; *) cat {folder}/$2;; esac
"""


def test_alternative_names_stay_and_access_control_is_taken_along(fleet, tmp_path):
    """The files of rdma_host and gpudirect on a recorded machine: the unit at boot is replaced once, and no bit."""
    machines.lay_out("one-switch-each", tmp_path)
    settings = json.loads((LATER / "machine/etc/railops-rdma/acs.json").read_bytes())
    (tmp_path / "acs").mkdir()
    for device in (tmp_path / "sys/bus/pci/devices").iterdir():
        if (device / "class").read_text().startswith("0x0604"):
            # As far as that run relaxed it.
            bits = "0000" if device.name in settings["bridges"] else "001d"
            (tmp_path / "acs" / device.name).write_text(f"{bits}\n")
    before = files(tmp_path / "acs")
    machines.program(tmp_path / "setpci", SETPCI.format(folder=tmp_path / "acs"))
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu\n")
    (tmp_path / "lib").mkdir()
    shutil.copy(LATER / "machine/acs.py", tmp_path / "lib/acs.py")
    shutil.copytree(LATER / "machine/etc", tmp_path / "etc")
    replace_files(fleet, "node1", tmp_path / "etc", links_of(LATER / "machine/etc"))
    program = "/usr/local/lib/railops-rdma"
    steps = f"mount --bind {tmp_path}/sys /sys && mount --bind {tmp_path}/cpuinfo /proc/cpuinfo"
    steps += f" && mount -t tmpfs tmpfs /usr/local/lib && mkdir {program} && cp {tmp_path}/lib/acs.py {program}"
    steps += f" && mount -t tmpfs tmpfs /usr/local/sbin && cp {tmp_path}/setpci /usr/local/sbin"
    steps += " && ip link property add dev ens1np0 altname roce1 && ip link property add dev ens2np0 altname roce2"
    on(fleet, "node1", "sh", "-c", steps)
    rdma_host = {"plan_dir": str(LATER / "machine/plan/fabric"), "naming": "altname", "modules": []}
    tasks = [{"railops.rdma.rdma_host": rdma_host}, {"railops.rdma.gpudirect": {"acs": "relax"}}]
    play = {"hosts": "node1", "gather_facts": False, "become": True, "tasks": tasks}
    (tmp_path / "book.yml").write_text(json.dumps([play]), encoding="utf-8")
    run = fleet.play(str(tmp_path / "book.yml"), "--diff")
    assert [row.partition(": ")[2] for row in run.changed()] == ["railops.rdma.gpudirect"], run.output
    run = fleet.play(str(tmp_path / "book.yml"), "--diff")
    assert run.changed() == [], run.output
    assert files(tmp_path / "acs") == before
    assert on(fleet, "node1", "sh", "-c", f"ls {program}; true") == ""

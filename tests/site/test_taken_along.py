# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has the collection of 971e458 is taken along: its plan, its hosts' files and its verdict, made by that commit.

The folder taken_along holds what that commit's plan, site and audit made of its inventory/demo on namespace hosts. A
file of the plan that a later version renders differently has its row here, with the reason that the changelog gives.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

BEFORE = Path(__file__).parent / "taken_along"
# Files of the plan that may differ, and why.
RENDERED = {
    "plan.json": "its version is called format, and the gateway is frozen as a map per family",
    **{f"hosts/node{number}.json": "frozen_digest is that of what is frozen" for number in (1, 2, 3)},
}
# Tasks that change a host of that commit once, and why.
ONCE = {
    "railops.rdma.rail_network : Persist | Write the files of the host's network manager": (
        "networkd's files are called 0-railops-* in place of 05-railops-*, so that no other file comes first"
    )
}


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


def test_planning_again_moves_nobody(tmp_path):
    shutil.copytree(BEFORE / "plan", tmp_path / "plan")
    command = ["ansible-playbook", "-i", str(BEFORE / "inventory"), "railops.rdma.plan"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    before, after = BEFORE / "plan/fabric", tmp_path / "plan/fabric"
    assert numbers(after) == numbers(before)
    old, new = files(before), files(after)
    assert {name for name in {*old, *new} if old.get(name) != new.get(name)} == set(RENDERED)
    lock, was = json.loads(new["plan.json"]), json.loads(old["plan.json"])
    assert lock["frozen"] == {**was["frozen"], "gateway": {"ipv4": was["frozen"]["gateway"]}}
    for name in set(RENDERED) - {"plan.json"}:
        assert json.loads(new[name]) | {"frozen_digest": ""} == json.loads(old[name]) | {"frozen_digest": ""}


def test_its_hosts_keep_their_files_and_addresses(fleet):
    """On a host that has that commit's files site changes what the changelog names, once, and no address."""
    shutil.copytree(BEFORE / "plan", fleet.folder / "plan")
    fleet.lab("gateways", fleet.name, "--plan", str(BEFORE / "plan/fabric"))
    for book in ("plan", "site"):
        first = fleet.play(book)
        assert first.code == 0, first.output
    kept = [fleet.dump(f"node{number}") for number in (1, 2, 3)]
    for number in (1, 2, 3):
        there = f"node{number}"
        made = fleet.lab("exec", fleet.name, "--host", there, "--", "grep", "-rls", "railops", "/etc").split()
        fleet.lab("exec", fleet.name, "--host", there, "--", "rm", *made)
        fleet.lab("exec", fleet.name, "--host", there, "--", "cp", "-rT", str(BEFORE / "etc" / there), "/etc")
    run = fleet.play("site")
    assert run.code == 0, run.output
    assert {row.partition(": ")[2] for row in run.changed()} == set(ONCE)
    assert [fleet.dump(f"node{number}") for number in (1, 2, 3)] == kept


def test_its_verdict_is_still_read(tmp_path):
    """With the plan that it is of: planned again, the plan has another digest."""
    values = {
        "fabric_plan_dir": str(BEFORE / "plan"),
        "fabric_verify_dir": str(tmp_path),
        "merge_verdicts": [str(BEFORE / "verify/fabric/verdict.json")],
    }
    command = ["ansible-playbook", "-i", "localhost,", "railops.rdma.merge", "-e", json.dumps(values)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "fabric/verdict.json").read_bytes())["status"] == "pass"

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No node that kept its hardware is renumbered unless asked, whatever becomes of the plan.

Random histories over the playbooks as they are (`playbooks`): nodes added, retired, released, replaced, swapped; runs
by parts, limited, in check mode, in a copy that is thrown away, in two copies at once; the plan lost, and restored from
the copy in the cluster.
RAILOPS_HISTORIES says over how many: 24 by default, always the same ones; with 1,000 it takes some minutes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import typing as t

import pytest
from ansible._internal._templating._jinja_bits import AnsibleEnvironment

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.lock_copy import LockCopy
from ansible_collections.railops.rdma.tests.unit.playbooks import Host, Playbooks

HISTORIES = int(os.environ.get("RAILOPS_HISTORIES", "24"))
STEPS = 9
SLOTS = 16
RAILS = [{"interface": "eth1"}, {"interface": "eth2"}]
BASE = {
    "fabric_name": "fabric",
    "fabric_mode": "exclusive",
    "fabric_supernets": ["172.17.0.0/16"],
    "fabric_rails": RAILS,
    "fabric_kubeconfig": "kubeconfig",
}
ALLOW = {"fabric_allow_renumber": True}
# What a person can do about it; each refusal has one of them.
WAYS = (
    "Run the playbook railops.rdma.plan",
    "Run railops.rdma.plan, review, commit.",
    "If plan.json was lost, restore it",
    "fabric_allow_renumber=true",
    "fabric_retire",
    "Give each a slot of its own.",
    "Raise",
    "release the node",
    "fabric_plan_from_cluster",
)


class History:
    """A site: its machines, its inventory, what is committed, and what really happened."""

    def __init__(self, folder: t.Any, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.main = folder / "main"
        self.main.mkdir()
        self.fleet: dict[str, Host] = {}
        self.cluster: dict[str, dict[str, t.Any]] = {}
        """The objects that outlive every checkout, by name."""
        self.hosts: list[str] = []
        self.own: dict[str, dict[str, t.Any]] = {}
        self.values: dict[str, t.Any] = {**BASE, "fabric_max_nodes": SLOTS, "fabric_retire": [], "fabric_release": []}
        self.told: list[str] = []
        self.count = 0
        for _number in range(3):
            self.add()

    def say(self, text: str) -> None:
        self.told.append(text)

    # What people do

    def add(self) -> None:
        """Install a machine; its name sorts anywhere among the others."""
        self.count += 1
        name = f"n{self.chance.randrange(100)}-{self.count}"
        self.fleet[name] = Host()
        self.hosts.insert(self.chance.randint(0, len(self.hosts)), name)
        self.say(f"add {name}")

    def retire(self) -> None:
        """Take a machine away, after its addresses."""
        if len(self.hosts) > 1:
            name = self.hosts.pop(self.chance.randrange(len(self.hosts)))
            self.fleet.pop(name)
            self.own.pop(name, None)
            self.values["fabric_retire"] = [*self.values["fabric_retire"], name]
            self.say(f"retire {name}")

    def release(self) -> None:
        """Let the slots of retired nodes go."""
        self.values["fabric_release"] = list(self.values["fabric_retire"])
        self.say(f"release {self.values['fabric_release']}")

    def replace(self) -> None:
        """Install new hardware under an old name."""
        name = self.chance.choice(self.hosts)
        self.fleet[name] = Host()
        self.say(f"replace {name}")

    def swap(self) -> None:
        """Pin two nodes to slots, which may be each other's."""
        names = self.chance.sample(self.hosts, min(2, len(self.hosts)))
        slots = self.chance.sample(range(4), len(names))
        self.own.update({name: {"slot": slot} for name, slot in zip(names, slots, strict=True)})
        self.say(f"pins {self.own}")

    def unpin(self) -> None:
        """Take the pins out."""
        self.own.clear()
        self.say("no pins")

    def reorder(self) -> None:
        """Write the inventory in another order."""
        self.chance.shuffle(self.hosts)

    def render(self) -> None:
        """Change what is no number."""
        self.values["fabric_mtu"] = self.chance.choice([1500, 4200, 9000])
        self.say("mtu")

    def lose(self) -> None:
        """Lose the folder of the plan, or its lock alone."""
        path = self.main / "plan"
        if self.chance.random() < 0.5:
            shutil.rmtree(path, ignore_errors=True)
        elif (path / "fabric/plan.json").exists():
            (path / "fabric/plan.json").unlink()
        self.say("the plan is lost")

    # What runs

    def run(self) -> None:
        """Run a playbook where the plan is kept."""
        self.play(self.main)

    def thrown_away(self) -> None:
        """Run in a copy of the repository that nobody keeps."""
        copy = self.copied()
        for _turn in range(self.chance.randint(1, 2)):
            self.play(copy)

    def at_once(self) -> None:
        """Run in two copies of one commit; the lease lets one after the other at the hosts, and one is committed."""
        copies = [self.copied(), self.copied()]
        for copy in copies:
            self.play(copy)
        if (copies[0] / "plan").exists():
            shutil.rmtree(self.main / "plan", ignore_errors=True)
            shutil.copytree(copies[0] / "plan", self.main / "plan")

    def restore(self) -> None:
        """Plan from the cluster's copy, where the plan was lost or not."""
        self.play(self.main, "plan", fabric_plan_from_cluster=True)

    def copied(self, folder: t.Any = None) -> t.Any:
        self.count += 1
        return shutil.copytree(folder or self.main, self.folder / f"copy{self.count}")

    def slots(self) -> dict[str, int]:
        """Return what the copy in the cluster says."""
        copy = LockCopy(self.cluster.values(), "fabric", "spiderpool").lock()
        return {name: entry.slot for name, entry in copy.nodes.items()} if copy else {}

    def play(self, folder: t.Any, name: str = "", *, first: bool = False, **given: t.Any) -> None:
        """Run a playbook, and hold what it did to what may be."""
        name = name or self.chance.choice(["plan", "plan", "site", "site", "site", "hosts", "cluster"])
        name = "site" if first else name
        limit = self.chance.sample(self.hosts, 1) if not first and self.chance.random() < 0.2 else None
        check = not first and self.chance.random() < 0.2
        more: dict[str, t.Any] = dict(given)
        if not first and self.chance.random() < 0.15:
            more.update(ALLOW)
        if not first and self.chance.random() < 0.1:
            more["fabric_plan_locked"] = False
        had_lock = (folder / "plan/fabric/plan.json").exists()
        before = {host: dict(machine.live) for host, machine in self.fleet.items()}
        lock = (folder / "plan/fabric/plan.json").read_bytes() if had_lock else b""
        files = {path: path.read_bytes() for path in folder.rglob("plan/**/*") if path.is_file()}
        slots = self.slots()
        book = Playbooks(folder, self.fleet, self.cluster, self.hosts, self.values, self.own, **more)
        refused = book.play(name, limit=limit, check=check)
        self.say(f"{folder.name} {name} limit={limit} check={check} {more} -> {refused[:200] or book.given}")
        after = {host: dict(machine.live) for host, machine in self.fleet.items()}
        where = "\n".join(self.told)

        if "fabric_allow_renumber" not in more:
            moved = [host for host, live in before.items() if live and live != after[host]]
            assert not moved, where
            if limit is None:
                rows = [address for host, live in after.items() if host in book.given for address in live.values()]
                others = [a for host, live in after.items() if host not in book.given for a in live.values()]
                assert len(rows) == len(set(rows)), where
                assert not set(rows) & set(others), where
            assert {**self.slots(), **slots} == {**slots, **self.slots()}, where
        if name in ("plan", "hosts") or check:
            assert slots == self.slots(), where
        if "fabric_plan_from_cluster" in more and not (refused or check or limit or ALLOW.keys() & more):
            made = json.loads((folder / "plan/fabric/plan.json").read_text())["nodes"]
            kept = {name: slot for name, slot in slots.items() if name not in self.values["fabric_release"]}
            assert kept.items() <= {name: entry["slot"] for name, entry in made.items()}.items(), where
        if check or refused:
            assert before == after or (refused and not check and limit), where
        if refused:
            assert any(way in refused for way in WAYS), where
        # Who gives slots: only the playbook plan, the very first site, and a site that is told to.
        if had_lock and name != "plan" and "fabric_plan_locked" not in more:
            assert lock == (folder / "plan/fabric/plan.json").read_bytes(), where
        if name in ("hosts", "cluster") or check or (limit and name != "plan"):
            assert files == {path: path.read_bytes() for path in folder.rglob("plan/**/*") if path.is_file()}, where
        # With --limit to a host nothing of the cluster's part runs.
        if not had_lock and (name == "hosts" or (name == "cluster" and not limit)):
            assert "Run the playbook railops.rdma.plan" in refused, where
        if name == "site" and not limit and not check and refused.startswith("The inventory gives another plan"):
            self.as_told(folder, more)

    def as_told(self, folder: t.Any, more: dict[str, t.Any]) -> None:
        """A locked site says to plan: then it is not refused for that any more, and in check mode it said the same."""
        scratch = self.copied(folder)
        book = Playbooks(scratch, {}, {}, self.hosts, self.values, self.own, **more)
        again = book.play("site", check=True)
        assert again.startswith("The inventory gives another plan")
        assert ("numbers change" in again or "nobody is renumbered" in again) != ("only files do" in again)
        assert book.play("plan") == ""
        machines = {host: Host() for host in self.hosts}
        assert Playbooks(scratch, machines, {}, self.hosts, self.values, self.own, **more).play("site") == ""


DEEDS = (
    *(History.add, History.retire, History.release, History.replace, History.swap, History.unpin, History.reorder),
    *(History.render, History.lose, History.thrown_away, History.thrown_away, History.at_once),
    *(History.run, History.run, History.run, History.run, History.restore),
)


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    """A template is compiled once and not in each of some thousand runs."""
    compiled: dict[t.Any, t.Any] = {}
    real = AnsibleEnvironment.compile

    def compile_once(self, source, *args, **kwargs):
        key = (str(source), args, tuple(sorted(kwargs.items())))
        if key not in compiled:
            compiled[key] = real(self, source, *args, **kwargs)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AnsibleEnvironment, "compile", compile_once)
        yield


@pytest.mark.parametrize("part", range(10))
def test_no_node_that_kept_its_hardware_is_renumbered(tmp_path, part):
    for seed in range(part, HISTORIES, 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = History(folder, seed)
        # The very first site, in half of them where nobody keeps its plan.
        history.play(history.copied() if seed // 10 % 2 else history.main, first=True)
        for _step in range(STEPS):
            history.chance.choice(DEEDS)(history)
        shutil.rmtree(folder)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No node that kept its hardware is renumbered without a request, also after the plan was lost.

Random histories over what decides: the planner with its lock, the copy in the cluster, and the addresses of hosts, in
the order of the playbook `site`. Nodes are added, retired, released, replaced and pinned; runs are limited, in check
mode, or in a copy of the repository that is thrown away; the plan is lost, and restored from the cluster. Real
playbooks play single stories: tests/cluster/test_roles.py, tests/site/test_site.py.
RAILOPS_HISTORIES says over how many: 200 by default, always the same ones.
"""

from __future__ import annotations

import json
import os
import random
import shutil

import pytest

from ansible_collections.railops.rdma.plugins.filter.filters import lock_copy
from ansible_collections.railops.rdma.plugins.module_utils._audit import renumbered
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.lock_copy import LockCopy
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, rails

HISTORIES = int(os.environ.get("RAILOPS_HISTORIES", "200"))
STEPS = 12
# What a person can do about it; each refusal has one of them.
WAYS = (
    *("Run railops.rdma.plan", "If plan.json was lost, restore it", "fabric_allow_renumber=true", "fabric_retire"),
    *("Give each a slot of its own.", "Raise", "release the node", "fabric_plan_from_cluster"),
)


class History:
    """A site: its inventory, the folder where its plan is kept, the copy in the cluster, and what hosts really have."""

    def __init__(self, folder, seed):
        self.chance = random.Random(seed)
        self.folder, self.main = folder, folder / "main"
        self.main.mkdir()
        self.live, self.own, self.copy, self.reported = {}, {}, [], []
        self.values = {"retire": [], "release": []}
        self.count = 0
        for _number in range(3):
            self.add()

    def add(self):
        """Install a machine; its name sorts anywhere among the others."""
        self.count += 1
        self.live[f"n{self.chance.randrange(100)}-{self.count}"] = {}

    def retire(self):
        if len(self.live) > 1:
            name = self.chance.choice([*self.live])
            self.live.pop(name)
            self.own.pop(name, None)
            self.values["retire"] = [*self.values["retire"], name]

    def release(self):
        self.values["release"] = list(self.values["retire"])

    def replace(self):
        """Install new hardware under an old name."""
        self.live[self.chance.choice([*self.live])] = {}

    def pin(self):
        """Pin two nodes to slots, which may be each other's; or take the pins out."""
        names = self.chance.sample([*self.live], min(2, len(self.live)))
        slots = self.chance.sample(range(4), len(names))
        self.own = {} if self.own else {name: {"slot": slot} for name, slot in zip(names, slots, strict=True)}

    def lose(self):
        """Lose the folder of the plan, or its lock alone."""
        path = self.main / "plan"
        if self.chance.random() < 0.5:
            shutil.rmtree(path, ignore_errors=True)
        else:
            (path / "fabric/plan.json").unlink(missing_ok=True)

    def site(self):
        self.play(self.main)

    def plan(self):
        self.play(self.main, locked=False, hosts=())

    def restore(self):
        self.play(self.main, locked=False, hosts=(), restored=True)

    def discarded_copy(self):
        self.count += 1
        self.play(shutil.copytree(self.main, self.folder / f"copy{self.count}"))

    def slots(self):
        copy = LockCopy(self.copy, "fabric", "spiderpool").lock() if self.copy else None
        return {name: entry.slot for name, entry in copy.nodes.items()} if copy else {}

    def play(self, folder, *, locked=True, hosts=None, restored=False):
        """Plan, look and bring; then hold what that did to what may be."""
        allow, check = self.chance.random() < 0.15, self.chance.random() < 0.2
        limit = self.chance.sample([*self.live], 1) if hosts is None and self.chance.random() < 0.2 else None
        before, slots = {name: dict(held) for name, held in self.live.items()}, self.slots()
        refused = ""
        try:
            self.bring(folder, locked, [*self.live] if hosts is None else hosts, limit, restored, allow, check)
        except RdmaError as exc:
            refused = str(exc)
        self.reported.append(f"{folder.name} locked={locked} limit={limit} {restored=} {allow=} {check=} -> {refused}")
        story = "\n".join(map(str, self.reported))
        assert allow or not [name for name, held in before.items() if held and held != self.live[name]], story
        if allow:
            return
        held = [address for one in self.live.values() for address in one.values()]
        assert refused or check or limit or hosts == () or len(held) == len(set(held)), story
        assert {**self.slots(), **slots} == {**slots, **self.slots()}, story
        assert not (check or refused) or (before, slots) == (self.live, self.slots()), story
        assert not refused or any(way in refused for way in WAYS), story

    def bring(self, folder, locked, hosts, limit, restored, allow, check):
        """Do what `site` does, in its order: plan, compare with the copy, look at each host; then hosts and cluster."""
        path = folder / "plan/fabric"
        locked = locked and (path / "plan.json").exists()
        if limit is None:
            raw = {**exclusive(name="fabric", rails=rails(2), max_nodes=16), **self.values, "plan_locked": locked}
            raw |= {"plan_dir": str(folder / "plan"), "allow_renumber": allow}
            copy = LockCopy(self.copy, "fabric", "spiderpool") if restored else None
            run(raw, [{"host": name, **self.own.get(name, {})} for name in self.live], check_mode=check, copy=copy)
        elif not (path / "plan.json").exists():
            raise RdmaError("There is no plan.", "Run railops.rdma.plan. [plan_missing]")
        if not hosts or not (path / "plan.json").exists():
            return
        found = lock_copy(self.copy, str(path), "fabric", "spiderpool", self.values["release"], allow)
        if found["problems"]:
            raise RdmaError(found["problems"][0], "")
        made = {}
        for name in [host for host in hosts if limit is None or host in limit]:
            text = path / f"hosts/{name}.json"
            if not text.exists():
                raise RdmaError(f"There is no plan of {name}.", "Run railops.rdma.plan. [host_plan_missing]")
            plan = json.loads(text.read_text(encoding="utf-8"))
            live = set(self.live[name].items())
            checks, _facts = renumbered.checks_of(parse_options(plan), {}, live, live)
            if checks and not allow:
                raise RdmaError(checks[0]["cause"], checks[0]["fix"])
            made[name] = {rail["interface"]: rail["addresses"][0]["address"] for rail in plan["rails"]}
        if not check:
            self.live.update(made)
            self.copy = self.copy if limit else [found["object"]]


DEEDS = (
    *(History.add, History.retire, History.release, History.replace, History.pin, History.lose, History.discarded_copy),
    *(History.site, History.site, History.site, History.plan, History.plan, History.restore),
)


@pytest.mark.parametrize("part", range(10))
def test_no_node_that_kept_its_hardware_is_renumbered(tmp_path, part):
    for seed in range(part, HISTORIES, 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = History(folder, seed)
        # The very first site, in half of them without keeping its plan.
        history.discarded_copy() if seed // 10 % 2 else history.site()
        for _step in range(STEPS):
            history.chance.choice(DEEDS)(history)
        shutil.rmtree(folder)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks over hosts with a random life each: what is not ours outlives `hosts`, a boot and `teardown`.

Or it is refused by name before the first change of any host; `--check` has said the same, and previewed the others.
tests/kernel/test_former_lives.py does the same by the modules.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import state as lab_state
from topology import MANAGEMENT, Lab
from topology import Host as LabHost

from ansible_collections.railops.rdma.tests.kernel.former_life import RAILS, Life, Lived
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Host
from ansible_collections.railops.rdma.tests.site.conftest import Fleet, Run, started

# Lives, five hosts at a time.
LONG, NODES = 30, 5
# What is in the way, of all hosts at once: at the end of the preview, and where the run stops.
SAID = re.compile(r"(?:The run would stop at this:|In the way of this run:)(.*?)\n(?:TASK|PLAY)", re.DOTALL)
ASIDE = ("mgmt0", str(MANAGEMENT[1]))
WATCHED = ("systemd", "NetworkManager", "netplan", "sysctl.d", "iproute2", "network", "udev", "modprobe.d")


class Node(Lived):
    """A host of the lab with a life before us."""

    def __init__(self, lab: Lab, host: LabHost, life: Life) -> None:
        pid = lab_state.recorded_process(lab_state.folder(lab.name) / host.name / "init.pid")
        super().__init__(Host(lab.namespace(host), host.number), Path(f"/proc/{pid}/root"), life, WATCHED)
        self.name = host.name

    @property
    def refused(self) -> bool:
        """Whether a run must refuse it."""
        return bool(self.life.named or self.life.lost or self.life.leased)


class World:
    """A fleet whose hosts have lived."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.story = fleet, ""
        rails = [{"name": f"rail{number}", "interface": f"ens{number}np0"} for number in range(1, RAILS + 1)]
        fleet.words = {
            "fabric_rails": rails,
            "fabric_supernets": ["172.17.0.0/16", "fd00:17::/48"],
            "fabric_allow_renumber": True,
            "site_serial": ["100%"],
        }

    def play(self, book: str, *words: str, code: int = 0, **more: object) -> Run:
        """Run a playbook, which ends with this code, with variables beside the fleet's."""
        done = self.fleet.play(book, "-e", json.dumps(more), *words, code=None)
        assert done.code == code, f"{self.story}\n{done.output}"
        return done

    def addresses(self, number: int) -> list[str]:
        """Return the planned address of each rail of a node with its length, IPv4."""
        plan = json.loads((self.fleet.folder / f"plan/fabric/hosts/node{number}.json").read_text())
        four = [item for rail in plan["rails"] for item in rail["addresses"] if "." in item["address"]]
        return [f"{item['address']}/{item['subnet'].partition('/')[2]}" for item in four]


@pytest.fixture
def world(request, tmp_path):
    """Hosts on which nobody has been yet: what a life leaves is no part of the next one."""
    with started("lives", tmp_path, request.param, RAILS) as fleet:
        yield World(fleet)


def lived(world: World, first: int) -> list[Node]:
    lab = lab_state.load(world.fleet.name)
    hosts = [
        Node(lab, host, Life(first * lab.nodes + host.number, world.addresses(host.number), *ASIDE))
        for host in lab.hosts
    ]
    values = {host.name: {"rail_network_manager": host.life.manager} for host in hosts}
    inventory = {"all": {"children": {"gpu_nodes": {"hosts": values}}}}
    world.fleet.extra.write_text(json.dumps(inventory), encoding="utf-8")
    return hosts


def limit(hosts: list[Node]) -> tuple[str, str]:
    return "--limit", ",".join(["localhost", *(host.name for host in hosts)])


def changes(done: Run, hosts: list[Node]) -> set[str]:
    names = {host.name for host in hosts}
    return {row for row in done.changed() if row.partition(":")[0] in names and "Stage |" not in row}


def hold(world: World, first: int) -> None:
    """Let hosts live, have a run, a boot and a teardown, and compare at each step."""
    world.fleet.words["fabric_policy"] = ("prefixes", "default_route")[first % 2]
    world.play("plan")
    hosts = lived(world, first)
    world.story = "\n".join(f"{host.name}: {vars(host.life)}" for host in hosts)
    prepare(world, hosts)
    preview = tell(world, hosts)
    if fine := [host for host in hosts if not host.refused]:
        run(world, fine, preview)
    for host in hosts:
        assert all(host.files()[path] == text for path, text in host.life.files.items()), f"{host.name}\n{world.story}"
    tear_down(world, hosts)
    for host in hosts:
        host.keeps_afterwards(host.refused, f"{host.name}\n{world.story}")


def prepare(world: World, hosts: list[Node]) -> None:
    """Have an earlier plan of ours on some hosts, all but one of them booted with it, and then everybody's own."""
    if earlier := [host for host in hosts if host.life.earlier]:
        old = {"fabric_plan_dir": "earlier", "fabric_supernets": ["172.17.128.0/17", "fd00:17:9::/48"]}
        world.play("plan", **old)
        world.play("hosts", *limit(earlier), **old)
        for host in earlier[1:]:
            host.host.reboot()
    for host in hosts:
        host.live()


def states(hosts: list[Node]) -> list[tuple]:
    return [(host.host.dump(), host.files()) for host in hosts]


def tell(world: World, hosts: list[Node]) -> Run:
    """Hold a preview, and the run that it says would stop, to what must be refused; return the preview."""
    before, refused = states(hosts), [host for host in hosts if host.refused]
    preview = world.play("hosts", "--check", code=2 if refused else 0)
    runs = [preview, *([world.play("hosts", code=2)] if refused else ())]
    assert not any(done.changed() for done in runs[1:]), f"{world.story}\n{runs[-1].output}"
    assert states(hosts) == before
    for done in runs:
        found = SAID.search(done.output)
        said = " ".join(found[1].split()) if found else ""
        for host in refused:
            names = (*host.life.named, *host.life.lost, *host.life.leased)
            lacking = [what for what in names if what not in said]
            assert not lacking, f"{host.name}: {lacking}\n{world.story}\n{done.output}"
        # What several hosts have alike is said once, of all of them.
        blamed = [host for host in hosts if re.search(rf"\b{host.name}(, node\d+)*: ", said)]
        assert blamed == refused, f"{blamed}\n{world.story}\n{done.output}"
    return preview


def run(world: World, hosts: list[Node], preview: Run) -> None:
    """Bring hosts to the plan, boot them and do it again: what the preview said, and what they had is there."""
    for number in range(2):
        done = world.play("hosts", *limit(hosts))
        assert changes(done, hosts) == (set() if number else changes(preview, hosts)), world.story
        for host in hosts:
            host.keeps(f"{host.name}\n{world.story}")
            if not number:
                host.host.reboot()


def tear_down(world: World, hosts: list[Node]) -> None:
    """Take everything back, after a preview that says the same."""
    before = states(hosts)
    preview = world.play("teardown", "--check")
    assert states(hosts) == before
    done = world.play("teardown")
    assert changes(done, hosts) == changes(preview, hosts), world.story


@pytest.mark.long
@pytest.mark.parametrize("world", [NODES], indirect=True)
@pytest.mark.parametrize("turn", range(LONG // NODES))
def test_thirty_hosts_with_lives_of_their_own_keep_them_or_are_refused_by_name(world, seed, turn):
    hold(world, seed("RAILOPS_SITE_LIVES_SEED") % 100000 + turn)

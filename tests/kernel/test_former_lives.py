# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts with a random life before us: what is not ours is there after a run, a boot and teardown, or was refused.

Drawn are rules, tables, routes and addresses in and beside our numbers, files of networkd, NetworkManager and sysctl.d
beside ours, and sometimes an earlier plan of ours with its files. What a run refuses by name, and that check mode says
the same, is known beforehand.
"""

from __future__ import annotations

import random

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route, rail_persist
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, want_of

RAILS = 2
PUSH, LONG = 20, 300
SEEDS = [seed if seed < PUSH else pytest.param(seed, marks=pytest.mark.long) for seed in range(LONG)]
PREFIXES = {4: "172.17.0.0/16", 6: "fd00:17::/32"}
NEVER_TOUCHED = {
    "/etc/systemd/network/50-site.network": "[Match]\nName=eth0\n\n[Network]\nDHCP=yes\n",
    "/etc/systemd/network/90-all.link": "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep\n",
    "/etc/NetworkManager/system-connections/site.nmconnection": "[connection]\nid=site\ntype=ethernet\n"
    "interface-name=eth0\n\n[ipv4]\nmethod=auto\n",
    "/etc/NetworkManager/conf.d/site.conf": "[main]\nplugins=keyfile\n",
    "/etc/sysctl.d/50-site.conf": "net.core.somaxconn = 4096\n",
    "/etc/systemd/networkd.conf.d/site.conf": "[Network]\nSpeedMeter=yes\n",
}
# What ours takes over of a rail's port, by manager: refused with the file's name.
REFUSED = {
    "networkd": ("/etc/systemd/network/10-rails.network", "[Match]\nName=ens1np0\n\n[Address]\nAddress=10.9.9.9/24\n"),
    "networkmanager": (
        "/etc/NetworkManager/system-connections/rail.nmconnection",
        "[connection]\nid=rail\ntype=ethernet\ninterface-name=ens1np0\n\n[ipv4]\nmethod=manual\naddress1=10.9.9.9/24\n",
    ),
}


class Life:
    """What a host had before us.

    :param lines: of ip, each made for itself.
    :param named: what a run's refusal must name; empty when it must not refuse.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.named: list[str] = []
        self.policy = self.draw.choice(["prefixes", "default_route"])
        self.earlier = self.draw.random() < 0.4
        self.manager = self.draw.choice(sorted(REFUSED))
        # Most lives are in nobody's way.
        self.crowded = self.draw.random() < 0.5
        self.planned: set[str] = set()
        self.lines += [f"link set ens{rail}np0 up" for rail in range(1, RAILS + 1)]
        for rail in range(1, RAILS + 1):
            self.lines.append(f"address add 10.66.{rail}.5/24 dev ens{rail}np0")
            self.lines.append(f"address add 2001:db8:66:{rail}::5/64 dev ens{rail}np0 nodad")
        for _number in range(self.draw.randint(2, 7)):
            self.draw.choice([self.rule, self.route, self.address])()
        self.files = {path: text for path, text in NEVER_TOUCHED.items() if self.draw.random() < 0.5}
        self.refused_file = self.draw.random() < 0.2
        if self.refused_file:
            self.files.update([REFUSED[self.manager]])

    def number(self, ours: range, others: list[int]) -> tuple[int, bool]:
        inside = self.crowded and self.draw.random() < 0.5
        return (self.draw.choice(ours) if inside else self.draw.choice(others)), inside

    def family(self) -> tuple[int, str, str]:
        """Return a family, one of the host's own addresses on a rail, and a gateway there."""
        rail, family = self.draw.randint(1, RAILS), self.draw.choice([4, 6])
        net = f"10.66.{rail}." if family == 4 else f"2001:db8:66:{rail}::"
        return family, f"{net}5", f"{net}1"

    def rule(self) -> None:
        family, address, _gateway = self.family()
        # No number twice, so that the kernel's own numbering of what is taken away does not matter.
        free = [value for value in range(300, 900, 7) if f" priority {value} " not in str(self.lines)]
        priority, one = self.number(range(10001, 10100), free)
        table, two = self.number(range(1001, 1100), [42, 500, 2005])
        if f" priority {priority} " in str(self.lines):
            return
        what = self.draw.choice(["from {}", "from {} fwmark 0x7", "to {}", "from {} iif eth0", "from {} ipproto tcp"])
        made = self.draw.choice(["", " protocol static", " protocol 186"])
        self.lines.append(f"-{family} rule add {what.format(address)} priority {priority} lookup {table}{made}")
        if one or two:
            self.named.append(f"{priority}: from")

    def route(self) -> None:
        family, _address, gateway = self.family()
        rail = gateway.split(".")[2] if family == 4 else gateway.split(":")[3]
        number = self.draw.randrange(200)
        dst = f"10.{number}.0.0/16" if family == 4 else f"2001:db8:{1000 + number}::/48"
        dst = "10.200.0.0/16" if dst == "10.66.0.0/16" else dst
        end = f"route add {dst} via {gateway} dev ens{rail}np0 proto {self.draw.choice(['static', 'boot'])}"
        if self.draw.random() < 0.5:
            # Those of the rails: of the others the kernel is asked only where a rule leads there.
            table, inside = self.number(range(1001, 1001 + RAILS), [42, 500, 2005])
            self.lines.append(f"-{family} {end} table {table} metric 77")
            if inside:
                self.named.append(f"{dst} via {gateway} dev ens{rail}np0 table {table}")
            return
        metric, inside = self.number(range(101, 200), [7, 100, 200, 4096])
        self.lines.append(f"-{family} {end} metric {metric}")
        if inside:
            self.named.append(f"{dst} via {gateway} dev ens{rail}np0 metric {metric}")

    def address(self) -> None:
        rail = self.draw.randint(1, RAILS)
        kinds = ["second", "far", "planned", "ends"] + (["held"] if self.crowded and not self.earlier else [])
        kind = self.draw.choice(kinds)
        planned = f"172.17.{rail - 1}.2"
        if kind in ("second", "far"):
            line = f"172.17.{rail - 1}.9/27" if kind == "second" else f"192.0.2.{rail}/32"
            self.lines += {f"address add {line} dev ens{rail}np0"} - {*self.lines}
        elif planned not in self.planned and not self.earlier:
            self.planned.add(planned)
            more = " valid_lft 900 preferred_lft 900" if kind == "ends" else ""
            device = "lo" if kind == "held" else f"ens{rail}np0"
            self.lines.append(f"address add {planned}/{32 if kind == 'held' else 27} dev {device}{more}")
            if kind == "held":
                self.named.append(f"the planned address {planned} is held by lo")


def having(host) -> set[str]:
    """Return what a host has but for what the kernel makes by itself, without what may change with a neighbour."""
    dump = host.dump()
    rows = {row.partition(" [")[0] for row in dump["addresses"]}
    rows |= {" ".join(row.split()) for row in dump["rules"]}
    return rows | {row for row in dump["routes"] if "proto kernel" not in row and not row.startswith(("local", "unre"))}


def files_of(root) -> dict[str, str]:
    return {
        f"/{path.relative_to(root)}": path.read_text()
        for path in sorted((root / "etc").rglob("*"))
        if path.is_file() and not path.name.startswith("railops")
    }


def alike(host, module, params):
    """Return what a module did; check mode has said the same, and what is refused has changed nothing."""
    before = host.dump()
    said = host.module(module, params, check=True)
    assert host.dump() == before
    done = host.module(module, params)
    assert done.get("msg") == said.get("msg")
    assert done.get("diff") == said.get("diff")
    if done.get("failed"):
        assert host.dump() == before
    return done


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_not_ours_outlives_us_or_is_refused_by_name(own_files, seed):
    life = Life(seed)
    want = want_of(0, RAILS, policy=life.policy)
    keep = {"root": str(own_files), "manager": life.manager}
    with Fabric("lives", 1, RAILS) as fabric:
        host = fabric.hosts[0]
        if life.earlier:
            old = want_of(4, RAILS, policy=life.draw.choice(["prefixes", "default_route"]))
            host.apply(old)
            assert not host.module(rail_persist, {**old, **keep}).get("failed")
            if life.draw.random() < 0.5:
                host.reboot()
        ours = having(host)
        for line in life.lines:
            host.ip(*line.split())
        theirs = having(host) - ours
        for path, text in life.files.items():
            (own_files / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (own_files / path[1:]).write_text(text)
        done = alike(host, policy_route, want)
        assert bool(done.get("failed")) == bool(life.named), (life.lines, life.named, done)
        for what in life.named:
            assert what in done["msg"], (what, done["msg"])
        if not done.get("failed"):
            ending = {row for row in theirs if "172.17." in row and row.split()[2].partition("/")[0] in life.planned}
            assert theirs <= having(host), theirs - having(host)
            assert not host.apply(want)["changed"]
            kept = alike(host, rail_persist, {**want, **keep})
            assert bool(kept.get("failed")) == life.refused_file, kept
            if life.refused_file:
                assert REFUSED[life.manager][0] in kept["msg"]
            else:
                host.reboot()
                assert not host.apply(want)["changed"]
            stay = theirs - (ending if " valid_lft " in str(life.lines) else set())
            assert theirs <= having(host)
        else:
            stay = theirs
        absent = {**want, "state": "absent"}
        assert not alike(host, policy_route, absent).get("failed")
        assert not alike(host, rail_persist, {**absent, **keep}).get("failed")
        left = having(host)
        assert stay <= left, stay - left
        # And nothing of ours.
        assert not [row for row in left - theirs if "172.17." in row or "fd00:17:" in row or " 143" in row]
        assert {path: text for path, text in files_of(own_files).items() if path in life.files} == life.files

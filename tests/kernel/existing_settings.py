# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random existing settings of a host before the first run, and those that a run must refuse by name.

They are rules, tables, routes and addresses with managed and other numbers; files of networkd, NetworkManager and
sysctl.d, files for a rail's port with settings of their documentation, and drop-ins of managed files.
"""

from __future__ import annotations

import ipaddress
import os
import random
import typing as t
from pathlib import Path

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Host
from ansible_collections.railops.rdma.tests.kernel.test_rail_persist_next_boot import (
    DROP_IN,
    DROP_INS,
    KEYS,
    NETWORKS,
    PROFILE,
    PROFILES,
    SET,
    UNMANAGED,
)

RAILS = 2
PREFIXES = ("172.17.", "fd00:17:")
NEVER_TOUCHED = {
    f"{NETWORKS}/50-site.network": "[Match]\nName=eth0\n\n[Network]\nDHCP=yes\n",
    f"{NETWORKS}/50-site.network.d/more.conf": "[Network]\nDNS=198.51.100.53\n",
    f"{NETWORKS}/90-all.link": "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep\n",
    f"{PROFILES}/site.nmconnection": "[connection]\nid=site\ntype=ethernet\n"
    "interface-name=eth0\n\n[ipv4]\nmethod=auto\n",
    "/etc/NetworkManager/conf.d/site.conf": "[main]\nplugins=keyfile\n",
    "/etc/sysctl.d/50-site.conf": "net.core.somaxconn = 4096\n",
    "/etc/systemd/networkd.conf.d/site.conf": "[Network]\nSpeedMeter=yes\n",
}
PORT = "[Match]\nName=ens1np0\n\n"
SYSCTL = "/etc/sysctl.d/99-site.conf"
# Files for a rail's port that lose nothing, or whose settings are kept: by manager.
KEPT = {
    "networkd": {
        f"{NETWORKS}/50-user.network": f"{PORT}[Network]\nDHCP=ipv4\n",
        DROP_IN: "[Network]\nAddress=10.66.0.5/24\n",
    },
    "networkmanager": {f"{PROFILES}/user.nmconnection": PROFILE.format("") + "[ipv4]\nmethod=auto\n"},
}

# Settings of other programs without a conflict: one in turn.
BESIDE_RAILS = {
    "next hop groups of BGP": """
        nexthop add id 7 via {router} dev {side} proto bgp
        nexthop add id 70 group 7 proto bgp
        route add 203.0.113.0/24 nhid 70 proto bgp metric 20
    """,
    "what Cilium, Calico and Spiderpool have": """
        rule add fwmark 0x200/0xf00 lookup 2004 priority 9
        route add local default dev lo table 2004
        rule add from all lookup local priority 100
        rule add priority 1000 lookup 500
        route add blackhole 10.96.7.0/26 proto 80
    """,
    "rules of a VPN, a VRF and of forwarded packets": """
        rule add iif tun0 lookup 51 priority 500
        rule add l3mdev priority 1000
        rule add iif {side} lookup 300 priority 501
        route add default via {router} dev {side} table 300
    """,
    "a deprecated address": "address add 2001:db8:5::5/64 dev {side} nodad preferred_lft 0",
    "a second address with a neighbor that is set": """
        address add 203.0.113.77/24 dev {side}
        neighbor add 203.0.113.78 lladdr 02:00:00:00:00:78 dev {side} nud permanent
    """,
    "VXLAN": """
        link add vxlan42 type vxlan id 42 dev {side} dstport 4789
        address add 10.42.0.1/16 dev vxlan42
        link set vxlan42 up
    """,
    "wider and deeper routes": """
        route add 172.16.0.0/12 via {router}
        route add 172.17.200.0/24 via {router} advmss 1400
        route add 203.0.113.128/25 via {router} metric 105
    """,
    "a rail's port in promiscuous mode, with another name": """
        link set ens1np0 promisc on
        link property add dev ens1np0 altname storage0
    """,
}


class ExistingSettings:
    """The settings that a host has before the first run.

    :param addresses: the planned one of each rail with its length, IPv4; `side` the management interface, with its
        router.
    :ivar lines: of ip, each made for itself.
    :ivar named: what a run's refusal must name; empty when it must not refuse.
    :ivar files: texts by their paths, and `lost` what the refusal of one of them must name, or nothing.
    """

    def __init__(self, seed: int, addresses: t.Sequence[str], side: str, router: str) -> None:
        self.draw = random.Random(seed)
        self.addresses = [ipaddress.IPv4Interface(text) for text in addresses]
        self.lines: list[str] = []
        self.named: list[str] = []
        self.policy = self.draw.choice(["prefixes", "default_route"])
        self.earlier = self.draw.random() < 0.4
        self.manager = self.draw.choice(sorted(KEPT))
        # Most lives have no conflict.
        self.crowded = self.draw.random() < 0.5
        self.planned: set[str] = set()
        self.lines += [f"link set ens{rail}np0 up" for rail in range(1, RAILS + 1)]
        for rail in range(1, RAILS + 1):
            self.lines.append(f"address add 10.66.{rail}.5/24 dev ens{rail}np0")
            self.lines.append(f"address add 2001:db8:66:{rail}::5/64 dev ens{rail}np0 nodad")
        drop_in = [*BESIDE_RAILS.values()][seed % len(BESIDE_RAILS)].format(side=side, router=router)
        self.lines += [line.strip() for line in drop_in.strip().splitlines()]
        for _number in range(self.draw.randint(2, 7)):
            self.draw.choice([self.rule, self.route, self.address])()
        self.files = {path: text for path, text in NEVER_TOUCHED.items() if self.draw.random() < 0.5}
        if self.draw.random() < 0.3:
            self.files.update([self.draw.choice(sorted(KEPT[self.manager].items()))])
        self.lost = self.draw.choice([self.file, self.last_word, self.drop_in])() if self.draw.random() < 0.3 else ()

    def number(self, ours: range, others: list[int]) -> tuple[int, bool]:
        """Draw a number of ours or another one; return whether it is ours."""
        inside = self.crowded and self.draw.random() < 0.5
        return (self.draw.choice(ours) if inside else self.draw.choice(others)), inside

    def family(self) -> tuple[int, str, str]:
        """Return a family, one of the host's own addresses on a rail, and a gateway there."""
        rail, family = self.draw.randint(1, RAILS), self.draw.choice([4, 6])
        net = f"10.66.{rail}." if family == 4 else f"2001:db8:66:{rail}::"
        return family, f"{net}5", f"{net}1"

    def rule(self) -> None:
        """Draw a rule."""
        family, address, _gateway = self.family()
        # No number twice, so that the kernel's own numbering of what is taken away does not matter.
        free = [value for value in range(300, 900, 7) if f" priority {value} " not in str(self.lines)]
        priority, one = self.number(range(10001, 10009), free)
        table, two = self.number(range(1001, 1009), [42, 500, 2005])
        if f" priority {priority} " in str(self.lines):
            return
        what = self.draw.choice(["from {}", "from {} fwmark 0x7", "to {}", "from {} iif eth0", "from {} ipproto 6"])
        made = self.draw.choice(["", " protocol static", " protocol 186"])
        self.lines.append(f"-{family} rule add {what.format(address)} priority {priority} lookup {table}{made}")
        if one or two:
            self.named.append(f"{priority}: from")

    def route(self) -> None:
        """Draw a route."""
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
        metric, inside = self.number(range(101, 109), [7, 100, 200, 4096])
        self.lines.append(f"-{family} {end} metric {metric}")
        if inside:
            self.named.append(f"{dst} via {gateway} dev ens{rail}np0 metric {metric}")

    def address(self) -> None:
        """Draw an address: beside the planned one, elsewhere, or the planned one itself."""
        rail = self.draw.randint(1, RAILS)
        own = self.addresses[rail - 1]
        kinds = ["second", "far", "planned", "ends"] + (["held"] if self.crowded and not self.earlier else [])
        kind = self.draw.choice(kinds)
        length = own.network.prefixlen
        if kind in ("second", "far"):
            line = f"{own.ip + 7}/{length}" if kind == "second" else f"192.0.2.{rail}/32"
            self.lines += {f"address add {line} dev ens{rail}np0"} - {*self.lines}
        elif str(own.ip) not in self.planned and not self.earlier:
            self.planned.add(str(own.ip))
            more = " valid_lft 900 preferred_lft 900" if kind == "ends" else ""
            device = "lo" if kind == "held" else f"ens{rail}np0"
            self.lines.append(f"address add {own.ip}/{32 if kind == 'held' else length} dev {device}{more}")
            if kind == "held":
                self.named.append(f"the planned address {own.ip} is held by lo")

    def file(self) -> tuple[str, ...]:
        """Draw a file for a rail's port with a setting that ours does not have."""
        words = SET if self.manager == "networkd" else KEYS
        word = self.draw.choice(sorted(words))
        if self.manager == "networkd":
            path, text = f"{NETWORKS}/50-user.network", f"{PORT}{words[word]}\n"
        else:
            zone = "zone=trusted" * ("zone" in word)
            path, text = f"{PROFILES}/user.nmconnection", PROFILE.format(zone) + words[word] + "\n"
        self.files[path] = text
        return path, word

    def last_word(self) -> tuple[str, ...]:
        """Draw a setting of sysctl.d that comes after ours."""
        self.files[SYSCTL] = f"net.ipv4.conf.ens1np0.arp_ignore = {self.draw.choice((0, 8))}\n"
        return f"{SYSCTL} sets net/ipv4/conf/ens1np0/arp_ignore", ""

    def drop_in(self) -> tuple[str, ...]:
        """Draw what takes the port from ours: a drop-in, or what NetworkManager reads of it."""
        if self.manager == "networkd":
            word = self.draw.choice(sorted(DROP_INS))
            self.files[DROP_IN] = DROP_INS[word]
            return DROP_IN, word
        path, text = UNMANAGED[self.draw.choice(["list", "section"])]
        self.files[path] = text
        return f"NetworkManager does not manage it ({path})", ""


class HostWithSettings:
    """A host with a life before us.

    :param root: the folder of its files.
    """

    def __init__(self, host: Host, root: Path, existing: ExistingSettings) -> None:
        self.host, self.root, self.existing = host, root, existing
        self.before: set[str] = set()
        self.untouched = self.files()

    def files(self) -> dict[str, str]:
        found = {}
        for path in (self.root / "etc").rglob("*"):
            name = f"/{path.relative_to(self.root)}"
            if path.is_symlink():
                found[name] = f"-> {os.readlink(path)}"
            elif path.is_file():
                found[name] = path.read_text()
        return found

    def live(self) -> None:
        """Have what it has drawn; what is there of an earlier plan of ours is not its own."""
        ours = having(self.host)
        for line in self.existing.lines:
            self.host.ip(*line.split())
        for path, text in self.existing.files.items():
            there = self.root / path[1:]
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text)
        self.before = having(self.host) - ours

    def keeps(self, story: object = "") -> None:
        """Hold that all of it is there."""
        assert self.before <= having(self.host), f"{self.before - having(self.host)}\n{story}"

    def keeps_afterwards(self, refused: object, story: object = "") -> None:
        """Hold that all of it is there after we have gone, and nothing of ours.

        Unless all of the run was refused, an address that would end is ours: it was set again.
        """
        left, stays = having(self.host), self.before
        if not refused and " valid_lft " in str(self.existing.lines):
            own = self.existing.planned
            stays = {row for row in stays if "172.17." not in row or row.split()[2].partition("/")[0] not in own}
        assert stays <= left, f"{stays - left}\n{story}"
        new = left - self.before
        assert not [row for row in new if any(prefix in row for prefix in PREFIXES) or " 143" in row], story
        assert self.files() == {**self.untouched, **self.existing.files}, story


def having(host: Host) -> set[str]:
    """Return what a host has but for what the kernel makes by itself, without what may change with a neighbor."""
    dump = host.dump()
    rows = {row.partition(" [")[0] for row in dump["addresses"]}
    rows |= {" ".join(row.split()) for row in dump["rules"]}
    rows |= {f"nexthop {row.strip()}" for row in host.ip("nexthop").splitlines()}
    rows |= {f"neighbor {row.strip()}" for row in host.ip("neighbor", "show", "nud", "permanent").splitlines()}
    links = host.ip("link").splitlines()
    rows |= {line.partition(" mtu")[0].strip() for line in links if "PROMISC" in line or "altname" in line}
    return rows | {row for row in dump["routes"] if "proto kernel" not in row and not row.startswith(("local", "unre"))}

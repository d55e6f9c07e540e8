# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts with a drawn life: what was there before, and is not ours, is there after the files, a boot and their removal.

Or it is refused by the file's name before anything is written. What was there is what the real manager makes of the
drawn files on three ports, two of them rails; what is there later is what it makes of them then. Three lives
(RAILOPS_LIVES) of each manager are drawn, the same on each push; RAILOPS_LIVES_SEED draws others.
"""

from __future__ import annotations

import json
import os
import random
import uuid

import pytest

from ansible_collections.railops.rdma.tests.kernel import managers
from ansible_collections.railops.rdma.tests.kernel.managers import boot, needs_managers, wrote

pytestmark = needs_managers

CASES = int(os.environ.get("RAILOPS_LIVES") or 3)
PORTS = ("ens1np0", "ens2np0", "ens3np0")
RAILS = [
    {
        "interface": port,
        "mtu": 4200,
        "addresses": [{"address": f"192.0.2.{32 * n + 2}", "subnet": f"192.0.2.{32 * n}/27"}],
    }
    for n, port in enumerate(PORTS[:2])
]
OURS = {port: [f"192.0.2.{32 * n + 2}/27", "mtu 4200"] for n, port in enumerate(PORTS[:2])}
NETWORKS, PROFILES = "/etc/systemd/network", "/etc/NetworkManager/system-connections"
NAMES = ("0-a", "00-first", "04-user", "10-netplan-zz", "50-user", "90-default", "99-last", "zzz")


class Life:
    """Draws the files of a host."""

    def __init__(self, seed: int, case: int, manager: str) -> None:
        self.draw = random.Random(f"{seed} {case} {manager}")
        self.number = 0
        self.files = getattr(self, manager)()

    def some(self, things, least=0):
        return self.draw.sample(list(things), self.draw.randint(least, len(things)))

    def net(self) -> str:
        self.number += 1
        return f"10.66.{self.number}"

    def network(self, match: str) -> tuple[str, dict[str, str]]:
        """Return a file of networkd, and those of what stands on its interface."""
        net, beside, link, own = self.net(), {}, "", ""
        for kind in self.some(("address", "dhcp", "mtu", "route", "macvlan")):
            link += "MTUBytes=9000\n" if kind == "mtu" else ""
            own += "DHCP=ipv4\n" if kind == "dhcp" else ""
            own += f"Address={net}.5/24\n" if kind in ("address", "route") else ""
            # Of one route over several ports the kernel has that of whichever came first.
            if kind == "route" and match != "Name=en*":
                own += f"\n[Route]\nDestination=10.99.{self.number}.0/24\nGateway={net}.1\n\n[Network]\n"
            if kind == "macvlan" and "*" not in match:
                name = f"up{self.number}"
                own += f"MACVLAN={name}\n"
                beside[f"{NETWORKS}/60-{name}.netdev"] = f"[NetDev]\nName={name}\nKind=macvlan\n"
                beside[f"{NETWORKS}/60-{name}.network"] = f"[Match]\nName={name}\n\n[Network]\nAddress={net}.77/32\n"
        return f"[Match]\n{match}\n\n[Link]\n{link}\n[Network]\n{own}", beside

    def match(self) -> str:
        number = self.draw.randint(1, 3)
        mac = managers.mac(number)
        return self.draw.choice((f"Name={PORTS[number - 1]}", f"Name=ens{number}*", "Name=en*", f"MACAddress={mac}"))

    def networkd(self) -> dict[str, str]:
        found = {}
        for name in self.some(NAMES[:6], 1):
            text, beside = self.network(self.match())
            found.update({f"{NETWORKS}/{name}.network": text, **beside})
            if self.draw.random() < 0.3:
                found[f"{NETWORKS}/{name}.network.d/user.conf"] = f"[Network]\nAddress={self.net()}.5/24\n"
        return found

    def netplan(self) -> dict[str, str]:
        found = {}
        for name in self.some(NAMES[3:], 1)[:3]:
            entries = {}
            for number in self.some((1, 2, 3), 1):
                net = self.net()
                one = {
                    "addresses": {"addresses": [f"{net}.5/24"]},
                    "dhcp4": {"dhcp4": True},
                    "mtu": {"mtu": 9000},
                    "routes": {
                        "addresses": [f"{net}.5/24"],
                        "routes": [{"to": f"10.99.{self.number}.0/24", "via": f"{net}.1"}],
                    },
                }
                settings = {key: value for kind in self.some(one, 1) for key, value in one[kind].items()}
                kind = self.draw.choice(("own", "own", "name", "all", "mac"))
                match = {
                    "name": {"name": f"ens{number}*"},
                    "all": {"name": "en*"},
                    "mac": {"macaddress": managers.mac(number)},
                }
                if kind == "all":
                    settings.pop("routes", None)
                entry = PORTS[number - 1] if kind == "own" else f"{self.draw.choice('atz')}{self.number}"
                entries[entry] = {**settings, **({"match": match[kind]} if kind in match else {})}
            found[f"/etc/netplan/{name}.yaml"] = json.dumps({"network": {"version": 2, "ethernets": entries}})
        if self.draw.random() < 0.4:
            found[f"{NETWORKS}/{self.draw.choice(NAMES[:3])}.network"] = self.network(self.match())[0]
        if self.draw.random() < 0.3:
            beside = f"[Network]\nAddress={self.net()}.5/24\n"
            found[f"{NETWORKS}/10-netplan-{self.draw.choice(PORTS)}.network.d/user.conf"] = beside
        return found

    def networkmanager(self) -> dict[str, str]:
        """Return profiles that are each for one port, with a priority each: between equals the manager chooses."""
        found = {}
        for number, port in enumerate(PORTS, 1):
            for priority in self.some((-5, 0, 100, 500, 999))[:2]:
                net, kinds = self.net(), self.some(("address", "mtu", "route", "mac"), 1)
                bound = f"interface-name={port}\n" if "mac" not in kinds else ""
                text = f"[connection]\nid=p{self.number}\nuuid={uuid.uuid5(uuid.NAMESPACE_DNS, f'p{self.number}')}\n"
                text += f"type=ethernet\n{bound}autoconnect-priority={priority}\n\n[ethernet]\n"
                text += f"mac-address={managers.mac(number)}\n" if "mac" in kinds else ""
                text += "mtu=9000\n" if "mtu" in kinds else ""
                static = f"method=manual\naddress1={net}.5/24\n"
                text += "\n[ipv4]\n" + (static if {"address", "route"} & set(kinds) else "method=auto\n")
                text += f"route1=10.99.{self.number}.0/24,{net}.1\n" if "route" in kinds else ""
                found[f"{PROFILES}/p{self.number}.nmconnection"] = f"{text}\n[ipv6]\nmethod=ignore\n"
        return found


def theirs(links: dict, *, without=()) -> dict[str, list[str]]:
    """Return what others have set on a host's links; an MTU of 1500 is what a link has by itself."""
    return {
        name: kept
        for name, held in links.items()
        if not name.startswith("far") and name not in without
        if (kept := [item for item in held if item not in ("mtu 1500", "down")]) and name != "lo"
    }


def missing(expected: dict, links: dict) -> dict[str, set[str]]:
    return {name: left for name, held in expected.items() if (left := set(held) - set(links.get(name, ())))}


@pytest.mark.parametrize("manager", managers.DAEMON)
@pytest.mark.parametrize("case", range(CASES))
def test_whatever_was_there_stays_or_is_refused_by_name(tmp_path, seed, case, manager):
    first = seed("RAILOPS_LIVES_SEED")
    files = Life(first, case, manager).files
    story = f"seed {first}, case {case}, {manager}: {json.dumps(files, indent=1)}"
    persist = {"do": "persist", "manager": manager, "want": {"rails": RAILS}}
    over = {**persist, "want": {"rails": RAILS, "take_over": list(PORTS[:2])}}
    with managers.life(tmp_path, PORTS) as live:
        looks = [{**persist, "check": True}, {**over, "check": True}]
        before, was, plain, taken = live(wrote(files), boot(manager), *looks)
        for step in (plain, taken):
            if "failed" in step:
                assert any(path in step["failed"] for path in files), f"{step['failed']}\n{story}"
                assert step["files"] == before["files"], story
        if "failed" in taken:
            assert "failed" in plain, story
            return
        given_up = "failed" in plain
        had = theirs(was["links"])
        # What was given up on purpose is what the rails' ports had, and what stands on them.
        kept = {name: held for name, held in had.items() if not given_up or name == PORTS[2]}
        expected = {name: [*kept.get(name, ()), *OURS.get(name, ())] for name in {*kept, *OURS}}
        absent = {**persist, "want": {"state": "absent"}}
        done = live(wrote(files), over if given_up else persist, boot(manager, expected), absent, boot(manager, had))
        _written, made, now, gone, back = done
        assert "failed" not in made, story
        assert missing(expected, now["links"]) == {}, f"{now['links']}\n{story}"
        assert gone["files"] == before["files"], story
        assert missing(had, back["links"]) == {}, f"{back['links']}\n{story}"
        assert not any(address in held for address in ("192.0.2.2/27",) for held in back["links"].values()), story

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof of paths against a oracle that sends the packets: no false green, no false red, the right cause.

RAILOPS_PATH_CASES cases (20), the same on each push; RAILOPS_PATH_SEED draws others.
"""

from __future__ import annotations

import contextlib
import os
import random

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.breaks import OF_PATHS, Breaks
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside, options
from ansible_collections.railops.rdma.tests.kernel.oracle import End, Flow, Oracle, flows_of

RAILS, HOSTS, TOS = 3, 3, 0x68
# A planted default route on a rail is no reason to stop here.
QOS = {"priority": 3, "dscp": TOS >> 2, "force": True}
CASES = int(os.environ.get("RAILOPS_PATH_CASES", "20"))
WANTS = [options(slot, RAILS) for slot in range(HOSTS)]
for rail in (rail for want in WANTS for rail in want["rails"]):
    rail |= {"table": 1000 + rail["index"], "rule_priority": 10000 + rail["index"]}


def neighbors_of(number: int) -> list[dict]:
    """The next host, and the one after it as if it were in another zone."""
    beside, far = ((number + step) % HOSTS for step in (1, 2))
    return [
        {"host": f"node{beside + 1}", "rails": WANTS[beside]["rails"]},
        {"host": f"node{far + 1}", "zone": "su2", "rails": WANTS[far]["rails"]},
    ]


def audit(fabric: Fabric, number: int) -> list[dict]:
    more = {"neighbors": neighbors_of(number), "settings": {"roce_qos": QOS}}
    found = fabric.hosts[number].audit(WANTS[number], "paths", "qos", **more)["checks"]
    return [check for check in found if check["id"] == "route_path"]


@pytest.fixture(scope="module")
def fabric():
    with Fabric("paths", HOSTS, RAILS) as made:
        inside(made.core, _strict_leaves)
        for host in made.hosts:
            host.sysctl("net/ipv6/conf/all/accept_redirects", "0")
        made.converge(WANTS)
        made.settle()
        yield made


def _strict_leaves() -> None:
    # A leaf answers for its own addresses only, and sends no redirects.
    for key, value in (("arp_ignore", "1"), ("send_redirects", "0")):
        for name in ("all", *(f"leaf{number}" for number in range(1, RAILS + 1))):
            with open(f"/proc/sys/net/ipv4/conf/{name}/{key}", "w") as stream:
                stream.write(value)


def ends_of(number: int, macs: dict[str, str]) -> list[End]:
    """The rails' addresses of a host, given the MAC address of each gateway."""
    return [
        End(f"node{number + 1}", rail["name"], rail["interface"], item["address"], port, macs[item["gateway"]])
        for rail in WANTS[number]["rails"]
        for item, port in ((item, f"h{number + 1}r{rail['index']}") for item in rail["addresses"])
    ]


def ways(number: int, macs: dict[str, str]) -> list[Flow]:
    """From every rail of a host to its gateway and to every rail of others."""
    others = [end for other in range(HOSTS) if other != number for end in ends_of(other, macs)]
    gateways = [
        End("", rail["name"], "", item["gateway"]) for rail in WANTS[number]["rails"] for item in rail["addresses"]
    ]
    made = []
    for end in ends_of(number, macs):
        near = (end.rail, f"rail{int(end.rail[4:]) % RAILS + 1}")
        made += flows_of(end, [*(leaf for leaf in gateways if leaf.rail == end.rail), *others], near)
    return made


def wrong_of(checks: list[dict]) -> dict[tuple[str, int], str]:
    return {(item["rail"], item["family"]): item["cause"] for item in checks if item["status"] == "deviation"}


def test_random_deviations_are_found_where_the_model_finds_them(fabric, seed):
    first = seed("RAILOPS_PATH_SEED")
    draw = random.Random(first)
    spaces = {f"node{host.number}": host.name for host in fabric.hosts}
    plans = dict(zip(spaces, WANTS, strict=True))
    breaks = Breaks(first, spaces, fabric.core, plans, "h{}r{}", ("eth0", "198.51.100.254"))
    oracle = Oracle(spaces, fabric.core, rounds=1, tos=TOS)
    plain = [host.dump() for host in fabric.hosts]
    for number in range(HOSTS):
        assert wrong_of(audit(fabric, number)) == {}
    seen = {"deviates": 0, "as planned": 0}
    for case in range(CASES):
        number = draw.randrange(HOSTS)
        host, done = fabric.hosts[number], []
        for kind in draw.sample(OF_PATHS, draw.randint(2, 5)):
            what = breaks.draw_one(kind, f"node{number + 1}")
            # What another one took away cannot be changed any more.
            with contextlib.suppress(AssertionError):
                what.do()
                done.append(what)
        story = f"seed {first}, case {case}: {'; '.join(map(str, done))}"
        lost: dict[tuple[str, int], list[str]] = {}
        for way, came in oracle.lost(ways(number, breaks.macs)).items():
            place = (way.source.rail, 6 if ":" in way.source.address else 4)
            lost.setdefault(place, []).append(f"{way.target.address} {way.how}: {came}")
        found = wrong_of(audit(fabric, number))
        assert sorted(found) == sorted(lost), f"found {found}\ntruth {lost}\n{story}"
        words = [word for what in done for word in what.words]
        for place, cause in found.items():
            assert any(word in cause for word in words), f"{story}\n{place}: {cause}"
        beside = (number + 1) % HOSTS
        assert wrong_of(audit(fabric, beside)) == {}, story
        seen["deviates" if found else "as planned"] += 1
        for what in reversed(done):
            what.undo(check=False)
        result = host.module(policy_route, WANTS[number])
        assert not result.get("failed"), f"{story}\n{result.get('msg')}"
        assert host.dump() == plain[number], story
    print(seen)

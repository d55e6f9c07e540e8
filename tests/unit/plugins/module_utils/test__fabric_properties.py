# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of every plan, over thousands of random fabrics.

RAILOPS_FABRICS says over how many: 2,000 by default, 100,000 in the long profile. What is checked is checked on the
files, by `plan_checker`, which shares no code with the planner, and by the admission validator.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils import _admission
from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.tests.unit import plan_checker
from ansible_collections.railops.rdma.tests.unit.fabrics import plan

FABRICS = int(os.environ.get("RAILOPS_FABRICS", "2000"))
COMMON = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
    "derandomize": FABRICS <= 2000,
}
LOADER = plan_checker.LOADER


@st.composite
def supernets(draw):
    families = draw(st.sampled_from([(4,), (4,), (6,), (4, 6)]))
    nets = {4: f"10.0.0.0/{draw(st.integers(12, 19))}", 6: f"fd00:0::/{draw(st.sampled_from([40, 48, 52]))}"}
    return families, [nets[family] for family in families]


def shifted(net, zone):
    """The same network for another zone: at most a /12, and a /32, apart."""
    return net.replace("10.0.", f"10.{zone * 16}.").replace("fd00:0:", f"fd00:{zone}:")


@st.composite
def reserved(draw, nets):
    """A few addresses and ranges near the beginning of the networks, where they hurt."""
    items = []
    for net in nets:
        head = net.partition("/")[0]
        for _number in range(draw(st.integers(0, 2))):
            low = draw(st.integers(0, 700))
            high = low + draw(st.integers(0, 12))
            if ":" in head:
                items.append(f"{head}{low:x}-{head}{high:x}")
            else:
                base = head.rsplit(".", 2)[0]
                items.append(f"{base}.{low // 256}.{low % 256}-{base}.{high // 256}.{high % 256}")
    return items


@st.composite
def fabrics(draw):
    """A fabric as people may declare it, and its nodes."""
    mode = draw(st.sampled_from(["exclusive", "exclusive", "shared", "shared", "flat"]))
    network = "infiniband" if mode == "flat" else draw(st.sampled_from(["roce", "roce", "infiniband"]))
    attachment = draw(
        st.sampled_from(["ib-sriov", "ipoib"] if network == "infiniband" else ["macvlan", "ipvlan", "sriov"])
    )
    families, nets = draw(supernets())
    slots = draw(st.integers(1, 9))
    raw = {
        "mode": mode,
        "network": network,
        "attachment": attachment,
        "supernets": nets,
        "max_nodes": slots,
        "rails": [{"interface": f"eth{number}"} for number in range(draw(st.integers(1, 4)))],
        "node_prefix": {"ipv4": draw(st.integers(24, 29)), "ipv6": draw(st.sampled_from([64, 112, 120, 124]))},
        "rail_prefix": {"ipv4": draw(st.integers(21, 27)), "ipv6": draw(st.sampled_from([64, 112, 120]))},
        "first_block": draw(st.integers(0, 3)),
        "gateway": draw(st.sampled_from(["first", "first", "last", "none", 2, 5, -2, -4])),
        "host_addresses": draw(st.sampled_from(["start", "end"])),
        "node_pods": draw(st.sampled_from([None, None, None, 1, 2])),
        "foreign_networks": ["192.168.0.0/16", "fd99::/32"],
    }
    explicit = mode == "shared" and draw(st.booleans())
    if mode == "flat":
        small = draw(st.sampled_from([8, 10]))
        nets = raw["supernets"] = [f"{net.partition('/')[0]}/{(128 if ':' in net else 32) - small}" for net in nets]
    if explicit:
        raw["rails"][-1]["subnets"] = [{4: "10.200.4.0/22", 6: "fd77::/64"}[family] for family in families]
    groups = [] if explicit else [f"group{number}" for number in range(draw(st.sampled_from([0, 0, 1, 2, 3])))]
    raw["zones"] = [
        {"name": f"z{number}", "group": group, "supernets": [shifted(net, number) for net in nets]}
        for number, group in enumerate(groups)
    ]
    nets = [net for zone in raw["zones"] for net in zone["supernets"]] or nets
    raw["reserved"] = draw(reserved(nets))
    count = draw(st.integers(1, slots))
    nodes = [{"host": f"n{number}"} for number in range(1, count + 1)]
    for node in nodes:
        if groups:
            node["groups"] = [draw(st.sampled_from(groups))]
    return raw, nodes


def planned(raw, nodes, lock=None):
    """Plan, or None when this fabric is refused: then it says what and how to mend it."""
    try:
        return plan(raw, nodes, lock, report=False)
    except InputError as exc:
        error = exc
    assert error.problems
    assert all(problem.place and problem.problem and problem.fix for problem in error.problems)
    return None


def objects(made):
    for path in ("ippools", "multusconfigs", "reservedips", "sriovpolicies"):
        yield from (obj for obj in yaml.load_all(made.files[f"cluster/{path}.yaml"], Loader=LOADER) if obj)


def test_no_address_is_wrong_or_given_twice():
    seen = Counter()

    @given(fabrics())
    @settings(max_examples=FABRICS * 2 // 3, **COMMON)
    def check(case):
        raw, nodes = case
        made = planned(raw, nodes)
        seen["planned" if made else "refused"] += 1
        if made is None:
            return
        wrong = plan_checker.check(
            made.files, mode=raw["mode"], reserved=raw["reserved"], foreign=raw["foreign_networks"]
        )
        assert wrong == []
        assert [str(problem) for problem in _admission.check(objects(made))] == []

    check()
    assert seen["planned"] > 5 * seen["refused"]


@given(fabrics(), st.integers(0, 1 << 30))
@settings(max_examples=FABRICS // 3, **COMMON)
def test_nothing_renumbers_anybody(case, seed):
    raw, nodes = case
    made = planned(raw, nodes)
    if made is None:
        return
    chance = random.Random(seed)

    again = plan(raw, nodes, made.lock, report=False)
    assert again.files == made.files

    shuffled = chance.sample(nodes, len(nodes))
    assert plan(raw, shuffled, made.lock, report=False).files == made.files

    renamed = {**raw, "zones": [{**zone, "group": zone["group"].replace("group", "hall")} for zone in raw["zones"]]}
    moved = [{**node, "groups": [name.replace("group", "hall") for name in node.get("groups", ())]} for node in nodes]
    assert plan(renamed, moved, made.lock, report=False).files == made.files

    gone = chance.choice(nodes)["host"]
    left = [node for node in nodes if node["host"] != gone] or [{**nodes[0], "host": "other"}]
    fresh = {**chance.choice(nodes), "host": "n0-new"}
    smaller = planned({**raw, "retire": [gone]}, left, made.lock)
    grown = planned({**raw, "retire": [gone]}, [*left, fresh], smaller.lock) if smaller else None
    for later in (smaller, grown):
        if later is None:
            continue
        for path, text in made.files.items():
            if path.startswith("hosts/") and path != f"hosts/{gone}.json" and path in later.files:
                assert later.files[path] == text
        assert (
            plan_checker.check(later.files, mode=raw["mode"], reserved=raw["reserved"], foreign=raw["foreign_networks"])
            == []
        )
    if grown:
        seats = json.loads(grown.lock)["nodes"]
        places = [(seat["zone"], seat["slot"]) for seat in seats.values()]
        assert len(places) == len(set(places))
        assert seats[gone] == {**json.loads(made.lock)["nodes"][gone], "retired": True}

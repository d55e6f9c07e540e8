# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""fabric_attachment none: rails for hosts only. NVIDIA's host links, number by number; no file and no word of pods."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.diff import View, diff_of, summary_of
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.host_plans import host_plans
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.store import Change
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, plan, rails

PODS = re.compile(r"(?i)\bpods?\b|pools?\b|spiderpool|_pods?\b|pod_")
FULL = {"attachment": "none", "node_prefix": 31, "gateway": "last"}


def shown(path, text):
    """Return what a person reads of a file: of the page the texts of its data."""

    def texts(value):
        if isinstance(value, (dict, list)):
            return [line for item in (value.values() if isinstance(value, dict) else value) for line in texts(item)]
        return [str(value)]

    if path != "report.html":
        return text
    return "\n".join(texts(json.loads(re.search(r'id="data">(.*?)</script>', text)[1])))


def words_of_pods(files):
    return [f"{path}: {hit.group(0)}" for path, text in files.items() for hit in PODS.finditer(shown(path, text))]


def links(made, host, family=4):
    """Rail by rail (subnet, host's address, leaf's address)."""
    found = [made.address(host, rail, family) for rail in range(1, len(made.plan.fabric.rails) + 1)]
    return [(one["subnet"], one["address"], one["gateway"]) for one in found]


# --- NVIDIA's schemes (k8s-launch-kit, allocateIPv4HostLeaf): the leaf is odd, the host even --------------------------


def nvidia(nets, nodes, **more):
    """Plan nodes by their slots, with the networks of the rails."""
    raw = {"mode": "exclusive", "max_nodes": 8192, **FULL, **more}
    raw["rails"] = [{"interface": f"eth{rail}", "subnets": [net]} for rail, net in enumerate(nets)]
    return plan(raw, [{"host": name, "slot": slot} for name, slot in nodes.items()], report=False)


def two_tiers(unit, host):
    return unit * 128 + host


def test_links_of_two_tiers_are_nvidias():
    nets = [f"172.{16 + 2 * rail}.0.0/15" for rail in range(8)]
    places = {"a": (0, 0), "b": (0, 1), "c": (1, 0), "d": (5, 77), "e": (63, 127)}
    made = nvidia(nets, {name: two_tiers(*place) for name, place in places.items()})

    assert links(made, "a")[0] == ("172.16.0.0/31", "172.16.0.0", "172.16.0.1")
    for name, (unit, host) in places.items():
        assert links(made, name) == [
            (
                f"172.{16 + 2 * rail}.{unit}.{2 * host}/31",
                f"172.{16 + 2 * rail}.{unit}.{2 * host}",
                f"172.{16 + 2 * rail}.{unit}.{2 * host + 1}",
            )
            for rail in range(8)
        ]
    # A port's routes: all rails are one /12.
    assert made.slice("a")["rdma_prefixes"] == ["172.16.0.0/12"]


def test_links_of_three_tiers_are_nvidias():
    nets = [f"10.{rail << 5}.0.0/11" for rail in range(8)]
    places = {"a": (0, 0, 0), "b": (0, 3, 9), "c": (1, 0, 0), "d": (2, 63, 127)}
    slots = {name: (pod * 256 + unit) * 128 + host for name, (pod, unit, host) in places.items()}
    made = nvidia(nets, slots, max_nodes=100_000)

    for name, (pod, unit, host) in places.items():
        second = [(rail << 5) + pod for rail in range(8)]
        assert links(made, name) == [
            (f"10.{net}.{unit}.{2 * host}/31", f"10.{net}.{unit}.{2 * host}", f"10.{net}.{unit}.{2 * host + 1}")
            for net in second
        ]
    assert made.slice("a")["rdma_prefixes"] == ["10.0.0.0/8"]


def test_links_of_ipv6_are_nvidias():
    nets = [f"fd02:0:{rail:x}00::/40" for rail in range(8)]
    places = {"a": (0, 0), "b": (0, 255), "c": (63, 127)}
    slots = {name: unit * 256 + host for name, (unit, host) in places.items()}
    made = nvidia(nets, slots, max_nodes=65_536, gateway={"ipv6": 2}, node_prefix={"ipv6": 64})

    assert links(made, "b", 6)[1] == ("fd02:0:100:ff::/64", "fd02:0:100:ff::1", "fd02:0:100:ff::2")
    assert links(made, "c", 6) == [
        (net, f"{net[:-3]}1", f"{net[:-3]}2")
        for net in (f"fd02:0:{rail:x}00:3f7f::/64" if rail else "fd02:0:0:3f7f::/64" for rail in range(8))
    ]


def test_families_have_gateways_of_their_own():
    raw = {"supernets": ["172.16.0.0/16", "fd00:16::/48"], "gateway": {"ipv4": "last", "ipv6": 2}}
    made = plan(exclusive(rails=rails(1), **{**FULL, **raw}), hosts(2), report=False)

    assert links(made, "node2") == [("172.16.0.2/31", "172.16.0.2", "172.16.0.3")]
    assert links(made, "node2", 6) == [("fd00:16:0:1::/64", "fd00:16:0:1::1", "fd00:16:0:1::2")]
    assert json.loads(made.lock)["frozen"]["gateway"] == {"ipv4": "last", "ipv6": 2}


@pytest.mark.parametrize(
    ("gateway", "want"),
    [
        ("first", [("172.17.0.2/31", "172.17.0.3", "172.17.0.2"), ("fd00::2/127", "fd00::3", "fd00::2")]),
        ("last", [("172.17.0.2/31", "172.17.0.2", "172.17.0.3"), ("fd00::2/127", "fd00::2", "fd00::3")]),
        ("none", [("172.17.0.2/31", "172.17.0.3", None), ("fd00::2/127", "fd00::3", None)]),
    ],
)
def test_a_link_has_two_addresses(gateway, want):
    raw = {"supernets": ["172.17.0.0/16", "fd00::/64"], "node_prefix": {"ipv4": 31, "ipv6": 127}}
    made = plan(exclusive(rails=rails(1), **{**FULL, **raw, "gateway": gateway}), hosts(2), report=False)

    assert [*links(made, "node2"), *links(made, "node2", 6)] == want


# --- no pods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "count"),
    [
        pytest.param(exclusive(max_nodes=1024, **FULL), 1024, id="1024-links"),
        pytest.param(exclusive(attachment="none", node_prefix=30), 3, id="a-switch-and-a-host"),
        pytest.param(exclusive(attachment="none", mode="shared", rail_prefix=24), 3, id="shared"),
        pytest.param(
            {**exclusive(network="infiniband", attachment="none", mode="flat"), "supernets": []}, 3, id="lid-only"
        ),
        pytest.param(exclusive(network="infiniband", attachment="none", gateway="none"), 3, id="ipoib"),
    ],
)
def test_a_plan_has_no_file_and_no_word_of_pods(raw, count):
    nodes = hosts(count)
    nodes[0]["interfaces"] = {"rail1": "eth100"}
    made = plan(raw, nodes)
    summary = summary_of(made.plan, made.allocation)
    change = Change({path: text for path, text in made.files.items() if path != "plan.json"}, (), "")
    view = View(made.plan.fabric, {})
    diff = diff_of(View(None, {}), view, change, {}, host_plans(made.plan), full=True)

    assert made.plan.warnings == ()
    assert words_of_pods({**made.files, "terminal": "\n".join(summary["text"]), "diff": json.dumps(diff)}) == []
    assert not [path for path in made.files if path.startswith("cluster/")]
    assert "rdma_mode" not in made.slice("node2")


def test_a_fabric_can_lose_its_pods_and_keeps_its_addresses():
    before = plan(exclusive(), hosts(3))
    after = plan(exclusive(attachment="none"), hosts(3), before.lock)

    assert [after.slice("node3")["rails"], after.slice("node3")["slot"]] == [before.slice("node3")["rails"], 2]
    assert plan(exclusive(), hosts(3), after.lock).lock == before.lock

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import sys

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok
from ansible_collections.railops.rdma.plugins.module_utils._cluster.gate import judgments
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes

CX7 = "15b3:1021:15b3:0041"


RAILS = ["rail1", "rail2"]


def merged(results):
    return merge.merge("d", ({"plan_digest": "d", **row} for row in results), {}, rails=RAILS)


def compare_fleet(results):
    """Return what is not ok of each host, in the order of these."""
    hosts = merged(results)["hosts"]
    return [{"host": row["host"], "checks": hosts[row["host"]]["checks"]} for row in results]


def port(**more):
    usual = {"pci_id": CX7, "firmware": "28.40.1000", "driver": "mlx5_core", "version": "24.10", "speed": 400000}
    return {**usual, **more}


def result(host, *checks, **rails):
    rails = {"rail1": port(), "rail2": port(), **rails}
    macs = {rail: f"00:00:5e:00:53:{int(host[4:]):x}{rail[4:]}" for rail in rails}
    return {"host": host, "checks": list(checks), "facts": {"health": {"rails": rails}, "macs": macs}}


def found(*results):
    return {
        made["host"]: [(c["id"], c["rail"], c["status"]) for c in made["checks"]] for made in compare_fleet(results)
    }


def test_a_fleet_that_is_alike_adds_nothing():
    assert found(*(result(f"node{number}") for number in range(1, 5))) == {
        f"node{number}": [] for number in range(1, 5)
    }


def test_a_card_unlike_its_peers_is_named_against_them():
    others = [result(f"node{number}") for number in range(1, 9)]
    made = compare_fleet([*others, result("node9", rail2=port(firmware="28.39.1002", version="24.07", speed=200000))])
    checks = {check["id"]: check for check in made[-1]["checks"]}
    assert [len(item["checks"]) for item in made[:-1]] == [0] * 8
    assert checks["fleet_firmware"]["status"] == checks["fleet_driver"]["status"] == "warning"
    assert checks["fleet_firmware"]["cause"] == f"17 of 18 ports of {CX7} have 28.40.1000; this one has 28.39.1002."
    assert checks["fleet_driver"]["observed"] == "mlx5_core 24.07"
    slow = checks["fleet_speed"]
    assert (slow["status"], slow["rail"], slow["planned"], slow["observed"]) == (
        "deviation",
        "rail2",
        "400 Gb/s",
        "200 Gb/s",
    )


def test_other_models_and_rails_of_another_speed_are_no_peers():
    fleet = [
        result(f"node{number}", rail2=port(pci_id="14e4:1760:14e4:9110", firmware="231.1", speed=200000))
        for number in range(1, 4)
    ]
    assert set(map(tuple, found(*fleet).values())) == {()}
    fleet = [result(f"node{number}", rail2=port(speed=200000)) for number in range(1, 4)]
    assert set(map(tuple, found(*fleet).values())) == {()}


def test_a_faster_port_warns_and_half_a_fleet_is_measured_by_the_newest():
    halves = [result("node1"), result("node2", rail1=port(speed=800000))]
    assert found(*halves) == {"node1": [("fleet_speed", "rail1", "deviation")], "node2": []}
    most = [result("node1"), result("node2"), result("node3", rail1=port(speed=800000))]
    assert found(*most)["node3"] == [("fleet_speed", "rail1", "warning")]


def test_a_duplicates_holder_is_named():
    own = deviation("address_duplicate", "nobody", "00:00:5e:00:53:21", "somebody answers.", "", rail="rail1", family=4)
    (made, _other) = compare_fleet([result("node1", own, ok("network_link", "up", "up")), result("node2")])
    assert made["checks"][0]["cause"] == "somebody answers. It is rail1 of node2."
    assert [check["status"] for check in made["checks"]] == ["deviation"]
    stranger = deviation("address_duplicate", "nobody", "00:00:5e:00:53:99", "somebody answers.", "", rail="rail1")
    assert compare_fleet([result("node1", stranger)])[0]["checks"][0]["cause"] == "somebody answers."


def test_a_duplicate_without_a_cause_names_its_holder():
    own = {**deviation("address_duplicate", "none", "00:00:5e:00:53:21", "", "", rail="rail1"), "cause": None}
    (made, _other) = compare_fleet([result("node1", own), result("node2")])
    assert made["checks"][0]["cause"] == "It is rail1 of node2."


def test_one_mac_address_at_two_hosts_is_named_on_both():
    fleet = [result("node1"), result("node2"), result("node3")]
    fleet[2]["facts"]["macs"]["rail2"] = fleet[0]["facts"]["macs"]["rail1"].upper()
    for hosts in (fleet, fleet[::-1]):
        made = {item["host"]: item["checks"] for item in compare_fleet(hosts)}
        named = {(host, check["rail"]): check["cause"] for host, checks in made.items() for check in checks}
        assert set(named) == {("node1", "rail1"), ("node3", "rail2")}
        assert named["node1", "rail1"].startswith("rail2 of node3 has the same MAC address")
        assert named["node3", "rail2"].startswith("rail1 of node1 has the same MAC address")
        assert {(check["id"], check["status"]) for checks in made.values() for check in checks} == {
            ("fleet_mac", "deviation")
        }


def test_rails_of_one_port_may_share_its_mac_address():
    fleet = [result("node1"), result("node2")]
    fleet[0]["facts"]["macs"]["rail2"] = fleet[0]["facts"]["macs"]["rail1"]
    assert found(*fleet) == {"node1": [], "node2": []}


def test_a_holder_whose_mac_address_another_has_too_is_not_blamed_as_the_only_one():
    own = deviation("address_duplicate", "nobody", "00:00:5e:00:53:21", "somebody answers.", "", rail="rail1")
    fleet = [result("node1", own), result("node2"), result("node3")]
    fleet[2]["facts"]["macs"]["rail2"] = "00:00:5e:00:53:21"
    (check,) = (item for item in compare_fleet(fleet)[0]["checks"] if item["id"] == "address_duplicate")
    assert check["cause"].endswith("It is rail1 of node2 and rail2 of node3.")


def shared(number):
    """Return hosts that all claim one MAC address, which each of them also found at its own address."""
    own = deviation("address_duplicate", "none", "00:00:5e:00:53:ff", "It is answered.", "fix", rail="rail1")
    return [
        {"host": f"node{n}", "checks": [own], "facts": {"macs": {"rail1": "00:00:5e:00:53:ff"}}} for n in range(number)
    ]


def test_an_address_that_every_host_claims_takes_work_and_text_in_proportion():
    def cost(number):
        calls = 0

        def count(_frame, _event, _argument):
            nonlocal calls
            calls += 1

        fleet = shared(number)
        sys.setprofile(count)
        made = compare_fleet(fleet)
        sys.setprofile(None)
        return calls, len(json.dumps(made))

    for few, many in zip(cost(400), cost(1600), strict=True):
        assert many < 5 * few


def test_of_many_places_five_are_named():
    made = compare_fleet(shared(20))[0]["checks"]
    texts = {check["id"]: check["cause"] for check in made}
    named = "rail1 of node1 and rail1 of node10 and rail1 of node11 and rail1 of node12 and rail1 of node13"
    assert texts["fleet_mac"].startswith(f"{named} and 14 more has the same MAC address")
    assert texts["address_duplicate"].endswith("rail1 of node3 and rail1 of node4 and 15 more.")


def test_reports_of_other_hosts_do_not_close_the_gate():
    fleet = [result(f"node{n}") for n in range(1, 5)]
    fleet[3]["facts"]["macs"]["rail1"] = fleet[0]["facts"]["macs"]["rail1"]
    fleet[3]["facts"]["health"]["rails"] = {"rail1": port(speed=800000), "rail2": port(speed=1)}
    made = merged(fleet)
    assert made["hosts"]["node1"]["rails"] == {"rail1": "deviation", "rail2": "skipped"}
    assert made["hosts"]["node1"]["status"] == made["hosts"]["node4"]["status"] == "deviation"
    assert set(judgments(made).values()) == {""}


def test_a_mac_address_that_a_host_claims_is_attributed_to_neither_end():
    """Not before two others have it too, or a test over the rail decides."""
    fleet = [result(f"node{n}") for n in range(1, 5)]
    fleet[3]["facts"]["macs"]["rail1"] = fleet[0]["facts"]["macs"]["rail1"]
    made = with_causes(merged(fleet), {})
    (card,) = made["causes"]
    assert card["sentence"] == "between node1 and node4 rail1: both report the MAC address 00:00:5e:00:53:11."
    assert card["undecided"]
    assert {name: (entry["status"], entry["rails"]["rail1"]) for name, entry in made["hosts"].items()} == {
        "node1": ("pass", "affected"),
        "node2": ("pass", "skipped"),
        "node3": ("pass", "skipped"),
        "node4": ("pass", "affected"),
    }
    fails = deviation("ping_neighbor", "answer", "no answer", "none", "", rail="rail1", peers=["node2"])
    fleet[0]["checks"].append(fails)
    assert with_causes(merged(fleet), {})["hosts"]["node1"]["status"] == "pass", "a claim decides on no other test"
    fleet[0]["checks"].append(deviation("address_duplicate", "none", "it", "It is answered.", "", rail="rail1"))
    assert with_causes(merged(fleet), {})["hosts"]["node1"]["status"] == "deviation"

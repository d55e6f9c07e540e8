# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.module_utils._qos.plan import (
    QosPolicy,
    checks_of,
    differences,
    make_policy,
    plan_nic,
    plan_restore,
    switch_values,
    warnings_of,
)

GUIDE = {"priority": 5, "cnp_priority": 6}
FRESH = {
    "backend": "kernel",
    "driver": "mlx5_core",
    "problem": None,
    "trust": "pcp",
    "pfc": [],
    "pfc_cap": 8,
    "dscp_map": [],
    "dcbx": "firmware",
    "ecn_np": None,
    "ecn_rp": None,
    "cnp_dscp": 4,
    "cnp_priority": 6,
    "traffic_class": 0,
    "forced_traffic_class": None,
    "rdma": ["mlx5_0/1"],
}


@pytest.mark.parametrize(
    ("params", "dscp", "traffic_class", "cnp_dscp", "pfc"),
    [
        pytest.param(GUIDE, 40, 162, 48, (5,), id="the-guides-values"),
        pytest.param({**GUIDE, "ecn": False}, 40, 160, 48, (5,), id="without-ecn-the-guides-own-160"),
        pytest.param({"priority": 3, "cnp_priority": 6}, 24, 98, 48, (3,), id="first-dscp-of-the-priority"),
        pytest.param({"priority": 3, "dscp": 26, "cnp_priority": 6}, 26, 106, 48, (3,), id="nvidias-26-and-106"),
        pytest.param(
            {"priority": 3, "dscp": 26, "cnp_priority": 7, "cnp_dscp": 4}, 26, 106, 4, (3,), id="a-notification-dscp"
        ),
        pytest.param({**GUIDE, "pfc_priorities": [5, 3, 5]}, 40, 162, 48, (3, 5), id="two-paused-priorities"),
    ],
)
def test_what_follows_from_what(params, dscp, traffic_class, cnp_dscp, pfc):
    policy = make_policy(params)
    assert (policy.dscp, policy.traffic_class, policy.cnp_dscp, policy.pfc) == (dscp, traffic_class, cnp_dscp, pfc)


@pytest.mark.parametrize(
    ("params", "place", "word"),
    [
        pytest.param({"priority": 8}, "priority", "0 to 7", id="priority"),
        pytest.param({"cnp_priority": -1}, "cnp_priority", "0 to 7", id="notification-priority"),
        pytest.param({"dscp": 64}, "dscp", "0 to 63", id="dscp"),
        pytest.param({"dscp": 160}, "dscp", "divided by 4", id="a-tos-byte-for-a-dscp"),
        pytest.param({"cnp_dscp": 64}, "cnp_dscp", "0 to 63", id="notification-dscp"),
        pytest.param({"dscp": 48}, "cnp_dscp", "of their own", id="one-dscp-two-priorities"),
        pytest.param({"pfc_priorities": [3]}, "pfc_priorities", "Add 5", id="roce-without-flow-control"),
        pytest.param({"pfc_priorities": [5, 9]}, "pfc_priorities", "0 to 7", id="flow-control-range"),
        pytest.param({"dscp_map": {"40": 1}}, "dscp_map", "Leave it out", id="map-against-roce"),
        pytest.param({"dscp_map": {"64": 1}}, "dscp_map", "0 to 63", id="map-range"),
        pytest.param({"dscp_map": {"EF": 1}}, "dscp_map", "0 to 63", id="map-word"),
    ],
)
def test_what_is_refused(params, place, word):
    with pytest.raises(InputError) as caught:
        make_policy({**GUIDE, **params})
    problems = {problem.place: problem.fix for problem in caught.value.problems}
    assert word in problems[place]


def test_all_problems_come_at_once():
    with pytest.raises(InputError) as caught:
        make_policy({"priority": 8, "cnp_priority": 9, "dscp": 99, "cnp_dscp": 99})
    assert len(caught.value.problems) >= 4


def test_a_fresh_mlx5():
    plan = plan_nic(make_policy(GUIDE), FRESH)
    assert plan.operations == (
        ("dcbx", "host"),
        ("dscp", [40, 5]),
        ("dscp", [48, 6]),
        ("pfc", [5]),
        ("cnp_dscp", 48),
        ("traffic_class", 162),
    )
    assert plan.disruptions == ("the link goes down for a moment when flow control changes",)
    assert plan.after["trust"] == "dscp"
    assert [text.split(" (")[0] for text in plan.unsupported] == ["congestion control of a priority"]


def settled(**more):
    return {
        **FRESH,
        "trust": "dscp",
        "pfc": [5],
        "dscp_map": [[40, 5], [48, 6]],
        "dcbx": "host",
        "cnp_dscp": 48,
        "traffic_class": 162,
        **more,
    }


def test_a_second_plan_is_empty():
    plan = plan_nic(make_policy(GUIDE), settled())
    assert (plan.operations, plan.disruptions) == ((), ())
    assert {check["status"] for check in checks_of("rail1", plan, "ens1np0")} == {"ok", "skipped"}


def test_the_boot_program_writes_everything_anew():
    assert plan_nic(make_policy(GUIDE), settled()).boot == (
        ("dcbx", "host"),
        ("dscp", [40, 5]),
        ("dscp", [48, 6]),
        ("pfc", [5]),
        ("cnp_dscp", 48),
        ("cnp_priority", 6),
        ("traffic_class", 162),
    )


@pytest.mark.parametrize(
    ("values", "operations"),
    [
        pytest.param({"dscp_map": [[40, 3], [48, 6]]}, [("dscp", [40, 5])], id="mlx5-replaces-by-itself"),
        pytest.param(
            {"driver": "ice", "dscp_map": [[40, 3], [48, 6]]},
            [("dscp", [40, 5]), ("no_dscp", [40, 3])],
            id="others-keep-the-old-entry",
        ),
        pytest.param(
            {"driver": "ice", "dscp_map": [[40, 3], [40, 5], [48, 6]]}, [("no_dscp", [40, 3])], id="a-duplicate-goes"
        ),
        pytest.param({"dscp_map": [[10, 1], [40, 5], [48, 6]]}, [], id="other-dscps-are-left-alone"),
        pytest.param({"pfc": [3]}, [("pfc", [5])], id="another-paused-priority"),
        pytest.param(
            {"backend": "vendor", "trust": "pcp", "dscp_map": []},
            [("trust", "dscp"), ("dscp", [40, 5]), ("dscp", [48, 6])],
            id="the-vendors-tool-sets-trust-first",
        ),
        pytest.param({"ecn_np": [], "ecn_rp": [0, 5]}, [("ecn_np", [5])], id="congestion-control-of-ofed"),
        pytest.param({"forced_traffic_class": 0}, [("forced_traffic_class", 162)], id="ofeds-forced-class"),
        pytest.param({"traffic_class": None}, [], id="no-rdma-cm"),
    ],
)
def test_what_is_written(values, operations):
    assert list(plan_nic(make_policy(GUIDE), settled(**values)).operations) == operations


def test_only_mlx5_flaps():
    assert plan_nic(make_policy(GUIDE), settled(driver="ice", pfc=[])).disruptions == ()


def test_without_congestion_control_the_priority_is_switched_off():
    policy = make_policy({**GUIDE, "ecn": False})
    plan = plan_nic(policy, settled(ecn_np=[4, 5], ecn_rp=[5], traffic_class=160))
    assert list(plan.operations) == [("ecn_np", [4]), ("ecn_rp", [])]


def test_an_interface_that_offers_nothing():
    empty = dict.fromkeys(FRESH)
    plan = plan_nic(make_policy(GUIDE), {**empty, "rdma": [], "problem": "DCB netlink: Operation not supported"})
    assert (plan.operations, plan.boot) == ((), ())
    assert len(plan.unsupported) == 4
    assert "Operation not supported" in plan.unsupported[0]


def test_going_back_pauses_nothing_and_trusts_pcp():
    plan = plan_restore({**FRESH}, [40, 48], settled())
    assert plan.operations == (
        ("pfc", []),
        ("no_dscp", [40, 5]),
        ("no_dscp", [48, 6]),
        ("cnp_dscp", 4),
        ("traffic_class", 0),
        ("dcbx", "firmware"),
    )
    assert plan.after["trust"] == "pcp"


def test_going_back_to_what_was_there_before():
    original = {**FRESH, "trust": "dscp", "pfc": [3], "dscp_map": [[26, 3], [40, 1]], "dcbx": "host"}
    plan = plan_restore(original, [40, 48], settled(dscp_map=[[26, 3], [40, 5], [48, 6]]))
    assert plan.operations == (
        ("pfc", [3]),
        ("dscp", [40, 1]),
        ("no_dscp", [48, 6]),
        ("cnp_dscp", 4),
        ("traffic_class", 0),
    )
    assert plan.after["dscp_map"] == [[26, 3], [40, 1]]


def test_going_back_with_no_record_takes_the_defaults():
    plan = plan_restore(None, [40, 48], settled())
    assert [kind for kind, _value in plan.operations] == ["pfc", "no_dscp", "no_dscp", "traffic_class"]


def test_what_did_not_come_to_be():
    plan = plan_nic(make_policy(GUIDE), FRESH)
    assert differences(plan, settled(dcbx="firmware")) == {}
    assert differences(plan, settled(pfc=[])) == {"pfc": ([5], [])}
    assert "dscp_map" in differences(plan, settled(dscp_map=[[40, 0], [48, 6]]))
    assert differences(plan, settled(dscp_map=[[0, 0], [40, 5], [48, 6]])) == {}


def test_the_switch_gets_the_same_values():
    values = switch_values(make_policy({"priority": 3, "dscp": 26, "cnp_priority": 6}))
    assert values["dscp_to_priority"] == {"26": 3, "48": 6}
    assert values["pfc_priorities"] == values["ecn_priorities"] == [3]
    assert "DSCP 26 to priority 3" in values["text"]


def test_notifications_on_a_paused_priority_are_pointed_out():
    assert list(warnings_of(QosPolicy(cnp_priority=5)))
    assert list(warnings_of(QosPolicy(pfc=(1, 2, 5))))
    assert not list(warnings_of(QosPolicy()))

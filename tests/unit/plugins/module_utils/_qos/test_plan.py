# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.module_utils._qos.plan import differences, plan_nic
from ansible_collections.railops.rdma.plugins.module_utils._qos.policy import (
    make_policy,
)

GUIDE = {"priority": 5, "cnp_priority": 6}
FRESH = {
    "backend": "kernel",
    "driver": "mlx5_core",
    "problem": None,
    "trust": "pcp",
    "pfc": [],
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
    ],
)
def test_what_is_refused(params, place, word):
    with pytest.raises(InputError) as caught:
        make_policy({**GUIDE, **params})
    problems = {problem.place: problem.fix for problem in caught.value.problems}
    assert word in problems[place]


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
    assert list(plan_nic(make_policy(GUIDE), settled(**values), {}).operations) == operations


def test_what_did_not_come_to_be():
    plan = plan_nic(make_policy(GUIDE), FRESH, {})
    assert differences(plan, settled(dcbx="firmware")) == {}
    assert differences(plan, settled(pfc=[])) == {"pfc": ([5], [])}
    assert "dscp_map" in differences(plan, settled(dscp_map=[[40, 0], [48, 6]]))
    assert differences(plan, settled(dscp_map=[[0, 0], [40, 5], [48, 6]])) == {}

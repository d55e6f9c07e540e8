# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.checks import object_checks, prefix_checks

POOL = {"kind": "SpiderIPPool", "namespace": "", "name": "fabric-rail1-v4-node1"}


@pytest.mark.parametrize(
    ("change", "observed"),
    [
        pytest.param({"action": "create", **POOL}, "not there", id="missing"),
        pytest.param({"action": "delete", **POOL}, "not planned", id="stray"),
        pytest.param({"action": "apply", **POOL, "fields": ["spec.ips"]}, "different: spec.ips", id="edited"),
        pytest.param({"action": "replace", **POOL, "fields": ["spec.subnet"]}, "another one", id="replaced"),
    ],
)
def test_each_difference_is_named(change, observed):
    (check,) = object_checks(
        {"kept": [], "conflicts": [], "changes": [{"fields": [], **change}], "summary": {"unchanged": 0}}
    )
    assert check["status"] == "deviation"
    assert "SpiderIPPool fabric-rail1-v4-node1" in check["planned"]
    assert observed in check["observed"]
    assert check["cause"]
    assert check["fix"]


def test_what_stays_and_what_belongs_to_others():
    kept = {"action": "delete", **POOL, "reason": "2 addresses are in use"}
    conflict = {
        "kind": "SpiderMultusConfig",
        "namespace": "spiderpool",
        "name": "x",
        "field": "spec.mtu",
        "owner": "argocd",
        "reason": "is declared by another field manager",
    }
    checks = object_checks({"changes": [], "kept": [kept], "conflicts": [conflict], "summary": {"unchanged": 5}})
    assert [check["id"] for check in checks] == ["object_in_use", "object_owner", "object_state"]
    assert "argocd" in checks[1]["cause"]
    assert checks[2]["status"] == "ok"


def cidr_pool(*rows, gateway=1):
    spec = {"gatewayIndex": gateway, "staticAllocations": [{"prefix": "172.17.0.96/27"}]}
    spec["staticAllocations"] += [{"nodeName": f"node{n}", "prefix": f"172.17.0.{32 * n}/27"} for n in (0, 1)]
    given = [dict(zip(("nodeName", "prefix", "gateway"), row, strict=True)) for row in rows]
    return {"metadata": {"name": "p", "namespace": "n"}, "spec": spec, "status": {"allocations": given}}


GOOD = [("node0", "172.17.0.0/27", "172.17.0.1"), ("node1", "172.17.0.32/27", "172.17.0.33")]


@pytest.mark.parametrize(
    ("rows", "node", "observed", "cause"),
    [
        pytest.param(GOOD[:1], "node1", "nothing", "lacks the fabric's label", id="missing"),
        pytest.param(
            [GOOD[0], ("node1", "172.17.0.64/27", "172.17.0.65")],
            "node1",
            "172.17.0.64/27 via 172.17.0.65",
            "the pool changed a moment ago",
            id="another",
        ),
        pytest.param(
            [*GOOD, ("node9", "172.17.0.128/27", "172.17.0.129")],
            "node9",
            "172.17.0.128/27",
            "the plan does not name it",
            id="stranger",
        ),
        pytest.param([], None, "nothing", "gave nothing of this pool to any node", id="invalid"),
    ],
)
def test_what_nv_ipam_gave_otherwise_is_named(rows, node, observed, cause):
    wrong = [check for check in prefix_checks([cidr_pool(*rows)]) if check["status"] != "ok"]
    assert [(check.get("node"), check["observed"]) for check in wrong] == [(node, observed)]
    assert cause in wrong[0]["cause"]
    assert wrong[0]["fix"]


def test_nodes_that_have_their_prefixes_are_one_check():
    assert [check["status"] for check in prefix_checks([cidr_pool(*GOOD), cidr_pool(*GOOD)])] == ["ok"]
    bare = [(name, prefix, None) for name, prefix, _gateway in GOOD]
    assert [check["status"] for check in prefix_checks([cidr_pool(*bare, gateway=None)])] == ["ok"]

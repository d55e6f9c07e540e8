# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster import run
from ansible_collections.railops.rdma.plugins.module_utils._cluster.compare import (
    differences,
    object_differences,
    owners,
    ranges,
)
from ansible_collections.railops.rdma.plugins.module_utils._cluster.model import FIELD_MANAGER, Ref
from ansible_collections.railops.rdma.plugins.module_utils._cluster.plan import ApplyOptions, ClusterPlanner
from ansible_collections.railops.rdma.plugins.module_utils._cluster.pools import attached
from ansible_collections.railops.rdma.plugins.module_utils._cluster.text import describe
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import LABEL_FABRIC, LABEL_MANAGER

GROUP = "spiderpool.spidernet.io"
V2 = f"{GROUP}/v2beta1"
MANAGED = {LABEL_MANAGER: FIELD_MANAGER, LABEL_FABRIC: "fabric"}


def pool(name="a", subnet="192.0.2.0/27", ips=("192.0.2.3-192.0.2.30",), labels=None, used=0, **meta):
    made = {
        "apiVersion": V2,
        "kind": "SpiderIPPool",
        "metadata": {"name": name, "labels": dict(MANAGED if labels is None else labels), **meta},
        "spec": {"subnet": subnet, "ipVersion": 4, "ips": list(ips)},
    }
    if used:
        taken = {ips[0].split("-")[0]: {"pod": "ml/train-0", "podUid": "u"}}
        made["status"] = {"allocatedIPCount": used, "allocatedIPs": json.dumps(taken)}
    return made


def config(name="c", labels=None):
    return {
        "apiVersion": V2,
        "kind": "SpiderMultusConfig",
        "metadata": {"name": name, "namespace": "spiderpool", "labels": dict(MANAGED if labels is None else labels)},
        "spec": {"cniType": "macvlan"},
    }


def planned(wanted, live, *, holders=dict, **options):
    given = ApplyOptions(fabric="fabric", **options)
    planner = ClusterPlanner({Ref.of(row): row for row in wanted}, given, holders)
    for row in live:
        planner.add_object(row)
    return planner.finish()


def actions(plan):
    return [(step.action, step.ref.name) for step in plan.steps]


def managed(manager, operation, **fields):
    return {"manager": manager, "operation": operation, "apiVersion": V2, "fieldsV1": fields}


def test_what_the_server_added_is_no_difference():
    live = pool(labels={**MANAGED, "ipam.spidernet.io/ippool-cidr": "192-0-2-0-27"}, finalizers=["x"])
    live["spec"]["disable"] = False
    assert object_differences(pool(), live) == ()


def test_the_order_is_pools_then_configs_and_back_for_removing():
    wanted = [config(), pool()]
    assert actions(planned(wanted, [])) == [("create", "a"), ("create", "c")]
    assert actions(planned(wanted, wanted, absent=True)) == [("delete", "c"), ("delete", "a")]


def test_strays_of_this_fabric_only_are_pruned():
    other = pool("b", "198.51.100.0/27", labels={**MANAGED, LABEL_FABRIC: "other"})
    foreign = pool("d", "203.0.113.0/27", labels={})
    assert actions(planned([], [pool(), other, foreign], prune=True)) == [("delete", "a")]
    assert not planned([], [pool()]).steps


def cidr_pool(*nodes, gateway=1, name="c", **meta):
    return {
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "kind": "CIDRPool",
        "metadata": {"name": name, "namespace": "nvidia", "labels": dict(MANAGED), **meta},
        "spec": {
            "cidr": "192.0.2.0/24",
            "gatewayIndex": gateway,
            "staticAllocations": [{"nodeName": f"node{n}", "prefix": f"192.0.2.{32 * n}/27"} for n in nodes],
        },
    }


def on_node_1():
    rows = [
        {"name": "cbr0", "ips": ["10.244.0.9"], "default": True},
        {"name": "nvidia/c", "interface": "net1", "ips": ["192.0.2.35"]},
    ]
    held = {
        "name": "train-0",
        "namespace": "ml",
        "annotations": {"k8s.v1.cni.cncf.io/network-status": json.dumps(rows)},
    }
    odd = {"name": "odd", "namespace": "ml", "annotations": {"k8s.v1.cni.cncf.io/network-status": "{"}}
    ended = {"metadata": {**held, "name": "ended"}, "status": {"phase": "Succeeded"}}
    return attached([{"metadata": held}, ended, {"metadata": odd}, {"metadata": {"name": "none"}}])


def renumbered():
    made = cidr_pool(1, 2)
    made["spec"]["staticAllocations"][0]["prefix"] = "192.0.2.96/27"
    return made


@pytest.mark.parametrize(
    ("wanted", "action"),
    [
        pytest.param([], "delete", id="gone"),
        pytest.param([renumbered()], "replace", id="another-prefix"),
        pytest.param([cidr_pool(2)], "replace", id="a-node-less"),
        pytest.param([cidr_pool(1, 2, gateway=2)], "replace", id="another-gateway"),
    ],
)
def test_a_cidr_pool_gives_no_node_another_prefix_under_pods(wanted, action):
    plan = planned(wanted, [cidr_pool(1, 2)], prune=True, holders=on_node_1)
    assert actions(plan) == []
    (retained,) = plan.retained
    assert (retained.action, retained.ref.kind) == (action, "CIDRPool")
    assert retained.reason == "1 address is in use (192.0.2.35 by ml/train-0); move those pods away and run again."
    # The same with no pod, and with one on another node.
    assert actions(planned(wanted, [cidr_pool(1, 2)], prune=True))
    other = planned(wanted, [cidr_pool(1, 2)], prune=True, holders=lambda: {"192.0.2.140": "ml/train-1"})
    assert actions(other)


def test_cidr_pool_change_without_moves_is_applied():
    def nobody():
        raise AssertionError

    more = cidr_pool(1, 2, 3)
    more["spec"]["exclusions"] = [{"startIP": "192.0.2.40", "endIP": "192.0.2.41"}]
    assert actions(planned([more], [cidr_pool(1, 2)], holders=nobody)) == [("apply", "c")]


def test_what_a_controller_made_of_an_object_is_no_stray():
    owner = [{"apiVersion": V2, "kind": "SpiderMultusConfig", "name": "c", "uid": "u"}]
    network = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "spec": {"config": "{}"}}
    network["metadata"] = {"name": "c", "namespace": "spiderpool", "labels": dict(MANAGED)}
    assert actions(planned([], [network], prune=True)) == [("delete", "c")]
    network["metadata"]["ownerReferences"] = owner
    assert actions(planned([], [network], prune=True)) == []


def test_excluding_addresses_of_a_pool_in_use_is_narrowing():
    wanted = pool()
    wanted["spec"]["excludeIPs"] = ["192.0.2.10"]
    assert planned([wanted], [pool(used=1)]).retained[0].action == "narrow"


def test_a_pool_being_deleted_is_made_again_unless_it_is_in_use():
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "uid": "u"}
    assert actions(planned([pool()], [pool(**gone)])) == [("replace", "a")]
    assert planned([pool()], [pool(used=1, **gone)]).retained[0].action == "replace"


class Pools:
    """A cluster that takes so many writes, and refuses two pools in one subnet."""

    def __init__(self, rows, writes=0):
        self.live = {row["metadata"]["name"]: row for row in rows}
        self.writes = [True] * writes

    def delete(self, ref, **dummy):
        self.writes.pop()
        del self.live[ref.name]

    def get(self, ref):
        return self.live.get(ref.name)

    def apply(self, body, **dummy):
        self.writes.pop()
        assert body["spec"]["subnet"] not in self.subnets().values()
        self.live[body["metadata"]["name"]] = body

    def subnets(self):
        return {name[-1]: row["spec"]["subnet"] for name, row in self.live.items()}

    def converge(self, wanted):
        plan = planned(wanted, self.live.values(), prune=True)
        run.ApplyRun(self, {}, ApplyOptions()).execute(plan)


def placed(slots, prefix=""):
    places = [f"192.0.2.{32 * slot}" for slot in slots]
    return [pool(f"{prefix}{node}", f"{place}/27", [place]) for node, place in enumerate(places)]


@pytest.mark.parametrize(
    ("slots", "prefix", "most"),
    [
        pytest.param([4, 5, 6, 7], "", 1, id="elsewhere"),
        pytest.param([1, 2, 3, 4, 0], "", 1, id="shifted-and-a-new-node-in-the-slot-left"),
        pytest.param([1, 0, 3, 2], "", 2, id="swapped-in-pairs"),
        pytest.param([0, 1, 2, 3], "other-", 1, id="renamed"),
    ],
)
def test_a_run_killed_at_any_write_leaves_one_group_of_pools_deleted(slots, prefix, most, monkeypatch):
    monkeypatch.setattr(run, "THREADS", 1)
    old, new = placed(range(4)), placed(slots, prefix)
    before, after = Pools(old).subnets(), Pools(new).subnets()
    for writes in range(8):
        cluster = Pools(old, writes)
        with pytest.raises(IndexError):
            cluster.converge(new)
        left = cluster.subnets()
        assert len(left) >= 4 - most
        assert left.items() <= before.items() | after.items()
        cluster.writes = [True] * 9
        cluster.converge(new)
        assert cluster.subnets() == after
        assert not planned(new, cluster.live.values(), prune=True).steps


@pytest.mark.parametrize("subnet", ["192.0.2.0/26", "192.0.2.0/28", "192.0.2.0/27"])
def test_a_kept_stray_blocks_what_overlaps_it(subnet):
    plan = planned([pool("new", subnet, ips=["192.0.2.3"])], [pool("old", used=1)], prune=True)
    assert not plan.steps
    assert plan.conflicts[0].owner == "SpiderIPPool old"


def test_pools_that_share_a_subnet_without_sharing_addresses_are_not_in_the_way():
    plan = planned([pool("new", ips=["192.0.2.20"])], [pool("old", ips=["192.0.2.3"])], prune=True)
    assert not any(step.turn for step in plan.steps)


def test_an_object_of_our_name_without_our_mark_is_left():
    live = pool(labels={"app.kubernetes.io/managed-by": "Helm"})
    assert planned([pool()], [live]).conflicts[0].owner == "Helm"
    other = pool(labels={**MANAGED, LABEL_FABRIC: "other"})
    assert planned([pool()], [other]).conflicts[0].owner == "fabric 'other'"
    assert planned([pool()], [other], absent=True).conflicts


def test_labels_taken_off_a_managed_object_come_back():
    live = pool(labels={})
    live["metadata"]["managedFields"] = [managed(FIELD_MANAGER, "Apply", **{"f:spec": {"f:ips": {}}})]
    assert actions(planned([pool()], [live])) == [("apply", "a")]


def test_a_limit_that_a_container_no_longer_has_is_a_difference():
    """As a server keeps it: rows of a list with a key are owned field by field."""

    def daemon_set(*limits):
        row = {"name": "rdma", "image": "x", "resources": {"limits": dict.fromkeys(limits, "1")}}
        other = {"name": "other", "image": "y"}
        return {"metadata": {}, "spec": {"template": {"spec": {"containers": [other, row]}}}}

    live = daemon_set("spidernet.io/rail1", "nvidia.com/gpu")
    owned = {f"f:{name}": {} for name in ("spidernet.io/rail1", "nvidia.com/gpu")}
    rows = {'k:{"name":"rdma"}': {".": {}, "f:image": {}, "f:resources": {"f:limits": owned}}}
    fields = {"f:spec": {"f:template": {"f:spec": {"f:containers": rows}}}}
    live["metadata"]["managedFields"] = [managed(FIELD_MANAGER, "Apply", **fields)]
    (found,) = object_differences(daemon_set("spidernet.io/rail1"), live)
    assert found.field == "spec.template.spec.containers.resources.limits.nvidia.com/gpu"
    assert object_differences(daemon_set("spidernet.io/rail1", "nvidia.com/gpu"), live) == ()


def test_owners_of_labels_with_dots_and_of_fields_below():
    live = pool()
    live["metadata"]["managedFields"] = [
        managed("a", "Update", **{"f:metadata": {"f:labels": {f"f:{LABEL_MANAGER}": {}}}}),
        managed("b", "Update", **{"f:spec": {"f:macvlan": {"f:mtu": {}}}}),
        {**managed("c", "Update", **{"f:spec": {}}), "subresource": "status"},
    ]
    assert owners(live, f"metadata.labels.{LABEL_MANAGER}") == [("a", "Update")]
    assert owners(live, "spec.macvlan") == [("b", "Update")]


def test_differences_of_lists_look_inside():
    assert list(differences([{"a": 1}], [{"a": 1, "default": 2}])) == []
    assert [row.field for row in differences({"x": [1]}, {"x": [1, 2]})] == ["x"]


def test_ranges_join_and_sort():
    assert ranges(["192.0.2.5", "192.0.2.1-192.0.2.4"]) == ranges(["192.0.2.1-192.0.2.5"])


def test_ten_thousand_objects_are_reported_on_a_page():
    wanted = [pool(f"p{number}", f"10.{number >> 8}.{number & 255}.0/24", ["10.0.0.1"]) for number in range(10000)]
    plan = planned(wanted, [])
    text = describe(plan, "10,000 to create")
    assert text.splitlines()[0] == "10,000 to create"
    assert len(text.splitlines()) < 30
    assert "9,980 more: 9,980 SpiderIPPool" in text


@pytest.mark.parametrize("subresource", [{}, {"subresource": "status"}], ids=["before-1.22", "since"])
def test_status_writer_does_not_own_an_object(subresource):
    theirs = managed("their-tool", "Update", **{"f:spec": {"f:subnet": {}}})
    status = {**managed("spiderpool-controller", "Update", **{"f:status": {"f:totalIPCount": {}}}), **subresource}
    live = pool(labels={}, subnet="192.0.2.32/27", managedFields=[status, theirs])
    assert [row.owner for row in planned([pool()], [live]).conflicts] == ["their-tool"]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans with `fabric_ipam: nv-ipam`: the objects, what nv-ipam makes of them (`nv_ipam`), and what is refused."""

from __future__ import annotations

import functools
import json
import re

import env
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.objects import object_warnings
from ansible_collections.railops.rdma.tests.unit import plan_checker, schemas
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, plan, rails
from ansible_collections.railops.rdma.tests.unit.random_fabrics import FABRICS, SETTINGS, fabrics

CRDS = env.SHARED / "crds-backends"
NVIDIA = {"ipam": "nv-ipam", "namespace": "nvidia-network-operator"}
DUAL = {"supernets": ["172.17.0.0/16", "fd00::/48"]}


def nvidia(**more):
    return exclusive(**{"rails": rails(2), **NVIDIA, **more})


def objects(made, name):
    return [obj for obj in yaml.load_all(made.files[f"cluster/{name}.yaml"], Loader=plan_checker.LOADER) if obj]


def pool(made, name):
    return next(obj["spec"] for obj in objects(made, "cidrpools") if obj["metadata"]["name"] == name)


def refused(raw, count=2, lock=None):
    with pytest.raises(InputError) as caught:
        plan(raw, hosts(count), lock)
    return str(caught.value)


# --- the objects ------------------------------------------------------------------------------------------------------


def test_a_pool_of_a_rail_names_every_node_and_keeps_gateway_and_node_from_pods():
    made = plan(nvidia(), hosts(2))
    assert [obj["metadata"]["name"] for obj in objects(made, "cidrpools")] == ["fabric-rail1-v4", "fabric-rail2-v4"]
    assert pool(made, "fabric-rail1-v4") == {
        "cidr": "172.17.0.0/24",
        "perNodeNetworkPrefix": 27,
        "gatewayIndex": 1,
        "perNodeExclusions": [{"startIndex": 1, "endIndex": 2}],
        "staticAllocations": [
            {"nodeName": "node1", "prefix": "172.17.0.0/27"},
            {"nodeName": "node2", "prefix": "172.17.0.32/27"},
        ],
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "fabric.railops.io/fabric", "operator": "Exists"}]}]
        },
    }
    labels = {"labels": {"fabric.railops.io/fabric": "declared"}, "nodes": ["node1", "node2"]}
    assert json.loads(made.files["facts.json"])["node_labels"] == [labels]


def test_addresses_above_pods_are_excluded_in_small_subnets():
    made = plan(nvidia(**DUAL, pods_per_node=4), hosts(1))
    assert pool(made, "fabric-rail1-v4")["perNodeExclusions"] == [
        {"startIndex": 1, "endIndex": 2},
        {"startIndex": 7, "endIndex": 30},
    ]
    assert pool(made, "fabric-rail1-v6")["perNodeExclusions"] == [{"startIndex": 1, "endIndex": 2}]
    (warning,) = object_warnings(made.plan)
    assert warning.startswith("In IPv6 subnets of /64 pods have every address behind the node's")


def test_reserved_addresses_are_cut_at_the_borders_of_nodes():
    made = plan(nvidia(reserved=["172.17.0.28-172.17.0.36"]), hosts(3))
    assert pool(made, "fabric-rail1-v4")["exclusions"] == [
        {"startIP": "172.17.0.28", "endIP": "172.17.0.30"},
        {"startIP": "172.17.0.35", "endIP": "172.17.0.37"},
    ]
    assert made.address("node2", 1)["address"] == "172.17.0.37"
    assert "exclusions" not in pool(made, "fabric-rail2-v4")


def test_zones_share_a_pool_that_covers_them():
    zones = [
        {"name": "a", "group": "a", "supernets": ["10.0.0.0/20"], "max_nodes": 4},
        {"name": "b", "group": "b", "supernets": ["10.0.64.0/20"], "max_nodes": 4},
    ]
    nodes = [{"host": "node1", "groups": ["a"]}, {"host": "node2", "groups": ["b"]}]
    made = plan(nvidia(supernets=[], zones=zones, max_nodes=None), nodes)
    spec = pool(made, "fabric-rail1-v4")
    assert spec["cidr"] == "10.0.0.0/17"
    assert [row["prefix"] for row in spec["staticAllocations"]] == ["10.0.0.0/27", "10.0.64.0/27"]


@pytest.mark.parametrize("attachment", ["macvlan", "ipvlan", "sriov"])
def test_a_network_of_a_rail_names_the_pools_of_both_families(attachment):
    raw = nvidia(**DUAL, attachment=attachment)
    made = plan(raw, hosts(1))
    assert wrong_of(made, raw) == []
    networks = objects(made, "networks")
    assert [obj["metadata"]["name"] for obj in networks] == ["fabric-rail1", "fabric-rail2"]
    main = json.loads(networks[1]["spec"]["config"])["plugins"][0]
    assert (main["type"], main["ipam"]["poolName"]) == (attachment, "fabric-rail2-v4,fabric-rail2-v6")
    own = attachment == "sriov"
    resource = {"k8s.v1.cni.cncf.io/resourceName": "spidernet.io/fabric_rail2"}
    assert networks[1]["metadata"].get("annotations") == (resource if own else None)
    given = json.loads(made.files["facts.json"])
    assert given["kinds"] == ["CIDRPool", "NetworkAttachmentDefinition"]
    assert given["networks"]["declared"][1]["name"] == "nvidia-network-operator/fabric-rail2"
    assert ("cluster/deviceplugin.json" in made.files) == (not own)
    assert not {"cluster/values.yaml", "cluster/ippools.yaml", "cluster/multusconfigs.yaml"} & made.files.keys()
    if not own:
        (one, _two) = json.loads(made.files["cluster/deviceplugin.json"])["configList"]
        assert (one["resourceName"], one["selectors"]["ifNames"]) == ("fabric_rail1", ["ens1np0"])


def test_nodes_that_name_their_interfaces_otherwise_have_networks_of_their_own():
    made = plan(nvidia(), [{"host": "node1"}, {"host": "node2", "interfaces": {"rail1": "ens99"}}])
    masters = [json.loads(obj["spec"]["config"])["plugins"][0]["master"] for obj in objects(made, "networks")]
    assert masters == ["ens1np0", "ens2np0", "ens99", "ens2np0"]


# --- what nv-ipam makes of it -----------------------------------------------------------------------------------------


@given(
    fabrics().filter(lambda case: case[0]["mode"] == "exclusive" and case[0]["network"] == "roce"),
    # Around the IPv6 lengths from which on a CIDRPool can say a last address, and its daemon bear it.
    st.sampled_from([None, None, None, 96, 97, 107, 108]),
)
@settings(max_examples=FABRICS, **SETTINGS)
def test_the_daemons_hand_out_exactly_the_plans_pod_addresses(case, length):
    raw, nodes = case
    if length:
        raw = {**raw, "node_prefix": {**raw["node_prefix"], "ipv6": length}}
    try:
        made = plan({**raw, **NVIDIA}, nodes, report=False)
    except InputError:
        return
    assert wrong_of(made, raw) == []
    compare(made, plan(raw, nodes, report=False))


def wrong_of(made, raw):
    """What the checker, which knows nothing of the planner, and the CRDs say of a plan."""
    kept = {"reserved": raw.get("reserved", []), "ends": raw.get("reserved_per_subnet")}
    wrong = plan_checker.check(made.files, mode=raw["mode"], foreign=raw.get("existing_networks", []), **kept)
    wrong += plan_checker.check_pods_per_node(made.files, pods_per_node=raw.get("pods_per_node"), **kept)
    if CRDS.is_dir():
        wrong += [text for obj in [*objects(made, "cidrpools"), *objects(made, "networks")] for text in server()(obj)]
    return wrong


@functools.cache
def server():
    names = ("nv-ipam.nvidia.com_cidrpools.yaml", "k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml")
    return schemas.server(*(CRDS / name for name in names))


def compare(made, beside):
    """Both givers of addresses have the same hosts and gateways; pods' IPv4 ranges are the same, or a part of them."""
    for path, text in beside.files.items():
        if path.startswith(("hosts/", "switch/gateways")):
            assert undigested(made.files[path]) == undigested(text)
    ours, theirs = ({one.subnet: one for one in plan_checker.pools_of(files.files)} for files in (made, beside))
    for subnet, one in ours.items():
        if subnet.version == 4:
            have = [row for pool in theirs.values() if pool.subnet == subnet for row in pool.ranges]
            assert all(any(row in whole for whole in have) for row in one.ranges)


def undigested(text):
    return re.sub(r'"(frozen_digest|plan_digest|digest)": "[0-9a-f]*"', "", text)


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param(
            {"mode": "shared", "rails": rails(2)},
            "fabric_mode: nv-ipam does not support fabric_mode shared; supported: exclusive.",
            id="shared",
        ),
        pytest.param(
            {"network": "infiniband", "attachment": "ipoib"},
            "nv-ipam does not support fabric_attachment ipoib; supported: macvlan, ipvlan, sriov.",
            id="ib",
        ),
        pytest.param(
            {"inject": {}, "namespace": "spiderpool"}, "'spiderpool' is not where nv-ipam looks", id="namespace"
        ),
        pytest.param({"inject": {"value": "x"}}, "fabric_inject: nv-ipam cannot inject rails into pods.", id="inject"),
        pytest.param(
            {"supernets": ["fd00::/48"], "gateway": "last"},
            "fabric_gateway: Its offset in fabric-rail1-v6 would be 18446744073709551614",
            id="gateway-far-away",
        ),
        pytest.param({"ipam": "dhcp"}, "fabric_ipam", id="another"),
    ],
)
def test_what_it_cannot_say_is_refused(more, words):
    assert words in refused(nvidia(**more))


def test_a_pool_that_etcd_would_not_take_is_refused():
    nodes = [{"host": f"gpu-{number:05}.a-long-name-of-a-rack-{number % 100:03}.example.org"} for number in range(9000)]
    raw = nvidia(supernets=["10.0.0.0/8"], max_nodes=16384, rails=rails(1))
    with pytest.raises(InputError, match=r"fabric-rail1-v4 would have [0-9,]+ bytes with its status, for 9,000"):
        plan(raw, nodes, report=False)
    assert plan(raw, hosts(10_000), report=False)


# --- from one to the other --------------------------------------------------------------------------------------------


def test_another_ipam_backend_moves_no_node():
    spider = plan(exclusive(rails=rails(2)), hosts(3))
    made = plan(nvidia(), hosts(3), spider.lock)
    assert json.loads(made.lock)["frozen"]["ipam"] == "nv-ipam"
    compare(made, spider)
    again = plan(exclusive(rails=rails(2)), hosts(3), made.lock)
    assert again.lock == spider.lock
    assert again.files == spider.files


def test_large_ipv6_subnets_are_opt_in():
    spider = plan(exclusive(rails=rails(2), **DUAL), hosts(2))
    text = refused(nvidia(**DUAL), lock=spider.lock)
    assert "rail1: pods' addresses in IPv6 subnets change with fabric_ipam" in text
    assert "fabric_allow_renumber=true" in text
    assert "IPv4" not in text
    made = plan(nvidia(**DUAL, allow_renumber=True), hosts(2), spider.lock)
    compare(made, spider)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans with `fabric_ipam: nv-ipam`: the objects, what nv-ipam makes of them (`cidr_pools`), and what is refused."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.objects import object_warnings
from ansible_collections.railops.rdma.tests.unit import cidr_pools, plan_checker
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, plan, rails
from ansible_collections.railops.rdma.tests.unit.random_fabrics import fabrics

FABRICS = int(os.environ.get("RAILOPS_FABRICS", "2000"))
CRDS = Path(__file__).resolve().parents[6] / "shared/crds-backends"
NVIDIA = {"ipam": "nv-ipam", "namespace": "nvidia-network-operator"}
DUAL = {"supernets": ["172.17.0.0/16", "fd00::/48"]}


def nvidia(**more):
    return exclusive(**{"rails": rails(2), **NVIDIA, **more})


def objects(made, name):
    return [obj for obj in yaml.safe_load_all(made.files[f"cluster/{name}.yaml"]) if obj]


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
    labels = json.loads(made.files["cluster/nodelabels.json"])
    assert labels == {"label": "fabric.railops.io/fabric", "nodes": {"node1": "declared", "node2": "declared"}}


def test_what_is_above_the_pods_is_excluded_in_small_subnets_and_not_in_large_ones():
    made = plan(nvidia(**DUAL, node_pods=4), hosts(1))
    assert pool(made, "fabric-rail1-v4")["perNodeExclusions"] == [
        {"startIndex": 1, "endIndex": 2},
        {"startIndex": 7, "endIndex": 30},
    ]
    assert pool(made, "fabric-rail1-v6")["perNodeExclusions"] == [{"startIndex": 1, "endIndex": 2}]
    (warning,) = object_warnings(made.plan)
    assert warning.startswith("In IPv6 subnets of /64 pods have every address behind the node's")


def test_a_retired_slot_is_held_back_without_a_name():
    first = plan(nvidia(), hosts(3))
    made = plan(nvidia(retire=["node2"]), [hosts(3)[0], hosts(3)[2]], first.lock)
    assert pool(made, "fabric-rail2-v4")["staticAllocations"] == [
        {"nodeName": "node1", "prefix": "172.17.1.0/27"},
        {"nodeName": "node3", "prefix": "172.17.1.64/27"},
        {"prefix": "172.17.1.32/27"},
    ]


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
    made = plan(nvidia(**DUAL, attachment=attachment), hosts(1))
    networks = objects(made, "networks")
    assert [obj["metadata"]["name"] for obj in networks] == ["fabric-rail1", "fabric-rail2"]
    main = json.loads(networks[1]["spec"]["config"])["plugins"][0]
    assert (main["type"], main["ipam"]["poolName"]) == (attachment, "fabric-rail2-v4,fabric-rail2-v6")
    own = attachment == "sriov"
    asked = {"k8s.v1.cni.cncf.io/resourceName": "spidernet.io/fabric_rail2"}
    assert networks[1]["metadata"].get("annotations") == (asked if own else None)
    given = json.loads(made.files["cluster/networks.json"])
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


@given(fabrics().filter(lambda case: case[0]["mode"] == "exclusive" and case[0]["network"] == "roce"))
@settings(
    max_examples=FABRICS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=FABRICS <= 2000,
)
def test_the_daemons_hand_out_exactly_the_plans_pod_addresses(case):
    raw, nodes = case
    try:
        made = plan({**raw, **NVIDIA}, nodes, report=False)
    except InputError:
        return
    pools = objects(made, "cidrpools")
    assert [row for one in pools for row in cidr_pools.problems(one)] == []
    labels = json.loads(made.files["cluster/nodelabels.json"])
    cluster = {node: {labels["label"]: value} for node, value in labels["nodes"].items()} | {"another": {}}
    for one in pools:
        rail, family = re.fullmatch(r"fabric-(.+)-v([46])", one["metadata"]["name"]).groups()
        handed = cidr_pools.handed(one, cluster)
        assert set(handed) == set(labels["nodes"])
        for node in made.plan.nodes:
            block = next(
                row
                for row in made.plan.blocks
                if (row.zone, made.plan.fabric.rails[row.rail].name, row.family) == (node.zone, rail, int(family))
            )
            assert handed[node.name].ranges == list(block.pods(node.slot))
    wrong = plan_checker.check(made.files, mode=raw["mode"], reserved=raw["reserved"], foreign=raw["foreign_networks"])
    assert wrong == []
    beside = plan(raw, nodes, report=False)
    compare(made, beside)


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


def test_the_checker_finds_what_nv_ipam_would_not_do():
    made = plan(nvidia(reserved=["172.17.0.10"]), hosts(2))

    def wrong(**changes):
        return cidr_pools.problems({"metadata": {"name": "p"}, "spec": {**pool(made, "fabric-rail1-v4"), **changes}})

    assert wrong() == []
    assert "host bits" in wrong(cidr="172.17.0.1/24")[0]
    assert "does not suit" in wrong(perNodeNetworkPrefix=20)[0]
    assert "gatewayIndex" in wrong(gatewayIndex=0)[0]
    assert "index exclusion" in wrong(perNodeExclusions=[{"startIndex": 1, "endIndex": 32}])[0]
    assert "overlapping exclusions" in wrong(perNodeExclusions=[{"startIndex": 1, "endIndex": 12}])[0]
    assert "crosses the border" in wrong(exclusions=[{"startIP": "172.17.0.20", "endIP": "172.17.0.40"}])[0]
    assert "multiple entries" in wrong(staticAllocations=[{"prefix": "172.17.0.0/27"}] * 2)[0]
    assert "static prefix" in wrong(staticAllocations=[{"prefix": "172.17.0.0/26"}])[0]
    assert "without a selector" in wrong(nodeSelector=None)[0]


@pytest.fixture(scope="module")
def schemas():
    if not CRDS.is_dir():
        pytest.skip("upstream's CRDs are not beside the checkout (../shared/crds-backends)")
    found = {}
    for name in ("nv-ipam.nvidia.com_cidrpools.yaml", "k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml"):
        crd = next(doc for doc in yaml.safe_load_all((CRDS / name).read_text(encoding="utf-8")) if doc)
        found[crd["spec"]["names"]["kind"]] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize("attachment", ["macvlan", "sriov"])
def test_the_real_crds_take_every_object_and_know_every_field(attachment, schemas):
    jsonschema = pytest.importorskip("jsonschema")
    made = plan(nvidia(**DUAL, attachment=attachment, reserved=["172.17.0.10"], node_pods=4), hosts(3))
    for obj in [*objects(made, "cidrpools"), *objects(made, "networks")]:
        schema = schemas[obj["kind"]]
        jsonschema.Draft202012Validator(schema).validate(obj)
        assert set(obj["spec"]) <= set(schema["properties"]["spec"]["properties"])
        # The one rule that is no schema (CEL).
        assert all(row["endIndex"] >= row["startIndex"] for row in obj["spec"].get("perNodeExclusions", ()))


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param(
            {"mode": "shared", "rails": rails(2)},
            "fabric_mode: 'shared' cannot be said where fabric_ipam is 'nv-ipam'",
            id="shared",
        ),
        pytest.param(
            {"network": "infiniband", "attachment": "ipoib"}, "fabric_attachment: 'ipoib' cannot be said", id="ib"
        ),
        pytest.param(
            {"inject": {}, "namespace": "spiderpool"}, "'spiderpool' is not where nv-ipam looks", id="namespace"
        ),
        pytest.param({"inject": {"value": "x"}}, "fabric_inject: Nobody adds rails to pods", id="inject"),
        pytest.param({"node_prefix": 31}, "has no address for pods", id="links"),
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


def test_the_other_giver_of_addresses_moves_nobody():
    spider = plan(exclusive(rails=rails(2)), hosts(3))
    made = plan(nvidia(), hosts(3), spider.lock)
    assert json.loads(made.lock)["frozen"]["ipam"] == "nv-ipam"
    compare(made, spider)
    again = plan(exclusive(rails=rails(2)), hosts(3), made.lock)
    assert again.lock == spider.lock
    assert again.files == spider.files


def test_large_ipv6_subnets_ask_first():
    spider = plan(exclusive(rails=rails(2), **DUAL), hosts(2))
    text = refused(nvidia(**DUAL), lock=spider.lock)
    assert "rail1: pods' addresses in IPv6 subnets change with fabric_ipam" in text
    assert "fabric_allow_renumber=true" in text
    assert "IPv4" not in text
    made = plan(nvidia(**DUAL, allow_renumber=True), hosts(2), spider.lock)
    compare(made, spider)

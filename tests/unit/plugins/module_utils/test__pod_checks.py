# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _pod_checks as looks
from ansible_collections.railops.rdma.plugins.module_utils._fabric_names import profile_of
from ansible_collections.railops.rdma.plugins.module_utils._pod_checks import Network, Node

NAMES = ("spiderpool/fabric-rail1", "spiderpool/fabric-rail2")


def network(rail, **more):
    number = int(rail[-1])
    given = {"kind": "macvlan", "resource": "r", "subnets": (f"172.17.{number}.0/27",), "gateway": True, "mtu": 4200}
    return Network(rail=rail, name=f"spiderpool/fabric-{rail}", **{**given, **more})


def node(**more):
    return Node("node1", (network("rail1", **more), network("rail2", **more)))


def entries(**changes):
    rows = {
        "rail1": {"name": NAMES[0], "interface": "net1", "ips": ["172.17.1.3"]},
        "rail2": {"name": NAMES[1], "interface": "net2", "ips": ["172.17.2.3"]},
    }
    for rail, change in changes.items():
        if change is None:
            del rows[rail]
        else:
            rows[rail].update(change)
    return json.dumps([{"name": "k8s-pod-network", "interface": "eth0", "ips": ["10.0.0.2"]}, *rows.values()])


def pod(status=None, phase="Running", **more):
    notes = {looks.STATUS_ANNOTATION: entries() if status is None else status}
    metadata = {"name": "p", "namespace": "ml", "annotations": notes}
    return {"metadata": metadata, "spec": {"nodeName": "node1"}, "status": {"phase": phase, **more}}


def bad(checks):
    return [(check["id"], check["rail"]) for check in checks if check["status"] == "deviation"]


@pytest.mark.parametrize(
    ("status", "wanted", "cause"),
    [
        pytest.param(entries(), None, "", id="whole"),
        pytest.param(entries(rail2=None), "rail2", "without this network", id="missing"),
        pytest.param(entries(rail1={"ips": []}), "rail1", "no address of 172.17.1.0/27", id="bare"),
        pytest.param(entries(rail1={"ips": ["192.0.2.9"]}), "rail1", "192.0.2.9 is not of the planned", id="foreign"),
        pytest.param(entries(rail1={"ips": ["nonsense"]}), "rail1", "nonsense is not of the planned", id="nonsense"),
    ],
)
def test_networks_and_addresses(status, wanted, cause):
    checks = looks.network_checks(node(), pod(status))
    assert bad(checks) == ([("pod_network", wanted)] if wanted else [])
    assert all(check["node"] == "node1" for check in checks)
    assert cause in "".join(check["cause"] for check in checks)


@pytest.mark.parametrize("status", ["no json", "[]", "{}", '["x"]', "null"])
def test_a_status_that_cannot_be_read_is_a_deviation_of_every_rail(status):
    checks = looks.network_checks(node(), pod(status))
    assert bad(checks) == [("pod_network", "rail1"), ("pod_network", "rail2")]
    assert "no network-status" in checks[1]["cause"]


def test_without_addresses_a_network_is_enough():
    bare = entries(rail1={"ips": []}, rail2={"ips": []})
    assert bad(looks.network_checks(node(subnets=()), pod(bare))) == []


def condition(message):
    row = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"conditions": [row]}


def waiting(reason, message=""):
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


@pytest.mark.parametrize(
    ("status", "events", "cause", "fix"),
    [
        (condition("0/3 nodes are available: 1 Insufficient spidernet.io/x."), [], "Insufficient", "node_resources"),
        (condition("0/3 nodes are available: 1 node(s) had untolerated taint"), [], "taint", "taints"),
        (waiting("ImagePullBackOff", "Back-off pulling image"), [], "ImagePullBackOff", "rail_objects_test_image"),
        (waiting("CreateContainerError", "no runtime"), [], "CreateContainerError: no runtime", "describe pod p"),
        (waiting("ContainerCreating"), ["old", "FailedCreatePodSandBox: no available IPPool"], "IPPool", "spiderip"),
        (waiting("ContainerCreating"), [], "the pod is Pending", "describe"),
        ({"reason": "UnexpectedAdmissionError", "message": "no device"}, [], "UnexpectedAdmissionError", "describe"),
    ],
)
def test_why_a_pod_does_not_run(status, events, cause, fix):
    (check,) = looks.network_checks(node(), pod(phase="Pending", **status), events)
    assert check["status"] == "deviation"
    assert cause in check["cause"]
    assert fix in check["fix"]


def printed(**changes):
    rows = {
        "links": [
            {"ifname": f"net{n}", "flags": ["UP"], "mtu": 4200, "addr_info": [{"local": f"172.17.{n}.3"}]}
            for n in (1, 2)
        ],
        "rules4": [{"priority": 1000, "src": f"172.17.{n}.3", "table": str(100 + n)} for n in (1, 2)],
        "routes4": [{"dst": "default", "dev": f"net{n}", "table": str(100 + n)} for n in (1, 2)],
        "rdma": [{"ifname": f"mlx5_{n}/1", "state": "ACTIVE", "netdev": f"net{n}"} for n in (1, 2)],
    }
    rows.update(changes)
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in rows.items()}


LINK = {"ifname": "net1", "flags": ["UP"], "mtu": 4200, "addr_info": [{"local": "172.17.1.3"}]}
OTHER = {"ifname": "net2", "flags": ["UP"], "mtu": 4200, "addr_info": [{"local": "172.17.2.3"}]}


@pytest.mark.parametrize(
    ("outputs", "wanted", "cause"),
    [
        pytest.param({}, [], "", id="whole"),
        pytest.param({"links": [OTHER]}, [("pod_nic", "rail1")], "no interface net1", id="no-nic"),
        pytest.param({"links": [{**LINK, "flags": []}, OTHER]}, [("pod_nic", "rail1")], "is down", id="down"),
        pytest.param(
            {"links": [{**LINK, "flags": ["NO-CARRIER", "UP"]}, OTHER]}, [("pod_nic", "rail1")], "carrier", id="carrier"
        ),
        pytest.param({"links": [{**LINK, "mtu": 1500}, OTHER]}, [("pod_nic", "rail1")], "another MTU", id="mtu"),
        pytest.param(
            {"links": [{**LINK, "addr_info": []}, OTHER]}, [("pod_nic", "rail1")], "is not on net1", id="bare"
        ),
        pytest.param({"rules4": []}, [("pod_rule", "rail1"), ("pod_rule", "rail2")], "no rule", id="no-rules"),
        pytest.param(
            {"routes4": [{"dst": "default", "dev": "net2", "table": "102"}]},
            [("pod_rule", "rail1")],
            "table 101 holds no route over net1",
            id="no-route",
        ),
        pytest.param({"rdma": []}, [("pod_rdma", None)], "0 active RDMA devices for 2 rails", id="no-device"),
        # What cannot be read is not looked at.
        pytest.param({"rules4": "no json", "rdma": '{"a": 1}'}, [], "", id="not-json"),
    ],
)
def test_inside_of_a_pod(outputs, wanted, cause):
    checks = looks.inside_checks(node(), pod(), printed(**outputs))
    assert bad(checks) == wanted
    assert cause in "".join(check["cause"] for check in checks)
    assert all(check["fix"] for check in checks if check["status"] == "deviation")


def test_the_nic_of_the_default_route_needs_no_rule():
    routes = [{"dst": "default", "dev": "net1"}, {"dst": "default", "dev": "net2", "table": "102"}]
    rules = [{"src": "172.17.2.3", "table": "102"}]
    assert bad(looks.inside_checks(node(), pod(), printed(rules4=rules, routes4=routes))) == []


def test_a_device_of_its_own_belongs_to_its_interface():
    own = node(kind="sriov")
    assert bad(looks.inside_checks(own, pod(), printed())) == []
    rows = [
        {"ifname": "mlx5_1", "state": "ACTIVE", "netdev": "net1"},
        {"ifname": "mlx5_2", "state": "DOWN", "netdev": "net2"},
    ]
    assert bad(looks.inside_checks(own, pod(), printed(rdma=rows))) == [("pod_rdma", "rail2")]
    assert bad(looks.inside_checks(own, pod(), printed(rdma=rows[:1]))) == [("pod_rdma", "rail2")]


def test_only_what_is_planned_is_asked():
    assert set(looks.commands(node())) == {"links", "rdma", "rules4", "routes4"}
    assert set(looks.commands(node(gateway=False))) == {"links", "rdma"}
    assert set(looks.commands(node(subnets=("fd00::/64",)))) == {"links", "rdma", "rules6", "routes6"}


def test_the_newest_pod_that_stays_counts():
    def made(name, age, **more):
        meta = {"name": name, "namespace": "ml", "creationTimestamp": f"2026-01-01T00:00:0{age}Z", **more}
        return {"metadata": meta, "spec": {"nodeName": "node1"}}

    old, new, going = made("a", 1), made("b", 2), made("c", 3, deletionTimestamp="x")
    assert looks.newest([new, going, old])["node1"]["metadata"]["name"] == "b"


def test_a_pod_that_waits_for_its_only_node_is_that_node_s():
    terms = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node3"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert looks.wanted_node({"spec": {"affinity": affinity}}) == "node3"


def config(name, **more):
    block = {"master": ["ens1"], "rdmaResourceName": "spidernet.io/x", "mtu": 9000}
    spec = {"cniType": "macvlan", "enableCoordinator": True, "coordinator": {"tunePodRoutes": True}, "macvlan": block}
    return {"metadata": {"name": name, "namespace": "spiderpool"}, "spec": {**spec, **more}}


def piece(interface="ens1", gateway="172.17.1.1"):
    address = {"address": "172.17.1.2/27", "subnet": "172.17.1.0/27", "gateway": gateway, "family": 4}
    return {
        "fabric": "fabric",
        "node": "node1",
        "rails": [{"name": "rail1", "interface": interface, "addresses": [address]}],
    }


@pytest.mark.parametrize(
    ("made", "slice_", "wanted"),
    [
        pytest.param(config("fabric-rail1"), piece(), (True, ("172.17.1.0/27",)), id="plain"),
        pytest.param(config("fabric-rail1"), piece(gateway=None), (False, ("172.17.1.0/27",)), id="no-gateway"),
        pytest.param(
            config("fabric-rail1", coordinator={"tunePodRoutes": False}),
            piece(),
            (False, ("172.17.1.0/27",)),
            id="untuned",
        ),
        pytest.param(config("fabric-rail1", disableIPAM=True), piece(), (True, ()), id="lid-only"),
    ],
)
def test_what_the_plan_gives_a_pod(made, slice_, wanted):
    (found,) = looks.node_of(slice_, [made]).networks
    assert (found.gateway, found.subnets) == wanted
    assert (found.name, found.resource, found.mtu) == ("spiderpool/fabric-rail1", "spidernet.io/x", 9000)


class Fabric:
    rails = ()


def test_a_node_with_other_names_has_the_config_of_its_profile():
    own = f"fabric-rail1-{profile_of(Fabric(), ('eno9',))}"
    configs = [config("fabric-rail1"), config(own)]
    assert looks.node_of(piece("eno9"), configs).networks[0].name == f"spiderpool/{own}"
    assert looks.node_of(piece("ens1"), configs).networks[0].name == "spiderpool/fabric-rail1"

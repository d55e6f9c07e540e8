# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.pod_state import newest
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import POD_STATUS
from ansible_collections.railops.rdma.plugins.module_utils._pods import checks as looks
from ansible_collections.railops.rdma.plugins.module_utils._pods.checks import Network, PodNode
from ansible_collections.railops.rdma.plugins.module_utils._pods.pod_checks import inside_checks as looks_inside
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.names import profile_of

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures/pods"

NAMES = ("spiderpool/fabric-rail1", "spiderpool/fabric-rail2")


def network(rail, **more):
    number = int(rail[-1])
    given = {"kind": "macvlan", "subnets": (f"172.17.{number}.0/27",), "mtu": 4200}
    given["gateways"] = (f"172.17.{number}.1",)
    return Network(rail=rail, name=f"spiderpool/fabric-{rail}", **{**given, **more})


def node(**more):
    return PodNode("node1", (network("rail1", **more), network("rail2", **more)))


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
    notes = {POD_STATUS: entries() if status is None else status}
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


@pytest.mark.parametrize(
    "status",
    [
        *("no json", "[]", "{}", '["x"]', "null"),
        *("[" * 100_000, '[{"name": {}}]', '[{"name": "a", "ips": 5}]', "[" * 99 + "]" * 99),
    ],
)
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


def warning(reason, message, at=1):
    return {"type": "Warning", "reason": reason, "message": message, "lastTimestamp": f"2026-11-21T10:00:{at:02d}Z"}


def waiting(reason, message=""):
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


@pytest.mark.parametrize(
    ("status", "events", "cause", "fix"),
    [
        (condition("0/3 nodes are available: 1 Insufficient spidernet.io/x."), [], "Insufficient", "node_resources"),
        (condition("0/3 nodes are available: 1 node(s) had untolerated taint"), [], "taint", "taints"),
        (waiting("ImagePullBackOff", "Back-off pulling image"), [], "ImagePullBackOff", "rail_objects_test_image"),
        (waiting("CreateContainerError", "no runtime"), [], "CreateContainerError: no runtime", "describe pod p"),
        (
            waiting("ContainerCreating"),
            [warning("FailedCreatePodSandBox", "no available IPPool")],
            "IPPool",
            "Failures",
        ),
        (waiting("ContainerCreating"), [], "the pod is Pending", "describe"),
        ({"reason": "UnexpectedAdmissionError", "message": "no device"}, [], "UnexpectedAdmissionError", "describe"),
    ],
)
def test_why_a_pod_does_not_run(status, events, cause, fix):
    (check,) = looks.network_checks(node(), pod(phase="Pending", **status), events)
    assert check["status"] == "deviation"
    assert cause in check["cause"]
    assert fix in check["fix"]


MAIN = {"dst": "default", "gateway": "10.244.1.1", "dev": "eth0", "flags": []}


def default(number, **changes):
    row = {"dst": "default", "gateway": f"172.17.{number}.1", "dev": f"net{number}", "table": str(100 + number)}
    return {**row, "flags": [], **changes}


LINK = {"ifname": "net1", "flags": ["UP"], "mtu": 4200, "addr_info": [{"local": "172.17.1.3"}]}
OTHER = {"ifname": "net2", "flags": ["UP"], "mtu": 4200, "addr_info": [{"local": "172.17.2.3"}]}


def printed(**changes):
    rows = {
        "links": [LINK, OTHER],
        "rules4": [{"priority": 1000, "src": f"172.17.{n}.3", "table": str(100 + n)} for n in (1, 2)],
        "routes4": [MAIN, *(default(n) for n in (1, 2))],
        "rdma": [{"ifname": f"mlx5_{n}/1", "state": "ACTIVE", "netdev": f"net{n}"} for n in (1, 2)],
    }
    rows.update(changes)
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in rows.items()}


@pytest.mark.parametrize(
    ("outputs", "wanted", "cause"),
    [
        pytest.param({}, [], "", id="whole"),
        pytest.param({"links": [OTHER]}, [("pod_interface", "rail1")], "no interface net1", id="no-nic"),
        pytest.param({"links": [{**LINK, "flags": []}, OTHER]}, [("pod_interface", "rail1")], "is down", id="down"),
        pytest.param(
            {"links": [{**LINK, "flags": ["NO-CARRIER", "UP"]}, OTHER]},
            [("pod_interface", "rail1")],
            "carrier",
            id="carrier",
        ),
        pytest.param({"links": [{**LINK, "mtu": 1500}, OTHER]}, [("pod_interface", "rail1")], "another MTU", id="mtu"),
        pytest.param(
            {"links": [{**LINK, "addr_info": []}, OTHER]}, [("pod_interface", "rail1")], "is not on net1", id="bare"
        ),
        pytest.param({"rules4": []}, [("pod_rule", "rail1"), ("pod_rule", "rail2")], "no rule", id="no-rules"),
        pytest.param(
            {"routes4": [MAIN, default(2)]}, [("pod_table", "rail1")], "table 101 has no default route", id="no-default"
        ),
        pytest.param(
            {"routes4": [MAIN, default(1, gateway="172.17.1.30"), default(2)]},
            [("pod_table", "rail1")],
            "172.17.1.30, which is not the rail's gateway",
            id="another-gateway",
        ),
        pytest.param(
            {"routes4": [MAIN, default(1, dev="eth0"), default(2)]},
            [("pod_table", "rail1")],
            "packets from 172.17.1.3 leave by eth0",
            id="another-nic",
        ),
        pytest.param(
            {"routes4": [{**MAIN, "dev": "net1"}, default(1), default(2)]},
            [("pod_main_table", None)],
            "default leaves by net1",
            id="main-by-a-rail",
        ),
        pytest.param(
            {"routes4": [MAIN, {"dst": "10.96.0.0/16", "dev": "net2"}, default(1), default(2)]},
            [("pod_main_table", None)],
            "10.96.0.0/16 leaves by net2",
            id="services-by-a-rail",
        ),
        pytest.param(
            {"routes4": [MAIN, {"dst": "172.17.2.0/27", "dev": "net2"}, default(1), default(2)]}, [], "", id="subnet"
        ),
        pytest.param({"rdma": []}, [("pod_rdma", None)], "0 active RDMA devices for 2 rails", id="no-device"),
        pytest.param(
            {"rules4": "no json", "rdma": '{"a": 1}'}, [("pod_exec", None)] * 2, "printed no JSON", id="not-json"
        ),
    ],
)
def test_inside_of_a_pod(outputs, wanted, cause):
    checks = looks_inside(node(), pod(), printed(**outputs))
    assert bad(checks) == wanted
    assert cause in "".join(check["cause"] for check in checks)
    assert all(check["fix"] for check in checks if check["status"] == "deviation")


def test_a_rail_that_is_the_pod_s_first_network_may_carry_everything():
    first = entries(rail1={"interface": "eth0", "default": True})
    routes = [{"dst": "default", "gateway": "172.17.1.1", "dev": "eth0"}, default(2)]
    links = [{**LINK, "ifname": "eth0"}, OTHER]
    made = printed(rules4=[{"src": "172.17.2.3", "table": "102"}], routes4=routes, links=links)
    assert bad(looks_inside(node(), pod(first), made)) == []


def test_a_pod_as_it_was_on_the_real_thing():
    """Rules and tables that pods with three rails had (Spiderpool 1.2.1), in the form that iproute2 6.1 prints."""
    rails = [network(f"rail{n}", subnets=(f"172.31.{n - 1}.0/27",), gateways=(f"172.31.{n - 1}.1",)) for n in (1, 2, 3)]
    there = PodNode("node1", tuple(rails))
    rows = [
        {"name": f"spiderpool/fabric-rail{n}", "interface": f"net{n}", "ips": [f"172.31.{n - 1}.3"]} for n in (1, 2, 3)
    ]
    outputs = {
        name: (FIXTURES / f"{name}.txt").read_text(encoding="utf-8") for name in ("rules4", "routes4", "gids", "rdma")
    }
    checks = looks_inside(there, pod(json.dumps(rows)), outputs)
    assert bad(checks) == []
    assert {check["id"] for check in checks} == {"pod_rule", "pod_table", "pod_main_table", "pod_gid", "pod_rdma"}
    assert len(checks) == 11


def test_shared_device_has_the_gid_of_each_rail():
    one = "0000:0000:0000:0000:0000:ffff:ac11:0103\n"
    both = f"{one}0000:0000:0000:0000:0000:ffff:ac11:0203\n"
    assert bad(looks_inside(node(), pod(), printed(gids=both))) == []
    assert bad(looks_inside(node(), pod(), printed(gids=one))) == [("pod_gid", "rail2")]
    checks = looks_inside(node(kind="ipoib"), pod(), printed(gids=""))
    assert (bool(checks), bad(checks)) == (True, [])


def test_pod_sees_only_its_own_devices():
    rows = [{"ifname": f"mlx5_{n}/1", "state": "ACTIVE", "netdev": f"net{n}"} for n in (1, 2)]
    foreign = [*rows, {"ifname": "mlx5_9/1", "state": "ACTIVE"}]
    checks = looks_inside(node(kind="sriov"), pod(), printed(rdma=foreign))
    assert bad(checks) == [("pod_rdma_isolation", None)]
    assert "exclusive" in "".join(check["fix"] for check in checks)


def test_a_device_of_its_own_belongs_to_its_interface():
    own = node(kind="sriov")
    assert bad(looks_inside(own, pod(), printed())) == []
    rows = [
        {"ifname": "mlx5_1", "state": "ACTIVE", "netdev": "net1"},
        {"ifname": "mlx5_2", "state": "DOWN", "netdev": "net2"},
    ]
    assert bad(looks_inside(own, pod(), printed(rdma=rows))) == [("pod_rdma", "rail2")]
    assert bad(looks_inside(own, pod(), printed(rdma=rows[:1]))) == [("pod_rdma", "rail2")]


def test_the_newest_pod_that_stays_counts():
    def made(name, age, **more):
        meta = {"name": name, "namespace": "ml", "creationTimestamp": f"2026-01-01T00:00:0{age}Z", **more}
        return {"metadata": meta, "spec": {"nodeName": "node1"}}

    old, new, going = made("a", 1), made("b", 2), made("c", 3, deletionTimestamp="x")
    assert newest([new, going, old])["node1"]["metadata"]["name"] == "b"


def row(name="fabric-rail1", **more):
    given = {"resource": "spidernet.io/x", "ask": False, "addresses": True, "routes": True, "mtu": 9000}
    return {"rail": "rail1", "name": f"spiderpool/{name}", "attachment": "macvlan", **given, **more}


def piece(interface="ens1", gateway="172.17.1.1"):
    address = {"address": "172.17.1.2/27", "subnet": "172.17.1.0/27", "gateway": gateway, "family": 4}
    return {
        "fabric": "fabric",
        "node": "node1",
        "rails": [{"name": "rail1", "interface": interface, "addresses": [address]}],
    }


@pytest.mark.parametrize(
    ("made", "host_plan", "wanted"),
    [
        pytest.param(row(), piece(), (True, ("172.17.1.0/27",)), id="plain"),
        pytest.param(row(), piece(gateway=None), (False, ("172.17.1.0/27",)), id="no-gateway"),
        pytest.param(row(routes=False), piece(), (False, ("172.17.1.0/27",)), id="untuned"),
        pytest.param(row(addresses=False), piece(), (True, ()), id="lid-only"),
    ],
)
def test_what_the_plan_gives_a_pod(made, host_plan, wanted):
    (found,) = looks.node_of(host_plan, {"declared": [made]}).networks
    assert (bool(found.gateways), found.subnets) == wanted
    assert (found.name, found.kind) == ("spiderpool/fabric-rail1", "macvlan")
    assert found.mtu == 9000


def test_a_rail_without_a_network_is_left_out():
    assert looks.node_of(piece(), {"declared": [row(rail="rail2")]}).networks == ()
    assert looks.node_of(piece(), {}).networks == ()


class Fabric:
    rails = ()


def test_a_node_with_other_names_has_the_network_of_its_profile():
    networks = {"declared": [row()], profile_of(Fabric(), ("eno9",)): [row("own")]}
    assert looks.node_of(piece("eno9"), networks).networks[0].name == "spiderpool/own"
    assert looks.node_of(piece("ens1"), networks).networks[0].name == "spiderpool/fabric-rail1"


@pytest.mark.parametrize("name", ["links", "rules4", "routes4", "rdma"])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[" * 100_000, "nested too deep"),
        ("[" * 400 + "]" * 400, "nested more than 16 deep"),
        ("x" * 50_000_000, "more than 8,000,000 characters"),
        ('[{"flags": 5}]', "flags of an item of what it printed is a int"),
        ('[{"addr_info": {"local": 1}}]', "addr_info"),
        ('[{"addr_info": ["x"]}]', "addr_info"),
        ("[5]", "a int"),
        ('{"a": 1}', "a dict"),
        ("\x1b[2J", "no JSON"),
    ],
)
def test_a_pods_nonsense_is_its_nodes_deviation_and_no_end_of_the_run(name, text, kind):
    """M4: `flags: 5`, or 100,000 brackets, ended the checks of all pods."""
    checks = looks_inside(node(), pod(), printed(**{name: text}))
    (odd,) = [check for check in checks if check["id"] == "pod_exec"]
    assert (odd["status"], odd["node"]) == ("deviation", "node1")
    assert kind in odd["cause"]
    assert len(odd["cause"]) < 120
    assert odd["cause"].isprintable()
    others = looks_inside(node(), pod(), {key: value for key, value in printed().items() if key != name})
    assert [check for check in checks if check["id"] != "pod_exec"] == others

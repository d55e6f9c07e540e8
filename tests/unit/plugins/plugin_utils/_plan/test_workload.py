# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The workload's side of the plan: golden files, the grammar of environment files, real readers of them.

RAILOPS_GOLDEN=1 writes the golden files again; git diff shows then what changed.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import shutil
import subprocess
from pathlib import Path

import env
import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import NAMES
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.facts import node_labels
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.objects import device_config, node_resources
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.topology import hostlist, topology_labels
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.workload import render_workload
from ansible_collections.railops.rdma.tests.unit.fabric_samples import (
    INFINIBAND,
    OTHER,
    SAMPLES,
    names,
    plan_of,
    rails,
    raw_of,
)
from ansible_collections.railops.rdma.tests.unit.schemas import server

GOLDEN = Path(__file__).resolve().parents[3] / "data/workload"
LOSSLESS = {"priority": 3, "dscp": 26}


def known(count=2, interface="ens{}np0"):
    return [{**rail, "device": f"mlx5_{3 * number}"} for number, rail in enumerate(rails(count, interface))]


IB = {**INFINIBAND, "rails": known(interface="ibs{}")}
TWO = [
    {"name": "su1", "group": "su1", "supernets": ["172.20.0.0/16"], "leaves": ["su1 leaf (a)", "su1-leaf2"]},
    {"name": "su2", "group": "su2", "supernets": ["172.21.0.0/16"], "leaves": ["su2-leaf1", "su2-leaf2"]},
]
FABRICS = {
    "macvlan": (raw_of(rails=known(), lossless=LOSSLESS), names(3)),
    "isolated": (raw_of(rails=known(), mode="shared", gateway="none", inject=None, lossless=LOSSLESS), names(3)),
    "sriov": (raw_of(rails=known(), attachment="sriov", lossless=LOSSLESS), names(3)),
    "infiniband": (raw_of(**IB), names(3)),
    "ipoib": (raw_of(**{**IB, "attachment": "ipoib", "mode": "shared"}), names(3)),
    "zones": (
        raw_of(supernets=None, zones=TWO, rails=known()),
        [{"host": f"node{number:02d}", "groups": ["su1" if number < 11 else "su2"]} for number in range(8, 14)],
    ),
    "cables": (
        raw_of(rails=known(), leaves=["leaf1", "leaf2"]),
        [
            {"host": f"node{number}", "cables": {f"rail{rail}": {"leaf": f"leaf{rail + side}"} for rail in (1, 2)}}
            for number, side in ((1, 0), (2, 0), (3, 2), (4, 2))
        ],
    ),
    "names": (raw_of(rails=known()), ["node1", OTHER]),
}
ALL = [*((name, value) for name, value in SAMPLES.items()), *FABRICS.items()]
EACH = [name for name, _value in ALL]
ENV = [name for name in NAMES["workload"] if name.endswith(".env")]


@pytest.mark.parametrize("name", FABRICS)
def test_files_are_the_golden_ones(name):
    files = made_of(name)[1]
    folder = GOLDEN / name
    if os.environ.get("RAILOPS_GOLDEN"):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            # ansible-test takes a .yaml for one document.
            (folder / (f"{path}.txt" if text.count("\n---\n") > 1 else path)).write_text(text, encoding="utf-8")
    assert {path: text.splitlines() for path, text in files.items()} == {
        path.name.removesuffix(".txt"): path.read_text(encoding="utf-8").splitlines() for path in folder.iterdir()
    }


@functools.cache
def made_of(name):
    """Return the plan of a sample and its files, made once."""
    plan = plan_of(*dict(ALL)[name])
    return plan, render_workload(plan)


def values(text):
    """Read an environment file by its own grammar; what it does not have fails."""
    found = {}
    reason = ""
    for line in text.splitlines():
        if line.startswith("#"):
            # NCCL before 2.30 takes a comment with an equals sign for a variable.
            assert "=" not in line
            assert len(line) <= 120
            reason = line
        elif line:
            match = re.fullmatch(r"([A-Z][A-Z0-9_]*)=([A-Za-z0-9_.,:=^/-]+)", line)
            assert match, line
            assert reason, f"{line} has no reason beside it"
            assert match[1] not in found
            found[match[1]] = match[2]
        else:
            reason = ""
    assert text.endswith("\n")
    return found


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "busybox"])
def test_shells_read_them_alike(shell, tmp_path):
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"{shell} is not here")
    text = render_workload(plan_of(*FABRICS["isolated"]))["nccl-hosts.env"]
    (tmp_path / "file.env").write_text(text, encoding="utf-8")
    words = [program, *(["sh"] if shell == "busybox" else []), "-c", "set -a; . ./file.env; env"]
    done = subprocess.run(
        words, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert {key: seen.get(key) for key in values(text)} == values(text)


@pytest.mark.parametrize("sample", EACH)
def test_the_range_holds_every_address_of_the_rails(sample):
    plan, files = made_of(sample)
    found = values(files["nccl-pods.env"])
    if plan.fabric.network == "infiniband":
        assert not {name for name in found if "ADDR" in name or "ROCE" in name}
        return
    family = {"AF_INET": 4, "AF_INET6": 6}[found["NCCL_IB_ADDR_FAMILY"]]
    if "NCCL_IB_ADDR_RANGE" in found:
        net = ipaddress.ip_network(found["NCCL_IB_ADDR_RANGE"])
        assert net.version == family
        for block in plan.blocks:
            if block.family == family:
                assert ipaddress.ip_network(str(block.aggregate)).subnet_of(net)
    else:
        assert len({zone.supernets for zone in plan.fabric.zones}) > 1


@pytest.mark.parametrize(
    ("more", "cross"),
    [
        ({}, None),
        ({"gateway": "none"}, "0"),
        ({"rails_reachable": False}, "0"),
        ({"gateway": "none", "rails_reachable": True}, None),
    ],
)
def test_cross_nic_follows_from_whether_rails_meet(more, cross):
    files = render_workload(plan_of(raw_of(rails=known(), inject=None, mode="shared", **more), names(2)))
    assert values(files["nccl-pods.env"]).get("NCCL_CROSS_NIC") == cross
    assert values(files["ucx-pods.env"]).get("UCX_IB_ROCE_LOCAL_SUBNET") == ("y" if cross else None)


def refused(value, interface):
    """Return whether NCCL excludes an interface, as its parseStringList and matchIf do."""
    exact = value.startswith("^=")
    names = value.removeprefix("^").removeprefix("=").split(",")[:16]
    return interface in names if exact else interface.startswith(tuple(names))


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("more", [{}, {"vlan": 100}, {"vlan": 100, "attachment": "sriov"}])
def test_ranks_on_hosts_find_each_other_over_no_rail(more, count):
    """Nor over a rail's VLAN interface, which has the address. NCCL reads 16 names and no more."""
    plan = plan_of(raw_of(**more), names(count))
    found = values(render_workload(plan)["nccl-hosts.env"])["NCCL_SOCKET_IFNAME"]
    for name in ("lo", "docker0", *(name for rail in plan.fabric.rails for name in (rail.interface, rail.parent))):
        assert refused(found, name), name
    assert not refused(found, "eno1")
    # Without a VLAN nothing else is meant.
    assert refused(found, "ens1np0v1") == bool(more)


@pytest.mark.parametrize(("count", "there"), [(13, True), (14, False)])
def test_more_names_than_nccl_reads_are_left_out(count, there):
    """It would not exclude the last ones, lo among them."""
    rails = [{"name": f"rail{number}", "interface": f"ens{number}np0"} for number in range(1, count + 1)]
    text = render_workload(plan_of(raw_of(rails=rails), names(2)))["nccl-hosts.env"]
    assert ("NCCL_SOCKET_IFNAME" in values(text)) is there


@pytest.mark.parametrize("more", [{"mode": "exclusive"}, {"mode": "shared", "supernets": None, "zones": TWO}])
def test_ucx_reaches_peers_behind_the_leaf(more):
    """A peer of the same rail may be in another subnet."""
    nodes = [{"host": f"node{number}", "groups": ["su1" if number < 3 else "su2"]} for number in range(1, 5)]
    files = render_workload(plan_of(raw_of(rails=known(), inject=None, rails_reachable=False, **more), nodes))
    assert "UCX_IB_ROCE_LOCAL_SUBNET" not in values(files["ucx-pods.env"])
    assert values(files["ucx-pods.env"])["UCX_IB_ROCE_REACHABILITY_MODE"] == "all"


def test_devices_are_named_only_where_they_are_sure():
    one = known()
    del one[1]["device"]
    for raw, nodes, why in (
        (raw_of(rails=one), names(2), "missing: rail2"),
        (raw_of(rails=known()), ["node1", OTHER], "in several"),
    ):
        text = render_workload(plan_of(raw, nodes))["nccl-pods.env"]
        assert "NCCL_IB_HCA" not in values(text)
        assert why in text


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"lossless": {"priority": 8, "dscp": 26}}, "fabric_lossless.priority"),
        ({"lossless": {"dscp": 26}}, "fabric_lossless.priority"),
        ({"lossless": {"priority": 3, "dscp": 64}}, "fabric_lossless.dscp"),
        ({"lossless": "dscp26"}, "fabric_lossless"),
        ({"lossless": LOSSLESS, **INFINIBAND}, "fabric_lossless"),
        ({"rails": [{"interface": "a", "device": "mlx5 0"}]}, "fabric_rails[0].device"),
        ({"rails": [{"interface": x, "device": "mlx5_0"} for x in "ab"]}, "fabric_rails[1].device"),
        ({"name": "zone", "supernets": None, "zones": TWO, "rails": known()}, "fabric_name"),
    ],
)
def test_bad_input_is_refused_at_its_place(more, place):
    with pytest.raises(InputError) as caught:
        plan_of(raw_of(**more), [{"host": "node1", "groups": ["su1"]}])
    assert [problem.place for problem in caught.value.problems] == [place]


def test_a_rail_can_be_the_default_network_of_a_jobs_pod():
    """It is attached once, as eth0, over which ranks find each other; its resource is asked for all the same."""
    files = render_workload(plan_of(raw_of(pod_default_rail="rail2", inject=None), names(1)))
    (made,) = [one for one in yaml.safe_load_all(files["pod.yaml"]) if one]
    notes, (box,) = made["template"]["metadata"]["annotations"], made["template"]["spec"]["containers"]
    assert notes["v1.multus-cni.io/default-network"] == "spiderpool/fabric-rail2"
    others = notes["k8s.v1.cni.cncf.io/networks"].split(",")
    assert "spiderpool/fabric-rail2" not in others
    assert len(box["resources"]["limits"]) == len(others) + 1
    assert values(files["nccl-pods.env"])["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert "the pod's default network, which is rail2" in files["nccl-pods.env"]


def test_rails_can_share_one_resource_where_pods_share_devices():
    pooled = [{**rail, "resource": "hca_shared_devices"} for rail in rails(2)]
    plan = plan_of(raw_of(rails=pooled, inject=None), names(1))
    (entry,) = device_config(plan)["configList"]
    assert (entry["resourceName"], entry["rdmaHcaMax"]) == ("hca_shared_devices", 100)
    assert entry["selectors"]["ifNames"] == ["ens1np0", "ens2np0"]
    assert node_resources(plan) == {"declared": {"spidernet.io/hca_shared_devices": 100}}
    (made,) = [one for one in yaml.safe_load_all(render_workload(plan)["pod.yaml"]) if one]
    (box,) = made["template"]["spec"]["containers"]
    assert box["resources"]["limits"] == {"spidernet.io/hca_shared_devices": "1"}
    assert len(made["template"]["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(",")) == 2


@pytest.mark.parametrize("sample", EACH)
def test_pods_request_every_rail(sample):
    plan, files = made_of(sample)
    made = [one for one in yaml.safe_load_all(files["pod.yaml"]) if one]
    for one in made:
        notes = one["template"]["metadata"]["annotations"]
        container = one["template"]["spec"]["containers"][0]
        assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
        limits = container.get("resources", {}).get("limits", {})
        if plan.fabric.inject:
            assert list(notes) == [plan.fabric.inject[0]]
            assert bool(limits) == (plan.fabric.attachment == "ipoib")
        else:
            assert len(notes["k8s.v1.cni.cncf.io/networks"].split(",")) == len(plan.fabric.rails) == len(limits)
    assert len({one["metadata"]["name"] for one in made}) == len(made) > 0


@pytest.mark.parametrize("sample", EACH)
def test_labels_are_labels(sample):
    plan, _files = made_of(sample)
    groups = [(labels, nodes) for labels, nodes in topology_labels(plan) if labels]
    for labels, _nodes in groups:
        for key, value in labels.items():
            assert re.fullmatch(r"fabric\.railops\.io/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", key)
            assert re.fullmatch(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?", value)
    labeled = [node for _labels, nodes in groups for node in nodes]
    leaves = plan.fabric.zones[0].leaves
    assert sorted(labeled) == (sorted(node.name for node in plan.nodes) if plan.fabric.zoned or leaves else [])


def expanded(text):
    """Expand a hostlist, by another way than it is written."""
    found = []
    for match in re.finditer(r"([^,\[]+)(?:\[([^\]]*)\])?", text):
        if match[2] is None:
            found.append(match[1])
            continue
        for part in match[2].split(","):
            low, _dash, high = part.partition("-")
            found += [f"{match[1]}{n:0{len(low)}d}" for n in range(int(low), int(high or low) + 1)]
    return found


@pytest.mark.parametrize(
    "given",
    [
        ["node1", "node2", "node4"],
        ["node9", "node10", "node11"],
        ["n08", "n09", "n10", "n11"],
        ["n0", "n1", "n00", "n01"],
        ["gpu1.example.com", "gpu2.example.com"],
        ["123", "7"],
        ["a", "b-1", "b-2", "b-x"],
        ["n1234567890123", "n1234567890124"],
    ],
)
def test_hostlists_name_the_same_nodes(given):
    assert sorted(expanded(hostlist(given))) == sorted(given)


def test_rails_whose_groups_differ_are_no_tree():
    """Node2 shares one leaf with node1 and another with node3: below the zone there is nothing to keep together."""
    cables = (("a", "x"), ("a", "y"), ("b", "y"))
    nodes = [
        {"host": f"node{number}", "cables": {"rail1": {"leaf": one}, "rail2": {"leaf": other}}}
        for number, (one, other) in enumerate(cables, 1)
    ]
    files = render_workload(plan_of(raw_of(rails=known()), nodes))
    assert files["topology.conf"].splitlines()[-1] == "SwitchName=fabric-fabric Nodes=node[1-3]"


@pytest.mark.parametrize(
    ("name", "page", "kind"),
    [
        ("kubeflow.org_mpijobs", "acceptance", "MPIJob"),
        ("kueue.x-k8s.io_topologies", "jobs", "Topology"),
    ],
)
def test_the_crd_takes_the_object_of_the_docs(name, page, kind):
    crd = env.SHARED / f"crds-workload/{name}.yaml"
    if not crd.exists():
        pytest.skip(env.NO_CRDS)
    shown = (env.CHECKOUT / f"docs/guides/{page}.md").read_text(encoding="utf-8").partition(f"kind: {kind}")
    body = yaml.safe_load("".join(shown[:2]).rpartition("```yaml\n")[2] + shown[2].partition("```")[0])
    assert server(crd)(body) == []


def test_nodes_with_the_same_labels_are_together():
    leaf = "fabric.railops.io/leaf-rail"
    assert node_labels(made_of("cables")[0]) == [
        {"labels": {f"{leaf}1": "leaf1", f"{leaf}2": "leaf2"}, "nodes": ["node1", "node2"]},
        {"labels": {f"{leaf}1": "leaf3", f"{leaf}2": "leaf4"}, "nodes": ["node3", "node4"]},
    ]
    (group,) = node_labels(made_of("sriov")[0])
    assert group == {"labels": {"fabric.railops.io/fabric": "declared"}, "nodes": names(3)}

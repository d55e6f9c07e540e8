# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects to hold the admission validator to, beside what the real webhooks make of the same objects."""

from __future__ import annotations

import pytest

from .mutate import INJECT_RDMA

SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"


def pool(name="rail1-node1", **spec):
    """Return a pool; None takes a field out."""
    spec = {"subnet": "172.17.0.0/27", "ips": ["172.17.0.3-172.17.0.30"], "gateway": "172.17.0.1", **spec}
    spec = {key: value for key, value in spec.items() if value is not None}
    return {"apiVersion": SPIDERPOOL, "kind": "SpiderIPPool", "metadata": {"name": name}, "spec": spec}


def multus(cni="macvlan", block=None, annotations=None, name="rail1", **spec):
    key = {"ib-sriov": "ibsriov"}.get(cni, cni)
    default = {"ippools": {"ipv4": ["rail1-*"]}}
    if cni in ("macvlan", "ipvlan"):
        default.update(master=["ens1np0"], rdmaResourceName="spidernet.io/rail1")
    elif cni == "ipoib":
        default.update(master="ib0")
    else:
        default.update(resourceName="spidernet.io/rail1")
    metadata = {"name": name, "namespace": "spiderpool"}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderMultusConfig",
        "metadata": metadata,
        "spec": {"cniType": cni, key: {**default, **(block or {})}, **spec},
    }


def policy(name="rail1", **spec):
    base = {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "nicSelector": {"pfNames": ["ens1np0"]},
        "numVfs": 8,
        "resourceName": "rail1",
    }
    return {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkNodePolicy",
        "metadata": {"name": name, "namespace": "spiderpool"},
        "spec": {**base, **spec},
    }


def reserved(*ips, **spec):
    return {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderReservedIP",
        "metadata": {"name": "switches"},
        "spec": {"ips": list(ips), **spec},
    }


DOCUMENTED = [
    pytest.param(
        pool(subnet="172.16.11.0/16", ips=["172.16.11.10-172.16.11.20"], gateway="172.16.11.254"),
        "unformatted subnet 172.16.11.0/16, please change it to 172.16.0.0/16",
        id="host bits",
    ),
    pytest.param(pool(ipVersion="ipv4"), "spec.ipVersion: Invalid type: expected int", id="ipVersion ipv4"),
    pytest.param(
        pool(routes=[{"to": "172.18.0.0/16", "via": "172.17.0.1"}]),
        "spec.routes: field not declared in schema",
        id="routes to via",
    ),
    pytest.param(
        pool(subnet="172.17.1.32/27", ips=["172.17.1.34-172.17.1.64"], gateway="172.17.1.33"),
        "not inside the subnet",
        id="range leaves the subnet",
    ),
    pytest.param(
        multus("sriov", {"matchMasterSubnet": True}),
        "spec.sriov.matchMasterSubnet: field not declared in schema",
        id="matchMasterSubnet beside ippools",
    ),
    pytest.param(
        multus("macvlan", ippools={"ipv4": ["gpu1-net11"]}),
        "spec.ippools: field not declared in schema",
        id="ippools beside the block",
    ),
    pytest.param(
        multus("macvlan", {"enableRdma": True}),
        "spec.macvlan.enableRdma: field not declared in schema",
        id="enableRdma",
    ),
    pytest.param(
        multus("ib-sriov", {"pkey": 1000}), "spec.ibsriov.pkey: Invalid type: expected str", id="pkey is a number"
    ),
    pytest.param(pool(vlan=5), "spec.vlan: field not declared in schema", id="vlan of a pool"),
]

NORMAL = [
    pool(ips=["172.17.0.9", "172.17.0.5"]),
    pool(subnet="2001:db8::/64", ips=["2001:db8::3-2001:db8::1e"], gateway="2001:db8::1"),
    *(multus(cni) for cni in ("macvlan", "ipvlan", "sriov", "ib-sriov", "ipoib")),
    policy(),
    reserved("10.0.0.2", "10.0.0.1"),
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
]

REFUSED = [
    pytest.param(multus("macvlan", {"master": []}), "master can't be empty", id="no master"),
    pytest.param(multus("macvlan", {"master": ["a", "b"]}), "bond property is nil", id="two masters"),
    pytest.param(multus("ipvlan", {"ippools": {"matchMasterSubnet": True}}), "Unsupported value", id="match master"),
    pytest.param(multus("macvlan", {"vlanID": 4095}), "must be at most 4094", id="vlan 4095"),
    pytest.param(multus("macvlan", {"mtu": -1}), "must be at least 0", id="mtu"),
    pytest.param(multus("sriov", {"resourceName": ""}), "resourceName", id="sriov without resource"),
    pytest.param(multus("ib-sriov", {"resourceName": ""}), "resourceName", id="ib-sriov without resource"),
    pytest.param(multus("ipoib", {"master": ""}), "master", id="ipoib without master"),
    pytest.param(multus("ib-sriov", {"linkState": "on"}), "Unsupported value", id="link state"),
    pytest.param(multus("macvlan", ipvlan={"master": ["a"]}), "remove other CNI configs", id="two blocks"),
    pytest.param(multus("macvlan", {"rdmaResourceName": ""}, {INJECT_RDMA: "x"}), "can not be empty", id="no resource"),
    pytest.param(multus("macvlan", {"ippools": {}}, {INJECT_RDMA: "x"}), "no ippools", id="inject without pools"),
    pytest.param(multus(annotations={INJECT_RDMA: "x" * 64}), "at most 63", id="label too long"),
    pytest.param(multus(coordinator={"podRPFilter": 3}), "spec.coordinator", id="rp filter"),
    pytest.param(multus(coordinator={"detectGateway": True}), "spec.coordinator", id="gone field"),
    pytest.param(multus(chainCNIJsonData=["{}"]), "spec.chainCNIJsonData", id="chain"),
    pytest.param(multus("bridge"), "Unsupported value", id="cni type"),
    pytest.param(reserved(), "empty 'spec.ips'", id="reserved empty"),
    pytest.param(reserved("10.0.0.0/24"), "failed to generate", id="reserved CIDR"),
    pytest.param(reserved("10.0.0.1", "::1"), "failed to merge", id="reserved families"),
    pytest.param(policy(priority=100), "must be at most 99", id="priority"),
    pytest.param(policy(rdmaMode="exclusive"), "not declared", id="field of a newer operator"),
]

# What the webhook fills in or drops: observed on Spiderpool 1.2.1.
FILLED = [
    pool(ips=[], nodeName=[], multusName=[]),
    pool(ips=["172.17.0.5-172.17.0.5", "172.17.0.9"]),
    pool(ips=["172.17.0.30-172.17.0.3"]),
    reserved("10.0.0.2-10.0.0.2"),
    multus("macvlan", {"ippools": {}}),
    multus("ipoib", {"ippools": {"ipv4": [], "ipv6": ["a"]}}),
    multus(annotations={INJECT_RDMA: "gpu"}),
]

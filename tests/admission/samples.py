# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects to hold the admission validator to, beside what the real webhooks make of the same objects."""

from __future__ import annotations

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


def reserved(*ips, **spec):
    return {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderReservedIP",
        "metadata": {"name": "switches"},
        "spec": {"ips": list(ips), **spec},
    }


DOCUMENTED = [
    pool(subnet="172.16.11.0/16", ips=["172.16.11.10-172.16.11.20"], gateway="172.16.11.254"),
    pool(ipVersion="ipv4"),
    pool(routes=[{"to": "172.18.0.0/16", "via": "172.17.0.1"}]),
    pool(subnet="172.17.1.32/27", ips=["172.17.1.34-172.17.1.64"], gateway="172.17.1.33"),
    multus("sriov", {"matchMasterSubnet": True}),
    multus("macvlan", ippools={"ipv4": ["gpu1-net11"]}),
    multus("macvlan", {"enableRdma": True}),
    multus("ib-sriov", {"pkey": 1000}),
    pool(vlan=5),
]

NORMAL = [
    pool(ips=["172.17.0.9", "172.17.0.5"]),
    pool(subnet="2001:db8::/64", ips=["2001:db8::3-2001:db8::1e"], gateway="2001:db8::1"),
    *(multus(cni) for cni in ("macvlan", "ipvlan", "sriov", "ib-sriov", "ipoib")),
    reserved("10.0.0.2", "10.0.0.1"),
]

REFUSED = [
    multus("macvlan", {"master": []}),
    multus("macvlan", {"master": ["a", "b"]}),
    multus("ipvlan", {"ippools": {"matchMasterSubnet": True}}),
    multus("macvlan", {"vlanID": 4095}),
    multus("macvlan", {"mtu": -1}),
    multus("sriov", {"resourceName": ""}),
    multus("ib-sriov", {"resourceName": ""}),
    multus("ipoib", {"master": ""}),
    multus("ib-sriov", {"linkState": "on"}),
    multus("macvlan", ipvlan={"master": ["a"]}),
    multus("macvlan", {"rdmaResourceName": ""}, {INJECT_RDMA: "x"}),
    multus("macvlan", {"ippools": {}}, {INJECT_RDMA: "x"}),
    multus(annotations={INJECT_RDMA: "x" * 64}),
    multus(coordinator={"podRPFilter": 3}),
    multus(coordinator={"detectGateway": True}),
    multus(chainCNIJsonData=["{}"]),
    multus("bridge"),
    reserved(),
    reserved("10.0.0.0/24"),
    reserved("10.0.0.1", "::1"),
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

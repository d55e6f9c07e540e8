# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The chain of CNI plugins that puts a rail into a pod where nv-ipam gives the addresses. Pure.

Spiderpool's coordinator gives each rail of a pod a table with a default route by the rail's gateway, whatever
`fabric_policy` says: that is the hosts'. `sbr` does the same here, in every version from 1.1.1 (Debian 12's) on.
With that version's real plugins (tests/kernel/test_pod_routes.py):

- Each address of the result gets a rule `from` it and a table of its own (from 100 on), with a default route by the
  gateway beside that address. So both families, several rails in a pod and rails across need nothing else: no
  `routes` and no `defaultGateway` in the pools, which would compete with the pod's own default route.
- All routes of the interface move out of main, fe80::/64 too. What is sent without a source address leaves by eth0.
  `addSourceHints` would keep the subnet's route in main; plugins up to 1.9.1 do not know it.
- IPv6 routes carry no source, so the tables of IPv4 addresses get copies of them; no rule leads there.
- Without a gateway the table has the subnet alone, and what goes beyond it falls through to main. The plugins then do
  not wait for IPv6's duplicate address detection: for a second or two the pod cannot use its address.
- DEL removes the rules while the interface is there. Without the pod's namespace (a node that was restarted), and in
  1.1.1 without the interface, sbr fails and the plugins before it are not run: containerd takes these errors as done,
  and what the IPAM keeps is freed by nv-ipam's own cleaner.
"""

from __future__ import annotations

import json
import typing as t

from ...module_utils._fabric.numbers import vlan_interface
from .._fabric.model import Fabric, Rail

Plugin = dict[str, object]

_VERSION = "0.3.1"
"""Of the CNI specification: the oldest with chains, which all these plugins speak."""

MODES = {"macvlan": "bridge", "ipvlan": "l2"}
"""Of interfaces that stand on the node's own, by attachment."""

_SYSCTLS: dict[int, dict[str, str]] = {
    4: {
        "net.ipv4.conf.IFNAME.arp_announce": "2",
        "net.ipv4.conf.IFNAME.arp_ignore": "1",
        "net.ipv4.conf.IFNAME.rp_filter": "0",
        # The larger of the two counts.
        "net.ipv4.conf.all.rp_filter": "0",
    },
    # A leaf's advertisement would bring a second address, and a default route beside the pod's own.
    6: {"net.ipv6.conf.IFNAME.accept_ra": "0"},
}
"""What `tuning` sets, by family; it replaces IFNAME with the interface's name."""


def network_config(fabric: Fabric, rail: Rail, name: str, interface: str, pools: t.Sequence[str]) -> str:
    """Return the `config` of a rail's NetworkAttachmentDefinition: a list of CNI plugins, as JSON.

    :param name: of the network, the NetworkAttachmentDefinition's own.
    :param interface: the rail's on the nodes that this is for (see `names.interfaces_of`).
    :param pools: names of the rail's CIDRPools, at most one per family.
    """
    ipam: Plugin = {"type": "nv-ipam", "poolName": ",".join(pools), "poolType": "cidrpool"}
    tuning: Plugin = {
        "type": "tuning",
        "sysctl": {key: value for family in fabric.families for key, value in _SYSCTLS[family].items()},
    }
    if fabric.attached.own_device:
        # Multus adds the device. The RDMA device follows its interface into the pod.
        plugins: list[Plugin] = [{"type": "sriov", "vlan": rail.vlan, "ipam": ipam}, {"type": "rdma"}]
        tuning["mtu"] = fabric.mtu
    else:
        master, mode = vlan_interface(interface, rail.vlan), MODES[fabric.attachment]
        plugins = [{"type": fabric.attachment, "master": master, "mode": mode, "mtu": fabric.mtu, "ipam": ipam}]
    return json.dumps({"cniVersion": _VERSION, "name": name, "plugins": [*plugins, tuning, {"type": "sbr"}]})

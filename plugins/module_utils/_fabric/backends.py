# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who gives pods their addresses (`fabric_ipam`): one row each, with its objects and its limits.

What its objects look like is in the file that `_plan.objects.ADDRESSING` names for it.
Sources: Spiderpool 1.2.1 (its agent and webhook); Mellanox/nvidia-k8s-ipam v0.4.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from .labels import CIDR_POOL, CONFIG, NETWORK, NV_IPAM, POOL, RESERVED, SPIDERPOOL

SPIDER, NVIDIA = "spiderpool", "nv-ipam"


@dataclass(frozen=True)
class Backend:
    """An IPAM backend."""

    name: str
    """As fabric_ipam says it."""
    objects: dict[str, tuple[str, str]]
    """Files of the plan's folder `cluster/`, and API and kind of what is in each.

    In the order in which the cluster gets them; it is rid of them the other way round.
    """
    modes: tuple[str, ...]
    """Values of fabric_mode that it can say."""
    attachments: tuple[str, ...]
    """Values of fabric_attachment that it can say."""
    injects: bool
    """Whether it adds rails to pods automatically (fabric_inject)."""
    pool_per_node: bool
    """Whether a rail's nodes have a pool each (exclusive), or one that names them all."""
    namespace: str = ""
    """Where its controller usually looks for pools, and nowhere else; empty where it looks everywhere."""
    open_ended: int = 0
    """Longest IPv6 prefix in which it cannot say a last pod address: pods have all that is left. 0: none."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of its objects."""
        return [kind for _api, kind in self.objects.values()]

    def rest_is_pods(self, family: int, length: int) -> bool:
        """Whether pods have all that gateway and node leave of such a subnet."""
        return family == 6 and length <= self.open_ended


BACKENDS = {
    row.name: row
    for row in (
        Backend(
            SPIDER,
            {
                "reservedips.yaml": (SPIDERPOOL, RESERVED),
                "ippools.yaml": (SPIDERPOOL, POOL),
                "multusconfigs.yaml": (SPIDERPOOL, CONFIG),
            },
            modes=("shared", "exclusive", "flat"),
            attachments=("macvlan", "ipvlan", "sriov", "ib-sriov", "ipoib"),
            injects=True,
            pool_per_node=True,
        ),
        Backend(
            NVIDIA,
            {"cidrpools.yaml": (NV_IPAM, CIDR_POOL), "networks.yaml": NETWORK},
            modes=("exclusive",),
            attachments=("macvlan", "ipvlan", "sriov"),
            injects=False,
            pool_per_node=False,
            namespace="nvidia-network-operator",
            # Indexes of a CIDRPool are int32, so they reach the end of a subnet from /97 on. But a node's daemon passes
            # excluded addresses one by one, before its plugin's 5 s end: a million of them take about one.
            open_ended=107,
        ),
    )
}

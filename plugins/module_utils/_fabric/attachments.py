# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How pods get to the rails: one row an attachment, with what follows from it.

Hosts know none of it: their plan says the RDMA namespace mode. What a row's block looks like is in `_plan.configs`.
Who gives pods their addresses is in `backends`.
"""

from __future__ import annotations

from dataclasses import dataclass

SHARED, EXCLUSIVE = "shared", "exclusive"
"""RDMA namespace modes: a device belongs to every network namespace, or to one."""
NONE = "none"
"""The attachment of a fabric for hosts only."""


@dataclass(frozen=True)
class Attachment:
    """One way for pods to get to a rail."""

    name: str
    """As fabric_attachment and SpiderMultusConfig's cniType say it."""
    network: str
    """`roce` or `infiniband`; empty: both."""
    rdma_mode: str | None
    """`exclusive`: a virtual function goes into the pod, device and all. `shared`: pods share the node's device.
    None: hosts keep theirs."""
    block: str
    """The field of SpiderMultusConfig's spec that is its own; empty where pods do not get to the rails."""
    injected_by: str = ""
    """What Spiderpool sorts an injected pod's rails by, as text: `interface`, `resource`, or the config's name."""
    needs_addresses: bool = True
    """Whether it is of no use to a pod without an address."""
    names_resource: bool = True
    """Whether its block has a field for the RDMA resource, which Spiderpool then adds to pods."""
    gid_by_address: bool = True
    """Whether a pod finds its RDMA device by the GID of its address."""

    @property
    def pods(self) -> bool:
        """Whether pods get to the rails at all."""
        return bool(self.block)

    @property
    def own_device(self) -> bool:
        """Whether a pod gets a device of its own, a virtual function."""
        return self.rdma_mode == EXCLUSIVE


ATTACHMENTS = {
    row.name: row
    for row in (
        Attachment("macvlan", "roce", SHARED, "macvlan", "interface"),
        Attachment("ipvlan", "roce", SHARED, "ipvlan", "interface"),
        Attachment("sriov", "roce", EXCLUSIVE, "sriov", "resource"),
        Attachment("ib-sriov", "infiniband", EXCLUSIVE, "ibsriov", needs_addresses=False, gid_by_address=False),
        Attachment("ipoib", "infiniband", SHARED, "ipoib", names_resource=False, gid_by_address=False),
        Attachment(NONE, "", None, "", needs_addresses=False, names_resource=False),
    )
}


def names_of(network: str) -> tuple[str, ...]:
    """Return the attachments of a kind of network; the first is its default."""
    return tuple(row.name for row in ATTACHMENTS.values() if row.network in (network, ""))

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a fleet's hosts does not go with the kind of its fabric."""

from __future__ import annotations

import typing as t

from ..module_utils._cluster.nodes import listed
from ..module_utils._fabric.attachments import ATTACHMENTS

DOCUMENTATION = r"""
name: host_problems
short_description: Tell which hosts do not go with the kind of the fabric
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Returns one sentence with its remedy for each kind of problem, with the hosts that have it.
  - SR-IOV attachments are for bare metal; a virtual machine has no virtual functions of its own to give.
  - InfiniBand carries no Kubernetes; such a host needs an Ethernet interface with its default route and an address.
options:
  _input:
    description: The facts of each host, with the subsets C(virtual) and, for InfiniBand, C(network).
    type: dict
    required: true
  attachment:
    description: How pods are attached to the rails.
    type: str
    required: true
  network:
    description: The kind of the network, V(roce) or V(infiniband).
    type: str
    required: true
"""

EXAMPLES = r"""
---
- name: Show which hosts do not go with the fabric
  ansible.builtin.debug:
    msg: "{{ {inventory_hostname: ansible_facts} | railops.rdma.host_problems('sriov', 'roce') }}"
"""

RETURN = r"""
_value:
  description: The problems, each with its remedy.
  type: list
  elements: str
"""


def host_problems(facts: t.Mapping[str, t.Mapping[str, t.Any]], attachment: str, network: str) -> list[str]:
    """Return which hosts do not go with the fabric."""
    found = []
    # Who did not answer the question is told of by who asked it.
    facts = {host: row for host, row in facts.items() if isinstance(row, dict)}
    guests = [host for host, row in facts.items() if row.get("virtualization_role") == "guest"]
    if guests and attachment in ATTACHMENTS and ATTACHMENTS[attachment].own_device:
        kinds = ", ".join(sorted({str(facts[host].get("virtualization_type")) for host in guests}))
        found.append(
            f"{len(guests)} of {len(facts)} hosts are virtual machines or containers ({kinds}): {listed(guests)}. "
            f"Attachment {attachment} is for bare metal. Use macvlan (RoCE) or ipoib, or, if these guests have "
            "physical functions with SR-IOV, set site_sriov_guests to true. [guests]"
        )
    if network == "infiniband" and (bare := [host for host, row in facts.items() if not _managed(row)]):
        found.append(
            f"{len(bare)} of {len(facts)} hosts have no Ethernet interface with a default route and an address: "
            f"{listed(bare)}. Kubernetes and Spiderpool's agents cannot speak over InfiniBand: give each host a "
            "management address. [no_management]"
        )
    return found


def _managed(facts: t.Mapping[str, t.Any]) -> bool:
    """Whether a default route leaves by something that is not InfiniBand, with an address."""
    routes = [facts.get(f"default_ipv{family}") or {} for family in (4, 6)]
    return any(row.get("address") and row.get("type") != "infiniband" for row in routes)


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"host_problems": host_problems}

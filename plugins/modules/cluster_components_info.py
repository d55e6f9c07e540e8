#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find a cluster's existing components, and reject conflicts with them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_components_info
short_description: Find a cluster's existing components, and return which are managed and which adopted
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Reads the cluster and changes nothing. Finds Spiderpool, Multus, the SR-IOV operator, shared device plugins, nv-ipam
    and NVIDIA's network-operator, with their owner, namespace and version.
  - Fails with all conflicts between the cluster and the plan at once. A conflict is an existing component without a
    decision, an adopted component that does not serve the plan, an existing CRD that lacks a field of the chart's CRD,
    or an unsupported distribution. So is a cluster network that is missing, not ready, or disables Multus, a node whose
    address is on a rail, a kind that the cluster does not know, or a user's network that Spiderpool would overwrite.
options:
  state:
    description:
      - V(present) checks the cluster before an installation.
      - V(absent) checks the cluster before the CRDs are removed. RV(crds) then lists the CRDs that this collection
        made and that no unmanaged object uses.
      - V(networks) compares the networks that the cluster uses for pods and services with those of the plan in
        O(cluster_dir), and fails where they overlap. RV(notes) are then what this identity may not read.
    type: str
    choices: [present, absent, networks]
    default: present
  components:
    description: V(managed) or V(adopt) by part. A part that is not named is managed where it is not there.
    type: dict
    default: {}
  values:
    description: The Helm values of the plan, before adopted parts are taken out of them.
    type: dict
    default: {}
  release:
    description: The Helm release that would be installed.
    type: dict
    default: {}
    suboptions:
      name:
        description: Its name.
        type: str
        default: spiderpool
      namespace:
        description: Its namespace.
        type: str
        default: spiderpool
      managed:
        description: Whether a note says that this collection made it.
        type: bool
        default: false
      there:
        description: Whether there is one.
        type: bool
        default: false
      chart:
        description: The chart of the one that is there.
        type: str
        default: ""
      values:
        description: The values of the one that is there.
        type: dict
        default: {}
  take_ownership:
    description: Whether to take over a release of this name that another tool or user made.
    type: bool
    default: false
  crds:
    description: The chart's CRDs.
    type: list
    elements: dict
    default: []
  kinds:
    description: Kinds of the release's objects that Kubernetes does not define, as C(Kind.group).
    type: list
    elements: str
    default: []
  networks:
    description: Names of DaemonSets that are a cluster network.
    type: list
    elements: str
    default: []
  cilium_config:
    description: Name of Cilium's ConfigMap.
    type: str
    default: cilium-config
  cluster_dir:
    description: The folder C(cluster) of the plan.
    type: path
  existing_networks:
    description: >-
      C(fabric_existing_networks) of the inventory, for O(state=networks). The planner keeps the fabric's supernets free
      for them.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
  - PyYAML
"""

EXAMPLES = r"""
---
- name: Find the cluster's existing components
  railops.rdma.cluster_components_info:
    components:
      multus: adopt
    networks: [calico-node]
    cluster_dir: plan/fabric/cluster

- name: Compare the cluster's own networks with the fabric's
  railops.rdma.cluster_components_info:
    state: networks
    cluster_dir: plan/fabric/cluster
"""

RETURN = r"""
components:
  description: V(managed) or V(adopt) by part that the plan needs.
  returned: success
  type: dict
  sample: {"spiderpool": "managed", "multus": "adopt"}
crds:
  description: Names of the chart's CRDs to apply, or with O(state=absent) to delete.
  returned: success
  type: list
  elements: str
  sample: []
left:
  description: CRDs that stay, and why.
  returned: success
  type: list
  elements: str
  sample: []
existing_crds:
  description:
    - With O(state=absent), the SR-IOV operator's CRD that this collection did not create. The chart's hook would delete
      it.
  returned: success
  type: list
  elements: str
  sample: []
notes:
  description: One line for each existing component, whether adopted or not needed.
  returned: success
  type: list
  elements: str
  sample: ["Multus (v4.2.2, DaemonSet kube-system/kube-multus-ds of kubectl) is adopted"]
calico_set:
  description:
    - The change of Calico's settings where it may choose a rail's address for a node's; empty where it cannot.
    - C(new) is the change, C(back) reverts it.
  returned: success
  type: dict
  sample: {}
"""

from ..module_utils._cluster.components_run import run
from ..module_utils._cluster.requirements import NEEDS, spec_of
from ..module_utils._module import run_module


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION), NEEDS)


if __name__ == "__main__":
    main()

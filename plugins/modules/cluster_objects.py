#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply the objects of a plan or a list to a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_objects
short_description: Bring many objects of a Kubernetes cluster to their declared state in one call
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Applies a list or folder of manifests by server-side apply with the field manager C(railops.rdma), eight at a time.
    Fewer writes, down to one, are under way while the API takes more than two seconds to answer. It gives Spiderpool's
    webhook, which lists all pools at every write, ten seconds.
  - Sends only differences. Reads the existing objects as pages of one list per kind and compares each field, including
    fields that this collection set before and that are no longer wanted.
  - Pools come before the configs that name them, and configs are removed before pools.
  - A C(SpiderIPPool) with allocated addresses is never deleted, narrowed or replaced, it is returned in RV(kept).
  - A C(SpiderMultusConfig) without IPAM is not deleted while pods use its network, it is returned in RV(kept).
  - The labels C(app.kubernetes.io/managed-by=railops.rdma) and C(railops.io/fabric) mark an owned object. The module
    reverts edits of an owned object. It does not change an object of the same name without these labels, nor a field
    that another controller declares by server-side apply. It returns them in RV(conflicts), and fails after all other
    changes.
  - Retries answers 429, 409 (stale), 5xx and dropped connections for O(retry_seconds). An interrupted run loses
    nothing; the next one continues.
options:
  definitions:
    description: The complete objects.
    type: list
    elements: dict
    default: []
  src:
    description:
      - Files and folders of manifests, for example the C(cluster) folder of a plan. Files called C(values.yaml) are not
        read.
      - A C(cluster) folder beside a C(plan.json) is refused when it is not of that plan.
    type: list
    elements: path
    default: []
  kinds:
    description: Apply, and with O(prune=true) remove, only objects of these kinds. All by default.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(present) brings the objects to their declared state.
      - V(absent) removes them, and with O(prune=true) everything that is labeled with O(fabric).
    type: str
    choices: [present, absent]
    default: present
  prune:
    description:
      - Remove pools, reserved addresses, multus configs and SR-IOV policies that carry the label of O(fabric) and are
        not declared. Declared objects that O(kinds) leaves out stay.
    type: bool
    default: false
  fabric:
    description: Name of the fabric. The default is the label C(railops.io/fabric) of all objects.
    type: str
    default: ""
  force:
    description: Whether to take over objects and fields of other owners.
    type: bool
    default: false
  application:
    description:
      - Namespace and name of a DaemonSet (V(default/fabric-test)) whose pods do not count where addresses are in use,
        as they go with the pools.
    type: str
    default: ""
  retry_seconds:
    description: Seconds for which one request is tried again.
    type: int
    default: 120
  progress_file:
    description: A file to which a line of progress is appended every ten seconds. Without it the lines are shown.
    type: path
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
    details: The server tries what differs (dry run), objects whose kind or namespace is not there yet excepted.
  diff_mode:
    support: full
    details: A summary first, then samples of each sort of change.
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
  - PyYAML
"""

EXAMPLES = r"""
---
- name: Apply the plan and remove objects that it no longer has
  railops.rdma.cluster_objects:
    src: plan/fabric/cluster
    prune: true

- name: Show the changes of a run
  railops.rdma.cluster_objects:
    src: plan/fabric/cluster
    prune: true
  check_mode: true
  diff: true

- name: Apply one pool
  railops.rdma.cluster_objects:
    kubeconfig: ~/.kube/config
    definitions:
      - apiVersion: spiderpool.spidernet.io/v2beta1
        kind: SpiderIPPool
        metadata:
          name: example
        spec:
          subnet: 192.0.2.0/27
          ips: [192.0.2.3-192.0.2.30]

- name: Remove everything of a fabric; pools in use stay
  railops.rdma.cluster_objects:
    state: absent
    prune: true
    fabric: fabric
"""

RETURN = r"""
summary:
  description: How many objects were (in check mode - would be) created, applied, replaced, deleted, left or kept.
  returned: always
  type: dict
  sample: {"created": 8, "applied": 1, "replaced": 0, "deleted": 0, "unchanged": 640, "kept": 0, "conflicts": 0}
changes:
  description: The changes, at most 1,000 entries.
  returned: always
  type: list
  elements: dict
  sample:
    - action: apply
      kind: SpiderIPPool
      namespace: ""
      name: fabric-rail1-v4-node1
      fields: [spec.ips]
      reverted: []
kept:
  description: Objects that stay although they should be deleted, narrowed or replaced, and why.
  returned: always
  type: list
  elements: dict
  sample:
    - action: delete
      kind: SpiderIPPool
      namespace: ""
      name: fabric-rail1-v4-node9
      reason: 1 address is in use (172.17.0.3 by ml/train-0); move those pods away and run again.
      users: " (172.17.0.3 by ml/train-0)"
conflicts:
  description: Unmanaged objects and fields that the module did not change.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: SpiderMultusConfig
      namespace: spiderpool
      name: fabric-rail1
      field: spec.macvlan.mtu
      owner: argocd
      reason: is declared by another field manager
checks:
  description: In check mode one entry for each object that differs, is in use or has another owner; one for the rest.
  returned: always
  type: list
  elements: dict
  sample:
    - id: object_state
      rail: null
      status: deviation
      planned: SpiderIPPool fabric-rail1-v4-node1
      observed: not there
      cause: the object was deleted, or never applied
      fix: Run the playbook railops.rdma.cluster.
"""

from ..module_utils._cluster.objects_run import run
from ..module_utils._cluster.requirements import NEEDS, spec_of
from ..module_utils._module import run_module


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION), NEEDS)


if __name__ == "__main__":
    main()

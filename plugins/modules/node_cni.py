# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask nodes what they have of CNI, and give back what they had."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_cni
short_description: Note what nodes have of CNI, and take away what came with Spiderpool
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Starts one short-lived pod on each node that is up, whatever taints it has, and takes all of them away again.
  - The pods that look and take away use the host's network and see the node's folders of CNI. They start also where no
    other pod does.
options:
  state:
    description:
      - V(noted) looks at the nodes that O(record) does not have, and returns it with them.
      - V(given_back) takes away what Multus left, and the programs of O(ours) that a node did not have before, where no
        configuration names them.
    type: str
    choices: [noted, given_back]
    required: true
  namespace:
    description: Where the pods are.
    type: str
    required: true
  image:
    description: An image with a shell, of the chart.
    type: str
    required: true
  pull_secrets:
    description: Names of Secrets with which nodes pull it.
    type: list
    elements: str
    default: []
  configurations:
    description: The nodes' folder of CNI configurations.
    type: str
    default: /etc/cni/net.d
  programs:
    description: The nodes' folder of CNI programs.
    type: str
    default: /opt/cni/bin
  record:
    description: What nodes had, as RV(record) was returned.
    type: str
    default: ""
  since:
    description: When that was, as the cluster says times. A node that was made later is another machine of that name.
    type: str
    default: ""
  known:
    description:
      - With O(state=noted), what hosts have said of themselves, by their nodes. No pod is started on these.
      - It is what the pod would say, the names of both folders with V(/) behind each of them, one on each line.
    type: dict
    default: {}
  fresh:
    description: With O(state=noted), that nothing of ours is on the nodes yet. Else only what
      they had of programs when they were asked is noted, which takes nothing away.
    type: bool
    default: false
  needs:
    description:
      - With O(state=noted), names of programs that the nodes must have. Who had not all of them is asked again.
    type: list
    elements: str
    default: []
  ours:
    description: With O(state=given_back), names of programs that came with this collection.
    type: list
    elements: str
    default: []
  multus:
    description: With O(state=given_back), whether Multus came with this collection.
    type: bool
    default: true
  nodes:
    description: Only these nodes. Without it all of them.
    type: list
    elements: str
  timeout:
    description: Seconds that all pods have together.
    type: int
    default: 120
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
    details: Starts no pod.
  diff_mode:
    support: none
  idempotent:
    support: partial
    details: With O(state=given_back) it is changed wherever something could be there.
requirements:
  - kubernetes >= 31
"""

EXAMPLES = r"""
---
- name: Remove what Multus left on the nodes
  railops.rdma.node_cni:
    state: given_back
    namespace: spiderpool
    image: ghcr.io/spidernet-io/spiderpool/spiderpool-agent:v1.2.3
"""

RETURN = r"""
record:
  description: What nodes have, equal lists once; compressed, as text.
  returned: with O(state=noted)
  type: str
  sample: ""
lacking:
  description: The programs that nodes lack, by node.
  returned: with O(state=noted)
  type: dict
  sample: {"node2": ["macvlan"]}
left:
  description: Nodes that are up and were not reached.
  returned: always
  type: list
  elements: str
  sample: []
why:
  description: Why they were not, by node.
  returned: always
  type: dict
  sample: {}
down:
  description: Nodes that are down.
  returned: always
  type: list
  elements: str
  sample: [node7]
unseen:
  description: Nodes that were not reached or are down, for people.
  returned: always
  type: str
  sample: "node[1-8]"
lacks:
  description: What nodes lack, for people; empty where none lacks anything.
  returned: always
  type: str
  sample: "node[1-8]: macvlan"
"""

from ..module_utils._cluster.library import NEEDS
from ..module_utils._module import run_module
from ..module_utils._pods.node_cni_run import SPEC, run


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, SPEC, NEEDS)


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until parts of a cluster are ready, and say in one sentence why they are not."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_wait
short_description: Wait until parts of a Kubernetes cluster are ready, and say which pod keeps them
version_added: 0.2.0
author: railops.rdma contributors (@railops)
description:
  - Follows rollouts. There is no time for all of it, which on a large fleet takes hours. O(timeout) is for how long
    nothing may move.
  - Pods on nodes that are down are not waited for; these nodes are named. Where so many are down that a rollout cannot
    go on, that is said.
  - Every ten seconds a line says how far it is and what keeps it.
  - A failure is one sentence with the pod, its container, the reason, the exit code and the end of its log.
options:
  parts:
    description: What is waited for.
    type: list
    elements: dict
    required: true
    suboptions:
      kind:
        description: Its kind. A SpiderCoordinator is ready when its phase is C(Synced).
        type: str
        required: true
        choices: [Deployment, DaemonSet, Job, SpiderCoordinator]
      name:
        description: Its name.
        type: str
        required: true
      namespace:
        description: Its namespace. A SpiderCoordinator has none.
        type: str
        default: ""
  timeout:
    description: Seconds for which nothing may move, neither a pod more nor a container started.
    type: int
    default: 300
  argv:
    description:
      - A command that is run meanwhile, such as helm. The module then ends with the command, however far the parts are.
        When nothing moves for O(timeout) the command is ended.
      - When it ends with an error, RV(rc) is not zero, by which Ansible takes the task for failed; RV(problem) says
        which part kept it.
    type: list
    elements: str
    default: []
  stdin:
    description: What the command reads.
    type: str
    default: ""
  progress_file:
    description: A file to which a line of progress is appended every ten seconds. Without it the lines are shown.
    type: path
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
    details: Waits for nothing and runs no command.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: With O(argv) it depends on the command.
requirements:
  - kubernetes >= 31
"""

EXAMPLES = r"""
---
- name: Wait until the agents of all nodes that are up run
  railops.rdma.cluster_wait:
    parts:
      - kind: DaemonSet
        name: spiderpool-agent
        namespace: spiderpool

- name: Install a release and see meanwhile what it waits for
  railops.rdma.cluster_wait:
    argv: [helm, upgrade, --install, spiderpool, ./spiderpool-1.2.1.tgz, --namespace, spiderpool, --timeout, 24h]
    parts:
      - kind: Deployment
        name: spiderpool-controller
        namespace: spiderpool
"""

RETURN = r"""
parts:
  description: How far each part is.
  returned: always
  type: list
  elements: dict
  sample:
    - kind: DaemonSet
      name: spiderpool-agent
      namespace: spiderpool
      ready: true
      text: 8 of 8 pods ready
down:
  description: Nodes that are down, whose pods were not waited for.
  returned: always
  type: list
  elements: str
  sample: [node7]
seconds:
  description: How long it took.
  returned: always
  type: float
  sample: 41.5
problem:
  description: With O(argv), what kept the parts when the command was ended or had failed.
  returned: with O(argv)
  type: str
  sample: ""
rc:
  description: How the command ended.
  returned: with O(argv)
  type: int
  sample: 0
stdout:
  description: What the command printed.
  returned: with O(argv)
  type: str
  sample: ""
stderr:
  description: What the command printed on its second output.
  returned: with O(argv)
  type: str
  sample: ""
"""

import typing as t

from ..module_utils._cluster import client
from ..module_utils._cluster.client import Access
from ..module_utils._errors import RdmaError
from ..module_utils._module import run_module
from ..module_utils._pods import client as pods_client
from ..module_utils._pods.client import PodCluster
from ..module_utils._pods.wait import KINDS, Look, Part
from ..module_utils._pods.wait_run import Command, Outcome, Waiting, api_lost

ARGUMENT_SPEC: dict[str, t.Any] = {
    "parts": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "kind": {"type": "str", "required": True, "choices": list(KINDS)},
            "name": {"type": "str", "required": True},
            "namespace": {"type": "str", "default": ""},
        },
    },
    "timeout": {"type": "int", "default": 300},
    "argv": {"type": "list", "elements": "str", "default": []},
    # Values of a release hold keys.
    "stdin": {"type": "str", "default": "", "no_log": True},
    "progress_file": {"type": "path"},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}


def reported(each: Look) -> dict[str, t.Any]:
    """Return how far a part is, for the result."""
    part = each.part
    return {
        "kind": part.kind,
        "name": part.name,
        "namespace": part.namespace,
        "ready": each.done,
        "text": each.text,
    }


def beside(waiting: Waiting, argv: list[str], stdin: str) -> tuple[Outcome, dict[str, t.Any]]:
    """Run a command and look meanwhile.

    :raises RdmaError: when it cannot be started.
    """
    try:
        command = Command(argv, stdin)
    except OSError as exc:
        raise RdmaError(f"{argv[0]} cannot be started: {exc.strerror}.", "Install it, or name its path.") from exc
    try:
        outcome = waiting.until_ready(command.over)
    finally:
        command.end()
    if command.rc and outcome.problem is None:
        outcome.problem = api_lost(command.stderr) or waiting.problem(outcome.looks)
    told = str(outcome.problem or "")
    return outcome, {"rc": command.rc, "stdout": command.stdout, "stderr": command.stderr, "problem": told}


def run(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Wait.

    :raises RdmaError: when nothing moves any more.
    """
    parts = [Part(row["kind"], row["name"], row["namespace"]) for row in params["parts"]]
    result: dict[str, t.Any] = {"changed": bool(params["argv"]), "parts": [], "down": [], "seconds": 0.0}
    if check_mode:
        return result

    def tell(line: str) -> None:
        if params["progress_file"]:
            with open(params["progress_file"], "a", encoding="utf-8") as stream:
                stream.write(f"{line}\n")

    cluster = PodCluster(Access(kubeconfig=params["kubeconfig"], context=params["context"]))
    try:
        waiting = Waiting(cluster, parts, params["timeout"], tell)
        if params["argv"]:
            outcome, more = beside(waiting, params["argv"], params["stdin"])
            result.update(more)
        else:
            outcome = waiting.until_ready()
            if outcome.problem is not None:
                raise outcome.problem
    finally:
        cluster.close()
    result["parts"] = [reported(each) for each in outcome.looks]
    result["down"] = sorted(outcome.down)
    result["seconds"] = round(outcome.seconds, 1)
    return result


def main() -> None:
    """Read the parameters, run, and report."""
    needs = [("kubernetes >= 31", client.KUBERNETES_ERROR or pods_client.STREAM_ERROR)]
    run_module(lambda module: run(module.params, check_mode=module.check_mode), ARGUMENT_SPEC, needs)


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at what nodes have of CNI, and take away what is ours: the door of node_cni."""

from __future__ import annotations

import time
import typing as t
import uuid
from dataclasses import dataclass, field

from ansible.module_utils.basic import AnsibleModule

from .._cluster.library import ACCESS
from .._cluster.model import Json
from .._cluster.nodes import lost_nodes
from .._cluster.pod_state import finished, trouble
from .._errors import RdmaError
from .._fabric.labels import selector
from .client import PodCluster
from .node_cni import LABELS, LOOK, TAKE, Had, packed, pod, seen, taken, unpacked

STATES = ("noted", "given_back")
SPEC: dict[str, t.Any] = {
    "state": {"type": "str", "choices": list(STATES), "required": True},
    "namespace": {"type": "str", "required": True},
    "image": {"type": "str", "required": True},
    "pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "configurations": {"type": "str", "default": "/etc/cni/net.d"},
    "programs": {"type": "str", "default": "/opt/cni/bin"},
    "record": {"type": "str", "default": ""},
    "since": {"type": "str", "default": ""},
    "known": {"type": "dict", "default": {}},
    "fresh": {"type": "bool", "default": False},
    "needs": {"type": "list", "elements": "str", "default": []},
    "ours": {"type": "list", "elements": "str", "default": []},
    "multus": {"type": "bool", "default": True},
    "nodes": {"type": "list", "elements": "str"},
    "timeout": {"type": "int", "default": 120},
    **ACCESS,
}
POLL_SECONDS = 1.0


@dataclass
class NodePods:
    """One short-lived pod on each of some nodes."""

    _cluster: PodCluster
    params: dict[str, t.Any]
    _check_mode: bool
    said: dict[str, str] = field(default_factory=dict)
    """What the pods that ended well have said, by node."""
    why: dict[str, str] = field(default_factory=dict)
    """Why the others did not, by node."""

    def run(self, scripts: t.Mapping[str, t.Sequence[str]], *, writes: bool) -> None:
        """Run a script with its arguments on each node, and take all pods away again.

        :param writes: see `pod`.
        """
        if self._check_mode or not scripts:
            return
        run = uuid.uuid4().hex[:8]
        bodies = [
            pod(f"railops-node-{run}-{number}", node, self.params, argv, writes=writes)
            for number, (node, argv) in enumerate(sorted(scripts.items()))
        ]
        for old in filter(finished, self._pods()):
            self._cluster.remove({"apiVersion": "v1", "kind": "Pod", **old})
        try:
            for body in bodies:
                self._cluster.create(body)
            self._wait({body["metadata"]["name"]: body for body in bodies})
        finally:
            for body in bodies:
                self._cluster.remove(body)

    def _pods(self) -> list[Json]:
        return self._cluster.listed("v1", "Pod", namespace=self.params["namespace"], selector=selector(LABELS))

    def _wait(self, bodies: dict[str, Json]) -> None:
        """Wait until all pods have ended, or their time has."""
        until = time.monotonic() + self.params["timeout"]
        while True:
            mine = {row["metadata"]["name"]: row for row in self._pods() if row["metadata"]["name"] in bodies}
            if time.monotonic() > until or (len(mine) == len(bodies) and all(map(finished, mine.values()))):
                break
            time.sleep(POLL_SECONDS)
        for name, body in bodies.items():
            node, row = body["spec"]["nodeName"], mine.get(name, body)
            if (row.get("status") or {}).get("phase") == "Succeeded":
                ended = row["status"].get("containerStatuses") or [{}]
                self.said[node] = str(((ended[0].get("state") or {}).get("terminated") or {}).get("message") or "")
            else:
                self.why[node] = trouble(row, self._cluster.events(row)).text


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Do what is asked on the nodes that are up; those that are down are named."""
    params = module.params
    with PodCluster(params, retry_seconds=30) as cluster:
        every = {name: node for name, node in cluster.nodes().items() if runs_linux(node)}
        asked = set(every) & set(every if params["nodes"] is None else params["nodes"])
        down = (lost_nodes(every.values()) & asked) - params["known"].keys()
        pods = NodePods(cluster, params, module.check_mode)
        act = {"noted": noted, "given_back": given_back}[params["state"]]
        # Who came later is another machine, also by the name of one that was there.
        try:
            record = unpacked(params["record"])
        except ValueError as exc:
            fix = f"Take `nodes.json.gz` out of the ConfigMap {params['namespace']}/railops-rdma-release. [cni_record]"
            raise RdmaError(f"What nodes had of CNI cannot be read from the note: {exc}.", fix) from None
        since = params["since"]
        had = {
            name: row
            for name, row in record.items()
            if row.configurations is None or not since or made(every.get(name)) <= since
        }
        return {**act(pods, asked - down, had), "down": sorted(down)}


def runs_linux(node: Json) -> bool:
    """Return whether a node can run these pods: no Windows, and a kubelet of its own."""
    labels = node["metadata"].get("labels") or {}
    return labels.get("kubernetes.io/os", "linux") == "linux" and labels.get("type") != "virtual-kubelet"


def made(node: Json | None) -> str:
    """Return when a node came to the cluster, by its clock; empty where it is not there."""
    return str(node["metadata"].get("creationTimestamp") or "") if node else ""


def noted(pods: NodePods, up: set[str], had: dict[str, Had]) -> dict[str, t.Any]:
    """Look at the nodes that the record does not have, or that lacked something then, and say what they lack."""
    params = pods.params
    new = sorted(node for node in up if node not in had or {*params["needs"]} - {*(had[node].programs or ())})
    heard = {node: seen(params["known"].get(node)) for node in new}
    asked = [node for node, row in heard.items() if not row]
    pods.run(dict.fromkeys(asked, (LOOK, params["configurations"], params["programs"])), writes=False)
    found = {node: row for node in new if (row := heard[node] or seen(pods.said.get(node)))}
    lacking = {node: sorted(set(params["needs"]) - set(row.programs or ())) for node, row in found.items()}
    for node, row in found.items():
        if node not in had and params["fresh"]:
            had[node] = row
        elif node not in had or had[node].configurations is None:
            had[node] = Had(None, row.programs)
    return {
        "changed": False,
        "record": packed(had) if had else "",
        "lacking": {node: names for node, names in lacking.items() if names},
        "left": [node for node in new if node not in found],
        "why": pods.why,
    }


def given_back(pods: NodePods, up: set[str], had: dict[str, Had]) -> dict[str, t.Any]:
    """Take away what is ours."""
    params = pods.params
    what = {node: taken(had.get(node), params["ours"], multus=params["multus"]) for node in up}
    folders = (params["configurations"], params["programs"])
    scripts = {node: (TAKE, *folders, *map(" ".join, lists)) for node, lists in what.items() if any(lists)}
    pods.run(scripts, writes=True)
    return {"changed": bool(scripts), "left": sorted(pods.why), "why": pods.why}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How cluster_objects compares with kubernetes.core.k8s given a list, each from an empty server.

It runs beside a real kube-apiserver in a network namespace (tests/cluster/real_api.py), without Spiderpool's webhook.
Both sides use server-side apply, theirs with all objects in one call, which is its fastest way.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import typing as t
from pathlib import Path

from ran import CHECKOUT, Pair, playbook

sys.path.insert(0, str(CHECKOUT / "tests/cluster"))

OBJECTS = 2000


def manifests(folder: Path) -> str:
    """Write the pools of one fabric and return the file."""
    import yaml
    from fabric_objects import pool

    rows = [pool("bench", rail, node, most=2048) for node in range(1, OBJECTS // 8 + 1) for rail in range(1, 9)]
    path = folder / "pools.yaml"
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump_all(rows, stream, Dumper=yaml.CSafeDumper)
    return str(path)


def twice(folder: Path, kubeconfig: str, task: dict[str, t.Any]) -> tuple[float, float]:
    """Apply to the empty server, and once more; all pools are deleted afterwards."""
    from simulated import POOLS, Api

    path = folder / "play.yml"
    path.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]), encoding="utf-8")
    took = playbook(folder, str(path)).wall, playbook(folder, str(path)).wall
    api = Api(Path(kubeconfig))
    api.call("DELETE", POOLS)
    while api.items(POOLS):
        time.sleep(0.2)
    return took


def apply() -> t.Iterator[dict[str, Pair]]:
    """Apply all objects twice, first one way and then the other."""
    kubeconfig = os.environ["RAILOPS_TEST_KUBECONFIG"]
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name:
        folder = Path(name)
        source = manifests(folder)
        ours = {"railops.rdma.cluster_objects": {"src": [source], "kubeconfig": kubeconfig}}
        listed = {"src": source, "kubeconfig": kubeconfig, "apply": True}
        theirs = {"kubernetes.core.k8s": {**listed, "server_side_apply": {"field_manager": "bench"}}}
        while True:
            first, again = zip(twice(folder, kubeconfig, ours), twice(folder, kubeconfig, theirs), strict=True)
            yield {"first": first, "again": again}

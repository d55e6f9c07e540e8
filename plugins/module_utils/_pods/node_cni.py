# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nodes have of CNI, and what goes again: the pods for that, and the record of what was there. Pure.

A pod a node sees the node's two folders below /host and says what is in them by its termination message, which is in
its status: nobody needs to read logs. The pods use the host's network, so that they start whatever CNI makes of pods.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import typing as t
import zlib

from .._cluster.model import Json
from .._fabric.labels import LABEL_MANAGER, PROBE_LABEL
from .._fabric.numbers import MANAGER
from .._intake import LETTERS, Nonsense, fitting, parsed

LABELS = {LABEL_MANAGER: MANAGER, PROBE_LABEL: "node-cni"}
# What the chart's Multus leaves on a node.
MULTUS_FILES, MULTUS = ("00-multus.conf", "multus.d"), "multus"
# Seconds that a pod may outlive the run that made it, where nobody takes it away.
MARGIN = 60
# Letters that a kubelet keeps of a termination message: no host says more of itself.
MOST = 4096
LOOK = 'for folder; do ls -1A "/host$folder" 2>/dev/null; echo /; done >/dev/termination-log'
# A program that a configuration names stays, whoever brought it. Names are words, whatever is in them.
TAKE = r"""
set -f
conf=/host$1 bin=/host$2
cd "$conf" && rm -rf -- $3
cd "$bin" || exit 1
for name in $4; do grep -qrs "\"type\" *: *\"$name\"" "$conf" || rm -f -- "$name"; done
"""
PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Had(t.NamedTuple):
    """What a node had before us; without configurations: it was looked at when we were there already."""

    configurations: tuple[str, ...] | None
    programs: tuple[str, ...] | None


_RECORD = [{"nodes": [str], **dict.fromkeys(Had._fields, (None, [str]))}]


def pod(name: str, node: str, params: t.Mapping[str, t.Any], argv: t.Sequence[str], *, writes: bool) -> Json:
    """Return a pod that runs a shell's script on a node, whatever taints it has.

    :param name: the pod's.
    :param argv: the script and its arguments.
    :param writes: whether it may change the node's folders.
    """
    folders = {key: params[key] for key in ("configurations", "programs")}
    container = {
        "name": "node",
        "image": params["image"],
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", argv[0], "railops", *argv[1:]],
        "volumeMounts": [
            {"name": key, "mountPath": f"/host{path}", "readOnly": not writes} for key, path in folders.items()
        ],
        "securityContext": {"privileged": True},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": params["namespace"], "labels": dict(LABELS)},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "activeDeadlineSeconds": params["timeout"] + MARGIN,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "imagePullSecrets": [{"name": secret} for secret in params["pull_secrets"]],
            "containers": [container],
            "volumes": [{"name": key, "hostPath": {"path": path}} for key, path in folders.items()],
        },
    }


def unpacked(record: str) -> dict[str, Had]:
    """Return what nodes had, by their names, of a record as `packed` writes it; nothing of an empty one.

    :raises Nonsense: it is none.
    """
    if not record:
        return {}
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(base64.b64decode(record))) as stream:
            groups = fitting(parsed(stream.read(LETTERS + 1)), _RECORD, "the record")
    except (OSError, EOFError, zlib.error) as exc:
        raise Nonsense(f"no gzip: {exc}") from None
    return {
        node: Had(*(None if row[key] is None else tuple(row[key]) for key in Had._fields))
        for row in groups
        for node in row["nodes"]
    }


def packed(had: t.Mapping[str, Had]) -> str:
    """Return a record: equal lists once, with their nodes; compressed, as text."""
    groups: dict[Had, list[str]] = {}
    for node, row in sorted(had.items()):
        groups.setdefault(row, []).append(node)
    text = json.dumps([{"nodes": nodes, **row._asdict()} for row, nodes in groups.items()])
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def seen(message: t.Any) -> Had | None:
    """Return what a host or its pod said: two lists of names, each with a slash at its end; None: nothing of use."""
    parts = [tuple(part.split()) for part in str(message)[:MOST].split("/\n")]
    return Had(parts[0], parts[1]) if len(parts) > 2 else None


def taken(had: Had | None, ours: t.Collection[str], *, multus: bool) -> tuple[list[str], list[str]]:
    """Return what goes from a node: configurations, and programs where nothing names them.

    :param had: before us; None where nobody looked, and then no program goes but that of Multus.
    :param ours: the names of the programs that came with us.
    :param multus: whether Multus was ours.
    """
    # Multus writes its files anew wherever it comes: what an earlier one left is not there any more.
    files, own = (list(MULTUS_FILES), [MULTUS]) if multus else ([], [])
    if had is None or had.configurations is None or had.programs is None:
        return files, own
    return files, sorted({*filter(PROGRAM.fullmatch, ours), *own} - {*had.programs, *([] if multus else [MULTUS])})

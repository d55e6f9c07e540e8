# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules for SR-IOV policies and for the configuration of the RDMA shared device plugin.

Source: sriov-network-operator 1.3.0, which the Spiderpool chart installs (pkg/webhook/validate.go), and
k8s-rdma-shared-dev-plugin 1.5.3 (pkg/resources).
"""

from __future__ import annotations

import re

from .mutate import AdmissionError, Json

# The vendors and devices of the chart's ConfigMap supported-nic-ids; ConnectX-8 (1023) is not among them.
MELLANOX_MAX_VFS = 128
RESOURCE_NAME = re.compile(r"[a-zA-Z0-9_]+")


def _deny_policy(obj: Json, place: str, problem: str) -> AdmissionError:
    return AdmissionError(obj, place, problem, code=400)


def _ports(obj: Json) -> list[str]:
    """Return the interfaces of a policy; a range of virtual functions behind one is not written."""
    ports = obj["spec"]["nicSelector"]["pfNames"]
    for entry in ports:
        if "#" in entry:
            raise _deny_policy(obj, "spec.nicSelector.pfNames", f"{entry}: a range is not written by the collection")
    return list(ports)


def check_policy(obj: Json) -> None:
    spec, name = obj["spec"], obj["metadata"]["name"]
    if not RESOURCE_NAME.fullmatch(spec["resourceName"]):
        raise _deny_policy(
            obj,
            "spec.resourceName",
            f'resource name "{spec["resourceName"]}" contains invalid characters',
        )
    if not _ports(obj):
        raise _deny_policy(
            obj,
            "spec.nicSelector",
            "at least one of these parameters (vendor, deviceID, pfNames, rootDevices or netFilter) has to be defined "
            f"in nicSelector in CR {name}",
        )
    if spec["numVfs"] == 0:
        raise _deny_policy(obj, "spec.numVfs", f"numVfs(0) in CR {name} is not allowed")
    if spec["numVfs"] > MELLANOX_MAX_VFS:
        raise _deny_policy(
            obj,
            "spec.numVfs",
            f"numVfs({spec['numVfs']}) in CR {name} exceed the maximum allowed value({MELLANOX_MAX_VFS})",
        )
    if str(spec.get("linkType", "")).lower() == "ib" and not spec.get("isRdma"):
        raise _deny_policy(obj, "spec", f"'linkType: ib or IB' requires 'isRdma: true'; set in CR {name}")


def share_nodes(one: Json, other: Json) -> bool:
    """Whether two policies may select the same node: no label that both name has two values."""
    left, right = one["spec"].get("nodeSelector") or {}, other["spec"].get("nodeSelector") or {}
    return all(right.get(key, value) == value for key, value in left.items())


def check_policy_pair(new: Json, other: Json) -> None:
    if shared := sorted({*_ports(new)} & {*_ports(other)}):
        raise _deny_policy(
            new,
            "spec.nicSelector.pfNames",
            f"VF index range in {shared[0]} is overlapped with existing policy {other['metadata']['name']}",
        )

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
MELLANOX_DEVICES = ("1013", "1015", "1017", "1019", "101b", "101d", "101f", "1021", "a2d6", "a2dc")
MELLANOX = "15b3"
MELLANOX_MAX_VFS = 128
RESOURCE_NAME = re.compile(r"[a-zA-Z0-9_]+")
_PF_NAME = re.compile(r"([^#]+)(?:#(\d+)-(\d+))?")


def _deny_policy(obj: Json, place: str, problem: str) -> AdmissionError:
    return AdmissionError(obj, place, problem, code=400)


def _ports(obj: Json) -> list[tuple[str, int, int]]:
    """Return (interface, first VF, last VF) of each entry of pfNames; without a range all of the policy's VFs."""
    found = []
    for entry in obj["spec"]["nicSelector"].get("pfNames") or ():
        match = _PF_NAME.fullmatch(entry)
        if match is None:
            raise _deny_policy(
                obj,
                "spec.nicSelector.pfNames",
                f"failed to parse {entry} PF name in nicSelector, probably incorrect separator character usage",
            )
        first, last = (int(match[2]), int(match[3])) if match[2] else (0, obj["spec"]["numVfs"] - 1)
        found.append((match[1], first, last))
        if match[2] and not first <= last < obj["spec"]["numVfs"]:
            raise _deny_policy(
                obj,
                "spec.nicSelector.pfNames",
                f"failed to parse {entry} PF name nicSelector, end range shall not be smaller than start range and "
                f"below numVfs ({obj['spec']['numVfs']})",
            )
    return found


def check_policy(obj: Json) -> None:
    spec, name = obj["spec"], obj["metadata"]["name"]
    nic = spec["nicSelector"]
    vendor, device = nic.get("vendor"), nic.get("deviceID")
    if not RESOURCE_NAME.fullmatch(spec["resourceName"]):
        raise _deny_policy(
            obj,
            "spec.resourceName",
            f'resource name "{spec["resourceName"]}" contains invalid characters',
        )
    if not any(nic.get(key) for key in ("vendor", "deviceID", "pfNames", "rootDevices", "netFilter")):
        raise _deny_policy(
            obj,
            "spec.nicSelector",
            "at least one of these parameters (vendor, deviceID, pfNames, rootDevices or netFilter) has to be defined "
            f"in nicSelector in CR {name}",
        )
    if vendor == MELLANOX and device and device not in MELLANOX_DEVICES:
        raise _deny_policy(
            obj,
            "spec.nicSelector.deviceID",
            f"vendor/device {vendor}/{device} is not supported",
        )
    _ports(obj)
    if spec["numVfs"] == 0:
        raise _deny_policy(obj, "spec.numVfs", f"numVfs(0) in CR {name} is not allowed")
    if spec["numVfs"] > MELLANOX_MAX_VFS and vendor in (None, "", MELLANOX):
        raise _deny_policy(
            obj,
            "spec.numVfs",
            f"numVfs({spec['numVfs']}) in CR {name} exceed the maximum allowed value({MELLANOX_MAX_VFS})",
        )
    _check_policy_kind(obj)


def _check_policy_kind(obj: Json) -> None:
    spec = obj["spec"]
    infiniband = str(spec.get("linkType", "")).lower() == "ib"
    if spec.get("deviceType") == "vfio-pci" and spec.get("isRdma"):
        problem = "'deviceType: vfio-pci' conflicts with 'isRdma: true'"
    elif infiniband and not spec.get("isRdma"):
        problem = "'linkType: ib or IB' requires 'isRdma: true'"
    elif infiniband and spec.get("eSwitchMode") == "switchdev":
        problem = "'eSwitchMode: switchdev' can be used only with ethernet links"
    else:
        return
    raise _deny_policy(obj, "spec", f"{problem}; set in CR {obj['metadata']['name']}")


def share_nodes(one: Json, other: Json) -> bool:
    """Whether two policies may select the same node: no label that both name has two values."""
    left, right = one["spec"].get("nodeSelector") or {}, other["spec"].get("nodeSelector") or {}
    return all(right.get(key, value) == value for key, value in left.items())


def check_policy_pair(new: Json, other: Json) -> None:
    others = _ports(other)
    for port, first, last in _ports(new):
        for name, low, high in others:
            if port != name:
                continue
            if first <= high and low <= last:
                raise _deny_policy(
                    new,
                    "spec.nicSelector.pfNames",
                    f"VF index range in {port} is overlapped with existing policy {other['metadata']['name']}",
                )
            if bool(new["spec"].get("externallyManaged")) != bool(other["spec"].get("externallyManaged")):
                raise _deny_policy(
                    new,
                    "spec.externallyManaged",
                    f"externallyManaged is inconsistent with existing policy {other['metadata']['name']}",
                )
    roots = set(new["spec"]["nicSelector"].get("rootDevices") or ())
    if shared := sorted(roots.intersection(other["spec"]["nicSelector"].get("rootDevices") or ())):
        raise _deny_policy(
            new,
            "spec.nicSelector.rootDevices",
            f"root device {shared[0]} is overlapped with existing policy {other['metadata']['name']}",
        )
    same = new["spec"]["resourceName"] == other["spec"]["resourceName"]
    if same and bool(new["spec"].get("excludeTopology")) != bool(other["spec"].get("excludeTopology")):
        raise _deny_policy(
            new,
            "spec.excludeTopology",
            f"excludeTopology is inconsistent with existing policy {other['metadata']['name']}",
        )

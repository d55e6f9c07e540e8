# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The webhook's rules for SpiderMultusConfigs, and what of them the collection writes as a constant.

Source: Spiderpool 1.2, pkg/multuscniconfig/multusconfig_validate.go.
"""

from __future__ import annotations

import typing as t

from .mutate import BLOCKS, COORDINATOR, INJECT_NETWORK, INJECT_RDMA, PARENTS, AdmissionError, Json


def check_cni(obj: Json) -> None:
    spec, cni = obj["spec"], obj["spec"]["cniType"]
    name = BLOCKS[cni]
    place, block = f"spec.{name}", spec.get(name)
    if block is None:
        raise AdmissionError(obj, place, f"Required value: no {place} specified")
    others = [other for other in BLOCKS.values() if other != name and spec.get(other) is not None]
    if cni in PARENTS:
        _check_parent(obj, cni, block)
    elif not block.get(field := "master" if cni == "ipoib" else "resourceName"):
        raise AdmissionError(obj, place, f"Required value: no {place}[{field}] specified")
    if others:
        raise AdmissionError(
            obj, "spec.cniType", f"Forbidden: the cniType {cni} only supports {place}, please remove other CNI configs"
        )
    _check_injection(obj, cni, block)


def _check_parent(obj: Json, cni: str, block: Json) -> None:
    place = f"spec.{cni}"
    masters = block.get("master") or []
    if not masters:
        raise AdmissionError(obj, place, "Invalid value: master can't be empty")
    if len(masters) > 1:
        raise AdmissionError(obj, place, "Invalid value: the bond property is nil with multiple Interfaces")


def _check_injection(obj: Json, cni: str, block: t.Any) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    resource = block.get(
        {"ipoib": "master", "sriov": "resourceName", "ib-sriov": "resourceName"}.get(cni, "rdmaResourceName")
    )
    ippools = block.get("ippools") or {}
    pools = [*(ippools.get("ipv4") or ()), *(ippools.get("ipv6") or ())]
    place = f"spec.{BLOCKS[cni]}"
    problem = ""
    if INJECT_RDMA in annotations and not resource:
        problem = "rdmaResourceName can not be empty for spiderMultusConfig with the RDMA injection annotation"
    elif INJECT_RDMA in annotations and not pools:
        problem = "no ippools configured for spiderMultusConfig with the RDMA injection annotation"
    elif INJECT_NETWORK in annotations and cni in PARENTS and resource and not pools:
        problem = "no ippools configured for spiderMultusConfig with the network injection annotation"
    if problem:
        raise AdmissionError(obj, place, f"Invalid value: {problem}")


def check_written(obj: Json) -> None:
    """Refuse what the webhook may take and the collection never writes."""
    spec = obj["spec"]
    reported = [key for key in obj["metadata"].get("annotations") or () if key.startswith("multus.spidernet.io/")]
    if reported:
        raise AdmissionError(obj, f"metadata.annotations.{reported[0]}", "not written by the collection")
    # The cluster's SpiderCoordinator decides vethMTU; the CRD has a default for the table.
    expected = {key: value for key, value in COORDINATOR.items() if key != "vethMTU"}
    if {"hostRuleTable": COORDINATOR["hostRuleTable"], **spec["coordinator"]} != expected:
        raise AdmissionError(obj, "spec.coordinator", "not the collection's constant")
    if spec["chainCNIJsonData"]:
        raise AdmissionError(obj, "spec.chainCNIJsonData", "not written by the collection")

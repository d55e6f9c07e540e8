# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The webhook's rules for SpiderMultusConfigs, and for the coordinator's settings in them and in SpiderCoordinators.

What is in the blocks of `ovs` and `custom`, which nobody here writes, is not looked into.
Source: Spiderpool 1.2, pkg/multuscniconfig/multusconfig_validate.go and pkg/coordinatormanager/coordinator_validate.go.
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import INJECT_KEYS

from .mutate import (
    BLOCKS,
    CNI_VERSION,
    CNI_VERSIONS,
    CR_NAME,
    DNS_NAME,
    INJECT_NETWORK,
    INJECT_RDMA,
    PARENTS,
    AdmissionError,
    Json,
    as_cidr,
)
from .ranges import parse_address, parse_cidr


def attachment(obj: Json) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(CR_NAME) or obj["metadata"].get("name"))


def check_annotations(new: Json, old: Json | None) -> None:
    annotations = new["metadata"].get("annotations") or {}
    before = ((old or {}).get("metadata") or {}).get("annotations") or {}
    if old is not None and CR_NAME in annotations and annotations[CR_NAME] != before.get(CR_NAME):
        raise AdmissionError(
            new,
            "metadata.annotations",
            f"Invalid value: it's unsupported to change the net-attach-def name to '{annotations[CR_NAME]}'",
        )
    if CR_NAME in annotations and not DNS_NAME.fullmatch(str(annotations[CR_NAME])):
        raise AdmissionError(
            new,
            "metadata.annotations",
            f"Invalid value: invalid custom net-attach-def resource name '{annotations[CR_NAME]}'",
        )
    if CNI_VERSION in annotations and annotations[CNI_VERSION] not in CNI_VERSIONS:
        raise AdmissionError(
            new,
            "metadata.annotations",
            f"Invalid value: unsupported CNI version {annotations[CNI_VERSION]}",
        )


def check_cni(obj: Json) -> None:
    spec, cni = obj["spec"], obj["spec"]["cniType"]
    name = BLOCKS[cni]
    place, block = f"spec.{name}", spec.get(name)
    inject = [key for key in INJECT_KEYS if key in (obj["metadata"].get("annotations") or {})]
    if cni in ("ovs", "custom") and inject:
        raise AdmissionError(
            obj,
            "spec.cniType",
            f"Forbidden: the cniType {cni} does not support RDMA resource or network resource injected",
        )
    if cni != "custom" and block is None:
        raise AdmissionError(obj, place, f"Required value: no {place} specified")
    others = [other for other in BLOCKS.values() if other != name and spec.get(other) is not None]
    if cni in PARENTS:
        _check_parent(obj, cni, block)
    elif cni == "sriov":
        _check_sriov(obj, block)
    elif cni == "ib-sriov":
        _require(obj, place, block, "resourceName")
    elif cni == "ipoib":
        _require(obj, place, block, "master")
    if others:
        raise AdmissionError(
            obj,
            "spec.cniType",
            f"Forbidden: the cniType {cni} only supports {place}, please remove other CNI configs",
        )
    _check_injection(obj, cni, block)


def _require(obj: Json, place: str, block: Json, field: str) -> None:
    if not block.get(field):
        raise AdmissionError(obj, place, f"Required value: no {place}[{field}] specified")


def _check_parent(obj: Json, cni: str, block: Json) -> None:
    place = f"spec.{cni}"
    if cni == "vlan" and block.get("vlanMode") == "auto" and block.get("vlanID") is not None:
        problem = "vlanId must not be specified when vlanMode is auto"
        raise AdmissionError(obj, place, f"Invalid value: {problem}")
    if (block.get("ippools") or {}).get("matchMasterSubnet"):
        raise AdmissionError(
            obj,
            place,
            f"Invalid value: MatchMasterSubnet feature is not supported for {cni}",
        )
    masters, bond = block.get("master") or [], block.get("bond")
    if not masters:
        raise AdmissionError(obj, place, "Invalid value: master can't be empty")
    if len(masters) > 1 and not (bond or {}).get("name"):
        problem = "bond name can't be empty" if bond else "the bond property is nil with multiple Interfaces"
        raise AdmissionError(obj, place, f"Invalid value: {problem}")


def _check_sriov(obj: Json, block: Json) -> None:
    low, high = block.get("minTxRateMbps") or 0, block.get("maxTxRateMbps") or 0
    if low > high:
        raise AdmissionError(
            obj,
            "spec.sriov",
            f"Invalid value: {low}: minTxRateMbps must be less than maxTxRateMbps",
        )
    _require(obj, "spec.sriov", block, "resourceName")


def _check_injection(obj: Json, cni: str, block: t.Any) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    if cni in ("ovs", "custom"):
        return
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


def check_coordinator(obj: Json, spec: Json, place: str) -> None:
    for index, item in enumerate(spec.get("hijackCIDR") or ()):
        if parse_address(item) is None and parse_cidr(item) is None:
            raise AdmissionError(obj, f"{place}.hijackCIDR[{index}]", f'Invalid value: "{item}": invalid IP or CIDR')
    for index, route in enumerate(spec.get("policyRoutes") or ()):
        gateway, target = parse_address(route["gw"]), parse_cidr(as_cidr(route["dst"]))
        if gateway is None or target is None or gateway[0] != target.family:
            raise AdmissionError(
                obj,
                f"{place}.policyRoutes[{index}]",
                f"Invalid value: dst {route['dst']} and gw {route['gw']} must be of one family",
            )
    _check_mac_prefix(obj, spec.get("podMACPrefix"), place)
    numbers = (
        ("txQueueLen", (spec.get("txQueueLen") or 0) >= 0, "can't be less than 0"),
        ("podRPFilter", (spec.get("podRPFilter") or 0) <= 2, 'supported values: "0", "1", "2" and negative'),
        ("vethMTU", spec.get("vethMTU") is None or spec["vethMTU"] > 0, "must be greater than 0"),
    )
    for field, good, problem in numbers:
        if not good:
            raise AdmissionError(obj, f"{place}.{field}", f"Invalid value: {spec[field]}: {field} {problem}")
    if (link := spec.get("vethLinkAddress")) and parse_address(link) is None:
        raise AdmissionError(
            obj,
            f"{place}.vethLinkAddress",
            f'Invalid value: "{link}": vethLinkAddress is an invalid IP address',
        )


def _check_mac_prefix(obj: Json, prefix: str | None, place: str) -> None:
    if not prefix:
        return
    if not re.fullmatch(r"[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}", prefix):
        problem = "not a valid MAC prefix"
    elif int(prefix[:2], 16) & 1:
        problem = "not a unicast MAC: the lowest bit of the first byte must be 0"
    else:
        return
    raise AdmissionError(obj, f"{place}.podMACPrefix", f'Invalid value: "{prefix}": {problem}')


def check_chain(obj: Json) -> None:
    for index, text in enumerate(obj["spec"].get("chainCNIJsonData") or ()):
        try:
            plugin = json.loads(text)
        except ValueError:
            plugin = None
        if not isinstance(plugin, dict) or not plugin.get("type"):
            raise AdmissionError(
                obj,
                f"spec.chainCNIJsonData[{index}]",
                f"Forbidden: invalid {text}: not a CNI plugin configuration",
            )

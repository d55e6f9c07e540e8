# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a server makes of an object before it stores it: the schema's defaults and the webhooks' changes.

Source: Spiderpool 1.2 (the *_mutate.go of its managers), held to what its running webhook stores by
tests/cluster/test_spiderpool.py; and the SR-IOV network operator 1.3.0 (pkg/webhook/mutate.go).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.railops.rdma.plugins.module_utils import _intervals as intervals
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import SPIDERPOOL
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import INJECT_KEYS

from .ranges import parse_cidr, parse_range, ranges_text
from .schema import KINDS, copied, with_defaults

Json = dict[str, t.Any]
Key = tuple[str, str, str]

FINALIZER = SPIDERPOOL.partition("/")[0]
LABEL_POOL_CIDR = "ipam.spidernet.io/ippool-cidr"
INJECT_RDMA, INJECT_NETWORK = INJECT_KEYS
BLOCKS: t.Mapping[str, str] = {
    "macvlan": "macvlan",
    "ipvlan": "ipvlan",
    "sriov": "sriov",
    "ib-sriov": "ibsriov",
    "ipoib": "ipoib",
}
PARENTS = ("macvlan", "ipvlan")
# What the webhook writes into a block where the field is absent.
_BLOCK_DEFAULTS: t.Mapping[str, Json] = {
    "macvlan": {"vlanID": 0, "mtu": 0, "rdmaResourceName": ""},
    "ipvlan": {"vlanID": 0, "mtu": 0, "rdmaResourceName": ""},
    "sriov": {"vlanID": 0, "mtu": 0, "minTxRateMbps": 0, "maxTxRateMbps": 0},
    "ibsriov": {"pkey": "", "linkState": "enable", "rdmaIsolation": True, "enableIbKubernetes": False},
    "ipoib": {},
}
COORDINATOR: Json = {
    "mode": "auto",
    "podMACPrefix": "",
    "podDefaultRouteNIC": "",
    "podRPFilter": 0,
    "tunePodRoutes": True,
    "txQueueLen": 0,
    "hostRuleTable": 500,
    "vethLinkAddress": "",
    "vethMTU": 1500,
}
# The one list that the webhook stores although it is empty.
KEPT_EMPTY = "chainCNIJsonData"
_POLICY_DEFAULTS: Json = {"priority": 99, "deviceType": "netdevice", "isRdma": False}
DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


class AdmissionError(Exception):
    """An object that the API would refuse: the message it would send, the HTTP code and the reason."""

    def __init__(self, obj: Json, place: str, problem: str, *, code: int = 422) -> None:
        kind, name = str(obj.get("kind")), str(obj["metadata"].get("name"))
        self.message = f"{place}: {problem}"
        if kind in KINDS and code == 422:
            self.message = f'{kind}.{KINDS[kind].group} "{name}" is invalid: {self.message}'
        super().__init__(f"{kind}/{name} {place}: {problem}")
        self.code = code
        self.reason = {403: "Forbidden", 409: "AlreadyExists"}.get(code, "Invalid")


def key_of(obj: Json) -> Key:
    """Return (kind, namespace, name); the namespace is empty for what lives in none."""
    metadata = obj["metadata"]
    return str(obj.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def mutate(obj: Json) -> Json:
    """Return the object as the server would store it: schema defaults and the webhook's changes.

    A second call changes nothing. Raises AdmissionError where the real webhook already fails while it mutates.
    """
    kind = KINDS.get(str(obj.get("kind")))
    if kind is None:
        return t.cast("Json", copied(obj))
    new: Json = {key: copied(value) for key, value in obj.items() if key != "spec"}
    new["metadata"] = new.get("metadata") or {}
    new["spec"] = with_defaults(obj.get("spec") or {}, kind.spec)
    mutator = _MUTATORS.get(new["kind"])
    if mutator is not None and not new["metadata"].get("deletionTimestamp"):
        mutator(new)
        if kind.api_version == SPIDERPOOL:
            new["spec"] = _kept(new["spec"])
    return new


def _kept(value: t.Any) -> t.Any:
    """Return what is left of a value that Spiderpool's webhook writes back: no empty list, but for KEPT_EMPTY."""
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items() if item != [] or key == KEPT_EMPTY}
    if isinstance(value, list):
        return [_kept(item) for item in value]
    return value


def _finalize(obj: Json) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)


def _label(obj: Json, key: str, value: str) -> None:
    obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), key: value}


def _merge_ranges(obj: Json, family: int) -> None:
    """Fold the entries of a list, as the webhook does with more than one of them."""
    entries = obj["spec"].get("ips")
    if not isinstance(entries, list) or len(entries) < 2:
        return
    spans = []
    for entry in entries:
        parsed = parse_range(entry)
        if parsed is None or parsed.family != family or parsed.first > parsed.last:
            raise AdmissionError(
                obj,
                "spec.ips",
                f"failed to merge 'spec.ips': invalid IP range format in IPv{family} '{entry}'",
                code=403,
            )
        spans.append((parsed.first, parsed.last))
    obj["spec"]["ips"] = ranges_text(intervals.merge(spans), family)


def _mutate_pool(obj: Json) -> None:
    spec = obj["spec"]
    cidr = parse_cidr(spec["subnet"])
    if spec.get("ipVersion") is None:
        if cidr is None:
            raise AdmissionError(
                obj,
                "spec.subnet",
                f"failed to generate 'spec.ipVersion' from 'spec.subnet' {spec.get('subnet')}, nothing to mutate",
                code=403,
            )
        spec["ipVersion"] = cidr.family
    if cidr is not None:
        _label(obj, LABEL_POOL_CIDR, re.sub(r"[.:/]", "-", cidr.masked()))
    _merge_ranges(obj, spec["ipVersion"])
    _finalize(obj)


def _mutate_reserved(obj: Json) -> None:
    ips = obj["spec"].get("ips")
    if not ips:
        raise AdmissionError(obj, "spec.ips", "empty 'spec.ips', nothing to mutate", code=403)
    if obj["spec"].get("ipVersion") is None:
        first = parse_range(ips[0])
        if first is None:
            raise AdmissionError(
                obj,
                "spec.ips",
                f"failed to generate 'spec.ipVersion' from 'spec.ips[0]' {ips[0]}, nothing to mutate",
                code=403,
            )
        obj["spec"]["ipVersion"] = first.family
    _merge_ranges(obj, obj["spec"]["ipVersion"])


def _mutate_multus(obj: Json) -> None:
    spec = obj["spec"]
    if spec.get("coordinator") is None:
        spec["coordinator"] = {key: value for key, value in COORDINATOR.items() if key != "vethMTU"}
    name = BLOCKS.get(spec.get("cniType"), "")
    block = spec.get(name)
    if isinstance(block, dict):
        for key, value in _BLOCK_DEFAULTS[name].items():
            if block.get(key) is None:
                block[key] = value
        if block.get("ippools") is None:
            block["ippools"] = {"matchMasterSubnet": False}
    if spec.get("chainCNIJsonData") is None:
        spec["chainCNIJsonData"] = []
    annotations = obj["metadata"].get("annotations") or {}
    for key in INJECT_KEYS:
        if key in annotations:
            _label(obj, key, annotations[key])


def _mutate_policy(obj: Json) -> None:
    for key, value in _POLICY_DEFAULTS.items():
        if obj["spec"].get(key) is None:
            obj["spec"][key] = value


_MUTATORS: t.Mapping[str, t.Callable[[Json], None]] = {
    "SpiderIPPool": _mutate_pool,
    "SpiderReservedIP": _mutate_reserved,
    "SpiderMultusConfig": _mutate_multus,
    "SriovNetworkNodePolicy": _mutate_policy,
}

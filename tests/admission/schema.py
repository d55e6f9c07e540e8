# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields that the collection writes, and no others of their kinds: types, limits, the defaults a server fills in.

A planner that begins to write another one is refused here until the field stands here.

Kubernetes loses a field that stands in the wrong place without a word, unless the client asks for strict checking; so
the places matter as much as the values. Source: the fields of Spiderpool 1.2 (group spiderpool.spidernet.io, version
v2beta1) and of the SR-IOV network operator 1.3.0 that its chart installs (group sriovnetwork.openshift.io, version v1).
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from jsonschema import Draft202012Validator

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import SPIDERPOOL, SRIOV

Schema = dict[str, t.Any]


def _object(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def _switch(default: bool) -> Schema:
    return {"type": "boolean", "default": default}


_STR: Schema = {"type": "string"}
_STRINGS: Schema = {"type": "array", "items": _STR}
_FAMILY: Schema = {"enum": [4, 6]}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_ZERO: Schema = {"type": "integer", "const": 0}
_POOLS = _object(ipv4=_STRINGS, ipv6=_STRINGS, matchMasterSubnet={"const": False, "default": False})
_VLAN_ID: Schema = {**_NUMBER, "maximum": 4094}
_MTU: Schema = {**_NUMBER, "default": 0}
_PARENT = _object("master", master=_STRINGS, vlanID=_VLAN_ID, mtu=_MTU, rdmaResourceName=_STR, ippools=_POOLS)
_IPPOOL = _object(
    "subnet",
    subnet=_STR,
    ipVersion=_FAMILY,
    ips=_STRINGS,
    gateway=_STR,
    nodeName=_STRINGS,
    multusName=_STRINGS,
    default=_switch(False),
    disable=_switch(False),
)
_MULTUS = _object(
    "cniType",
    cniType={"enum": ["macvlan", "ipvlan", "sriov", "ib-sriov", "ipoib"]},
    enableCoordinator=_switch(True),
    disableIPAM=_switch(False),
    coordinator={},
    chainCNIJsonData=_STRINGS,
    macvlan=_PARENT,
    ipvlan=_PARENT,
    sriov=_object(
        resourceName=_STR,
        vlanID=_VLAN_ID,
        mtu=_MTU,
        minTxRateMbps=_ZERO,
        maxTxRateMbps=_ZERO,
        rdmaIsolation=_switch(False),
        ippools=_POOLS,
    ),
    ibsriov=_object(
        resourceName=_STR,
        pkey=_STR,
        linkState={"enum": ["auto", "enable", "disable"], "default": "enable"},
        rdmaIsolation=_switch(True),
        enableIbKubernetes=_switch(False),
        ippools=_POOLS,
    ),
    ipoib=_object(master=_STR, ippools=_POOLS),
)
_POLICY = _object(
    *("nodeSelector", "nicSelector", "numVfs", "resourceName"),
    nodeSelector={"type": "object", "additionalProperties": _STR},
    nicSelector=_object("pfNames", pfNames=_STRINGS),
    numVfs=_NUMBER,
    resourceName=_STR,
    priority={**_NUMBER, "maximum": 99},
    mtu={**_NUMBER, "minimum": 1},
    deviceType={"const": "netdevice", "default": "netdevice"},
    isRdma={"type": "boolean"},
    linkType={"enum": ["eth", "ETH", "ib", "IB"]},
)


@dataclass(frozen=True)
class Kind:
    """A kind of object: where it lives, and its `spec`."""

    api_version: str
    spec: Schema

    @property
    def group(self) -> str:
        """The API group, without the version."""
        return self.api_version.split("/")[0]


KINDS: t.Mapping[str, Kind] = {
    "SpiderIPPool": Kind(SPIDERPOOL, _IPPOOL),
    "SpiderReservedIP": Kind(SPIDERPOOL, _object(ipVersion=_FAMILY, ips=_STRINGS)),
    "SpiderMultusConfig": Kind(SPIDERPOOL, _MULTUS),
    "SriovNetworkNodePolicy": Kind(SRIOV, _POLICY),
}
_VALIDATORS = {name: Draft202012Validator(kind.spec) for name, kind in KINDS.items()}


def schema_problems(kind: str, spec: object) -> list[tuple[str, str]]:
    """Return (place, what is wrong) for every unknown field, wrong type and value outside of its limits."""
    return [(f"spec{error.json_path[1:]}", error.message) for error in _VALIDATORS[kind].iter_errors(spec)]


def with_defaults(value: object, wanted: Schema) -> t.Any:
    """Return a copy of a JSON value with the defaults that the server fills in; an absent object stays absent."""
    if isinstance(value, dict):
        known: dict[str, Schema] = wanted.get("properties", {})
        copy = {key: with_defaults(item, known[key]) if key in known else copied(item) for key, item in value.items()}
        for key, schema in known.items():
            if "default" in schema and copy.get(key) is None:
                copy[key] = schema["default"]
        return copy
    return [with_defaults(item, wanted.get("items", {})) for item in value] if isinstance(value, list) else value


def copied(value: t.Any) -> t.Any:
    """Return a deep copy of a JSON value (several times faster than copy.deepcopy)."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value

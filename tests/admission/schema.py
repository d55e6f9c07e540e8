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
from dataclasses import dataclass, field

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import SPIDERPOOL, SRIOV


@dataclass(frozen=True)
class Field:
    """One field: its type, what it may hold, and what the server writes when it is absent.

    `type` is one of str, int, bool, list, object (the keys of `fields`), map (any string keys, string values) and
    any (not looked into).
    """

    type: str
    required: bool = False
    enum: tuple[object, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    default: object = None
    items: Field | None = None
    fields: t.Mapping[str, Field] = field(default_factory=dict)


def _object(required: bool = False, **fields: Field) -> Field:
    return Field("object", required=required, fields=fields)


_STR = Field("str")
_BOOL = Field("bool")
_STRINGS = Field("list", items=_STR)
_FAMILY = Field("int", enum=(4, 6))
_POOLS = _object(ipv4=_STRINGS, ipv6=_STRINGS, matchMasterSubnet=Field("bool", enum=(False,), default=False))
_VLAN_ID = Field("int", minimum=0, maximum=4094)
_MTU = Field("int", minimum=0, default=0)


_PARENT = _object(
    master=Field("list", required=True, items=_STR), vlanID=_VLAN_ID, mtu=_MTU, rdmaResourceName=_STR, ippools=_POOLS
)
_IPPOOL = _object(
    required=True,
    subnet=Field("str", required=True),
    ipVersion=_FAMILY,
    ips=_STRINGS,
    gateway=_STR,
    nodeName=_STRINGS,
    multusName=_STRINGS,
    default=Field("bool", default=False),
    disable=Field("bool", default=False),
)
_MULTUS = _object(
    required=True,
    cniType=Field("str", required=True, enum=("macvlan", "ipvlan", "sriov", "ib-sriov", "ipoib")),
    enableCoordinator=Field("bool", default=True),
    disableIPAM=Field("bool", default=False),
    coordinator=Field("any"),
    chainCNIJsonData=_STRINGS,
    macvlan=_PARENT,
    ipvlan=_PARENT,
    sriov=_object(
        resourceName=_STR,
        vlanID=_VLAN_ID,
        mtu=_MTU,
        minTxRateMbps=Field("int", minimum=0, enum=(0,)),
        maxTxRateMbps=Field("int", minimum=0, enum=(0,)),
        rdmaIsolation=Field("bool", default=False),
        ippools=_POOLS,
    ),
    ibsriov=_object(
        resourceName=_STR,
        pkey=_STR,
        linkState=Field("str", enum=("auto", "enable", "disable"), default="enable"),
        rdmaIsolation=Field("bool", default=True),
        enableIbKubernetes=Field("bool", default=False),
        ippools=_POOLS,
    ),
    ipoib=_object(master=_STR, ippools=_POOLS),
)
_POLICY = _object(
    required=True,
    nodeSelector=Field("map", required=True),
    nicSelector=_object(required=True, pfNames=Field("list", required=True, items=_STR)),
    numVfs=Field("int", required=True, minimum=0),
    resourceName=Field("str", required=True),
    priority=Field("int", minimum=0, maximum=99),
    mtu=Field("int", minimum=1),
    deviceType=Field("str", enum=("netdevice",), default="netdevice"),
    isRdma=_BOOL,
    linkType=Field("str", enum=("eth", "ETH", "ib", "IB")),
)


@dataclass(frozen=True)
class Kind:
    """A kind of object: where it lives, and its `spec`."""

    api_version: str
    namespaced: bool
    spec: Field

    @property
    def group(self) -> str:
        """The API group, without the version."""
        return self.api_version.split("/")[0]


KINDS: t.Mapping[str, Kind] = {
    "SpiderIPPool": Kind(SPIDERPOOL, False, _IPPOOL),
    "SpiderReservedIP": Kind(SPIDERPOOL, False, _object(required=True, ipVersion=_FAMILY, ips=_STRINGS)),
    "SpiderMultusConfig": Kind(SPIDERPOOL, True, _MULTUS),
    "SriovNetworkNodePolicy": Kind(SRIOV, True, _POLICY),
}

_PYTHON_TYPES: t.Mapping[str, type] = {"str": str, "int": int, "bool": bool, "list": list, "object": dict, "map": dict}


def _has_type(value: object, wanted: Field) -> bool:
    if wanted.type == "any":
        return True
    if isinstance(value, bool) and wanted.type != "bool":
        return False
    return isinstance(value, _PYTHON_TYPES[wanted.type])


def schema_problems(value: object, wanted: Field, place: str) -> list[tuple[str, str]]:
    """Return (place, what is wrong) for every unknown field, wrong type and value outside of its limits."""
    if not _has_type(value, wanted):
        shown = "null" if value is None else type(value).__name__
        return [(place, f"Invalid type: expected {wanted.type}, got {shown}")]
    if wanted.enum and value not in wanted.enum:
        allowed = ", ".join(f'"{item}"' for item in wanted.enum)
        return [(place, f'Unsupported value: "{value}": supported values: {allowed}')]
    if isinstance(value, int) and not isinstance(value, bool):
        if wanted.minimum is not None and value < wanted.minimum:
            return [(place, f"Invalid value: {value}: must be at least {wanted.minimum}")]
        if wanted.maximum is not None and value > wanted.maximum:
            return [(place, f"Invalid value: {value}: must be at most {wanted.maximum}")]
    if isinstance(value, list) and wanted.items is not None:
        return [
            problem
            for index, item in enumerate(value)
            for problem in schema_problems(item, wanted.items, f"{place}[{index}]")
        ]
    if isinstance(value, dict) and wanted.type == "object":
        return _object_problems(value, wanted, place)
    if isinstance(value, dict) and wanted.type == "map":
        return [
            (f"{place}.{key}", "Invalid type: expected str") for key, item in value.items() if not isinstance(item, str)
        ]
    return []


def _object_problems(value: t.Mapping[str, object], wanted: Field, place: str) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    for key, item in value.items():
        known = wanted.fields.get(key)
        if known is None:
            problems.append((f"{place}.{key}", "field not declared in schema"))
        else:
            problems.extend(schema_problems(item, known, f"{place}.{key}"))
    problems.extend(
        (f"{place}.{key}", "Required value")
        for key, known in wanted.fields.items()
        if known.required and key not in value
    )
    return problems


def with_defaults(value: object, wanted: Field) -> t.Any:
    """Return a copy of a JSON value with the defaults that the server fills in; an absent object stays absent."""
    if isinstance(value, dict):
        copy = {
            key: with_defaults(item, wanted.fields[key]) if key in wanted.fields else copied(item)
            for key, item in value.items()
        }
        for key, known in wanted.fields.items():
            if known.default is not None and copy.get(key) is None:
                copy[key] = known.default
        return copy
    if isinstance(value, list) and wanted.items is not None:
        items = wanted.items
        return [with_defaults(item, items) for item in value]
    return value


def copied(value: t.Any) -> t.Any:
    """Return a deep copy of a JSON value (several times faster than copy.deepcopy)."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value

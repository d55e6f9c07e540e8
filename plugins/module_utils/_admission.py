# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module util is PRIVATE to the collection.

"""What the cluster's admission makes of an object, known before any API is touched.

`mutate` gives the object that Spiderpool's webhook and the schemas' defaults would store; `Admission` holds a set of
objects and answers create, update and delete as the webhooks do; `check` puts a whole set through it. The rules that no
webhook has but pods suffer from stand in `_admission_strict.py`.

Source of the rules: Spiderpool 1.2 (pkg/ippoolmanager, pkg/subnetmanager, pkg/reservedipmanager,
pkg/coordinatormanager, pkg/multuscniconfig) and the SR-IOV network operator 1.3.0 (pkg/webhook). Addresses are integers
here, so that one large range costs what one address does.
"""

from __future__ import annotations

import json
import re
import typing as t
from bisect import bisect_left, insort

from ansible_collections.railops.rdma.plugins.module_utils._admission_ranges import (
    Cidr,
    Interval,
    Ranges,
    merge,
    parse_address,
    parse_cidr,
    parse_range,
    ranges_text,
    subtract,
)
from ansible_collections.railops.rdma.plugins.module_utils._admission_schema import (
    KINDS,
    copied,
    schema_problems,
    with_defaults,
)
from ansible_collections.railops.rdma.plugins.module_utils._errors import Problem, RdmaError

if t.TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, t.Any]
Key = tuple[str, str, str]

FINALIZER = "spiderpool.spidernet.io"
LABEL_POOL_CIDR = "ipam.spidernet.io/ippool-cidr"
LABEL_SUBNET_CIDR = "ipam.spidernet.io/subnet-cidr"
INJECT_RDMA = "cni.spidernet.io/rdma-resource-inject"
INJECT_NETWORK = "cni.spidernet.io/network-resource-inject"
INJECT_KEYS = (INJECT_RDMA, INJECT_NETWORK)
CR_NAME = "multus.spidernet.io/cr-name"
CNI_VERSION = "multus.spidernet.io/cni-version"
CNI_VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0")
# cniType -> its block of the spec; `custom` has the field customCNI instead.
BLOCKS: t.Mapping[str, str] = {
    "macvlan": "macvlan",
    "ipvlan": "ipvlan",
    "vlan": "vlan",
    "sriov": "sriov",
    "ib-sriov": "ibsriov",
    "ipoib": "ipoib",
    "ovs": "ovs",
    "custom": "customCNI",
}
PARENTS = ("macvlan", "ipvlan", "vlan")
# What the webhook writes into a block where the field is absent.
_BLOCK_DEFAULTS: t.Mapping[str, Json] = {
    "macvlan": {"vlanID": 0, "mtu": 0, "rdmaResourceName": ""},
    "ipvlan": {"vlanID": 0, "mtu": 0, "rdmaResourceName": ""},
    "vlan": {"mtu": 0, "rdmaResourceName": ""},
    "sriov": {"vlanID": 0, "mtu": 0, "minTxRateMbps": 0, "maxTxRateMbps": 0},
    "ibsriov": {"pkey": "", "linkState": "enable", "rdmaIsolation": True, "enableIbKubernetes": False},
    "ipoib": {},
    "ovs": {"vlan": 0},
}
_COORDINATOR_DEFAULTS: Json = {
    "mode": "auto",
    "hijackCIDR": [],
    "podMACPrefix": "",
    "podDefaultRouteNIC": "",
    "podRPFilter": 0,
    "tunePodRoutes": True,
    "txQueueLen": 0,
    "hostRuleTable": 500,
    "vethLinkAddress": "",
    "vethMTU": 1500,
}
_POLICY_DEFAULTS: Json = {"priority": 99, "deviceType": "netdevice", "isRdma": False}
# The vendors and devices of the chart's ConfigMap supported-nic-ids; ConnectX-8 (1023) is not among them.
MELLANOX_DEVICES = ("1013", "1015", "1017", "1019", "101b", "101d", "101f", "1021", "a2d6", "a2dc")
MELLANOX = "15b3"
MELLANOX_MAX_VFS = 128
RESOURCE_NAME = re.compile(r"[a-zA-Z0-9_]+")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_PF_NAME = re.compile(r"([^#]+)(?:#(\d+)-(\d+))?")
UNPARSABLE = "is neither an address nor a range of the pool's family"


class AdmissionError(RdmaError):
    """An object that the API would refuse: the message it would send, the HTTP code and the reason.

    `place` is the field (`spec.ips[0]`), `code` and `reason` what the Status object of the answer holds.
    """

    def __init__(self, obj: Json, place: str, problem: str, fix: str, *, code: int = 422) -> None:
        kind, name = str(obj.get("kind")), str((obj.get("metadata") or {}).get("name"))
        detail = f"{place}: {problem}"
        if kind in KINDS and code == 422:
            detail = f'{kind}.{KINDS[kind].group} "{name}" is invalid: {detail}'
        super().__init__(detail, fix, kind=kind, name=name, place=place)
        self.place = place
        self.detail = problem
        self.code = code
        self.reason = {403: "Forbidden", 409: "AlreadyExists", 500: "InternalError"}.get(code, "Invalid")

    @property
    def message(self) -> str:
        """The message as the API sends it, without the fix."""
        return self.problem

    def as_problem(self) -> Problem:
        """Return the same as one line of a list of problems."""
        return Problem(f"{self.facts['kind']}/{self.facts['name']} {self.place}", f"{self.detail}.", self.fix)


def key_of(obj: Json) -> Key:
    """Return (kind, namespace, name); the namespace is empty for what lives in none."""
    metadata = obj.get("metadata") or {}
    return str(obj.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


# --- mutation -------------------------------------------------------------------------------------------------------


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
    return new


def _finalize(obj: Json) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)


def _label(obj: Json, key: str, value: str) -> None:
    labels = obj["metadata"].get("labels")
    obj["metadata"]["labels"] = {**(labels or {}), key: value}


def _merge_ranges(obj: Json, field: str, family: int) -> None:
    """Fold the entries of a list, as the webhook does with more than one of them."""
    entries = obj["spec"].get(field)
    if not isinstance(entries, list) or len(entries) < 2:
        return
    intervals = []
    for entry in entries:
        parsed = parse_range(entry)
        if parsed is None or parsed.family != family or parsed.first > parsed.last:
            raise AdmissionError(
                obj,
                f"spec.{field}",
                f"failed to merge 'spec.{field}': invalid IP range format in IPv{family} '{entry}'",
                "Write each entry as one address or as first-last, of the subnet's family.",
                code=403,
            )
        intervals.append((parsed.first, parsed.last))
    obj["spec"][field] = ranges_text(merge(intervals), family)


def _mutate_subnet_like(obj: Json, label: str) -> None:
    spec = obj["spec"]
    cidr = parse_cidr(spec.get("subnet"))
    if spec.get("ipVersion") is None:
        if cidr is None:
            raise AdmissionError(
                obj,
                "spec.subnet",
                f"failed to generate 'spec.ipVersion' from 'spec.subnet' {spec.get('subnet')}, nothing to mutate",
                "Write the subnet as a CIDR.",
                code=403,
            )
        spec["ipVersion"] = cidr.family
    if cidr is not None:
        _label(obj, label, re.sub(r"[.:/]", "-", cidr.masked()))
    for field in ("ips", "excludeIPs"):
        _merge_ranges(obj, field, spec["ipVersion"])
    _finalize(obj)


def _mutate_pool(obj: Json) -> None:
    _mutate_subnet_like(obj, LABEL_POOL_CIDR)


def _mutate_subnet(obj: Json) -> None:
    _mutate_subnet_like(obj, LABEL_SUBNET_CIDR)


def _mutate_reserved(obj: Json) -> None:
    ips = obj["spec"].get("ips")
    if not ips:
        raise AdmissionError(
            obj, "spec.ips", "empty 'spec.ips', nothing to mutate", "List at least one address.", code=403
        )
    if obj["spec"].get("ipVersion") is None:
        first = parse_range(ips[0])
        if first is None:
            raise AdmissionError(
                obj,
                "spec.ips",
                f"failed to generate 'spec.ipVersion' from 'spec.ips[0]' {ips[0]}, nothing to mutate",
                "Write each entry as one address or as first-last.",
                code=403,
            )
        obj["spec"]["ipVersion"] = first.family
    _merge_ranges(obj, "ips", obj["spec"]["ipVersion"])


def _mutate_coordinator(obj: Json) -> None:
    if not obj["spec"].get("podCIDRType"):
        raise AdmissionError(
            obj, "spec.podCIDRType", "PodCIDRType is not allowed to be empty", "Write podCIDRType: auto.", code=403
        )
    obj["spec"].setdefault("vethMTU", 1500)
    hijack = obj["spec"].get("hijackCIDR")
    if isinstance(hijack, list):
        obj["spec"]["hijackCIDR"] = [_as_cidr(item) for item in hijack]
    _finalize(obj)


def _as_cidr(text: t.Any) -> t.Any:
    address = parse_address(text)
    return text if address is None else f"{text}/{32 if address[0] == 4 else 128}"


def _mutate_multus(obj: Json) -> None:
    spec = obj["spec"]
    cni = spec.get("cniType") or "custom"
    spec["cniType"] = cni
    if cni == "custom":
        spec.pop("coordinator", None)
        spec["enableCoordinator"] = False
        spec.setdefault("customCNI", "")
    else:
        spec["coordinator"] = {**copied(_COORDINATOR_DEFAULTS), **(spec.get("coordinator") or {})}
        block = spec.get(BLOCKS.get(cni, ""))
        if isinstance(block, dict):
            for key, value in _BLOCK_DEFAULTS[BLOCKS[cni]].items():
                if block.get(key) is None:
                    block[key] = value
            if isinstance(block.get("bond"), dict):
                block["bond"].setdefault("options", "")
            if block.get("ippools") is None:
                block["ippools"] = {"ipv4": [], "ipv6": [], "matchMasterSubnet": False}
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
    "SpiderSubnet": _mutate_subnet,
    "SpiderReservedIP": _mutate_reserved,
    "SpiderCoordinator": _mutate_coordinator,
    "SpiderMultusConfig": _mutate_multus,
    "SriovNetworkNodePolicy": _mutate_policy,
}


def server_fields_removed(obj: Json) -> Json:
    """Return the object without what the server adds to it: status, finalizer, its own labels and bookkeeping."""
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key in ("name", "namespace", "labels", "annotations") and value
    }
    labels = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if key not in (LABEL_POOL_CIDR, LABEL_SUBNET_CIDR, *INJECT_KEYS)
    }
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


# --- the flat partition of subnets ----------------------------------------------------------------------------------


class _Partition:
    """The pools of one family: disjoint subnets, and inside of each subnet disjoint addresses.

    Both lists are sorted, so that one question costs a binary search however many pools there are.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._subnets: dict[int, tuple[int, str, dict[str, Ranges]]] = {}
        self._taken: dict[int, list[tuple[int, int, str]]] = {}

    def overlapping_subnet(self, first: int, last: int, text: str) -> tuple[str, str] | None:
        """Return (pool, subnet) of another subnet that contains this one or lies in it."""
        at = bisect_left(self._starts, first)
        for index in (at - 1, at):
            if 0 <= index < len(self._starts):
                start = self._starts[index]
                end, other, members = self._subnets[start]
                if other != text and start <= last and first <= end:
                    return next(iter(members)), other
        return None

    def overlapping_pool(self, first: int, name: str, ranges: Ranges) -> tuple[str, Ranges] | None:
        """Return (pool, addresses) of the first other pool of the subnet that shares an address."""
        taken = self._taken.get(first, [])
        for low, high in ranges:
            at = max(bisect_left(taken, (low,)) - 1, 0)
            while at < len(taken) and taken[at][0] <= high:
                start, end, other = taken[at]
                if other != name and end >= low:
                    return other, ((max(low, start), min(high, end)),)
                at += 1
        return None

    def add(self, name: str, first: int, last: int, text: str, ranges: Ranges) -> None:
        """Remember a pool."""
        if first not in self._subnets:
            insort(self._starts, first)
            self._subnets[first] = (last, text, {})
            self._taken[first] = []
        self._subnets[first][2][name] = ranges
        for low, high in ranges:
            insort(self._taken[first], (low, high, name))

    def remove(self, name: str, first: int) -> None:
        """Forget a pool."""
        if first not in self._subnets or name not in self._subnets[first][2]:
            return
        members = self._subnets[first][2]
        for low, high in members.pop(name):
            taken = self._taken[first]
            del taken[bisect_left(taken, (low, high, name))]
        if not members:
            del self._starts[bisect_left(self._starts, first)]
            del self._subnets[first], self._taken[first]


def effective_ranges(spec: Json) -> Ranges:
    """Return the addresses that a pool gives out, `ips` without `excludeIPs`; what does not parse counts nothing."""

    def intervals(field: str) -> list[Interval]:
        parsed = (parse_range(entry) for entry in spec.get(field) or ())
        return [(min(item.first, item.last), max(item.first, item.last)) for item in parsed if item is not None]

    taken_out = intervals("excludeIPs")
    wanted = merge(intervals("ips"))
    return subtract(wanted, merge(taken_out)) if taken_out else wanted


# --- admission ------------------------------------------------------------------------------------------------------


class Admission:
    """A set of objects and the webhooks in front of it.

    Each call answers for one object against the set: what the server would store, or AdmissionError with the message
    that the webhook sends. The set changes only when the call succeeds; `dry_run` never changes it.

    `schema` also refuses what the CRDs' schemas refuse (unknown fields, wrong types), as server-side apply does.
    `deny_delete` is the chart's value spiderpoolController.enableValidatingResourcesDeletedWebhook.
    """

    def __init__(
        self,
        existing: Iterable[Json] = (),
        *,
        ipv4: bool = True,
        ipv6: bool = True,
        schema: bool = True,
        deny_delete: bool = False,
    ) -> None:
        self._families = {4: ipv4, 6: ipv6}
        self._schema = schema
        self._deny_delete = deny_delete
        self._pools = {4: _Partition(), 6: _Partition()}
        self._subnets = {4: _Partition(), 6: _Partition()}
        self._objects: dict[Key, Json] = {}
        self._attachments: dict[tuple[str, str], str] = {}
        self._ports: dict[str, list[tuple[str, int, int]]] = {}
        for obj in existing:
            self.load(obj)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def get(self, key: Key) -> Json | None:
        """Return the stored object of (kind, namespace, name), or None."""
        return self._objects.get(key)

    def objects(self) -> list[Json]:
        """Return all stored objects."""
        return list(self._objects.values())

    def load(self, obj: Json) -> None:
        """Take an object that is in the cluster already, unchecked."""
        try:
            stored = mutate(obj)
        except AdmissionError:
            stored = t.cast("Json", copied(obj))
        self._forget(stored)
        self._remember(stored)

    def create(self, obj: Json, *, dry_run: bool = False) -> Json:
        """Return what the server would store for a new object."""
        new = self._admitted(obj, None)
        if not dry_run:
            self._remember(new)
        return new

    def update(self, old: Json | None, new: Json, *, dry_run: bool = False) -> Json:
        """Return what the server would store for a changed object; `old` None takes the stored one of that name."""
        before = old if old is not None else self._objects.get(key_of(new))
        if before is None:
            raise AdmissionError(new, "metadata.name", "not found", "Create the object first.", code=404)
        after = self._admitted(new, before)
        if not dry_run:
            self._forget(before)
            self._remember(after)
        return after

    def delete(self, obj: Json, *, dry_run: bool = False) -> None:
        """Take an object out of the set, unless the webhook forbids it."""
        stored = self._objects.get(key_of(obj), obj)
        if self._deny_delete and stored.get("kind") == "SpiderIPPool" and allocations(stored):
            raise AdmissionError(
                stored,
                "metadata.name",
                f"IPPool {stored['metadata']['name']} still has {len(allocations(stored))} allocated addresses",
                "Remove the pods that hold its addresses first.",
                code=403,
            )
        if not dry_run:
            self._forget(stored)

    def _admitted(self, obj: Json, old: Json | None) -> Json:
        kind = KINDS.get(str(obj.get("kind")))
        if kind is None:
            return t.cast("Json", copied(obj))
        _check_name(obj)
        if self._schema:
            _check_schema(obj)
        new = mutate(obj)
        _check_labels(new)
        if self._schema:
            # The webhook's own writing must be legal as well; and its rules may rely on the types.
            _check_schema(new)
        checker = getattr(self, f"_check_{new['kind'].lower()}")
        checker(new, old)
        return new

    def _remember(self, obj: Json) -> None:
        kind, namespace, name = key = key_of(obj)
        self._objects[key] = obj
        if kind in ("SpiderIPPool", "SpiderSubnet"):
            cidr = parse_cidr(obj["spec"].get("subnet"))
            if cidr is not None:
                partition = (self._pools if kind == "SpiderIPPool" else self._subnets)[cidr.family]
                partition.add(name, cidr.first, cidr.last, obj["spec"]["subnet"], effective_ranges(obj["spec"]))
        elif kind == "SpiderMultusConfig":
            self._attachments[namespace, _attachment(obj)] = name

    def _forget(self, obj: Json) -> None:
        kind, namespace, name = key = key_of(obj)
        stored = self._objects.pop(key, None)
        if stored is None:
            return
        if kind in ("SpiderIPPool", "SpiderSubnet"):
            cidr = parse_cidr(stored["spec"].get("subnet"))
            if cidr is not None:
                (self._pools if kind == "SpiderIPPool" else self._subnets)[cidr.family].remove(name, cidr.first)
        elif kind == "SpiderMultusConfig":
            self._attachments.pop((namespace, _attachment(stored)), None)

    # One method a kind; the order inside is the webhook's.

    def _check_spiderippool(self, new: Json, old: Json | None) -> None:
        spec, name = new["spec"], new["metadata"]["name"]
        if old is not None:
            if old["metadata"].get("deletionTimestamp"):
                raise AdmissionError(
                    new,
                    "metadata.deletionTimestamp",
                    "cannot update a terminating IPPool",
                    "Wait until it is gone and create it anew.",
                    code=403,
                )
            _check_unchanged(new, old, ("ipVersion", "subnet"))
        self._check_family(new)
        if old is None:
            _check_cidr(new)
            if key_of(new) in self._objects:
                raise AdmissionError(
                    new, "spec.subnet", f"Internal error: IPPool {name} already exists", "Update it instead.", code=409
                )
        cidr = _cidr_of(new)
        partition = self._pools[cidr.family]
        if old is None:
            clash = partition.overlapping_subnet(cidr.first, cidr.last, spec["subnet"])
            if clash:
                raise AdmissionError(
                    new,
                    "spec.subnet",
                    f'Invalid value: "{spec["subnet"]}": overlap with IPPool {clash[0]} which '
                    f"'spec.subnet' is {clash[1]}",
                    "Give both pools the same subnet, or subnets that share no address.",
                )
        _check_ranges(new)
        shared = partition.overlapping_pool(cidr.first, name, effective_ranges(spec))
        if shared:
            raise AdmissionError(
                new,
                "spec.ips",
                f"Forbidden: overlap with IPPool {shared[0]} in IP ranges "
                f"[{' '.join(ranges_text(shared[1], cidr.family))}], total IP addresses of an IPPool are jointly "
                "determined by 'spec.ips' and 'spec.excludeIPs'",
                "Give each pool of a subnet addresses of its own.",
            )
        _check_gateway(new)
        _check_routes(new)
        _check_pod_affinity(new)
        if old is not None:
            _check_in_use(new, old)

    def _check_spidersubnet(self, new: Json, old: Json | None) -> None:
        spec = new["spec"]
        if old is not None:
            _check_unchanged(new, old, ("ipVersion", "subnet"))
        self._check_family(new)
        _check_cidr(new)
        cidr = _cidr_of(new)
        if old is None:
            clash = self._subnets[cidr.family].overlapping_subnet(cidr.first, cidr.last, "")
            if clash:
                raise AdmissionError(
                    new,
                    "spec.subnet",
                    f'Invalid value: "{spec["subnet"]}": overlap with Subnet {clash[0]} which '
                    f"'spec.subnet' is {clash[1]}",
                    "Give each SpiderSubnet addresses of its own.",
                )
        _check_ranges(new)
        _check_gateway(new)
        _check_routes(new)

    def _check_spiderreservedip(self, new: Json, old: Json | None) -> None:
        if old is not None:
            _check_unchanged(new, old, ("ipVersion",))
        self._check_family(new)
        family = new["spec"]["ipVersion"]
        for index, entry in enumerate(new["spec"]["ips"]):
            parsed = parse_range(entry)
            if parsed is None or parsed.family != family or parsed.first > parsed.last:
                raise AdmissionError(
                    new,
                    f"spec.ips[{index}]",
                    f'Invalid value: "{entry}": invalid IP range format in IPv{family}',
                    "Write each entry as one address or as first-last, all of one family.",
                )

    def _check_spidercoordinator(self, new: Json, old: Json | None) -> None:
        _check_coordinator(new, new["spec"], "spec")

    def _check_spidermultusconfig(self, new: Json, old: Json | None) -> None:
        _check_annotations(new, old)
        owner = self._attachments.get((key_of(new)[1], _attachment(new)))
        if owner is not None and owner != new["metadata"]["name"]:
            raise AdmissionError(
                new,
                "metadata.annotations",
                f"Invalid value: the net-attach-def {key_of(new)[1]}/{_attachment(new)} already exists and is "
                f"managed by SpiderMultusConfig {key_of(new)[1]}/{owner}",
                "Choose another name.",
            )
        _check_cni(new)
        if isinstance(new["spec"].get("coordinator"), dict):
            _check_coordinator(new, new["spec"]["coordinator"], "spec.coordinator")
        _check_chain(new)

    def _check_sriovnetworknodepolicy(self, new: Json, old: Json | None) -> None:
        if new["metadata"]["name"] == "default":
            return
        _check_policy(new)
        for other in self._policies_beside(new):
            _check_policy_pair(new, other)

    def _policies_beside(self, new: Json) -> Iterable[Json]:
        kind, namespace, name = key_of(new)
        for key, other in self._objects.items():
            if key[0] == kind and key[1] == namespace and key[2] not in (name, "default") and _share_nodes(new, other):
                yield other

    def _check_family(self, obj: Json) -> None:
        family = obj["spec"].get("ipVersion")
        if family not in (4, 6):
            raise AdmissionError(
                obj,
                "spec.ipVersion",
                f'Unsupported value: {family}: supported values: "4", "6"',
                "Write 4 or 6, or leave it out.",
            )
        if not self._families[family]:
            raise AdmissionError(
                obj,
                "spec.ipVersion",
                f"Forbidden: IPv{family} is disabled",
                f"Install Spiderpool with ipam.enableIPv{family}=true.",
            )


# --- the rules ------------------------------------------------------------------------------------------------------


def allocations(obj: Json) -> Json:
    """Return the allocated addresses of a pool: address -> {pod, podUid}."""
    text = (obj.get("status") or {}).get("allocatedIPs")
    if not text:
        return {}
    try:
        return dict(json.loads(text))
    except ValueError:
        return {}


def _attachment(obj: Json) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(CR_NAME) or obj["metadata"].get("name"))


def _check_name(obj: Json) -> None:
    metadata = obj.get("metadata") or {}
    name = metadata.get("name")
    if not isinstance(name, str) or len(name) > 253 or not _DNS_NAME.fullmatch(name):
        raise AdmissionError(
            obj,
            "metadata.name",
            f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
            "characters, '-' or '.', and must start and end with an alphanumeric character",
            "Use lower-case letters, digits and hyphens.",
        )


def _check_schema(obj: Json) -> None:
    kind = KINDS[obj["kind"]]
    problems = schema_problems(obj.get("spec"), kind.spec, "spec")
    if obj.get("apiVersion") != kind.api_version:
        problems.insert(0, ("apiVersion", f'Invalid value: "{obj.get("apiVersion")}": must be {kind.api_version}'))
    if problems:
        place, problem = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise AdmissionError(obj, place, f"{problem}{more}", "Move or rename the field as the schema has it.")


def _check_labels(obj: Json) -> None:
    for key, value in (obj["metadata"].get("labels") or {}).items():
        if not isinstance(value, str) or len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
            raise AdmissionError(
                obj,
                "metadata.labels",
                f'Invalid value: "{value}": the label {key} must be at most 63 letters, digits, "-", "_" or ".", '
                "and start and end with a letter or digit",
                "Shorten the value; the injection annotation becomes a label too.",
            )


def _check_unchanged(new: Json, old: Json, fields: tuple[str, ...]) -> None:
    for field in fields:
        before, after = old["spec"].get(field), new["spec"].get(field)
        if before != after and not (field == "ipVersion" and before is None):
            raise AdmissionError(
                new,
                f"spec.{field}",
                f"Forbidden: is not changeable (it is {before})",
                "Make a pool of another name, move the pods, then remove the old one.",
            )


def _cidr_of(obj: Json) -> Cidr:
    text = obj["spec"]["subnet"]
    cidr = parse_cidr(text)
    if cidr is None:
        raise AdmissionError(
            obj, "spec.subnet", f'Invalid value: "{text}": invalid CIDR address', "Write a network as 192.0.2.0/24."
        )
    return cidr


def _check_cidr(obj: Json) -> None:
    text, family = obj["spec"]["subnet"], obj["spec"]["ipVersion"]
    cidr = parse_cidr(text)
    if cidr is None or cidr.family != family:
        raise AdmissionError(
            obj,
            "spec.subnet",
            f'Invalid value: "{text}": invalid CIDR format in IPv{family}',
            f"Write an IPv{family} network such as {'192.0.2.0/24' if family == 4 else '2001:db8::/64'}.",
        )
    if cidr.masked() != text:
        raise AdmissionError(
            obj,
            "spec.subnet",
            f'Invalid value: "{text}": unformatted subnet {text}, please change it to {cidr.masked()}',
            f"Write {cidr.masked()}, or the prefix length that was meant.",
        )


def _check_ranges(obj: Json) -> None:
    """Every entry is an address or a range in the subnet. A single reversed range passes, as it does upstream."""
    cidr = _cidr_of(obj)
    for field in ("ips", "excludeIPs"):
        for index, entry in enumerate(obj["spec"].get(field) or ()):
            parsed = parse_range(entry)
            place = f"spec.{field}[{index}]"
            if parsed is None or parsed.family != cidr.family:
                raise AdmissionError(
                    obj,
                    place,
                    f'Invalid value: "{entry}": invalid IP range format in IPv{cidr.family}: it {UNPARSABLE}',
                    "Write one address or first-last, without spaces and without a prefix length.",
                )
            if min(parsed.first, parsed.last) < cidr.first or max(parsed.first, parsed.last) > cidr.last:
                raise AdmissionError(
                    obj,
                    place,
                    f"Invalid value: \"{entry}\": not pertains to the 'spec.subnet' {obj['spec']['subnet']} of IPPool: "
                    "it is not inside the subnet",
                    f"Keep to {ranges_text(((cidr.first, cidr.last),), cidr.family)[0]}.",
                )


def _check_inside(obj: Json, place: str, text: str) -> None:
    cidr = parse_cidr(obj["spec"]["subnet"])
    address = parse_address(text)
    if cidr is None or address is None or address[0] != cidr.family:
        raise AdmissionError(
            obj, place, f'Invalid value: "{text}": invalid IP', "Write one address of the subnet's family."
        )
    if not cidr.first <= address[1] <= cidr.last:
        raise AdmissionError(
            obj,
            place,
            f"Invalid value: \"{text}\": not pertains to the 'spec.subnet' {obj['spec']['subnet']} of IPPool",
            "Take an address of the subnet.",
        )


def _check_gateway(obj: Json) -> None:
    gateway = obj["spec"].get("gateway")
    if gateway is None:
        return
    _check_inside(obj, "spec.gateway", gateway)
    address = t.cast("tuple[int, int]", parse_address(gateway))[1]

    def holds(entry: str) -> bool:
        parsed = parse_range(entry)
        return parsed is not None and parsed.first <= address <= parsed.last

    if any(holds(entry) for entry in obj["spec"].get("excludeIPs") or ()):
        return
    for index, entry in enumerate(obj["spec"].get("ips") or ()):
        if holds(entry):
            raise AdmissionError(
                obj,
                f"spec.ips[{index}]",
                f"Invalid value: \"{entry}\": conflicts with 'spec.gateway' {gateway}, add the gateway IP address to "
                "'spec.excludeIPs' or remove it from 'spec.ips'",
                "Leave the gateway out of the addresses.",
            )


def _check_routes(obj: Json) -> None:
    family, seen = obj["spec"]["ipVersion"], set()
    for index, route in enumerate(obj["spec"].get("routes") or ()):
        place, dst = f"spec.routes[{index}].dst", route["dst"]
        cidr = parse_cidr(dst)
        problem = ""
        if dst == ("0.0.0.0/0" if family == 4 else "::/0"):
            problem = "please specify 'spec.gateway' to configure the default route"
        elif dst in seen:
            problem = "duplicate route with the same dst"
        elif cidr is None or cidr.family != family:
            problem = f"invalid CIDR format in IPv{family}"
        if problem:
            raise AdmissionError(
                obj,
                place,
                f'Invalid value: "{dst}": {problem}',
                "List each destination once, as dst and gw.",
            )
        seen.add(dst)
        _check_inside(obj, f"spec.routes[{index}].gw", route["gw"])


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def _check_pod_affinity(obj: Json) -> None:
    selector = obj["spec"].get("podAffinity")
    if selector is None:
        return
    problem = ""
    expressions = selector.get("matchExpressions") or ()
    if not selector.get("matchLabels") and not expressions:
        problem = "empty podAffinity is invalid for SpiderIPPool"
    for item in expressions:
        if item["operator"] not in _OPERATORS:
            problem = f"not a valid selector operator: {item['operator']}"
        elif bool(item.get("values")) != (item["operator"] in ("In", "NotIn")):
            problem = f"values do not fit the operator {item['operator']}"
    for value in (selector.get("matchLabels") or {}).values():
        if len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
            problem = f"not a label value: {value}"
    if problem:
        raise AdmissionError(
            obj, "spec.podAffinity", f"Invalid value: {problem}", "Select pods by labels they carry, or drop the field."
        )


def _check_in_use(new: Json, old: Json) -> None:
    used = allocations(new) or allocations(old)
    if not used:
        return
    ranges = effective_ranges(new["spec"])
    for text, record in used.items():
        address = parse_address(text)
        if address is not None and not any(first <= address[1] <= last for first, last in ranges):
            pod = record.get("pod", "?") if isinstance(record, dict) else "?"
            raise AdmissionError(
                new,
                "spec.ips",
                f"Forbidden: remove an IP address {text} that is being used by Pod {pod}, total IP addresses of an "
                "IPPool are jointly determined by 'spec.ips' and 'spec.excludeIPs'",
                "Remove the pod first.",
            )


def _check_annotations(new: Json, old: Json | None) -> None:
    annotations = new["metadata"].get("annotations") or {}
    before = ((old or {}).get("metadata") or {}).get("annotations") or {}
    if old is not None and CR_NAME in annotations and annotations[CR_NAME] != before.get(CR_NAME):
        raise AdmissionError(
            new,
            "metadata.annotations",
            f"Invalid value: it's unsupported to change the net-attach-def name to '{annotations[CR_NAME]}'",
            f"Make a new object, or leave {CR_NAME} as it was.",
        )
    if CR_NAME in annotations and not _DNS_NAME.fullmatch(str(annotations[CR_NAME])):
        raise AdmissionError(
            new,
            "metadata.annotations",
            f"Invalid value: invalid custom net-attach-def resource name '{annotations[CR_NAME]}'",
            "Use lower-case letters, digits and hyphens.",
        )
    if CNI_VERSION in annotations and annotations[CNI_VERSION] not in CNI_VERSIONS:
        raise AdmissionError(
            new,
            "metadata.annotations",
            f"Invalid value: unsupported CNI version {annotations[CNI_VERSION]}",
            f"Use one of {', '.join(CNI_VERSIONS)}.",
        )


def _check_cni(obj: Json) -> None:
    spec, cni = obj["spec"], obj["spec"]["cniType"]
    name = BLOCKS[cni]
    place, block = f"spec.{name}", spec.get(name)
    inject = [key for key in INJECT_KEYS if key in (obj["metadata"].get("annotations") or {})]
    if cni in ("ovs", "custom") and inject:
        raise AdmissionError(
            obj,
            "spec.cniType",
            f"Forbidden: the cniType {cni} does not support RDMA resource or network resource injected",
            f"Drop the annotation {inject[0]}.",
        )
    if cni != "custom" and block is None:
        raise AdmissionError(obj, place, f"Required value: no {place} specified", f"Add the block {name} to the spec.")
    others = [other for other in BLOCKS.values() if other != name and spec.get(other) is not None]
    if cni in PARENTS:
        _check_parent(obj, cni, block)
    elif cni == "sriov":
        _check_sriov(obj, block)
    elif cni == "ib-sriov":
        _require(obj, place, block, "resourceName")
    elif cni == "ipoib":
        _require(obj, place, block, "master")
    elif cni == "ovs":
        _check_trunks(obj, block)
    elif block:
        _check_json(obj, "spec.customCNI", block)
    if others:
        raise AdmissionError(
            obj,
            "spec.cniType",
            f"Forbidden: the cniType {cni} only supports {place}, please remove other CNI configs",
            f"Remove {', '.join(f'spec.{other}' for other in others)}.",
        )
    _check_injection(obj, cni, block)


def _require(obj: Json, place: str, block: Json, field: str) -> None:
    if not block.get(field):
        raise AdmissionError(obj, place, f"Required value: no {place}[{field}] specified", f"Add {field}.")


def _check_parent(obj: Json, cni: str, block: Json) -> None:
    place = f"spec.{cni}"
    if cni == "vlan":
        manual = (block.get("vlanMode") or "manual") == "manual"
        if manual == (block.get("vlanID") is None):
            problem = "vlanMode manual requires vlanID" if manual else "vlanMode auto forbids vlanID"
            raise AdmissionError(obj, place, f"Invalid value: {problem}", "Set vlanID for manual, drop it for auto.")
    if (block.get("ippools") or {}).get("matchMasterSubnet"):
        raise AdmissionError(
            obj,
            place,
            f"Invalid value: MatchMasterSubnet feature is not supported for {cni}",
            "Use pools with nodeName, selected by a wildcard; matchMasterSubnet is for sriov only.",
        )
    masters, bond = block.get("master") or [], block.get("bond")
    if not masters:
        raise AdmissionError(obj, place, "Invalid value: master can't be empty", "Name the parent interface.")
    if len(masters) > 1 and not (bond or {}).get("name"):
        problem = "bond name can't be empty" if bond else "the bond property is nil with multiple Interfaces"
        raise AdmissionError(obj, place, f"Invalid value: {problem}", "Add a bond with a name, or name one interface.")


def _check_sriov(obj: Json, block: Json) -> None:
    low, high = block.get("minTxRateMbps") or 0, block.get("maxTxRateMbps") or 0
    if low > high:
        raise AdmissionError(
            obj,
            "spec.sriov",
            f"Invalid value: {low}: minTxRateMbps must be less than maxTxRateMbps",
            "Raise maxTxRateMbps or lower minTxRateMbps.",
        )
    _require(obj, "spec.sriov", block, "resourceName")


def _check_trunks(obj: Json, block: Json) -> None:
    for trunk in block.get("trunk") or ():
        if trunk.get("maxID") is not None and trunk["maxID"] < (trunk.get("minID") or 0):
            raise AdmissionError(
                obj,
                "spec.ovs",
                "Invalid value: minID is greater than maxID in trunk parameter",
                "Swap minID and maxID.",
            )


def _check_json(obj: Json, place: str, text: str) -> t.Any:
    try:
        return json.loads(text)
    except ValueError:
        raise AdmissionError(
            obj, place, "Forbidden: customCniConfig isn't a valid JSON encoding", "Write JSON."
        ) from None


# Where the resource of an attachment stands; for ipoib the parent stands in for it.
_RESOURCE_FIELDS: t.Mapping[str, str] = {"ipoib": "master", "sriov": "resourceName", "ib-sriov": "resourceName"}


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
        raise AdmissionError(
            obj, place, f"Invalid value: {problem}", f"Name the resource and the pools inside of {place}."
        )


def _check_coordinator(obj: Json, spec: Json, place: str) -> None:
    for index, item in enumerate(spec.get("hijackCIDR") or ()):
        if parse_address(item) is None and parse_cidr(item) is None:
            raise AdmissionError(
                obj, f"{place}.hijackCIDR[{index}]", f'Invalid value: "{item}": invalid IP or CIDR', "Write a CIDR."
            )
    for index, route in enumerate(spec.get("policyRoutes") or ()):
        gateway, target = parse_address(route["gw"]), parse_cidr(_as_cidr(route["dst"]))
        if gateway is None or target is None or gateway[0] != target.family:
            raise AdmissionError(
                obj,
                f"{place}.policyRoutes[{index}]",
                f"Invalid value: dst {route['dst']} and gw {route['gw']} must be of one family",
                "Write dst as a CIDR and gw as an address of the same family.",
            )
    _check_mac_prefix(obj, spec.get("podMACPrefix"), place)
    numbers = (
        ("txQueueLen", (spec.get("txQueueLen") or 0) >= 0, "can't be less than 0"),
        ("podRPFilter", (spec.get("podRPFilter") or 0) <= 2, 'supported values: "0", "1", "2" and negative'),
        ("vethMTU", spec.get("vethMTU") is None or spec["vethMTU"] > 0, "must be greater than 0"),
    )
    for field, good, problem in numbers:
        if not good:
            raise AdmissionError(
                obj, f"{place}.{field}", f"Invalid value: {spec[field]}: {field} {problem}", "Correct it."
            )
    link = spec.get("vethLinkAddress")
    if link and parse_address(link) is None:
        raise AdmissionError(
            obj,
            f"{place}.vethLinkAddress",
            f'Invalid value: "{link}": vethLinkAddress is an invalid IP address',
            "Write one address, such as 169.254.200.1.",
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
    raise AdmissionError(
        obj, f"{place}.podMACPrefix", f'Invalid value: "{prefix}": {problem}', "Write two bytes such as 0a:1b."
    )


def _check_chain(obj: Json) -> None:
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
                'Write JSON with a "type".',
            )


# --- SR-IOV policies ------------------------------------------------------------------------------------------------


def _deny_policy(obj: Json, place: str, problem: str, fix: str) -> AdmissionError:
    return AdmissionError(obj, place, problem, fix, code=400)


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
                "Write name or name#first-last.",
            )
        first, last = (int(match[2]), int(match[3])) if match[2] else (0, obj["spec"]["numVfs"] - 1)
        found.append((match[1], first, last))
        if match[2] and not first <= last < obj["spec"]["numVfs"]:
            raise _deny_policy(
                obj,
                "spec.nicSelector.pfNames",
                f"failed to parse {entry} PF name nicSelector, end range shall not be smaller than start range and "
                f"below numVfs ({obj['spec']['numVfs']})",
                "Keep the range below numVfs.",
            )
    return found


def _check_policy(obj: Json) -> None:
    spec, name = obj["spec"], obj["metadata"]["name"]
    nic = spec["nicSelector"]
    vendor, device = nic.get("vendor"), nic.get("deviceID")
    if not RESOURCE_NAME.fullmatch(spec["resourceName"]):
        raise _deny_policy(
            obj,
            "spec.resourceName",
            f'resource name "{spec["resourceName"]}" contains invalid characters',
            "Use letters, digits and underscores only.",
        )
    if not any(nic.get(key) for key in ("vendor", "deviceID", "pfNames", "rootDevices", "netFilter")):
        raise _deny_policy(
            obj,
            "spec.nicSelector",
            "at least one of these parameters (vendor, deviceID, pfNames, rootDevices or netFilter) has to be defined "
            f"in nicSelector in CR {name}",
            "Name the interfaces in pfNames.",
        )
    if vendor == MELLANOX and device and device not in MELLANOX_DEVICES:
        raise _deny_policy(
            obj,
            "spec.nicSelector.deviceID",
            f"vendor/device {vendor}/{device} is not supported",
            "Add the card to the chart's supportedExtraNICs.",
        )
    _ports(obj)
    if spec["numVfs"] == 0:
        raise _deny_policy(obj, "spec.numVfs", f"numVfs(0) in CR {name} is not allowed", "Ask for at least one.")
    if spec["numVfs"] > MELLANOX_MAX_VFS and vendor in (None, "", MELLANOX):
        raise _deny_policy(
            obj,
            "spec.numVfs",
            f"numVfs({spec['numVfs']}) in CR {name} exceed the maximum allowed value({MELLANOX_MAX_VFS})",
            f"Ask for at most {MELLANOX_MAX_VFS}.",
        )
    _check_policy_kind(obj)


def _check_policy_kind(obj: Json) -> None:
    spec = obj["spec"]
    infiniband = str(spec.get("linkType", "")).lower() == "ib"
    if spec.get("deviceType") == "vfio-pci" and spec.get("isRdma"):
        problem, fix = "'deviceType: vfio-pci' conflicts with 'isRdma: true'", "Use deviceType: netdevice."
    elif infiniband and not spec.get("isRdma"):
        problem, fix = "'linkType: ib or IB' requires 'isRdma: true'", "Set isRdma: true."
    elif infiniband and spec.get("eSwitchMode") == "switchdev":
        problem, fix = "'eSwitchMode: switchdev' can be used only with ethernet links", "Drop eSwitchMode."
    else:
        return
    raise _deny_policy(obj, "spec", f"{problem}; set in CR {obj['metadata']['name']}", fix)


def _share_nodes(one: Json, other: Json) -> bool:
    """Whether two policies may select the same node: no label that both name has two values."""
    left, right = one["spec"].get("nodeSelector") or {}, other["spec"].get("nodeSelector") or {}
    return all(right.get(key, value) == value for key, value in left.items())


def _check_policy_pair(new: Json, other: Json) -> None:
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
                    "Give each policy its own interfaces, or ranges of VFs that share none.",
                )
            if bool(new["spec"].get("externallyManaged")) != bool(other["spec"].get("externallyManaged")):
                raise _deny_policy(
                    new,
                    "spec.externallyManaged",
                    f"externallyManaged is inconsistent with existing policy {other['metadata']['name']}",
                    "Give both policies of one interface the same value.",
                )
    roots = set(new["spec"]["nicSelector"].get("rootDevices") or ())
    shared = sorted(roots.intersection(other["spec"]["nicSelector"].get("rootDevices") or ()))
    if shared:
        raise _deny_policy(
            new,
            "spec.nicSelector.rootDevices",
            f"root device {shared[0]} is overlapped with existing policy {other['metadata']['name']}",
            "Name each device in one policy.",
        )
    same = new["spec"]["resourceName"] == other["spec"]["resourceName"]
    if same and bool(new["spec"].get("excludeTopology")) != bool(other["spec"].get("excludeTopology")):
        raise _deny_policy(
            new,
            "spec.excludeTopology",
            f"excludeTopology is inconsistent with existing policy {other['metadata']['name']}",
            "Give all policies of one resource the same value.",
        )


# --- whole sets -----------------------------------------------------------------------------------------------------


def check(objects: Iterable[Json], existing: Iterable[Json] = (), **options: bool) -> list[Problem]:
    """Return what the API would refuse of a set of new objects, in their order; [] when all of it would be stored.

    `existing` are objects of the cluster; one of the same name makes the new one an update. `options` are those of
    Admission. Rules that no webhook has: `_admission_strict.strict`.
    """
    admission = Admission(existing, **options)
    problems = []
    for obj in objects:
        old = admission.get(key_of(obj))
        try:
            if old is None:
                admission.create(obj)
            else:
                admission.update(old, obj)
        except AdmissionError as exc:
            problems.append(exc.as_problem())
    return problems


def check_device_config(config: t.Any) -> list[Problem]:
    """Return what the RDMA shared device plugin would refuse of its config.json (k8s-rdma-shared-dev-plugin 1.5.3)."""
    problems: list[Problem] = []

    def problem(place: str, text: str, fix: str) -> None:
        problems.append(Problem(place, text, fix))

    interval = config.get("periodicUpdateInterval", 60)
    if isinstance(interval, bool) or not isinstance(interval, int) or interval < 0:
        problem("periodicUpdateInterval", f"{interval!r} is no number of seconds.", "Write 0 (off) or more.")
    entries = config.get("configList")
    if not isinstance(entries, list) or not entries:
        problem("configList", "no resources configuration found: the plugin exits.", "List at least one resource.")
        return problems
    names: set[str] = set()
    for index, entry in enumerate(entries):
        place = f"configList[{index}]"
        name = entry.get("resourceName")
        if not isinstance(name, str) or not RESOURCE_NAME.fullmatch(name):
            problem(f"{place}.resourceName", f"{name!r} is no resource name.", "Use letters, digits and underscores.")
        elif name in names:
            problem(f"{place}.resourceName", f"{name!r} is there twice.", "Names are unique whatever their prefix.")
        names.add(str(name))
        maximum = entry.get("rdmaHcaMax", 0)
        if isinstance(maximum, bool) or not isinstance(maximum, int) or maximum < 0:
            problem(f"{place}.rdmaHcaMax", f"{maximum!r} is no number of slots.", "Write 0 or more.")
        if entry.get("devices") and entry.get("selectors"):
            problem(place, "devices and selectors exclude each other.", "Use selectors.ifNames.")
        problems.extend(_selector_problems(entry.get("selectors") or {}, f"{place}.selectors"))
        if not entry.get("devices") and not entry.get("selectors"):
            problem(place, "it selects no device.", "Add selectors.ifNames.")
    return problems


_SELECTORS = ("vendors", "deviceIDs", "drivers", "ifNames", "linkTypes")


def _selector_problems(selectors: Json, place: str) -> list[Problem]:
    problems = []
    for key, value in selectors.items():
        if key not in _SELECTORS:
            problems.append(Problem(f"{place}.{key}", "no such selector.", f"Use one of {', '.join(_SELECTORS)}."))
        elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            problems.append(Problem(f"{place}.{key}", f"{value!r} is no list of strings.", "Write a list."))
        elif key == "linkTypes" and not set(value) <= {"ether", "infiniband"}:
            problems.append(Problem(f"{place}.{key}", f"{value!r} names no link type.", "Use ether or infiniband."))
    return problems

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What brings an interface to the values of lossless RoCE, or back, and what verification compares.

No files, no programs.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._check import Check, by_role, compared, deviation, skipped
from .backends import BACKENDS, driver_of

if t.TYPE_CHECKING:
    from .backends import Backend, Driver, Operation
    from .policy import QosPolicy

    State = dict[str, t.Any]

SETTINGS = (
    *("trust", "pfc", "dscp_map", "dcbx", "ecn_np", "ecn_rp", "cnp_dscp", "cnp_priority"),
    *("traffic_class", "forced_traffic_class", "ets"),
)
"""The settings of an interface, as `device.Nic.read` has them; None is what its driver does not offer.

`ets`: class of each priority, percent of each class, algorithm of each class by its name in `dcb` and `mlnx_qos`.
"""


def state_of(values: t.Mapping[str, t.Any]) -> State:
    """Return the settings that were read, or that a settings file recorded."""
    return {name: values.get(name) for name in SETTINGS}


@dataclass(frozen=True)
class NicPlan:
    """What is there, what is wanted, and the writes between them in their order."""

    before: State
    after: State
    operations: tuple[Operation, ...]
    flaps: bool  # whether these take the link down for a moment
    boot: tuple[Operation, ...] = ()


def plan_nic(policy: QosPolicy, values: t.Mapping[str, t.Any], entry: t.Mapping[str, t.Any]) -> NicPlan:
    """Return what brings an interface to the policy. `values` is what was read, `entry` the record of earlier runs."""
    have, old = state_of(values), entry.get("original") or {}
    old_ets = old.get("ets") if "ets_bandwidth" in entry.get("options", {}) else None
    wanted = {
        "trust": "dscp",
        "pfc": list(policy.pfc),
        "dscp_map": _map(have["dscp_map"], old.get("dscp_map"), entry.get("dscps", ()), policy.entries),
        "dcbx": "host",
        "ecn_np": _with_priority(old.get("ecn_np", have["ecn_np"]) or (), policy),
        "ecn_rp": _with_priority(old.get("ecn_rp", have["ecn_rp"]) or (), policy),
        "cnp_dscp": policy.cnp_dscp,
        "cnp_priority": policy.cnp_priority,
        "traffic_class": policy.traffic_class,
        "forced_traffic_class": policy.traffic_class,
        "ets": wanted_ets(policy) if policy.ets is not None else old_ets or have["ets"],
    }
    after = {name: None if value is None else wanted[name] for name, value in have.items()}
    operations = tuple(_operations(have, after, values))
    # Everything to write on a NIC that comes up with its defaults.
    boot = {
        **after,
        "trust": "dscp",
        "dscp_map": None if after["dscp_map"] is None else _map((), (), (), policy.entries),
        "ets": None if policy.ets is None else after["ets"],
    }
    at_boot = tuple(_operations(state_of({}), boot, values))
    if entry and operations == (("dcbx", "host"),):  # an earlier run tried it, and the firmware keeps it
        operations, after = (), {**after, "dcbx": have["dcbx"]}
    return NicPlan(have, after, operations, _flaps(operations, values), at_boot)


def wanted_ets(policy: QosPolicy) -> list[t.Any]:
    """Return the classes that a policy wants: RoCE in one of its own with its share, notifications strictly first."""
    roce, cnp, share = policy.priority, policy.cnp_priority, policy.ets or 0
    classes = [number if number in (roce, cnp) else 0 for number in range(8)]
    percent = [share if number == roce else 100 - share if number == 0 else 0 for number in range(8)]
    return [*classes, *percent, *("ets" if number in (0, roce) else "strict" for number in range(8))]


def plan_restore(
    original: t.Mapping[str, t.Any] | None, managed: t.Collection[int], values: t.Mapping[str, t.Any]
) -> NicPlan:
    """Return what takes an interface back to what it was before, or to the driver's defaults."""
    have = state_of(values)
    old = original or {"trust": "pcp", "pfc": [], "dscp_map": [], "traffic_class": 0, "forced_traffic_class": 0}
    after = {name: now if now is None or old.get(name) is None else old[name] for name, now in have.items()}
    if have["dscp_map"] is not None:
        after["dscp_map"] = _map(have["dscp_map"], old.get("dscp_map"), managed, {})
        driver, backend = _writer(values)
        if backend and not backend.writes_trust and driver.trust_follows_map:
            after["trust"] = "dscp" if after["dscp_map"] else "pcp"
    # Flow control first: a priority must not stay lossless for traffic that no longer comes to it.
    operations = tuple(sorted(_operations(have, after, values), key=lambda item: item[0] != "pfc"))
    return NicPlan(have, after, operations, _flaps(operations, values))


def _writer(values: t.Mapping[str, t.Any]) -> tuple[Driver, Backend | None]:
    return driver_of(values.get("driver")), BACKENDS.get(values.get("backend") or "")


def _map(have: t.Any, original: t.Any, managed: t.Collection[int], wanted: t.Mapping[int, int]) -> list[list[int]]:
    """Return a DSCP map: the managed entries become the original ones, then the wanted ones."""
    rest = [row for row in have or () if row[0] not in managed] + [row for row in original or () if row[0] in managed]
    return sorted([*(row for row in rest if row[0] not in wanted), *map(list, wanted.items())])


def _with_priority(have: t.Iterable[int], policy: QosPolicy) -> list[int]:
    rest = set(have) - {policy.priority}
    return sorted(rest | {policy.priority} if policy.ecn else rest)


def _operations(have: State, after: State, values: t.Mapping[str, t.Any]) -> t.Iterator[Operation]:
    """Yield the writes in their order: DCBX, trust, the map, and only then flow control."""
    driver, backend = _writer(values)
    if have["dcbx"] != after["dcbx"] and after["dcbx"] == "host":
        yield "dcbx", "host"
    trust = backend is not None and backend.writes_trust and have["trust"] != after["trust"]
    if trust and after["trust"] == "dscp":
        yield "trust", "dscp"
    # New entries before old ones go: on mlx5 a map that is empty for a moment drops trust to PCP.
    old, new = have["dscp_map"] or [], after["dscp_map"] or []
    yield from (("dscp", entry) for entry in new if entry not in old)
    replaced = set(dict(new)) if driver.set_replaces or (backend is not None and backend.set_replaces) else ()
    yield from (("no_dscp", entry) for entry in old if entry not in new and entry[0] not in replaced)
    if trust and after["trust"] != "dscp":
        yield "trust", after["trust"]
    for name in ("ets", "pfc", "ecn_np", "ecn_rp", "cnp_dscp", "cnp_priority", "traffic_class", "forced_traffic_class"):
        if have[name] != after[name]:
            yield name, after[name]
    if have["dcbx"] != after["dcbx"] and after["dcbx"] == "firmware":
        yield "dcbx", "firmware"


def _flaps(operations: t.Iterable[Operation], values: t.Mapping[str, t.Any]) -> bool:
    return _writer(values)[0].pfc_flaps and any(kind == "pfc" for kind, _value in operations)


def differences(plan: NicPlan, read: t.Mapping[str, t.Any]) -> dict[str, tuple[t.Any, t.Any]]:
    """Return what was written and did not come to be, as name: (wanted, found)."""
    wanted, found = plan.after, state_of(read)
    # Which side negotiates DCBX is a wish: many firmware releases keep it.
    names = [name for name, value in wanted.items() if value is not None and name not in ("dcbx", "dscp_map")]
    bad = {name: (wanted[name], found[name]) for name in names if wanted[name] != found[name]}
    # A device that begins to trust the DSCP also shows the entries it had all along: only managed ones are compared.
    written = [value for kind, value in plan.operations if kind == "dscp"]
    there = found["dscp_map"] or []
    if any(entry not in there for entry in written):
        bad["dscp_map"] = (written, there)
    return bad


def view(state: State) -> dict[str, t.Any]:
    """Return the settings that are there, for diff and result."""
    found = {name: value for name, value in state.items() if value is not None}
    if "dscp_map" in found:
        found["dscp_map"] = {str(dscp): priority for dscp, priority in found["dscp_map"]}
    return found


CHECKS = {
    "roce_trust": ("trust",),
    "roce_pfc": ("pfc",),
    "roce_dscp_map": ("dscp_map",),
    "roce_cnp": ("cnp_dscp", "cnp_priority"),
    "roce_ecn": ("ecn_np", "ecn_rp"),
    "roce_traffic_class": ("traffic_class", "forced_traffic_class"),
    "roce_ets": ("ets",),
}
# Without these there is no lossless RoCE.
ESSENTIAL = ("roce_trust", "roce_pfc", "roce_dscp_map")
# Why an interface does not offer a setting that no program reads.
NO_SUPPORT = {
    "roce_cnp": "firmware decides: CNP_DSCP_Pn of mlxconfig",
    "roce_ecn": "firmware decides: ROCE_CC_PRIO_MASK_Pn of mlxconfig",
    "roce_traffic_class": "it has no RDMA device, or rdma_cm is not loaded",
}


def checks_of(
    rail: str | None, plan: NicPlan, interface: str, problem: str | None, *, ets: bool, strict: bool
) -> t.Iterator[Check]:
    """Yield the checks of one interface, from the plan that would change it.

    What it does not offer is skipped; with `strict` the essential settings deviate then.

    :param problem: why the program that sets flow control cannot read all settings.
    :param ets: whether the inventory asks for a share of the bandwidth.
    """
    before, after = view(plan.before), view(plan.after)
    for name, keys in CHECKS.items():
        if name == "roce_ets" and not ets:
            continue
        planned = {key: after[key] for key in keys if key in after}
        observed = {key: before[key] for key in keys if key in before}
        cause = f"{interface} does not offer this setting ({NO_SUPPORT.get(name) or problem or 'its driver has none'})."
        if not planned and strict and name in ESSENTIAL:
            fix = "Install a driver with DCB by the role rdma_driver."
            yield deviation(name, planned, observed, cause, fix, rail=rail)
        elif not planned:
            yield skipped(name, cause, rail=rail)
        else:
            cause = f"{interface} has other values than the fabric."
            fix = f"{by_role('lossless_roce')} Find the program that writes them (lldpad, firmware DCBX, a script)."
            yield compared(name, planned, observed, cause, fix, rail=rail)

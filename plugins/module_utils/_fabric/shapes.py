# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is in the files that others than their writers read: plan.json, hosts/*.json, verdict.json. Types alone."""

from __future__ import annotations

import typing as t

from .._check import Check


class PlanNode(t.TypedDict):
    """A node in plan.json."""

    zone: str
    slot: int
    retired: bool


class PlanFile(t.TypedDict):
    """plan.json."""

    format: int
    digest: str
    """sha256 of all the rest; empty while a run replaces the other files."""
    files: dict[str, str]
    """A digest by part: cluster, facts, hosts, report, switch, workload."""
    frozen: dict[str, t.Any]
    """The declaration, as far as it decides addresses."""
    nodes: dict[str, PlanNode]


class HostPlanAddress(t.TypedDict):
    """A host's address on a rail."""

    family: int
    address: str
    """With the length of the subnet."""
    subnet: str
    gateway: str | None
    """The switch's, without a length."""


class HostPlanRail(t.TypedDict):
    """A rail of a host."""

    name: str
    index: int
    """From 1."""
    interface: str
    pci: str | None
    mtu: int
    table: int
    rule_priority: int
    addresses: list[HostPlanAddress]
    metric: t.NotRequired[int]
    """Of its routes in main; not there: 100 and the index."""
    vlan: t.NotRequired[int]
    """Its ID; not there: untagged."""


class Cable(t.TypedDict):
    """Where the cable of a rail is planned to end."""

    leaf: str | None
    port: str | None


class OutOfService(t.TypedDict):
    """The rails of a host that wait for a repair."""

    reason: str
    """For people; empty where none is declared."""
    rails: list[HostPlanRail]


class HostPlan(t.TypedDict):
    """A host's part of the plan: hosts/<host>.json."""

    schema: int
    frozen_digest: str
    """sha256 of plan.json's `frozen`."""
    fabric: str
    node: str
    slot: int
    network: str
    """roce or infiniband."""
    policy: str
    rdma_prefixes: list[str]
    sysctls: dict[str, str]
    """In slash notation."""
    rails: list[HostPlanRail]
    rdma_mode: t.NotRequired[str]
    """shared or exclusive; not there: the host keeps its own."""
    cables: t.NotRequired[dict[str, Cable]]
    """By rail, those that are known."""
    lossless: t.NotRequired[dict[str, int]]
    """priority, dscp and cnp, where the fabric declares them."""
    out_of_service: t.NotRequired[OutOfService]
    """The host's other rails; `rails` has those in service only."""


def out_text(reason: str) -> str:
    """Write that something is out of service, and why."""
    return f"out of service ({reason})" if reason else "out of service"


def planned_rails(plan: HostPlan) -> list[HostPlanRail]:
    """Return the rails of a host in order, with those that are out of service."""
    out = plan.get("out_of_service")
    return sorted([*plan["rails"], *out["rails"]], key=lambda rail: rail["index"]) if out else plan["rails"]


class Neighbor(t.TypedDict):
    """Another host of the plan, that a host queries."""

    host: str
    rails: t.Any
    """`HostPlanRail`, or of each rail its name and addresses."""
    zone: t.NotRequired[str]
    """Where it is another one than the host's own."""


class _Section(t.TypedDict):
    status: str
    """pass, deviation, error, incomplete, skipped, unreachable."""
    checks: list[Check]
    """Those that are not ok."""


class Section(_Section):
    """A verdict of the plan or the cluster."""

    counts: t.NotRequired[dict[str, int]]
    """Checks by status."""
    made: t.NotRequired[list[str]]
    """The ids of what is ok."""
    reason: t.NotRequired[str]
    """Why the section did not run."""
    error: t.NotRequired[str]


class Entry(_Section):
    """A verdict of a host."""

    node: str | None
    rails: dict[str, str]
    """A status by rail."""
    counts: dict[str, int]
    error: t.NotRequired[str]


class Cause(t.TypedDict):
    """A cause of deviations, on one or many hosts and rails."""

    sentence: str
    check: str
    """The ID of the check that shows it; `host_result` for a host without a result."""
    status: str
    """deviation or warning."""
    hosts: list[str]
    """Those that it is attributed to; both ends where that is not decided."""
    rails: list[str]
    affected: list[str]
    """Other hosts whose checks show it."""
    checks: int
    """How many checks are this cause, and how many others follow from it."""
    follows: int
    fix: str
    command: t.NotRequired[str]
    """The line to paste, where one repairs it."""
    impact: str
    """What the repair disturbs: none, rail_restart, drain, reboot, physical."""
    runbook: str
    leaf: t.NotRequired[str]
    """The leaf that explains it on these hosts."""
    undecided: t.NotRequired[bool]
    """Whether either end may be at fault."""


class Skipped(t.TypedDict):
    """The checks that did not run for one reason."""

    reason: str
    checks: list[str]
    hosts: int


class Verdict(t.TypedDict):
    """verdict.json."""

    schema: int
    plan_digest: str | None
    status: str
    rails: list[str]
    hosts: dict[str, Entry]
    plan: Section
    cluster: Section
    causes: t.NotRequired[list[Cause]]
    """What explains the deviations and warnings, the first cause first."""
    coverage: t.NotRequired[dict[str, int]]
    """How many checks were planned and run, and skipped: by_option because an option says so, skipped otherwise."""
    skipped: t.NotRequired[list[Skipped]]
    parts: t.NotRequired[list[str]]
    """The folders that it was merged from."""
    time: t.NotRequired[float]
    """Seconds since 1970."""

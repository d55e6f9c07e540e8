# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bodies of the objects that the planner makes, and of the files beside them. Types alone; pools are text."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ...module_utils._fabric.names import Metadata


class _Object(t.TypedDict):
    apiVersion: str
    kind: str
    metadata: Metadata


class MultusConfig(_Object):
    """A SpiderMultusConfig."""

    spec: dict[str, t.Any]
    """What all have (`configs.multus_configs`), and the attachment's own field with its block (`configs.BLOCKS`)."""


class _Reserved(t.TypedDict):
    ipVersion: int
    ips: list[str]


class ReservedIP(_Object):
    """A SpiderReservedIP."""

    spec: _Reserved


class Policy(t.TypedDict):
    """What a policy selects and makes."""

    deviceType: str
    isRdma: bool
    linkType: str
    mtu: t.NotRequired[int]
    """Not there on InfiniBand."""
    nicSelector: dict[str, list[str]]
    nodeSelector: dict[str, str]
    numVfs: int
    priority: int
    resourceName: str


class SriovPolicy(_Object):
    """A SriovNetworkNodePolicy."""

    spec: Policy


class _Level(t.TypedDict):
    nodeLabel: str


class Topology(_Object):
    """Kueue's Topology: its levels from the widest to the host."""

    spec: dict[str, list[_Level]]


class Device(t.TypedDict):
    """A resource of it."""

    resourceName: str
    resourcePrefix: str
    rdmaHcaMax: int
    selectors: dict[str, list[str]]


class DeviceConfig(t.TypedDict):
    """The configuration of the RDMA shared device plugin."""

    configList: list[Device]
    periodicUpdateInterval: int
    """In seconds."""


class SharedDevices(t.TypedDict):
    """The plugin in the chart: installed with its configuration, or not at all."""

    install: bool
    deviceConfig: t.NotRequired[DeviceConfig]


class HelmValues(t.TypedDict):
    """The values of Spiderpool's chart that follow from the fabric."""

    ipam: dict[str, bool | dict[str, bool]]
    rdma: dict[str, SharedDevices]
    spiderpoolController: dict[str, dict[str, bool | list[str]]]
    sriov: dict[str, bool | str]


class NodeLabels(t.TypedDict):
    """nodelabels.json of the cluster's objects."""

    label: str
    nodes: dict[str, str]
    """The label's value by node."""


class LabelGroup(t.TypedDict):
    """Nodes with the same labels."""

    labels: dict[str, str]
    nodes: list[str]


class TopologyLabels(t.TypedDict):
    """nodelabels.json of the workload's files: who gets which labels."""

    groups: list[LabelGroup]

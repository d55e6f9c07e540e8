# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The labels of managed objects, and the names of other projects that plan and cluster share.

It imports no model of a fabric, so that modules for a cluster do not need it.
"""

from __future__ import annotations

import hashlib
import typing as t

from .numbers import MANAGER

SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"
SRIOV = "sriovnetwork.openshift.io/v1"
KUSTOMIZE = "kustomize.config.k8s.io/v1beta1"
"""API groups and versions of the objects that the plan makes, and of the list of their files."""
KEEP_POOL = {"argocd.argoproj.io/sync-options": "Prune=false", "kustomize.toolkit.fluxcd.io/prune": "disabled"}
"""Annotations of a pool: Argo CD and Flux leave it when the plan has it no more, since neither knows a pool in use."""
POOL, RESERVED, CONFIG = "SpiderIPPool", "SpiderReservedIP", "SpiderMultusConfig"
"""Spiderpool's kinds of them."""
POLICY = "SriovNetworkNodePolicy"
NV_IPAM, CIDR_POOL = "nv-ipam.nvidia.com/v1alpha1", "CIDRPool"
"""NVIDIA's address manager: API group and version, and the kind of its pools with a prefix for each node."""
NETWORK = ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition")
"""What Multus attaches: API version and kind."""
RESOURCE_PREFIX = "spidernet.io"
"""The prefix of resource names without fabric_resource_prefix: the chart's default."""
POD_NETWORKS = "k8s.v1.cni.cncf.io/networks"
"""Annotation of a pod: the networks that Multus attaches beside the cluster's own."""
POD_DEFAULT = "v1.multus-cni.io/default-network"
"""Annotation of a pod: the network that it gets instead of the cluster's own."""
POD_STATUS = "k8s.v1.cni.cncf.io/network-status"
"""Annotation of a pod: what Multus attached, as JSON."""
NETWORK_RESOURCE = "k8s.v1.cni.cncf.io/resourceName"
"""Annotation of a network: the resource whose device Multus gives to its plugin."""
HOSTNAME = "kubernetes.io/hostname"
"""Label of a node: its name."""

OBJECT_PREFIX = "railops.io"
"""The prefix of this collection's labels and annotations of objects and pods."""
NODE_PREFIX = "fabric.railops.io"
"""The prefix of this collection's labels, annotations and taints of nodes, except the notes of a drain."""
GATE_TAINT = {"key": f"{NODE_PREFIX}/rails", "value": "broken", "effect": "NoSchedule"}
"""Taint of a node that the gate keeps jobs off."""
LABEL_MANAGER = "app.kubernetes.io/managed-by"
LABEL_FABRIC = f"{OBJECT_PREFIX}/fabric"
PROBE_LABEL, RUN_LABEL = f"{OBJECT_PREFIX}/probe", f"{OBJECT_PREFIX}/probe-run"
"""Labels of the Jobs and pods that test: which test it is, and which run of it."""
RESOURCE = f"{OBJECT_PREFIX}/rdma-resource"
"""Annotation of a config whose kind has no field for the RDMA resource that its pods must ask for."""
ZONE_LABEL = f"{NODE_PREFIX}/zone"
"""Label of a node: its zone."""
LEAF_LABEL = f"{NODE_PREFIX}/leaf-"
"""What the label of a node begins with that names the leaf of a rail; the rail's name follows."""
OUT_LABEL = f"{NODE_PREFIX}/out-of-service"
"""Label of a node: its rails that are out of service, or `all`."""
OUT_TAINT = {"key": OUT_LABEL, "effect": "NoSchedule"}
"""Taint of such a node, where the site asks for it."""
MAX_NAME = 63
STEM_LENGTH = 54
"""Characters of a long name that stay before its digest."""
DECLARED = "declared"
"""The profile of nodes whose interfaces have the names that fabric_rails gives."""


def short_name(name: str) -> str:
    """Return the name itself where the cluster takes it, else 54 characters of it and a digest of all of it."""
    if len(name) <= MAX_NAME and "." not in name:
        return name
    return f"{name[:STEM_LENGTH].replace('.', '-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def labels(fabric: str) -> dict[str, str]:
    """Return the labels of every object of a fabric, by its name."""
    return {LABEL_MANAGER: MANAGER, LABEL_FABRIC: fabric}


def selector(wanted: t.Mapping[str, str]) -> str:
    """Return labels as the API's selector has them."""
    return ",".join(f"{name}={value}" for name, value in wanted.items())


def profile_name(interfaces: t.Sequence[str]) -> str:
    """Return the name profile of nodes whose rails have these interfaces, other ones than declared."""
    return "p" + hashlib.sha256("\0".join(interfaces).encode()).hexdigest()[:6]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the workload: NCCL's and UCX's environment and what a pod needs, each value with its reason.

The environment files are KEY=VALUE lines and comments before them, with no quote and no blank in a value and no equals
sign in a comment: `set -a; . FILE`, `docker run --env-file`, `kubectl create configmap --from-env-file`, systemd's
EnvironmentFile and NCCL's own /etc/nccl.conf read them identically. Variables and their meaning: NCCL user guide,
"Environment Variables" (2.32), and the source of 2.29.7; UCX 1.13.1 `ucx_info -cf` and the NEWS of 1.18 to 1.20.
"""

from __future__ import annotations

import textwrap
import typing as t

from ...module_utils._fabric.labels import DECLARED, POD_DEFAULT, POD_NETWORKS, labels, short_name
from .._fabric.model import Fabric, FabricPlan, Prefix
from .._fabric.names import inject_value, node_label, profiles
from .._fabric.totals import rdma_prefixes
from .configs import pod_networks
from .text import HEADING, documents
from .topology import slurm_conf

PODS, HOSTS = "pods", "hosts"
POD_INTERFACE = "eth0"
"""Kubernetes' name of a pod's first interface, the one of the cluster's own network."""

NO_MANAGEMENT = ("lo", "docker0", "virbr0")
# NCCL reads no more names of interfaces (MAX_IFS).
MAX_NAMES = 16
"""Interfaces that no other host reaches: NCCL excludes them automatically only while nothing is set."""

WIDE = 118


class Value(t.NamedTuple):
    """One variable; an empty name is a remark about one that is left out on purpose."""

    name: str
    value: str
    reason: str


def _text(head: str, values: t.Iterable[Value]) -> str:
    """Write an environment file."""
    parts = [HEADING, *(f"# {line}\n" for line in textwrap.wrap(head, WIDE))]
    for one in values:
        parts.append("\n")
        parts.extend(f"# {line}\n" for line in textwrap.wrap(one.reason, WIDE))
        if one.name:
            parts.append(f"{one.name}={one.value}\n")
    return "".join(parts)


# --- what both libraries get -----------------------------------------------------------------------------------------


def rails_reachable(plan: FabricPlan) -> bool | None:
    """Return whether one rail's NIC reaches those of other rails; None where the plan cannot know."""
    fabric = plan.fabric
    if fabric.rails_reachable is not None:
        return fabric.rails_reachable
    if fabric.network == "infiniband":
        return None
    return any(block.gateway_offset is not None for block in plan.blocks)


def address_range(plan: FabricPlan, family: int) -> Prefix | None:
    """Return the one network that holds all rails of a family, or None."""
    wanted = [block.aggregate for block in plan.blocks if block.family == family]
    exact = [prefix for prefix in rdma_prefixes(plan.fabric, plan.blocks) if prefix.family == family]
    nets = [*exact, *(prefix for zone in plan.fabric.zones for prefix in zone.supernets)]
    return next((net for net in nets if wanted and all(net.contains(prefix) for prefix in wanted)), None)


def _devices(plan: FabricPlan, where: str, name: str, sign: str, reason: str) -> Value:
    """Return the variable of the rails' devices in their order, as `name:port,...`; or a remark why it is left out.

    :param where: PODS or HOSTS.
    :param name: of the variable.
    :param sign: what its value begins with.
    :param reason: of its value.
    """
    if why := _unlisted(plan, where):
        return Value("", "", f"{name} is left out: {why}.")
    return Value(name, sign + ",".join(f"{rail.device}:1" for rail in plan.fabric.rails), reason)


def _unlisted(plan: FabricPlan, where: str) -> str:
    """Return why there is no list of devices; empty where there is one."""
    fabric = plan.fabric
    if where == PODS and fabric.attached.own_device:
        return "a pod sees the virtual functions that it was given and nothing else, under temporary names"
    if missing := [rail.name for rail in fabric.rails if not rail.device]:
        return (
            f"the plan does not know the RDMA devices: name them as `device` of the rails in fabric_rails "
            f"(missing: {', '.join(missing)}); until then every active device is used, storage among them"
        )
    if list(profiles(plan)) != [DECLARED]:
        return (
            "nodes name the rails' interfaces in several ways, so one list of devices would be wrong on some; "
            "give the rails stable names to have one"
        )
    return ""


def _traffic_class(fabric: Fabric, name: str) -> Value:
    if fabric.lossless is None:
        reason = f"{name} is left out: fabric_lossless does not declare the lossless DSCP of the switches."
        return Value("", "", reason)
    reason = f"The traffic class byte: DSCP {fabric.lossless.dscp} of fabric_lossless, times 4, and ECT(0)."
    return Value(name, str(fabric.lossless.traffic_class), reason)


# --- NCCL ------------------------------------------------------------------------------------------------------------


def nccl(plan: FabricPlan, where: str) -> t.Iterator[Value]:
    """Yield the environment of NCCL.

    :param where: PODS or HOSTS.
    """
    fabric = plan.fabric
    reason = "The rails' devices in their order; the value's own first sign means exact names: mlx5_1, not mlx5_10."
    yield _devices(plan, where, "NCCL_IB_HCA", "=", reason)
    if where == PODS:
        reason = "Ranks find each other over the cluster's own network, never over a rail."
        if fabric.pod_default_rail:
            reason = f"Ranks find each other over the pod's default network, which is {fabric.pod_default_rail}."
        yield Value("NCCL_SOCKET_IFNAME", f"={POD_INTERFACE}", reason)
    else:
        rails = sorted({name for interfaces in plan.by_interfaces for name in interfaces})
        rails = rails or sorted(rail.interface for rail in fabric.rails)
        reason = (
            "Ranks find each other over any interface but the rails (and those that lead nowhere); a host with further "
            "internal ones names its management interface here instead."
        )
        # Ports and VLAN interfaces of eight rails, each by its exact name, are too many.
        sign = "^" if any(rail.vlan for rail in fabric.rails) else "^="
        reason += " Names are prefixes: a rail's VLAN interface is excluded with its port." if sign == "^" else ""
        names = [*rails, *NO_MANAGEMENT]
        if len(names) > MAX_NAMES:
            reason = f"NCCL_SOCKET_IFNAME is left out: NCCL reads {MAX_NAMES} names. Name the management interface."
            yield Value("", "", reason)
        else:
            yield Value("NCCL_SOCKET_IFNAME", f"{sign}{','.join(names)}", reason)
    if fabric.network == "roce":
        yield from _nccl_gid(plan)
        yield _traffic_class(fabric, "NCCL_IB_TC")
    yield _cross_nic(plan)


def _nccl_gid(plan: FabricPlan) -> t.Iterator[Value]:
    """Return which GID to take by its properties: an index would differ from pod to pod."""
    family = min(plan.fabric.families, default=4)
    yield Value("NCCL_IB_ROCE_VERSION_NUM", "2", "RoCE v2: routed, and what the plan's switches expect.")
    reason = f"The rails' addresses are IPv{family}, so take a GID of that family (NCCL 2.21 and later)."
    yield Value("NCCL_IB_ADDR_FAMILY", "AF_INET" if family == 4 else "AF_INET6", reason)
    if covering := address_range(plan, family):
        reason = "All rails are in this network: a GID in it is chosen by its address. No GID index, which varies."
        yield Value("NCCL_IB_ADDR_RANGE", str(covering), reason)
    else:
        reason = "NCCL_IB_ADDR_RANGE is left out: it takes one network, and the rails of all zones are in several."
        yield Value("", "", reason)


def _cross_nic(plan: FabricPlan) -> Value:
    meet = rails_reachable(plan)
    if meet is None:
        reason = "the plan does not know whether these InfiniBand rails are one subnet (fabric_rails_reachable)"
        return Value("", "", f"NCCL_CROSS_NIC is left at NCCL's own choice: {reason}.")
    if meet:
        return Value("", "", "NCCL_CROSS_NIC is left at NCCL's own choice: the rails reach each other.")
    return Value("NCCL_CROSS_NIC", "0", "The rails do not reach each other: keep each connection on its rail.")


# --- UCX -------------------------------------------------------------------------------------------------------------


def _ucx(plan: FabricPlan, where: str) -> t.Iterator[Value]:
    fabric = plan.fabric
    reason = "The rails' devices. UCX then uses nothing else, not even TCP, and only warns of a missing device."
    yield _devices(plan, where, "UCX_NET_DEVICES", "", reason)
    if fabric.network == "infiniband":
        return
    yield _traffic_class(fabric, "UCX_IB_TRAFFIC_CLASS")
    # A rail's peers of other subnets are behind the leaf.
    if rails_reachable(plan) is False and fabric.mode == "shared" and len(fabric.zones) == 1:
        reason = "The rails do not reach each other: only peers of the own subnet are tried (UCX before 1.19)."
        yield Value("UCX_IB_ROCE_LOCAL_SUBNET", "y", reason)
        yield Value("UCX_IB_ROCE_REACHABILITY_MODE", "local_subnet", "The same for UCX 1.19 and later.")
    elif where == PODS:
        reason = (
            "A pod's rails have routing tables of their own, and UCX looks for a route in the main one. Older UCX does "
            "not know this variable and warns once."
        )
        yield Value("UCX_IB_ROCE_REACHABILITY_MODE", "all", reason)


# --- the pod ---------------------------------------------------------------------------------------------------------

POD_HEAD = """\
# What a pod needs for the rails: take metadata.annotations and the container's parts into your own template.
# memlock: RDMA locks memory. IPC_LOCK lifts the limit for root; for other users the container runtime's unit needs
# LimitMEMLOCK=infinity, since Kubernetes has no field for it.
# The environment: kubectl create configmap NAME --from-env-file nccl-pods.env (and ucx-pods.env), then envFrom.
"""
INJECTED = f"# Spiderpool injects the rails and overwrites {POD_NETWORKS}: name no other networks there.\n"


def pod_templates(plan: FabricPlan) -> list[dict[str, t.Any]]:
    """Return a PodTemplate for each way in which nodes name the rails' interfaces."""
    fabric = plan.fabric
    made = []
    for profile, networks in pod_networks(plan).items():
        limits = {network["resource"]: "1" for network in networks if network["ask"] or not fabric.inject}
        named = {network["rail"]: network["name"] for network in networks}
        default = named.pop(fabric.pod_default_rail, None)
        annotations = {POD_DEFAULT: default} if default else {}
        if named:
            annotations[POD_NETWORKS] = ",".join(named.values())
        if fabric.inject:
            # Spiderpool adds networks and resources; the value is that of the profile's configs.
            annotations = {fabric.inject[0]: inject_value(fabric.inject[1], profile)}
        container: dict[str, t.Any] = {
            "name": "main",
            "image": "registry.example/your-image",
            "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        }
        if limits:
            # Extended resources must be limits; a request without a limit is refused.
            container["resources"] = {"limits": limits}
        spec: dict[str, t.Any] = {"containers": [container]}
        if profile != DECLARED:
            spec["nodeSelector"] = {node_label(fabric): profile}
        suffix = "" if profile == DECLARED else f"-{profile}"
        made.append(
            {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": {"name": short_name(f"{fabric.name}-rails{suffix}"), "labels": labels(fabric.name)},
                "template": {"metadata": {"annotations": annotations}, "spec": spec},
            }
        )
    return made


def render_workload(plan: FabricPlan) -> dict[str, str]:
    """Return the files of the plan's folder `workload/`: name -> text."""
    fabric = plan.fabric
    by = f"for the fabric {fabric.name}: {fabric.reached}"
    files = {"topology.conf": HEADING + slurm_conf(plan)}
    for where, users in ((PODS, "pods with the rails"), (HOSTS, "processes on the hosts themselves, as of Slurm")):
        if where == PODS and not fabric.attached.pods:
            continue
        files[f"nccl-{where}.env"] = _text(f"NCCL of {users}, {by}.", nccl(plan, where))
        files[f"ucx-{where}.env"] = _text(f"UCX of {users}, {by}.", _ucx(plan, where))
    if not fabric.attached.pods:
        return files
    return {
        **files,
        "pod.yaml": documents(pod_templates(plan), HEADING + POD_HEAD + (INJECTED if plan.fabric.inject else "")),
    }

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Everything published that went, or has another name now, with what takes its place: the one table of it. Pure.

Variables are refused before anything is touched (`_settings`), options of modules by the action in front of them. The
changelog names what is here, and meta/runtime.yml the modules: tests compare.
"""

from __future__ import annotations

import typing as t


class Former(t.NamedTuple):
    """Something that went, and what a person does who has it."""

    names: tuple[str, ...]
    """Kind and name: variable X, option MODULE X, return MODULE X, value OPTION X, module X, filter X, check X, ..."""
    problem: str
    fix: str


OF_A_KUBECONFIG = ("host", "api_key", "ca_cert", "client_cert", "client_key", "validate_certs", "proxy")
ANYTHING_ELSE = "Take it out of the inventory."
FORMER = (
    Former(
        ("file workload/topology.yaml",),
        "workload/topology.yaml is gone: Slurm reads topology.conf, which says the same, where there is none.",
        "Plan again, which removes it; take a copy beside slurm.conf away.",
    ),
    Former(
        ("file cluster/networks.json",),
        "cluster/networks.json is gone: what pods get of the rails is in facts.json, beside plan.json.",
        "Plan again, which removes it.",
    ),
    Former(
        ("option ippool_plan preview_dir",),
        "preview_dir is gone: no role gave it.",
        "Give another plan_dir, with a copy of plan.json in it, to preview a plan.",
    ),
    Former(
        ("variable nic_mode_reset", "option nic_link_type reset", "return nic_link_type was_reset"),
        "nic_mode_reset is gone, with the option reset of nic_link_type: one reboot brings all cards what waits.",
        "Take it out of the inventory; docs/link-type.md shows how to reset a card by hand.",
    ),
    *(
        Former(
            (f"variable gpudirect_{option}", f"option gpudirect {option}"),
            f"gpudirect_{option} is gone: what a host answers is in no Helm values.",
            "Take it out of the inventory; docs/gpudirect.md has the lines to write for the GPU Operator.",
        )
        for option in ("values_dest", "driver_on_host", "ofed_on_host")
    ),
    Former(
        ("variable lossless_roce_traffic_class", "option roce_qos traffic_class"),
        "lossless_roce_traffic_class is gone, with the option traffic_class of roce_qos: it is four times the DSCP, and"
        " 2 more with lossless_roce_ecn.",
        "Take it out of the inventory; fabric_lossless (or lossless_roce_dscp) and lossless_roce_ecn say the same.",
    ),
    Former(
        ("variable lossless_roce_cable_length", "option roce_qos cable_length", "check roce_cable_length"),
        "lossless_roce_cable_length is gone, with the option cable_length of roce_qos: the driver keeps the number also"
        " where it does not act, so that nothing proved it.",
        "Take it out of the inventory; docs/lossless.md has the command to set it by hand.",
    ),
    *(
        Former(
            (f"option rdma_host {old}",),
            f"rdma_host has no option {old} any more: the namespace mode is the module rdma_netns's.",
            f"Call rdma_netns {new}, before rdma_host; the role rdma_host does both.",
        )
        for old, new in (("netns", "too"), ("netns_mode", "with mode"), ("netns_live", "with live"))
    ),
    *(
        Former(
            (f"option rdma_driver {old}",),
            f"rdma_driver has no option {old} any more: a module that needs pyroute2 brings it by itself.",
            "Take it out.",
        )
        for old in ("pyroute2_wheel", "pyroute2_carried")
    ),
    *(
        Former(
            (f"variable {name}",),
            f"{name} is gone: a module that needs pyroute2 brings it by itself, and nothing is installed.",
            ANYTHING_ELSE,
        )
        for name in ("rdma_driver_pyroute2_wheel", "rail_network_install", "rail_network_package")
    ),
    Former(
        ("variable site_gather_subset",),
        "site_gather_subset is gone: no facts are gathered as variables, and preflight asks for what it needs.",
        ANYTHING_ELSE,
    ),
    Former(
        ("variable verify_rails",),
        "verify_rails is gone: the networks of pods are read from the plan.",
        ANYTHING_ELSE,
    ),
    Former(
        ("variable verify_pod_image", "option pod_probe image"),
        "verify_pod_image is gone, with the option image of pod_probe: tests run in the test application's own pods.",
        "Take it out of the inventory; rail_objects_test_image names the image.",
    ),
    Former(
        ("variable spiderpool_host_pid",),
        "spiderpool_host_pid is gone: the agent needs hostPID for matchMasterSubnet alone, which plans set to false.",
        ANYTHING_ELSE,
    ),
    Former(
        ("return collective_job MPIJob",),
        "collective_job has no MPIJob in objects any more.",
        "docs/accept.md has its manifest.",
    ),
    Former(
        ("module rail_ping",),
        "rail_ping is gone: rail_audit pings the rails in the same call as all else.",
        "Use railops.rdma.rail_audit with checks: [pings].",
    ),
    Former(
        ("module verdict_merge",), "verdict_merge has another name.", "Use railops.rdma.verdict with the same options."
    ),
    Former(
        ("module plan_objects_info", "check objects_admission"),
        "plan_objects_info is gone, with its check objects_admission.",
        "Nothing takes its place: plans are right by construction, and preflight has the real server try samples of "
        "the objects. Take the task out.",
    ),
    Former(
        tuple(f"option cluster_objects {old}" for old in OF_A_KUBECONFIG),
        f"cluster_objects has no options {', '.join(OF_A_KUBECONFIG)} any more: a kubeconfig says all of that.",
        "Write it into a kubeconfig, and give that by kubeconfig and context, as to all modules of the cluster.",
    ),
    Former(
        (
            "option cluster_objects threads",
            "option cluster_objects request_seconds",
            "option cluster_objects wait_seconds",
        ),
        "cluster_objects has no options threads, request_seconds, wait_seconds any more: it keeps the pace of the API.",
        "Take it out.",
    ),
    Former(
        ("return cluster_objects expected_seconds",),
        "expected_seconds of cluster_objects is gone.",
        "See its lines of progress.",
    ),
    Former(("filter object_checks",), "object_checks is gone.", "Read checks of cluster_objects in check mode."),
    Former(("filter pool_prefixes",), "pool_prefixes is gone.", "Read prefixes of cluster_nodes."),
    Former(("filter pool_users",), "pool_users is gone.", "Read kept of cluster_objects, state absent, in check mode."),
    Former(("filter node_causes",), "node_causes is gone.", "Read checks of cluster_nodes."),
    *(
        Former((f"module {name}",), f"{name} has another name.", f"Use railops.rdma.{name}_info with the same options.")
        for name in ("host_record", "rail_upgrade")
    ),
    Former(("filter cluster_problems",), "cluster_problems is gone.", "Use the module cluster_components_info."),
    Former(("filter pod_checks",), "pod_checks is gone.", "Use the module pod_probe."),
    Former(("check driver_pyroute2",), "driver_pyroute2 is gone: nothing is installed.", "Take it out."),
    Former(("result __fabric_result",), "__fabric_result of the role fabric has another name.", "Read fabric_result."),
    Former(("return node_gate held",), "held of node_gate has another name.", "Read capped."),
    Former(("return gpudirect gpu_operator_values",), "It is gone.", "docs/gpudirect.md has the lines to write."),
    Former(("return gpudirect reboot_required", "return gpudirect reboot_reasons"), "It is gone.", "No reboot waits."),
    Former(("return rdma_host netns",), "It is gone.", "Read what the module rdma_netns returns."),
    Former(("return ippool_plan problems",), "It is gone.", "Read msg, which has a line for each."),
    Former(("option verify_result skipped",), "skipped of verify_result is gone: rail_audit has it.", "Take it out."),
)
BY_NAME = {name: row for row in FORMER for name in row.names}


def former(kind: str, names: t.Iterable[str]) -> list[Former]:
    """Return the rows of the names that went; the fix ends with the error's id.

    :param kind: what the names are of: `variable`, `option MODULE`, `check`, ...
    """
    rows = [BY_NAME[f"{kind} {name}"] for name in names if f"{kind} {name}" in BY_NAME]
    return [row._replace(fix=f"{row.fix} [gone]") for row in rows]

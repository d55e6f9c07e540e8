# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/replaces.md: every step of the guides has an answer, and none of those that were open is missing.

What is done or refused names the tests that show it: an answer that no test holds is no answer.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/replaces.md"
ANSWERS = {"done", "refused", "left out"}
# The steps that a review of 142 found partial, missing or wrong (2026-11-21), by its numbers.
OPEN = {
    6,
    16,
    19,
    23,
    27,
    31,
    51,
    67,
    68,
    70,
    72,
    73,
    84,
    85,
    86,
    100,
    104,
    106,
    112,
    113,
    117,
    122,
    *range(127, 131),
    136,
}
ALL = 142
UNIT, CLUSTER, SITE = "tests/unit/plugins/", "tests/cluster/", "tests/site/test_site.py"
MODULES, UTILS, PLAN = f"{UNIT}modules/", f"{UNIT}module_utils/", f"{UNIT}plugin_utils/_plan/"
HOSTS, FLEET = f"{UNIT}filter/test_host_problems.py", f"{UNIT}module_utils/_cluster/test_ground.py"
ROLE = "tests/unit/test_spiderpool_role.py"
ROUTE, ROLES = "tests/kernel/test_policy_route.py", f"{CLUSTER}test_roles.py"
# Rows that answer no step of the list: older editions of the guides, or what one meets on the way.
BESIDE = ("another CNI", "inbox drivers", "mlnxofedinstall", "upgrade of a driver", "interface names", "add a node")
# The tests that show what a row says, by the beginning of its step.
SHOWN = {
    "choose subnets on paper": [f"{PLAN}test_properties.py", f"{PLAN}test_bad_input.py"],
    "bare metal for SR-IOV": [f"{HOSTS}::test_sriov_on_virtual_machines_is_refused"],
    "RoCE or InfiniBand, shared": [f"{PLAN}test_bad_input.py::test_bad_input_is_one_clear_error_and_writes_nothing"],
    "the first RDMA NIC": [f"{PLAN}test_workload.py::test_files_are_the_golden_ones"],
    "kernel 5.3 or": [f"{MODULES}test_rdma_netns.py::test_a_kernel_without_the_mode_says_so"],
    "`setRdmaRule.sh`": [f"{ROUTE}::test_first_run_changes_second_does_not_and_check_mode_predicts"],
    "`namespacesInclude`": [
        f"{ROLE}::test_whose_pods_are_injected",
        f"{ROLE}::test_a_choice_without_the_test_applications_namespace_is_refused_where_that_is_injected",
    ],
    "no other networks": [f"{PLAN}test_workload.py::test_files_are_the_golden_ones"],
    "`plugins.installCNI`": [
        f"{ROLE}::test_standard_plugins_are_replaced_where_they_were_or_where_that_is_asked",
        f"{CLUSTER}test_given_back.py::test_a_node_that_lacks_a_plugin_is_named_before_anything_comes_to_the_cluster",
    ],
    "names of objects": [f"{PLAN}test_objects.py::test_objects_are_named_and_owned"],
    "`matchMasterSubnet`": [f"{PLAN}test_objects.py::test_each_config_finds_the_pools_of_its_rail_on_every_node"],
    "MTU of the pods": [
        f"{PLAN}test_objects.py::test_macvlan_config",
        f"{PLAN}test_objects.py::test_what_pods_get_is_what_the_configs_say",
    ],
    '`RDMA device "issm"': [f"{UTILS}_rdma/test_files.py::test_the_module_that_is_missing_is_named"],
    "`nicSelector`": [f"{PLAN}test_objects.py::test_sriov_config_isolates_rdma_and_its_policy_selects_labelled_nodes"],
    "worker1 and worker2": [f"{ROLES}::test_the_test_application"],
    "`v1.multus-cni.io/default": [
        "tests/unit/test_test_application.py::test_a_rail_in_place_of_the_clusters_network_is_attached_once"
    ],
    "the GID index": ["tests/docs/test_pods.py::test_device_and_index_are_found_by_the_address"],
    "a Kubernetes cluster, kubelet": [
        f"{FLEET}::test_a_node_whose_kubernetes_address_is_a_rails_is_refused",
        f"{HOSTS}::test_an_infiniband_node_without_a_management_address_is_refused",
    ],
    "helm on the host": [f"{ROLES}::test_bad_situations_are_told_before_the_first_write"],
    "install Calico": [
        f"{FLEET}::test_a_cluster_without_a_network_is_refused",
        f"{FLEET}::test_a_network_that_is_there_and_not_ready_is_refused",
    ],
    "Calico takes the node": [f"{ROLES}::test_tigera_gets_its_settings"],
    "another CNI that keeps": [f"{FLEET}::test_cilium_that_would_push_multus_aside_is_refused"],
    "inbox drivers and tools": [
        f"{MODULES}test_rdma_driver.py::test_the_first_run_changes_and_the_second_does_not",
        f"{UNIT}action/test_host_actions.py::test_a_host_without_the_library_gets_it_and_is_asked_again",
    ],
    "download doca-host": [
        f"{MODULES}test_rdma_driver.py::test_doca_ofed_from_its_pinned_package",
        f"{MODULES}test_rdma_driver.py::test_doca_without_kernel_headers_gets_them_first_or_touches_nothing",
    ],
    "check `rdma link`": [f"{UTILS}_rdma/test_info.py::test_each_deviation_says_what_to_do"],
    "upgrade of a driver": ["tests/site/test_upgrade.py::test_it_stops_at_the_first_node_that_is_worse_than_before"],
    '`echo "options ib_core': [f"{MODULES}test_rdma_netns.py", "tests/guests/test_rdma_netns.py"],
    "`mst start`": [f"{UTILS}_card/test_mlxconfig.py", f"{MODULES}test_nic_link_type.py"],
    "set the link type by a script": [
        f"{MODULES}test_nic_link_type.py::test_nic_mode_picks_cards_by_the_plans_rails_and_not_by_their_gpus",
        f"{MODULES}test_nic_link_type.py::test_the_other_port_of_a_rails_card_keeps_its_link_type",
        f"{MODULES}test_nic_link_type.py::test_set_reboot_done",
    ],
    "GPU NICs and others": [
        f"{UNIT}plugin_utils/_discover/test_plan.py::test_the_rails_follow_the_gpus_and_not_the_names"
    ],
    "cards of NVSwitches": [
        "tests/site/test_left_alone.py::test_a_preview_names_what_is_left_alone",
        f"{MODULES}test_nic_link_type.py::test_a_card_that_carries_storage_by_rdma_is_never_touched",
    ],
    "load ib_ipoib": [f"{UTILS}_rdma/test_host_plan.py::test_infiniband_needs_ipoib_and_umad"],
    "interface names that are": [f"{UTILS}_rdma/test_host_plan.py::test_a_renamed_card_waits_for_the_reboot"],
    "set each NIC's address": [f"{ROUTE}::test_first_run_changes_second_does_not_and_check_mode_predicts"],
    "InfiniBand `MTU=4200`": [
        f"{PLAN}test_input.py::test_a_large_ipoib_mtu_is_warned_about",
        f"{UTILS}_route/test_plan.py",
    ],
    "`ENABLE_RDMA_DEFAULT_ROUTE`": [f"{ROUTE}::test_first_run_changes_second_does_not_and_check_mode_predicts"],
    "policy rules by a script": [
        "tests/kernel/test_policy_route_defects.py::test_defect_03_a_second_run_changes_nothing_and_takes_no_other_table"
    ],
    "a NetworkManager or netplan": [
        "tests/kernel/test_rail_persist_tools.py::test_netplan_accepts_the_files_before_they_are_written",
        "tests/kernel/test_rail_persist_tools.py::test_networkmanager_itself_reads_the_profiles",
    ],
    "reboot where needed": [f"{CLUSTER}test_reboot.py::test_drained_rebooted_once_verified_and_uncordoned"],
    "set PFC, trust": [
        f"{MODULES}test_roce_qos.py::test_guides_defect_an_endless_loop_and_a_global_tcp_setting",
        f"{MODULES}test_roce_qos.py::test_guides_defect_nothing_was_read_back",
    ],
    "switches have PFC": [
        f"{MODULES}test_roce_qos.py::test_nothing_is_set_until_the_site_says_what_its_switches_have",
        f"{MODULES}test_roce_qos.py::test_what_the_leaf_announces_is_compared_and_not_seen_is_never_green",
    ],
    "bandwidth by ETS": [
        f"{MODULES}test_roce_qos.py::test_a_share_of_the_bandwidth",
        f"{MODULES}test_roce_qos.py::test_the_length_of_the_cables",
    ],
    "`lsmod` for nvidia": [
        f"{MODULES}test_gpudirect.py::test_which_way_is_open",
        f"{MODULES}test_gpudirect.py::test_gdrcopy",
    ],
    "`lspci -vvv`": [
        f"{MODULES}test_gpudirect.py::test_only_the_bridges_of_gpus_and_their_nics_are_relaxed",
        f"{MODULES}test_gpudirect.py::test_what_is_kept_is_told_and_fails_nothing",
    ],
    "`helm install` with": [f"{CLUSTER}test_chart.py", f"{PLAN}test_objects.py::test_helm_values_fit_the_attachment"],
    "`global.imageRegistryOverride`": [f"{ROLES}::test_tigera_gets_its_settings"],
    "RDMA metrics": [f"{ROLES}::test_tigera_gets_its_settings"],
    "`grafanaDashboard.install": [f"{ROLES}::test_bad_situations_are_told_before_the_first_write"],
    "see that all pods run": [f"{UTILS}_pods/test_wait.py::test_a_rollout_that_stops_is_given_up_in_one_sentence"],
    "restart spiderpool-controller": [
        "tests/unit/plugins/plugin_utils/test_release.py::test_a_part_is_annotated_with_what_it_mounts_and_nothing_else"
    ],
    "edit the device plugin": [
        "tests/unit/plugins/plugin_utils/test_release.py::test_a_part_is_annotated_with_what_it_mounts_and_nothing_else"
    ],
    "`rdmaHcaMax: 500`": [f"{PLAN}test_objects.py::test_helm_values_fit_the_attachment"],
    "selectors of the device": [f"{PLAN}test_objects.py::test_helm_values_fit_the_attachment"],
    "allocatable resources": ["tests/site/test_site_cluster.py::test_audit_names_what_was_changed_in_the_cluster"],
    "type a SpiderIPPool": [
        f"{PLAN}test_objects.py::test_the_guides_exclusive_pools",
        f"{CLUSTER}test_objects.py::test_a_node_retired",
    ],
    "type a SpiderMultusConfig": [f"{PLAN}test_objects.py::test_admission_takes_every_object"],
    "annotate namespaces": [f"{PLAN}test_input.py::test_inject", f"{ROLES}::test_tigera_gets_its_settings"],
    "prepare VFs": [f"{MODULES}test_nic_link_type.py::test_num_of_vfs_is_exactly_what_the_sriov_operator_will_want"],
    "at most 127 VFs": [
        f"{PLAN}test_bad_input.py::test_bad_input_is_one_clear_error_and_writes_nothing",
        f"{MODULES}test_nic_link_type.py::test_more_virtual_functions_than_the_card_can_is_said_in_plain_words",
    ],
    "label nodes": [
        f"{PLAN}test_objects.py::test_sriov_config_isolates_rdma_and_its_policy_selects_labelled_nodes",
        f"{ROLES}::test_sriov_nodes_are_emptied_and_added_one_at_a_time",
    ],
    "the operator may reboot": [
        f"{UNIT}filter/test_sriov_losing.py::test_the_operator_takes_the_functions_of_cards_that_no_policy_names",
        f"{ROLES}::test_sriov_nodes_are_emptied_and_added_one_at_a_time",
    ],
    "ConnectX-8": [
        "tests/unit/admission/test_admission.py::test_newer_cards_are_given_to_the_operator_as_the_chart_writes_them"
    ],
    "`nvidia.com/gpu: 1` in": [f"{ROLES}::test_the_test_application_is_not_green_without_pods"],
    "install the rdma-tools": [f"{ROLES}::test_the_test_application"],
    "enter pods": [
        f"{CLUSTER}test_pods.py::test_everything_is_looked_at",
        f"{UTILS}_pods/test_checks.py::test_where_devices_are_its_own_a_pod_sees_no_others",
    ],
    "`ib_read_lat` between": [
        f"{CLUSTER}test_pods.py::test_jobs_are_bounded_ours_and_gone",
        f"{MODULES}test_rdma_probe.py::test_both_ends",
    ],
    "tell the network team": [f"{PLAN}test_switch.py::test_the_guides_exclusive_fabric"],
    "find out months later": [f"{SITE}::test_what_was_broken_is_named_and_mended"],
    "add a node": ["tests/docs/test_day2.py", f"{PLAN}test_allocation.py"],
}


def table(text, head):
    """Return the cells of every row of the tables in a text, without their head."""
    found = []
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", head)):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def rows():
    """Return the cells of every row: the guides' step, the answer, where or why."""
    return table(PAGE.read_text(encoding="utf-8").partition("\n## The list\n")[0], "| the guides")


def steps():
    """Return the cells of the list: number, guides, step, the beginning of the row that answers it."""
    return table(PAGE.read_text(encoding="utf-8").partition("\n## The list\n")[2], "| no.")


def numbers(step):
    """Return the numbers in brackets at the end of a step."""
    named = re.search(r"\((\d+(?:, \d+)*)\)$", step)
    return [int(number) for number in named[1].split(", ")] if named else []


def test_no_row_is_without_an_answer():
    assert len(rows()) > 50
    for row in rows():
        assert len(row) == 3, row
        assert row[1] in ANSWERS, row
        assert len(row[2]) > 10, row


def test_what_is_left_out_says_why():
    short = [row[0] for row in rows() if row[1] == "left out" and len(row[2].split()) < 5 and "the same" not in row[2]]
    assert short == []


def test_every_step_that_was_open_is_there_once():
    found = [number for row in rows() for number in numbers(row[0])]
    assert sorted(found) == sorted(OPEN)
    assert len(OPEN) == 27
    text = PAGE.read_text(encoding="utf-8")
    assert f"{ALL} steps" in text
    assert f"{len(OPEN)} that were" in text
    assert f"{ALL - len(OPEN)} were in order" in text.replace("\n", " ")


def test_every_step_of_the_list_has_its_row():
    listed = steps()
    assert [int(number) for number, *_rest in listed] == list(range(1, len(listed) + 1))
    text = PAGE.read_text(encoding="utf-8")
    assert f"{len(listed)} steps" in text.partition("\n## The list\n")[2]
    guides = set(re.findall(r"^- \*\*(\w)\*\*: ", text, re.MULTILINE))
    claims = [row[0].replace("`", "") for row in rows()]
    answered = set()
    for number, letters, step, begin in listed:
        assert set(letters.split(", ")) <= guides, number
        assert len(step) > 5, number
        found = [claim for claim in claims if claim.startswith(begin)]
        assert len(found) == 1, (number, begin, found)
        answered.update(found)
    beside = {claim for claim in claims if claim not in answered}
    assert {claim for claim in beside if not claim.startswith(BESIDE)} == set()
    assert [begin for begin in BESIDE if not any(claim.startswith(begin) for claim in beside)] == []


@cache
def named_tests(path):
    """Return the names of a file's tests."""
    tree = ast.parse((PAGE.parents[1] / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_what_is_done_or_refused_is_shown_by_tests():
    claims = [row[0] for row in rows() if row[1] != "left out"]
    for claim in claims:
        assert [begin for begin in SHOWN if claim.startswith(begin)], f"no test shows: {claim}"
    for begin, shown in SHOWN.items():
        assert sum(claim.startswith(begin) for claim in claims) == 1, begin
        for test in shown:
            path, _colons, name = test.partition("::")
            assert name in named_tests(path) if name else named_tests(path), test

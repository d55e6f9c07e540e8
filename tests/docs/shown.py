# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which test runs each command of the documentation for real. A command that no row fits fails the tests.

The first row that fits the whole command counts. `by` names tests (`file::function`), a molecule scenario (its
folder), a case of the full matrix (`tests/lab/matrix.py::case`) or what CI runs. Where nothing runs a command, `needs`
says what it would take.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HERE = "tests/docs/test_commands.py::test_what_needs_no_host_runs_as_it_stands"
QUICK = "tests/docs/test_commands.py::test_the_quick_start_runs_as_it_stands"
PLAN = r"ansible-playbook -i inventory/exclusive railops\.rdma\.plan"
HOSTS = r"ansible-playbook -i inventory/exclusive railops\.rdma\.hosts --tags"
LAB = r"(sudo )?(python3 tests/lab/lab\.py|\$LAB)"
SITE = "tests/site/test_site.py::"
CLUSTER = "tests/cluster/test_life.py::test_life_of_a_cluster"
GUESTS = "tests/guests/test_rdma_info.py::"
NETNS = "tests/guests/test_rdma_netns.py::"
ROUTES = "tests/kernel/test_policy_route.py::"
LABS = "tests/lab/test_lab.py::"
RECORD = "tests/unit/plugins/action/test_record.py::test_the_playbook"
BARE = "tests/bare/test_bare.py::"


@dataclass(frozen=True)
class Row:
    """A class of commands, and what runs it."""

    pattern: str
    by: tuple[str, ...] = ()
    needs: str = ""

    def fits(self, command: str) -> bool:
        """Say whether a whole command is of this class."""
        return re.fullmatch(self.pattern, command, re.DOTALL) is not None


def row(pattern: str, *by: str, needs: str = "") -> Row:
    """Return a row of the table."""
    return Row(pattern, by, needs)


ROWS = (
    # Run by the tests of this folder, in a copy of the example inventories.
    row(PLAN + r"( --check)?( --diff)?( -e fabric_plan_locked=true)?", HERE),
    row(
        PLAN + r" -e fabric_plan_from_cluster=true",
        "tests/cluster/test_roles.py::test_an_older_checkout_is_refused_and_a_lost_plan_comes_from_the_cluster",
    ),
    row(
        r"ansible-playbook -i inventory/exclusive railops\.rdma\.audit --limit node\d",
        HERE,
        f"{SITE}test_a_limited_run_leaves_the_others_alone",
    ),
    row(r"mkdir ~/my-fabric && cd .*|cat > \S+ <<'END'\n.*", QUICK),
    row(r"ansible-playbook railops\.rdma\.plan", QUICK),
    row(r"git add \. && git diff --cached --stat", QUICK),
    row(r"git diff plan/", HERE),
    row(
        r"git (revert|restore|add inventory plan) .*",
        "tests/docs/test_undo.py::test_a_value_goes_back_and_every_file_with_it",
        "tests/docs/test_undo.py::test_an_older_commit_is_taken_back_under_a_later_one",
    ),
    row(r"(cd plan/fabric && sha256sum .*|python3 -c 'import json; print\(.*)", HERE),
    row(r"ansible-doc .*", HERE),
    row(
        r"set -a; \. plan/fabric/workload/nccl-hosts\.env",
        "tests/unit/plugins/plugin_utils/_plan/test_workload.py::test_shells_read_them_alike",
    ),
    row(r"python3 tests/tools/(check\.py --list|env\.py (cache|tree))", HERE),
    row(r"python3 tests/lab/matrix\.py --list", HERE),
    row(
        r"python3 tests/site/errors_doc\.py", "tests/docs/test_pages.py::test_the_page_of_errors_is_what_the_code_says"
    ),
    row(
        r"python3 tests/site/checks_doc\.py", "tests/docs/test_pages.py::test_the_list_of_checks_is_what_the_code_says"
    ),
    row(r"python3 tests/docs/picture\.py", "tests/docs/test_readme.py::test_the_picture_is_what_its_script_draws"),
    row(
        r"python3 tests/docs/options_doc\.py",
        "tests/unit/plugins/modules/test_ippool_plan.py::"
        "test_module_and_planner_have_the_same_options_and_the_role_is_made_of_them",
    ),
    # Playbooks on hosts and clusters.
    row(r"ansible-playbook .*railops\.rdma\.site --check --diff", f"{SITE}test_a_preview_of_an_untouched_fleet"),
    row(
        r"ansible-playbook .*railops\.rdma\.(site|hosts) --limit \w+",
        f"{SITE}test_a_limited_run_leaves_the_others_alone",
    ),
    row(
        r"ansible-playbook .*railops\.rdma\.site", f"{SITE}test_site_ends_green", "tests/lab/matrix.py::site-exclusive"
    ),
    row(
        r"ansible-playbook .*railops\.rdma\.upgrade( --check)?",
        "tests/site/test_upgrade.py::test_the_next_run_goes_on_where_it_stopped",
        "tests/site/test_upgrade.py::test_check_mode_says_whose_turn_it_would_be_and_touches_nothing",
        "tests/lab/matrix.py::upgrade",
    ),
    row(r"ansible-playbook .*railops\.rdma\.audit", f"{SITE}test_what_was_broken_is_named_and_mended"),
    row(r"ansible-playbook .*railops\.rdma\.merge.*", "tests/unit/plugins/action/test_merge.py"),
    row(r"ansible-playbook .*railops\.rdma\.accept.*", "tests/lab/matrix.py::accept"),
    row(r"ansible-playbook .*railops\.rdma\.verify.*", "molecule/guests", "tests/lab/matrix.py::site-exclusive"),
    row(r"ansible-playbook .*railops\.rdma\.teardown", f"{SITE}test_teardown_leaves_the_kernel_as_it_was"),
    row(r"ansible-playbook .*railops\.rdma\.teardown --limit \w+", f"{SITE}test_one_node_leaves_and_comes_back"),
    row(
        r"ansible-playbook .*railops\.rdma\.discover( --limit \w+)?",
        f"{GUESTS}test_discover_proposes_the_rails_of_the_lab",
    ),
    row(
        r"ansible-playbook .*railops\.rdma\.record .*",
        RECORD,
    ),
    row(
        r"ansible-playbook .*-i discover/fabric/proposal\.yml .*",
        f"{GUESTS}test_discover_proposes_the_rails_of_the_lab",
    ),
    row(
        r"ansible-playbook .*-i discover/fabric/cables\.yml .*",
        "tests/unit/plugins/action/test_ippool_plan.py::test_cables_that_were_learned_are_one_more_inventory",
    ),
    row(r"ansible-playbook .*railops\.rdma\.cluster .*", CLUSTER),
    row(
        r"ansible-playbook .*railops\.rdma\.test_application.*",
        "tests/cluster/test_roles.py::test_the_test_application_is_a_playbook",
        "tests/lab/matrix.py::cluster-shared",
    ),
    row(r"podman (build|push) .*", needs="a registry; its packages are those of the lab's image, compared by a test"),
    row(
        r"ansible-playbook .*railops\.rdma\.hosts( --limit \w+)? --check",
        f"{SITE}test_all_roles_together_stay_within_the_tasks",
    ),
    row(
        HOSTS + r" rail_network -e rail_network_state=absent",
        "tests/kernel/test_rail_network_role.py::test_absent_takes_it_back",
    ),
    row(HOSTS + r" rail_network.*", "tests/kernel/test_rail_network_role.py::test_preview_change_confirm_and_again"),
    row(HOSTS + r" lossless_roce -e lossless_roce_state=absent", f"{GUESTS}test_the_settings_can_be_taken_back"),
    row(HOSTS + r" lossless_roce.*", f"{GUESTS}test_the_roles_work_in_check_mode_and_change_nothing_twice"),
    row(HOSTS + r" (rdma_driver|gpudirect).*", f"{GUESTS}test_the_roles_work_in_check_mode_and_change_nothing_twice"),
    row(r"ansible .*-m railops\.rdma\.rdma_info", f"{GUESTS}test_every_device_agrees_with_ibv_devinfo"),
    row(
        r"ansible .*-m railops\.rdma\.host_work_info",
        "tests/cluster/test_reboot.py::test_work_that_is_not_kubernetes_is_asked_before_anything",
    ),
    row(r"ansible .*-m railops\.rdma\.rdma_netns .*", f"{NETNS}test_both_directions_without_another_namespace"),
    row(r"ansible .*-m ansible\.builtin\.(ping|reboot)", "tests/lab/matrix.py::networkd"),
    # The lab.
    row(LAB + r" (up .*--cluster.*|(kubectl|wait) .*|exec pods .*|down pods)", "tests/lab/matrix.py::cluster-shared"),
    row(LAB + r" up .*--kind guests.*", "tests/lab/matrix.py::networkd"),
    row(
        LAB + r" (up|exec|list|down) .*|" + LAB + r" list",
        f"{LABS}test_up_list_and_down_leave_nothing_behind",
        f"{LABS}test_ansible_reaches_every_host",
    ),
    row(
        LAB + r" (gateways|prove) .*",
        f"{LABS}test_leaves_and_spine_forward_both_families_at_full_size",
        "molecule/netns",
    ),
    row(LAB + r" cable .*", f"{LABS}test_a_pulled_cable_takes_the_carrier_away"),
    row(LAB + r" (enter|dump) .*", f"{LABS}test_every_command_of_the_guide_is_one", "molecule/netns"),
    row(LAB + r" (image|ssh).*", "tests/lab/matrix.py::networkd", "molecule/guests"),
    row(r"(sudo )?python3 tests/lab/matrix\.py netplan", "tests/lab/matrix.py::netplan"),
    row(r"cd (/tmp|~/rdma)|LAB=.*", f"{LABS}test_every_command_of_the_guide_is_one"),
    # Development.
    row(
        r"(sudo )?make demo",
        f"{BARE}test_the_first_command_of_the_readme_ends_green_and_shows_its_verdict",
    ),
    row(r"make test CHECK=bare-tests", "tests/bare/test_second_command.py::test_root"),
    row(r"make test CHECK=long", "tests/site/test_upgrade_reboot.py::test_killed_between_install_and_restart"),
    row(r"make test.*", ".ci/run"),
    row(
        r"python3 tests/tools/packages\.py list",
        f"{BARE}test_what_is_wanted_is_listed_with_who_wants_it_and_why",
    ),
    row(r"sudo python3 tests/tools/bare\.py.*", f"{BARE}test_nothing_of_the_machine_is_visible"),
    row(r"sudo make deps", "tests/bare/test_second_command.py::test_root"),
    row(r"RAILOPS_(FABRICS=100000|PATH_SEED=7) make test CHECK=(unit|kernel)-slow", ".ci/run"),
    row(
        r"make release( REPOSITORY=\S+)?",
        "tests/package/test_package.py::test_a_release_has_checksums_and_an_sbom",
    ),
    row(
        r"make build( REPOSITORY=\S+)?",
        "tests/docs/test_readme.py::test_both_builds_have_no_relative_link",
    ),
    row(
        r"ansible-galaxy collection install (--offline .*)?dist/railops-rdma-[\d.]+\.tar\.gz",
        "tests/package/test_package.py::test_the_installed_collection_plans_the_guides_fabric",
    ),
    row(r"pip (download|install --no-index) .*", needs="PyPI, then none"),
    row(r"(sudo )?make (lab|lab-test)", needs="QEMU and an hour; docs/status.md has the last result"),
    row(
        r"make bench|python3 tests/benchmark/(audit|webhook)\.py( --memory)?",
        needs="a quiet machine; see docs/performance.md",
    ),
    row(r"molecule test", "molecule/default"),
    row(r"molecule test -s netns", "molecule/netns"),
    row(r"molecule test -s guests", "molecule/guests"),
    row(
        r"pip install 'netaddr.*",
        "tests/docs/test_commands.py::test_the_libraries_of_the_quick_start_are_those_of_the_collection",
    ),
    row(r"pip install --target /tmp/pyroute2-old pyroute2==0\.7\.2", ".ci/run"),
    row(r"sudo env PYTHONPATH=\$TREE .*pytest tests/kernel.*", ".ci/run"),
    row(r"python3 tests/cluster/programs\.py", "tests/cluster/test_programs.py::test_nothing_is_required"),
    row(r"python3 tests/cluster/recording\.py", "tests/cluster/test_recorded.py::test_every_answer_is_as_recorded"),
    row(r"RAILOPS_TEST_KUBECONFIG=~/\.kube/config make test CHECK=api", needs="a real cluster"),
    # On a host.
    row(r"for family in .*", f"{ROUTES}test_the_commands_of_the_guide_take_everything_off_by_hand"),
    row(r"python3 -m json\.tool record/.*", needs="a record, and someone who reads it"),
    row(r"python3 -m json\.tool verify/fabric/hosts/node7\.json", f"{SITE}test_results_hold_every_check"),
    row(
        r"rdma system|cat /sys/module/ib_core/.*|grep -rs netns_mode .*",
        f"{NETNS}test_both_directions_without_another_namespace",
    ),
    row(r"lsinitramfs .*", f"{NETNS}test_an_initramfs_with_ib_core_is_made_anew_and_brings_the_mode"),
    row(r"cat /sys/class/infiniband/.*", f"{GUESTS}test_every_port_agrees_with_rdma_link"),
    row(
        r"mstconfig -d .* -e q .*",
        "tests/unit/plugins/modules/test_nic_link_type.py",
        needs="a card: the test runs a stand-in",
    ),
    row(r"mstfwreset -d .*", needs="a card"),
    row(r"(dcb (pfc|app) show|ethtool -S|grep \. /sys/class/infiniband/mlx5_0/).*", needs="a ConnectX card"),
    # In a cluster.
    row(r"for pod in .*", "tests/docs/test_pods.py::test_device_and_index_are_found_by_the_address"),
    row(r"kubectl .*", needs="a real cluster; verbs and kinds are checked"),
    row(r"(cat discover|xdg-open plan)/fabric/report\..*", HERE),
)

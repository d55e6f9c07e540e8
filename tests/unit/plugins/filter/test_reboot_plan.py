# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import yaml

from ansible_collections.railops.rdma.plugins.filter.filters import reboot_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._settings import known_variables
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.repairs import HOSTS

ROOT = Path(__file__).resolve().parents[4]
CARD = "LINK_TYPE_P1 is IB(1), wanted 2: waits for a reset or a reboot"
NIC = {
    "changed": True,
    "reboot_required": True,
    "reboot_reasons": [f"card 0000:1b:00: {CARD}"],
    "cards": [{"card": "0000:1b:00", "status": "pending", "note": CARD}],
}
HOST = {"changed": False, "reboot_required": True, "reboot_reasons": ["mode is shared, wanted exclusive"], "checks": []}


def test_all_roles_share_one_reboot_and_each_says_why():
    plan = reboot_plan({"nic_link_type": NIC, "rdma_host": HOST}, drain=True)
    assert (plan["required"], plan["roles"]) == (True, ["nic_link_type", "rdma_host"])
    assert plan["lines"] == [
        "drain: cordon the node and move its pods",
        f"reboot: nic_link_type: card 0000:1b:00: {CARD}",
        "reboot: rdma_host: mode is shared, wanted exclusive",
        "uncordon: when all changes are active",
    ]
    assert reboot_plan({"rdma_host": HOST}, reboot=False, drain=True)["lines"][0].startswith("no reboot (rdma_host")


def test_a_role_with_two_results_is_looked_at_once_after_the_reboot():
    names = {**HOST, "reboot_reasons": ["the interface becomes rail1"]}
    plan = reboot_plan({"rdma_host": [HOST, names, {}], "gpudirect": {}})
    assert plan["roles"] == ["rdma_host"]
    assert plan["reasons"] == ["rdma_host: mode is shared, wanted exclusive", "rdma_host: the interface becomes rail1"]


def test_the_namespace_mode_comes_before_the_modules_and_both_are_checked():
    """An ib_core that is loaded afterwards starts in it."""
    folder = ROOT / "roles/rdma_host/tasks"
    (main,) = yaml.safe_load((folder / "main.yml").read_text(encoding="utf-8"))
    tasks = main["block"]
    called = [name for task in tasks for name in task if name.startswith("railops.rdma.")]
    assert called == ["railops.rdma.rdma_netns", "railops.rdma.rdma_host"]
    (block,) = yaml.safe_load((folder / "reboot.yml").read_text(encoding="utf-8"))
    assert all(task["register"] in block["vars"]["__rdma_host_results"]["rdma_host"] for task in tasks)


def test_a_power_cycle_is_no_reason_to_reboot():
    card = {"card": "0000:1b:00", "status": "power_cycle", "note": CARD}
    plan = reboot_plan({"nic_link_type": {"power_cycle_required": True, "reboot_required": False, "cards": [card]}})
    assert (plan["required"], plan["power_cycle"]) == (False, True)
    assert plan["lines"] == [f"power cycle (nic_link_type): card 0000:1b:00: {CARD}"]


def test_steps_that_may_need_the_reboot_are_checked_before_it():
    plays = yaml.safe_load((ROOT / "playbooks/hosts.yml").read_text(encoding="utf-8"))
    (play,) = (play for play in plays if play["name"] == "Apply the plan to the hosts" and "tasks" in play)
    roles = "ansible.builtin.include_role"
    block = next(task["block"] for task in play["tasks"] if "block" in task)
    tasks = [task[roles] for task in block if roles in task]
    reboot = next(place for place, task in enumerate(tasks) if task.get("tasks_from") == "reboot")
    (block,) = yaml.safe_load((ROOT / "roles/rdma_host/tasks/reboot.yml").read_text(encoding="utf-8"))
    results = block["vars"]["__rdma_host_results"]
    assert [task["name"].rpartition(".")[2] for task in tasks[:reboot]] == list(results)
    # Only a role whose tag is set beside it gives the reboot a reason.
    for tags in (tags.split(",") for tags in HOSTS if "reboot" in tags):
        assert results.keys() & {*tags}, tags
    assert results["gpudirect"] == "{{ gpudirect_result | default({}) }}"
    for role in results.keys() - {"rdma_host"}:
        text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / f"roles/{role}/tasks").glob("*.yml"))
        assert f"register: {role}_result\n" in text
        assert f"{role}_result" in known_variables()


def test_a_step_that_always_needs_the_reboot_is_checked_after_it():
    due = {"rdma_driver": "an upgrade began in this boot"}
    plan = reboot_plan({"rdma_driver": {"reboot_required": False, "reboot_reasons": []}}, due=due)
    assert (plan["required"], plan["roles"]) == (True, ["rdma_driver"])
    assert plan["reasons"] == ["rdma_driver: an upgrade began in this boot"]
    own = {"rdma_driver": {"reboot_required": True, "reboot_reasons": ["another kernel module"]}}
    assert reboot_plan(own, due=due)["reasons"] == ["rdma_driver: another kernel module"]

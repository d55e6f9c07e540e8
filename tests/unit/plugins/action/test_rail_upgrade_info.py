# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory of an upgrade: files on the controller, of hosts that are in the middle."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.railops.rdma.plugins.action import rail_upgrade_info
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import files
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts

DUE = {
    "packages": ["demo"],
    "replaced": {"demo": "1.0"},
    "checks": [{"id": "driver_versions", "status": "deviation", "planned": {"demo": "2.0"}}],
}
DONE = {"packages": [], "replaced": {}, "checks": []}


@pytest.fixture
def site(tmp_path):
    plan({**exclusive(), "plan_dir": str(tmp_path)}, hosts(3), check_mode=False)
    return Site(tmp_path)


class Site:
    """A plan of three hosts, and the folder of the upgrade."""

    def __init__(self, root):
        self.root = root
        self.folder = str(root / "upgrade")

    def run(self, phase, host="node1", **more):
        args = {"phase": phase, "folder": self.folder, "plan_dir": str(self.root / "fabric"), **more}
        return action_of(rail_upgrade_info, args).run(task_vars={"inventory_hostname": host})

    def seen(self, host, link="ok", error=None):
        """Write what a look at a host found."""
        check = {"id": "network_link", "rail": "rail1", "status": link, "cause": "", "fix": ""}
        files.write_json(files.result_path(self.folder, host), host_result(host, host, "x", [check], error))

    def order(self, **results):
        for host in results:
            self.seen(host)
        return self.run("order", results=results)


def test_nodes_with_the_versions_are_skipped_and_the_others_listed(site):
    made = site.order(node1=DONE, node2=DUE, node3=DUE)
    assert made["turns"] == [["node2"], ["node3"]]
    assert made["lines"] == [
        "turn 1: node2: demo 1.0 -> 2.0; drain, reboot, verify, uncordon",
        "turn 2: node3: demo 1.0 -> 2.0; drain, reboot, verify, uncordon",
        "skip: 1 hosts have the wanted versions and are healthy",
    ]


def test_an_unfinished_upgrade_comes_first_and_is_compared_with_its_first_audit(site):
    site.seen("node2")
    assert site.run("begin", "node2", turn=["node2"], boot="a") == {"changed": False, "boot": "a", "resumed": False}
    # The run is cut off; the node got worse. The next one still knows how it was.
    assert site.order(node1=DUE, node2=DONE)["turns"] == [["node2"], ["node1"]]
    site.seen("node2", "deviation")
    assert site.run("begin", "node2", turn=["node2"], boot="b") == {"changed": False, "boot": "a", "resumed": True}
    site.seen("node2", "deviation")
    assert "node2 is worse" in site.run("compare", "node2")["sentence"]
    site.seen("node2")
    assert site.run("compare", "node2")["worse"] == []
    site.run("end", "node2")
    assert site.order(node1=DUE, node2=DONE)["turns"] == [["node1"]]


def test_no_other_node_starts_while_a_node_is_in_the_middle(site):
    site.seen("node2")
    site.run("begin", "node2", turn=["node2"])
    site.seen("node3")
    with pytest.raises(AnsibleActionFail, match="upgrade of node2 is unfinished"):
        site.run("begin", "node3", turn=["node3"])
    with pytest.raises(AnsibleActionFail, match="upgrade of node2 is unfinished"):
        site.order(node1=DUE, node3=DUE)


def test_an_old_look_does_not_pass_for_a_new_one(site):
    site.seen("node1")
    site.run("begin", turn=["node1"])
    assert site.run("compare")["worse"][0]["cause"] == "no result"


def test_a_node_without_an_audit_is_not_upgraded(site):
    site.seen("node1", error="rail_audit: no python")
    with pytest.raises(AnsibleActionFail, match=r"before the upgrade of node1 failed: .*no python.* unchanged"):
        site.run("begin", turn=["node1"])
    assert site.order(node1=DUE)["turns"] == [["node1"]]


@pytest.mark.parametrize(
    "odd", [{"replaced": ["demo"]}, {"replaced": {"demo\x1b[2J": "1"}}, {"packages": 5}, {"packages": ["a b\n"]}]
)
def test_a_host_that_answers_nonsense_is_not_sound_and_the_others_have_their_turns(site, odd):
    made = site.order(node1={**DUE, **odd}, node2=DUE)
    assert made["turns"][-1] == ["node2"]
    assert "its answer is refused" in "\n".join(made["lines"])
    assert "\x1b" not in str(made["lines"])

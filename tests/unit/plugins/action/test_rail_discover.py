# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml
from ansible.template import Templar

from ansible_collections.railops.rdma.plugins.action import rail_discover
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._rdma.info import read_info
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.actions import action_of


@pytest.fixture
def run(tmp_path):
    info = read_info(Sysfs(str(machines.lay_out("one-switch-each", tmp_path / "root"))), gids=False)
    info["lldp"] = {"ens1np0": {"switch": "leaf1", "port": "swp5", "is_switch": True}}
    hostvars = {"node1": {"__info": {"info": info}}, "node2": {"__info": {"unreachable": True}}, "node3": {}}

    def run_action(*, check_mode=False, diff=False):
        args = {"register": "__info", "hosts": ["node1", "node2", "node3"], "dest": str(tmp_path / "out")}
        action = action_of(rail_discover, args, check_mode=check_mode, diff=diff, templar=Templar(loader=None))
        return action.run(task_vars={"hostvars": hostvars})

    return run_action


def test_the_first_run_writes_and_the_second_does_not(run, tmp_path):
    result = run()
    assert result["changed"] is True
    group = yaml.safe_load((tmp_path / "out/proposal.yml").read_text())["gpu_nodes"]
    assert [rail["interface"] for rail in group["vars"]["fabric_rails"]] == [f"ens{n}np0" for n in range(1, 9)]
    assert [finding["host"] for finding in result["findings"]] == ["node2", "node3"]
    assert "did not answer" in (tmp_path / "out/report.md").read_text()
    seen = yaml.safe_load((tmp_path / "out/cables.yml").read_text())
    assert seen == {"gpu_nodes": {"hosts": {"node1": {"fabric_cables": {"rail1": {"leaf": "leaf1", "port": "swp5"}}}}}}
    assert run()["changed"] is False


def test_check_mode_predicts_and_writes_nothing(run, tmp_path):
    predicted = run(check_mode=True, diff=True)
    assert predicted["changed"] is True
    assert not (tmp_path / "out").exists()
    assert predicted["diff"] == run(diff=True)["diff"]

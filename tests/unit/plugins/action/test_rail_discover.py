# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.railops.rdma.plugins.action import rail_discover
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._rdma.info import read_info
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.actions import action_of

TEMPLATE = "{{ lookup('pipe','touch %s; echo leaf1') }}"


DEVICE = {"name": "mlx5_0", "pci": None, "vf": False, "nearest_gpus": [], "ports": []}


def read(path):
    """Return a file as Ansible's inventory reads it."""
    return DataLoader().load_from_file(str(path))


@pytest.fixture
def run(tmp_path):
    info = read_info(Sysfs(str(machines.lay_out("one-switch-each", tmp_path / "root"))), gids=False)
    info["lldp"] = {"ens1np0": {"switch": "leaf1", "port": "swp5", "is_switch": True}}
    hostvars = {"node1": {"__info": {"info": info}}, "node2": {"__info": {"unreachable": True}}, "node3": {}}

    def run_action(*, check_mode=False, diff=False, **answers):
        args = {"register": "__info", "hosts": ["node1", "node2", "node3"], "dest": str(tmp_path / "out")}
        action = action_of(rail_discover, args, check_mode=check_mode, diff=diff, templar=Templar(loader=None))
        reported = {host: {"__info": {"info": repair(copy.deepcopy(info))}} for host, repair in answers.items()}
        return action.run(task_vars={"hostvars": {**hostvars, **reported}})

    return run_action


def test_the_first_run_writes_and_the_second_does_not(run, tmp_path):
    result = run()
    assert result["changed"] is True
    # Localhost reads the variables of `all` and plans.
    proposal = read(tmp_path / "out/proposal.yml")["all"]["vars"]
    assert [rail["interface"] for rail in proposal["fabric_rails"]] == [f"ens{n}np0" for n in range(1, 9)]
    assert [finding["host"] for finding in result["findings"]] == ["node2", "node3"]
    assert "did not answer" in (tmp_path / "out/report.md").read_text()
    seen = read(tmp_path / "out/cables.yml")
    assert seen == {"gpu_nodes": {"hosts": {"node1": {"fabric_cables": {"rail1": {"leaf": "leaf1", "port": "swp5"}}}}}}
    assert run()["changed"] is False


def test_check_mode_predicts_and_writes_nothing(run, tmp_path):
    predicted = run(check_mode=True, diff=True)
    assert predicted["changed"] is True
    assert not (tmp_path / "out").exists()
    assert predicted["diff"] == run(diff=True)["diff"]


def neighbor(**names):
    def repair(info):
        info["lldp"]["ens1np0"] = {"is_switch": True, "switch": "leaf1", "port": "swp5", **names}
        return info

    return repair


def test_answers_are_unsafe_in_files_for_ansible(run, tmp_path):
    def other(info):
        info["devices"][0]["ports"][0]["netdev"] = "ens99np0"
        return neighbor()({**info, "lldp": {}})

    run(node3=other)
    texts = {name: (tmp_path / "out" / name).read_text() for name in ("proposal.yml", "cables.yml")}
    assert "leaf: !unsafe 'leaf1'" in texts["cables.yml"]
    assert "port: !unsafe 'swp5'" in texts["cables.yml"]
    assert texts["proposal.yml"].count("interface: !unsafe 'ens") == 8
    assert "!unsafe 'ens99np0'" in texts["proposal.yml"] or "!unsafe 'ens1np0'" in texts["proposal.yml"]
    for text in texts.values():
        head, _line, body = text.partition("---\n")
        assert "# !unsafe: " in head
        assert body.count("!unsafe") == body.count("ens") + body.count("leaf1") + body.count("swp5")


@pytest.mark.parametrize("key", ["switch", "port"])
@pytest.mark.parametrize(
    "name", [TEMPLATE, "leaf\x1b[31m1", "leäf1", "leaf1\n", "x" * 101, ["leaf1"], "leaf1;reboot", "=1+1"]
)
def test_a_neighbors_name_outside_of_the_set_leaves_its_cable_out(run, tmp_path, key, name):
    result = run(node1=neighbor(), node2=neighbor(**{key: name}))
    (finding,) = [one for one in result["findings"] if one["kind"] == "cable left out"]
    assert (finding["host"], finding["rail"]) == ("node2", "rail1")
    assert finding["text"].isprintable()
    assert len(finding["text"].partition("announces ")[2].partition(", which")[0]) <= 42
    assert list(read(tmp_path / "out/cables.yml")["gpu_nodes"]["hosts"]) == ["node1"]
    assert "{{" not in (tmp_path / "out/cables.yml").read_text() + (tmp_path / "out/proposal.yml").read_text()
    assert "\x1b" not in (tmp_path / "out/report.md").read_text()


@pytest.mark.parametrize(
    "answer",
    [
        ["info"],
        {"devices": "x"},
        {"devices": [{**DEVICE, "name": TEMPLATE}]},
        {"devices": [{**DEVICE, "ports": [{"netdev": TEMPLATE}]}]},
        {"devices": [{**DEVICE, "pci": "zz"}]},
        {"devices": [{**DEVICE, "nearest_gpus": [{}]}]},
        {"gpus": [{"pci": "0000:01:00.0", "index": "1"}]},
        {"lldp": {"ens1np0": ["leaf1"]}},
        {"more": json.loads("[" * 90 + "]" * 90)},
        {"more": ["x" * 2_000_000] * 25},
    ],
)
def test_a_host_that_answers_nonsense_is_named_and_the_others_are_proposed(run, tmp_path, answer):
    before = run(node1=lambda info: info)["rails"]
    result = run(node2=lambda info: {**info, **answer} if isinstance(answer, dict) else answer)
    assert [finding["kind"] for finding in result["findings"] if finding["host"] == "node2"] == ["nonsense"]
    assert result["rails"] == before
    assert "{{" not in (tmp_path / "out/proposal.yml").read_text()

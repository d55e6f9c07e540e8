# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action in front of rail_audit: what it gives the module, and the result that it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from ansible_collections.railops.rdma.plugins.action import cluster_nodes, rail_audit
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import digest_of
from ansible_collections.railops.rdma.plugins.plugin_utils._host_plan import proving_neighbors
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.files import read_results
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.ids import IDS, scope
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.intake import FIX
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.plugins.action.test_host_actions import HOST, run

ROLES = Path(__file__).resolve().parents[4] / "roles"
ROLES_SET = ("rdma_driver", "nic_link_type", "rdma_host", "rail_network", "lossless_roce", "gpudirect")
FROZEN = {"mode": "shared"}
SEATS = {"node1": ("su1", 0), "node2": ("su1", 1), "node3": ("su1", 4), "node4": ("su2", 0), "node5": ("su2", 1)}


@pytest.fixture
def plan(tmp_path):
    nodes = {name: {"zone": zone, "slot": slot, "retired": False} for name, (zone, slot) in SEATS.items()}
    nodes["gone"] = {"zone": "su1", "slot": 2, "retired": True}
    (tmp_path / "hosts").mkdir()
    data = {"format": 1, "digest": "x", "frozen": FROZEN, "nodes": nodes}
    (tmp_path / "plan.json").write_text(json.dumps(data))
    (tmp_path / "facts.json").write_text(json.dumps({"prefixes": []}))
    for name, (_zone, slot) in SEATS.items():
        rail = {"name": "rail1", "interface": "ens1np0", "addresses": [{"address": f"192.0.2.{slot + 2}"}]}
        have = {"schema": 1, "frozen_digest": digest_of(FROZEN), "node": name, "slot": slot, "rails": [rail]}
        have |= {"rdma_mode": "shared", "network": "roce", "cables": {"rail1": {"leaf": "leaf1", "port": None}}}
        (tmp_path / f"hosts/{name}.json").write_text(json.dumps(have))
    return str(tmp_path)


@pytest.mark.parametrize(
    ("host", "same", "other"), [("node1", "node2", "node4"), ("node2", "node3", "node5"), ("node3", "node1", "node4")]
)
def test_paths_are_proven_to_the_next_host_and_to_another_zone(plan, host, same, other):
    found = proving_neighbors(plan, host)
    assert [(item["host"], item.get("zone")) for item in found][:2] == [(same, None), (other, "su2")]
    # The third host of the zone; of two hosts in a zone, each has one witness.
    assert {item["host"] for item in found if not item.get("zone")} == {"node1", "node2", "node3"} - {host}
    assert len(proving_neighbors(plan, "node4")) == 2
    assert found[0]["rails"] == [{"name": "rail1", "addresses": [{"address": f"192.0.2.{SEATS[same][1] + 2}"}]}]


def test_the_module_gets_host_plan_mode_cables_and_neighbors(plan):
    _result, handed = run(rail_audit, {"plan_dir": plan, "settings": {"rdma_host": {"pin": True}}}, {"checks": []})
    settings = handed["args"]["settings"]
    assert (settings["rdma_netns"], settings["rdma_host"]) == ({"mode": "shared"}, {"pin": True})
    assert settings["cabling"]["cables"] == {"rail1": {"leaf": "leaf1", "port": None}}
    assert settings["cabling"]["zone"] == "su1"
    assert [item["host"] for item in handed["args"]["neighbors"]] == ["node2", "node4", "node3"]


@pytest.mark.parametrize(("mode", "count"), [("shared", 512), ("exclusive", 1)])
def test_the_module_gets_how_many_neighbors_the_host_may_have(plan, mode, count):
    frozen = {"mode": mode, "zones": [{"name": "su1", "supernets": [], "max_nodes": 512}]}
    more = {"frozen": frozen, "frozen_digest": digest_of(frozen)}
    for path in Path(plan).rglob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), **more}))

    _result, handed = run(rail_audit, {"plan_dir": plan}, {"checks": []})

    assert handed["args"]["settings"]["neighbors"] == {"count": count}


def test_an_audit_checks_what_the_plan_says_of_the_switches(plan, tmp_path):
    path = Path(plan) / "hosts/node1.json"
    have = json.loads(path.read_text()) | {"lossless": {"priority": 3, "dscp": 26, "cnp": 48}}
    path.write_text(json.dumps(have))
    _result, handed = run(rail_audit, {"plan_dir": plan, "settings": {"roce_qos": {"dscp": 26}}}, {"checks": []})
    assert handed["args"]["settings"]["roce_qos"] == {"priority": 3, "dscp": 26, "cnp_dscp": 48}


def test_the_result_is_written_and_not_returned(plan, tmp_path):
    facts = {"macs": {"rail1": "02:00:00:00:00:01"}}
    check = {"id": "route_path", "rail": "rail1", "status": "ok"}
    answer = {"checks": [check], "facts": {**facts, "more": 1}, "errors": []}
    args = {"plan_dir": plan, "verify_dir": str(tmp_path / "verify"), "roles": list(ROLES_SET), "traffic": "ping"}
    result, handed = run(rail_audit, args, answer)
    assert "verify_dir" not in handed["args"]
    assert result == {"changed": False, "path": str(tmp_path / "verify/hosts/node1.json"), "status": "pass"}
    written = json.loads(Path(result["path"]).read_text())
    assert [check["id"] for check in written["checks"]] == ["route_path", "traffic_rdma"]
    assert (written["node"], written["plan_digest"]) == ("node1", "x")
    assert written["facts"] == facts


def test_counters_are_compared_with_the_last_audit(plan, tmp_path):
    args = {"plan_dir": plan, "verify_dir": str(tmp_path / "verify")}
    health = {"boot": "b", "rails": {"rail1": {"speed": 400000, "counters": {"symbol_error": 3}}}}
    result, handed = run(rail_audit, dict(args), {"checks": [], "facts": {"health": health}})
    assert handed["args"].get("since") is None
    reported = json.loads(Path(result["path"]).read_text())["facts"]["health"]
    assert reported == {"rails": {"rail1": {"speed": 400000}}}
    _result, handed = run(rail_audit, dict(args), {"checks": []})
    assert handed["args"]["since"] == health


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"failed": True, "msg": "no Python"}, "rail_audit: no Python"),
        ({"checks": [], "errors": ["qos: No.", "mode: No."]}, "qos: No.; mode: No."),
        ({"checks": []}, f"The answer is refused: it has no check. {FIX}"),
    ],
)
def test_what_failed_is_an_error_of_the_host_and_not_of_the_run(plan, tmp_path, answer, words):
    result, _handed = run(rail_audit, {"plan_dir": plan, "verify_dir": str(tmp_path / "verify")}, answer)
    assert result["status"] == "error"
    assert not result.get("failed")
    assert json.loads(Path(result["path"]).read_text())["error"] == words


def test_a_stale_host_plan_is_the_hosts_error_where_a_result_is_kept(tmp_path):
    result, _handed = run(rail_audit, {"plan_dir": str(tmp_path), "verify_dir": str(tmp_path / "verify")})
    assert "railops.rdma.plan" in json.loads(Path(result["path"]).read_text())["error"]
    with pytest.raises(AnsibleActionFail):
        run(rail_audit, {"plan_dir": str(tmp_path)})


def test_an_unreachable_host_has_its_reason_and_fix(plan, tmp_path):
    def execute(**_module):
        raise AnsibleConnectionFailure("ssh: Could not resolve hostname node1: Name or service not known")

    action = action_of(rail_audit, {"plan_dir": plan, "verify_dir": str(tmp_path), "checks": ["network"]})
    action._execute_module = execute
    with pytest.raises(AnsibleConnectionFailure, match=r"name is not known.*ansible_host.*\[hosts_unreachable\]"):
        action.run(task_vars=dict(HOST))
    (result,) = read_results({"node1": str(tmp_path)})
    assert result["unreachable"] == "Its name is not known to the controller."


def test_an_unreachable_host_writes_nothing(plan, tmp_path):
    result, _handed = run(rail_audit, {"plan_dir": plan, "verify_dir": str(tmp_path / "verify")}, {"unreachable": True})
    assert result["unreachable"]
    assert not (tmp_path / "verify").exists()


def test_a_setting_without_a_value_leaves_the_plans(plan):
    path = Path(plan) / "hosts/node1.json"
    have = json.loads(path.read_text()) | {"lossless": {"priority": 3, "dscp": 26, "cnp": 48}}
    path.write_text(json.dumps(have))
    settings = {"roce_qos": {"priority": None, "ecn": False}, "rdma_netns": {"state": "absent", "mode": None}}
    _result, handed = run(rail_audit, {"plan_dir": plan, "settings": settings}, {"checks": []})
    settings = handed["args"]["settings"]
    assert settings["roce_qos"] == {"priority": 3, "dscp": 26, "cnp_dscp": 48, "ecn": False}
    assert settings["rdma_netns"] == {"mode": "shared", "state": "absent"}


def test_host_outside_the_group_is_skipped(plan, tmp_path):
    args = {"plan_dir": plan, "verify_dir": str(tmp_path / "verify"), "roles": ["nic_link_type"]}
    templar = SimpleNamespace(template=lambda value: value)
    result, handed = run(rail_audit, args, variables={"fabric_group": "others"}, templar=templar)
    assert (result["skipped"], handed) == (True, {})
    assert not (tmp_path / "verify").exists()


@pytest.mark.parametrize(
    ("options", "groups", "left"),
    [
        ({}, ["link_type", "network", "paths", "persist", "duplicates", "cabling", "devices", "counters", "pings"], []),
        (
            {"persist": False, "devices": False},
            ["link_type", "network", "paths", "duplicates", "cabling", "pings"],
            ["rdma_devices", "port_errors", "persist_file"],
        ),
        (
            {"traffic": "none"},
            ["link_type", "network", "paths", "persist", "devices", "counters"],
            ["address_duplicate", "cable_leaf", "ping_rails", "traffic_rdma"],
        ),
        ({"traffic": "ping"}, None, ["traffic_rdma"]),
    ],
)
def test_skipped_checks_are_reported(options, groups, left):
    found, reported = scope(
        ["nic_link_type", "rail_network"], **{"devices": True, "traffic": "rdma", "persist": True, **options}
    )
    assert groups is None or found == groups
    assert set(reported) == {"driver_role", "rdma_role", "roce_role", "gpudirect_role", *left}
    assert set(reported) <= set(IDS)
    # A verdict lists what cannot be seen without RDMA traffic.
    assert ("filters for UDP" in reported.get("traffic_rdma", "")) == ("traffic_rdma" in left)


def test_node_name_comes_from_plan(plan):
    """A host that names another's node would have that one drained, or the whole run refused."""
    answer = {"checks": [], "facts": {"node": {"host": "node2", "node": "node2", "machine_id": "m"}}}
    result, handed = run(rail_audit, {"plan_dir": plan, "settings": {"preflight": {"node": "node1"}}}, answer)
    assert handed["args"]["settings"]["preflight"] == {"host": "node1", "node": "node1"}
    assert result["facts"]["node"] == {
        "host": "node1",
        "node": "node1",
        "machine_id": "m",
        "boot_id": "",
        "kubelet": "",
    }
    for odd in ("node2", ["node2"], None):
        answer["facts"] = {"node": odd, "cni": "x"}
        assert run(rail_audit, {"plan_dir": plan}, answer)[0]["facts"] == {"cni": "x"}
    answer["facts"] = {"node": {"machine_id": ["m"], "kubelet": "a\x1bb", "more": 1}}
    same = {"host": "node1", "node": "node1", "machine_id": "", "boot_id": "", "kubelet": "a\\x1bb"}
    assert run(rail_audit, {"plan_dir": plan}, answer)[0]["facts"]["node"] == same
    answer["facts"] = {"node": {"host": "node2", "node": "node2"}}
    reported = "rdma_host_node_name of node1 is 'node2'.*Remove it and set fabric_node_name"
    with pytest.raises(AnsibleActionFail, match=reported):
        run(rail_audit, {"plan_dir": plan, "settings": {"preflight": {"node": "node2"}}}, answer)


@pytest.mark.parametrize(("node", "refused"), [("node1", False), ("node2", True)])
def test_no_other_node_than_the_plans_is_drained(plan, node, refused):
    action = action_of(cluster_nodes, {"nodes": [node], "drain": "begin", "plan_dir": plan})
    action._connection.transport = "smart"
    action._execute_module = lambda **_more: {"changed": False}
    variables = {"inventory_hostname": "node1"}
    if refused:
        with pytest.raises(AnsibleActionFail, match="of node1 is 'node2', and the plan calls its node node1"):
            action.run(task_vars=variables)
    else:
        assert action.run(task_vars=variables) == {"changed": False}

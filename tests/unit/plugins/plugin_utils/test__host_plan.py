# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.railops.rdma.plugins.plugin_utils._host_plan import (
    MOST_DRAWN,
    drawn_addresses,
    leaves_of,
    read_host_plan,
)

FROZEN = {"mode": "shared", "max_nodes": 8}
DIGEST = hashlib.sha256(json.dumps(FROZEN, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@pytest.fixture
def folder(tmp_path):
    plan = {
        "format": 1,
        "digest": "x",
        "frozen": FROZEN,
        "nodes": {"node-1": {"zone": "", "slot": 0, "retired": False}},
    }
    have = {"schema": 1, "frozen_digest": DIGEST, "node": "node-1", "slot": 0, "rails": []}
    (tmp_path / "hosts").mkdir()
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "hosts" / "node1.json").write_text(json.dumps(have))
    return tmp_path


def change(path, **values):
    data = json.loads(path.read_text())
    data.update(values)
    path.write_text(json.dumps(data))


def test_a_plan_that_was_replaced_is_read_again(folder):
    assert read_host_plan(str(folder), "node1")["slot"] == 0
    plan = json.loads((folder / "plan.json").read_text())
    plan["nodes"]["node-1"]["slot"] = 5
    (folder / "new").write_text(json.dumps(plan))
    (folder / "new").replace(folder / "plan.json")
    with pytest.raises(AnsibleActionFail, match="slot"):
        read_host_plan(str(folder), "node1")


def test_a_host_without_a_host_plan_is_refused(folder):
    with pytest.raises(AnsibleActionFail, match="node2"):
        read_host_plan(str(folder), "node2")


@pytest.mark.parametrize(
    ("file", "values", "says"),
    [
        pytest.param("hosts/node1.json", {"frozen_digest": "0"}, "frozen_digest", id="digest"),
        pytest.param("hosts/node1.json", {"slot": 4}, "slot", id="slot"),
        pytest.param("hosts/node1.json", {"node": "node-9"}, "node", id="node"),
        pytest.param("hosts/node1.json", {"schema": 3}, "schema", id="host-plan-schema"),
        pytest.param("plan.json", {"format": 2}, "format", id="plan-format"),
        pytest.param("plan.json", {"digest": ""}, "unfinished", id="plan-half-written"),
        pytest.param("plan.json", {"nodes": []}, "nodes of the file is a list", id="plan-damaged"),
        pytest.param("plan.json", {"frozen": {"mode": "exclusive"}}, "frozen_digest", id="plan-moved-on"),
        pytest.param("plan.json", {"nodes": {"node-1": {"slot": 0, "retired": True}}}, "retired", id="retired"),
    ],
)
def test_a_stale_host_plan_is_refused_with_its_fix(folder, file, values, says):
    change(folder / file, **values)
    with pytest.raises(AnsibleActionFail, match=rf"{says}[\s\S]*(Run|Remove|install|Restore) "):
        read_host_plan(str(folder), "node1")


@pytest.mark.parametrize("text", ['{"schema": 1, ', "[" * 100_000])
@pytest.mark.parametrize("name", ["hosts/node1.json", "plan.json"])
def test_a_half_written_file_is_refused(folder, name, text):
    (folder / name).write_text(text)
    with pytest.raises(AnsibleActionFail, match=r"cannot be (read|used)"):
        read_host_plan(str(folder), "node1")


def test_leaves_are_those_of_the_plans_facts(folder):
    with pytest.raises(AnsibleActionFail, match=r"incomplete: facts\.json does not exist\. Run the playbook"):
        leaves_of(str(folder))
    leaves = (("rail1", "-odd", "192.0.2.0/24"), ("rail1", "-odd", "fd00::/64"), ("rail2", "", "198.51.100.0/24"))
    rows = [{"zone": "su1", "rail": rail, "leaf": leaf, "aggregate": net} for rail, leaf, net in leaves]
    (folder / "facts.json").write_text(json.dumps({"prefixes": rows}))
    assert leaves_of(str(folder)) == [{"zone": "su1", "rail": "rail1", "leaf": "-odd"}]


@pytest.mark.parametrize("renamed", [False, True])
def test_hosts_draw_other_hosts_addresses_by_a_seed(tmp_path, renamed):
    (tmp_path / "hosts").mkdir()
    nodes = {}
    for slot in range(80):
        node, host = f"node{slot}", f"host{slot}" if renamed else f"node{slot}"
        nodes[node] = {"zone": "", "slot": slot, "retired": slot == 7}
        rails = [
            {
                "name": f"rail{rail}",
                "addresses": [{"address": f"192.0.{rail}.{slot}"}, {"address": f"fd00:{rail}::{slot}"}],
            }
            for rail in (1, 2)
        ]
        have = {"schema": 1, "frozen_digest": DIGEST, "node": node, "slot": slot, "rails": rails}
        (tmp_path / "hosts" / f"{host}.json").write_text(json.dumps(have))
    (tmp_path / "plan.json").write_text(json.dumps({"format": 1, "digest": "x", "frozen": FROZEN, "nodes": nodes}))
    one, two = ("host1", "host2") if renamed else ("node1", "node2")
    drawn = drawn_addresses(str(tmp_path), one, 0)
    assert set(drawn) == {"rail1", "rail2"}
    assert {len(found) for found in drawn.values()} <= {MOST_DRAWN, MOST_DRAWN - 2}
    assert {"192.0.1.1", "192.0.1.7"}.isdisjoint(drawn["rail1"])
    assert drawn == drawn_addresses(str(tmp_path), one, 0)
    assert drawn != drawn_addresses(str(tmp_path), one, 1)
    assert drawn != drawn_addresses(str(tmp_path), two, 0)
    # An old host plan beside the new plan says nothing.
    for path in (tmp_path / "hosts").iterdir():
        if path.stem != one:
            change(path, frozen_digest="0")
    assert drawn_addresses(str(tmp_path), one, 0) == {}

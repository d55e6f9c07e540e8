# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster's copy of plan.json: which plans follow from it, which are refused, and a plan that starts from it."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from pathlib import Path

import pytest
from ansible.template import Templar

from ansible_collections.railops.rdma.plugins.filter.filters import lock_copy
from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError, RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import NEWER, lock_digest
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import lock_copy as module
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.lock_copy import LockCopy
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, rails
from ansible_collections.railops.rdma.tests.unit.playbooks import LOADER, content

LIMIT = 1 << 20
"""Bytes of a ConfigMap's data."""


@pytest.fixture
def plan(tmp_path):
    """Plan a fabric in a folder of that name; return the folder of plan.json."""

    def made(name, nodes, copy=None, *, check=False, **more):
        fabric = {**exclusive(rails=rails(2)), "plan_dir": str(tmp_path / name), **more}
        given = None if copy is None else LockCopy(copy, "fabric", "spiderpool")
        run(fabric, nodes, check_mode=check, copy=given)
        return str(tmp_path / name / "fabric")

    return made


def copied(folder):
    """What the cluster has after it was brought to a plan."""
    return [compared([], folder)["object"]]


def lock_of(folder):
    return Path(folder, "plan.json").read_bytes()


def compared(found, folder, *more):
    return lock_copy(found, folder, "fabric", "spiderpool", *more)


def only(found, folder, *more):
    (problem,) = compared(found, folder, *more)["problems"]
    return problem


def test_the_copy_is_the_text_of_plan_json_with_our_labels(plan):
    folder = plan("here", hosts(3))
    (made,) = copied(folder)
    assert (made["kind"], made["metadata"]["name"]) == ("ConfigMap", "railops-fabric-lock")
    assert made["metadata"]["labels"]["railops.io/fabric"] == "fabric"
    assert gzip.decompress(base64.b64decode(made["binaryData"]["plan.json.gz"])) == lock_of(folder)


def test_bytes_of_another_compressor_stay_while_the_text_is_the_same(plan):
    folder = plan("here", hosts(3))
    (made,) = copied(folder)
    packed = base64.b64encode(gzip.compress(lock_of(folder), 1)).decode()
    assert packed != made["binaryData"]["plan.json.gz"]
    made["binaryData"] = {"plan.json.gz": packed}
    assert compared([made], folder)["object"]["binaryData"] == {"plan.json.gz": packed}
    newer = plan("here", hosts(4))
    assert compared([made], newer)["object"]["binaryData"] != {"plan.json.gz": packed}


def test_ten_thousand_nodes_with_long_names_fit_into_an_object(plan):
    nodes = [
        {"host": f"gpu-node-with-a-long-name-{number:05}.rack{number % 97}.example.org"} for number in range(10000)
    ]
    folder = plan("here", nodes, max_nodes=16384, supernets=["10.0.0.0/8"])
    (made,) = copied(folder)
    assert len(json.dumps(made)) < LIMIT // 2


@pytest.mark.parametrize("more", [0, 2], ids=["the-same", "more-nodes"])
def test_a_plan_that_follows_from_the_copy_is_fine(plan, more):
    found = copied(plan("then", hosts(3)))
    assert compared(found, plan("then", hosts(3 + more)))["problems"] == []


@pytest.mark.parametrize(
    ("release", "rename", "count"), [(None, None, 1), (["node3"], None, 0), (None, {"node3": "node9"}, 0)]
)
def test_tasks_compare_the_copy_with_options_that_are_null_too(plan, release, rename, count):
    """The planner takes null as the default."""
    found = {"resources": copied(plan("then", hosts(3)))}
    folder = plan("now", hosts(2))
    options = {"fabric_release": release, "fabric_rename": rename}
    (sort,) = (task for task in content("playbooks/preflight.yml")[0]["tasks"] if task["name"].startswith("Sort the"))
    role = content("roles/rail_objects/vars/main.yml")
    known = {**role, **options, "hostvars": {"localhost": options}, "__site_sorted": {"stop": []}}
    known |= {"rail_objects_plan_dir": folder, "rail_objects_namespace": "spiderpool", "__rail_objects_copy": found}
    known |= {"__site_plan": folder, "__site_copy": found, "__site_cluster": {"missing": False}}
    known |= {"__site_nodes": {}, "__site_networks": {}}
    templar = Templar(loader=LOADER, variables=known)
    assert len(templar.template(role["__rail_objects_lock"])["problems"]) == count
    assert len(templar.template(sort["ansible.builtin.set_fact"]["__site_conflicts"])) == count


def test_an_older_checkout_is_refused_by_the_nodes_that_it_does_not_know(plan):
    old = plan("old", hosts(2))
    shutil.copytree(old, Path(old).parents[1] / "new/fabric")
    found = copied(plan("new", hosts(4)))
    problem = only(found, old)
    assert problem.startswith(
        "ConfigMap spiderpool/railops-fabric-lock: The cluster was brought to a plan with 2 node(s) that this one does "
        "not know: node3, node4. Your checkout is older than the cluster"
    )
    assert "-e fabric_plan_from_cluster=true" in problem


def test_a_node_that_was_retired_is_known_and_one_that_was_released_is_named(plan):
    found = copied(plan("here", hosts(3)))
    assert compared(found, plan("here", hosts(2), retire=["node3"]))["problems"] == []
    folder = plan("here", hosts(2), retire=["node3"], release=["node3"])
    assert "node3" in only(found, folder)
    assert compared(found, folder, ["node3"])["problems"] == []


def test_a_plan_made_again_is_refused_where_a_node_has_another_slot(plan):
    plan("here", hosts(3))
    found = copied(plan("here", [{"host": "node0"}, *hosts(3)]))
    again = plan("again", [{"host": "node0"}, *hosts(3)])
    problem = only(found, again)
    assert "with other addresses of 4 node(s). node0: rail1 from 172.17.0.98/27 by 172.17.0.97 to " in problem
    assert " | node1: rail1 from 172.17.0.2/27 by 172.17.0.1 to 172.17.0.34/27 by 172.17.0.33;" in problem
    assert "fabric_allow_renumber=true" in problem
    assert compared(found, again, [], True)["problems"] == []


def test_a_rail_more_is_fine_and_a_rail_less_is_an_older_checkout(plan):
    old = plan("old", hosts(2))
    shutil.copytree(old, Path(old).parents[1] / "new/fabric")
    new = plan("new", hosts(2), rails=rails(3))
    assert compared(copied(old), new)["problems"] == []
    assert "node1: rail3 from 172.17.2.2/27 by 172.17.2.1 to nothing" in only(copied(new), old)


def test_what_is_of_others_or_no_plan_is_refused(plan):
    folder = plan("here", hosts(2))
    (made,) = copied(folder)
    foreign = {**made, "metadata": {**made["metadata"], "labels": {}}}
    assert "It is not of this fabric: it lacks the managed labels." in only([foreign], folder)
    for data in ({}, {"plan.json.gz": "%"}, {"plan.json.gz": base64.b64encode(b"plain").decode()}):
        problem = only([{**made, "binaryData": data}], folder)
        assert "is missing or no compressed text" in problem
        assert "kubectl -n spiderpool delete configmap railops-fabric-lock" in problem
    half = base64.b64decode(made["binaryData"]["plan.json.gz"])[:-20]
    assert "no compressed text" in only([{**made, "binaryData": {"plan.json.gz": packed(half, raw=True)}}], folder)


def packed(data, *, raw=False):
    return base64.b64encode(data if raw else gzip.compress(data)).decode()


def changed(made, folder, **frozen):
    """A copy whose frozen part has more keys, with the digest that it must have."""
    data = json.loads(lock_of(folder))
    data["frozen"].update(frozen)
    data["digest"] = lock_digest(data)
    return {**made, "binaryData": {"plan.json.gz": packed(json.dumps(data).encode())}}


def test_a_copy_of_a_newer_version_is_refused_with_that(plan):
    folder = plan("here", hosts(2))
    (made,) = copied(folder)
    problem = only([changed(made, folder, planes=[])], folder)
    assert problem.startswith("ConfigMap spiderpool/railops-fabric-lock: frozen")
    assert problem.endswith(NEWER)


def test_a_copy_that_was_changed_says_how_to_get_rid_of_it(plan):
    folder = plan("here", hosts(2))
    (made,) = copied(folder)
    text = lock_of(folder).replace(b'"slot": 1', b'"slot": 5')
    problem = only([{**made, "binaryData": {"plan.json.gz": packed(text)}}], folder)
    assert "delete configmap railops-fabric-lock" in problem
    assert "version control" not in problem


def test_a_text_without_an_end_is_not_read_to_it(plan, monkeypatch):
    folder = plan("here", hosts(2))
    monkeypatch.setattr(module, "MOST_BYTES", 64)
    with pytest.raises(InputError, match="more than"):
        LockCopy(copied(folder), "fabric", "spiderpool").text()


def test_an_unfinished_plan_is_not_compared(plan):
    folder = plan("here", hosts(2))
    Path(folder, "plan.json").write_text('{"format": 1, "digest": "", "frozen": {}, "nodes": {}}')
    assert "unfinished" in only([], folder)


# --- plan from the cluster --------------------------------------------------------------------------------------------


def slots(folder):
    return {name: entry["slot"] for name, entry in json.loads(lock_of(folder))["nodes"].items()}


def test_a_lost_repository_is_not_a_lost_fabric(plan):
    plan("here", hosts(3))
    folder = plan("here", [{"host": "node0"}, *hosts(3)], retire=["node2"])
    found = copied(folder)
    again = plan("again", [{"host": "node0"}, *hosts(3)], retire=["node2"], copy=found)
    assert lock_of(again) == lock_of(folder)
    assert slots(again) == {"node0": 3, "node1": 0, "node2": 1, "node3": 2}


def test_an_older_checkout_is_brought_up_to_the_copy_and_goes_on_from_there(plan):
    old = plan("old", hosts(2))
    shutil.copytree(old, Path(old).parents[1] / "new/fabric")
    found = copied(plan("new", [*hosts(2), {"host": "a-node"}]))
    plan("old", [*hosts(3), {"host": "a-node"}], copy=found)
    assert slots(old) == {"node1": 0, "node2": 1, "a-node": 2, "node3": 3}
    assert compared(found, old)["problems"] == []


def test_in_check_mode_nothing_is_written(plan):
    found = copied(plan("then", hosts(2)))
    plan("now", hosts(2), copy=found, check=True)
    with pytest.raises(FileNotFoundError):
        slots(plan("now", hosts(2), copy=found, check=True))


@pytest.mark.parametrize(
    ("nodes", "retire"), [(hosts(3), []), (hosts(2), ["node2"])], ids=["a-node-more", "a-node-retired"]
)
def test_a_plan_that_is_ahead_of_the_copy_is_not_thrown_away(plan, nodes, retire):
    found = copied(plan("here", hosts(2)))
    plan("here", nodes, retire=retire)
    with pytest.raises(RdmaError, match="is not older than the copy in the cluster: the copy lacks its changes"):
        plan("here", nodes, retire=retire, copy=found)


def test_without_a_copy_nothing_is_planned(plan):
    with pytest.raises(RdmaError, match="ConfigMap spiderpool/railops-fabric-lock does not exist"):
        plan("here", hosts(2), copy=[])

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of every plan, over thousands of random fabrics.

RAILOPS_FABRICS says over how many: 700 by default, always the same; the check `long` draws 3,000 others. The files are
checked, by `plan_checker`, which shares no code with the planner, and by the admission validator.
"""

from __future__ import annotations

import json
import random

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import lock as locks
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.blocks import build_blocks
from ansible_collections.railops.rdma.tests.admission import admission
from ansible_collections.railops.rdma.tests.unit import plan_checker
from ansible_collections.railops.rdma.tests.unit.fabrics import plan
from ansible_collections.railops.rdma.tests.unit.random_fabrics import FABRICS, SETTINGS, fabrics, hosts_only

LOADER = plan_checker.LOADER


def planned(raw, nodes, lock=None):
    """Plan, or None when this fabric is refused: then it says what and how to repair it."""
    try:
        return plan(raw, nodes, lock, report=False)
    except InputError as exc:
        error = exc
    assert error.problems
    assert all(problem.place and problem.problem and problem.fix for problem in error.problems)
    return None


def wrong_of(made, raw):
    kept = {"reserved": raw["reserved"], "ends": raw["reserved_per_subnet"], "foreign": raw["existing_networks"]}
    names = [rail.name for rail in made.plan.fabric.rails]
    return [
        *plan_checker.check(made.files, mode=raw["mode"], **kept),
        *plan_checker.check_out_of_service(made.files, raw, names),
    ]


def objects(made):
    for path in ("ippools", "multusconfigs", "reservedips", "sriovpolicies"):
        yield from (obj for obj in yaml.load_all(made.files[f"cluster/{path}.yaml"], Loader=LOADER) if obj)


@given(fabrics())
@settings(max_examples=FABRICS * 2 // 3, **SETTINGS)
def test_no_address_is_wrong_or_given_twice(case):
    raw, nodes = case
    made = planned(raw, nodes)
    if made is None:
        return
    assert wrong_of(made, raw) == []
    assert admission.check(objects(made)) == []


@given(fabrics())
@settings(max_examples=FABRICS, **SETTINGS)
def test_what_was_frozen_is_read_and_planned_again_byte_by_byte(case):
    raw, nodes = case
    made = planned(raw, nodes)
    if made is None:
        return
    lock, data = locks.parse_lock(made.lock, "plan.json"), json.loads(made.lock)
    assert locks.write_lock(locks.freeze(lock.fabric), lock.nodes, data["files"])[0] == made.lock
    assert build_blocks(lock.fabric) == made.plan.blocks
    assert plan(raw, nodes, made.lock, report=False).files == made.files


@given(fabrics())
@settings(max_examples=FABRICS // 3, **SETTINGS)
def test_out_of_service_changes_that_host_only(case):
    raw, nodes = case
    made, back = planned(raw, nodes), planned({**raw, "out_of_service": {}}, nodes)
    if made is None or back is None:
        return
    assert locks.parse_lock(made.lock, "") == locks.parse_lock(back.lock, "")
    hosts = {f"hosts/{host}.json" for host in raw["out_of_service"]}
    objects = ("cluster/ippools.yaml", "cluster/sriovpolicies.yaml", "workload/topology.conf", "facts.json")
    changed = {path for path in made.files if made.files[path] != back.files[path]} - {"plan.json", *objects}
    assert changed == hosts
    for path, key in (("ippools", "name"), ("sriovpolicies", "name")):
        after, before = (
            {
                obj["metadata"][key]: obj
                for obj in yaml.load_all(one.files[f"cluster/{path}.yaml"], Loader=LOADER)
                if obj
            }
            for one in (made, back)
        )
        # A policy of nodes without a rail is one more; of pools only `disable` differs.
        for name, obj in before.items():
            obj["spec"] = {
                **obj["spec"],
                **{key: after[name]["spec"][key] for key in ("disable",) if key in obj["spec"]},
            }
            assert after[name] == obj


@given(hosts_only())
@settings(max_examples=FABRICS, **SETTINGS)
def test_hosts_only_get_addresses_that_are_right_and_kept(case):
    raw, nodes = case
    made = planned(raw, nodes)
    if made is None:
        return
    assert wrong_of(made, raw) == []
    assert not [path for path in made.files if path.startswith("cluster/")]
    lock = locks.parse_lock(made.lock, "plan.json")
    assert build_blocks(lock.fabric) == made.plan.blocks
    assert plan(raw, nodes, made.lock, report=False).files == made.files


@given(fabrics(), st.integers(0, 1 << 30))
@settings(max_examples=FABRICS // 3, **SETTINGS)
def test_nothing_renumbers_anybody(case, seed):
    raw, nodes = case
    made = planned(raw, nodes)
    if made is None:
        return
    chance = random.Random(seed)

    shuffled = chance.sample(nodes, len(nodes))
    assert plan(raw, shuffled, made.lock, report=False).files == made.files

    renamed = {**raw, "zones": [{**zone, "group": zone["group"].replace("group", "hall")} for zone in raw["zones"]]}
    moved = [{**node, "groups": [name.replace("group", "hall") for name in node.get("groups", ())]} for node in nodes]
    assert plan(renamed, moved, made.lock, report=False).files == made.files

    gone = chance.choice(nodes)["host"]
    left = [node for node in nodes if node["host"] != gone] or [{**nodes[0], "host": "other"}]
    fresh = {**chance.choice(nodes), "host": "n0-new"}
    smaller = planned({**raw, "retire": [gone]}, left, made.lock)
    grown = planned({**raw, "retire": [gone]}, [*left, fresh], smaller.lock) if smaller else None
    for later in (smaller, grown):
        if later is None:
            continue
        for path, text in made.files.items():
            if path.startswith("hosts/") and path != f"hosts/{gone}.json" and path in later.files:
                assert later.files[path] == text
        assert wrong_of(later, raw) == []
    if grown:
        entries = json.loads(grown.lock)["nodes"]
        places = [(entry["zone"], entry["slot"]) for entry in entries.values()]
        assert len(places) == len(set(places))
        assert entries[gone] == {**json.loads(made.lock)["nodes"][gone], "retired": True}

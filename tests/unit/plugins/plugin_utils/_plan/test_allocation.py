# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock, the slots, and who would be renumbered by what."""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import lock as locks
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, plan, rails, shared


def slots(made):
    return {node.name: node.slot for node in made.plan.nodes}


def failure(*args, **kwargs) -> InputError:
    with pytest.raises(InputError) as caught:
        plan(*args, **kwargs)
    return caught.value


def named(*names):
    """Return the nodes of an inventory by their names."""
    return [{"host": name} for name in names]


def host_plans(made):
    return {path: text for path, text in made.files.items() if path.startswith("hosts/")}


def tampered(lock: str, change) -> str:
    data = json.loads(lock)
    change(data)
    return json.dumps(data)


# --- who has which slot -----------------------------------------------------------------------------------------------


def test_first_assignment_is_in_natural_order_whatever_the_inventorys():
    made = plan(exclusive(max_nodes=16), named("node10", "node2", "node1", "node9"))

    assert slots(made) == {"node1": 0, "node2": 1, "node9": 2, "node10": 3}


def test_names_of_the_same_numbers_have_an_order_whatever_the_inventorys():
    names = ["node1", "node01", "node001"]
    one, other = (plan(exclusive(), named(*order)) for order in (names, names[::-1]))

    assert slots(one) == {"node001": 0, "node01": 1, "node1": 2}
    assert one.files == other.files


def test_growth_takes_the_lowest_free_slot_and_renumbers_no_node():
    first = plan(exclusive(), named("node1", "node5"))
    second = plan(exclusive(), named("node3", "node5", "node1"), first.lock)

    assert slots(second) == {"node1": 0, "node5": 1, "node3": 2}
    assert second.allocation.changes["added"] == ["node3"]
    assert host_plans(first).items() <= host_plans(second).items()


def test_pins_come_first_and_leave_the_rest_to_the_others():
    nodes = [{"host": "node1"}, {"host": "node2", "slot": 0}, {"host": "node3", "slot": "4"}]

    assert slots(plan(exclusive(), nodes)) == {"node1": 1, "node2": 0, "node3": 4}


def test_a_retired_slot_stays_empty_until_it_is_released():
    first = plan(exclusive(), hosts(3))
    second = plan(exclusive(retire=["node2"]), named("node1", "node3"), first.lock)
    third = plan(exclusive(retire=["node2"]), named("node1", "node3", "node4"), second.lock)

    assert [one.name for one in second.plan.retired] == ["node2"]
    assert "hosts/node2.json" not in second.files
    assert slots(third) == {"node1": 0, "node3": 2, "node4": 3}
    still = plan(exclusive(), named("node1", "node3", "node4", "node5"), third.lock)
    assert slots(still)["node5"] == 4

    freed = plan(exclusive(release=["node2"]), named("node1", "node3", "node5"), second.lock)
    assert slots(freed) == {"node1": 0, "node3": 2, "node5": 1}
    assert freed.allocation.changes["released"] == ["node2"]


def test_a_renamed_node_keeps_its_slot_and_the_line_may_stay():
    first = plan(exclusive(), hosts(3))
    nodes = named("node1", "gpu-a02", "node3")
    second = plan(exclusive(rename={"node2": "gpu-a02"}), nodes, first.lock)
    assert slots(second) == {"node1": 0, "gpu-a02": 1, "node3": 2}
    assert first.address("node2", 8) == second.address("gpu-a02", 8)
    happened = {key: names for key, names in second.allocation.changes.items() if names}
    assert (happened, second.allocation.retired) == ({"renamed": ["node2 to gpu-a02"]}, ())
    again = plan(exclusive(rename={"node2": "gpu-a02"}), nodes, second.lock)
    assert (again.files, again.allocation.changes["renamed"]) == (second.files, [])
    assert "fabric_rename" in str(failure(exclusive(), nodes, first.lock))


def test_a_retired_node_that_comes_back_gets_its_own_slot():
    first = plan(exclusive(), hosts(3))
    second = plan(exclusive(retire=["node1"]), named("node2", "node3"), first.lock)
    third = plan(exclusive(), named("node3", "node2", "node1", "node0"), second.lock)

    assert slots(third) == {"node0": 3, "node1": 0, "node2": 1, "node3": 2}


def test_a_node_retired_while_it_is_in_the_inventory_gets_no_host_plan_and_a_warning():
    first = plan(exclusive(), hosts(2))
    second = plan(exclusive(retire=["node2"]), hosts(2), first.lock)

    assert slots(second) == {"node1": 0}
    assert "node2 is retired but still in the inventory" in second.plan.warnings[0]


def test_unknown_names_in_retire_and_release_are_warned_about():
    made = plan(exclusive(retire=["node7"], release=["node8"]), hosts(1))

    assert [text.partition(",")[0] for text in made.plan.warnings] == [
        "fabric_retire names node7",
        "fabric_release names node8",
    ]


@pytest.mark.parametrize(
    ("raw", "have", "fix"),
    [
        pytest.param(exclusive(), 8, "Raising it to 9 would change addresses that are in use", id="blocks-grow"),
        pytest.param(exclusive(rails=rails(1)), 8, "Raise it to 9 or more.", id="one-rail-grows-into-free-space"),
        pytest.param(exclusive(max_nodes=6), 6, "Raise it to 7 or more.", id="the-block-has-room"),
        pytest.param(shared(max_nodes=3), 3, "Raising it to 4 would change", id="pods-have-the-next-address"),
    ],
)
def test_slots_that_run_out_are_reported_with_what_can_be_done(raw, have, fix):
    first = plan(raw, hosts(have))

    error = failure(raw, hosts(have + 1), first.lock)

    assert [problem.place for problem in error.problems] == ["fabric_max_nodes"]
    assert error.problems[0].fix.startswith(fix)


@pytest.mark.parametrize(("where", "moved"), [("start", 0), ("end", 3)])
def test_more_slots_in_a_shared_subnet_move_no_node_when_nodes_are_at_its_start(where, moved):
    first = plan(shared(max_nodes=3, host_addresses=where), hosts(3))

    grown = plan(shared(max_nodes=4, host_addresses=where, allow_renumber=True), hosts(4), first.lock)

    names = [node["host"] for node in hosts(3)]
    assert moved == sum(grown.address(name, 1)["address"] != first.address(name, 1)["address"] for name in names)


def test_a_pin_that_contradicts_the_lock_is_refused_or_moves_the_node_when_allowed():
    first = plan(exclusive(), hosts(2))
    nodes = [{"host": "node1", "slot": 5}, {"host": "node2"}]

    moved = plan(exclusive(allow_renumber=True), nodes, first.lock)
    assert slots(moved) == {"node1": 5, "node2": 1}
    assert moved.allocation.changes["moved"][0].startswith(
        "node1: rail1 from 172.17.0.2/27 by 172.17.0.1 to 172.17.0.162/27"
    )


@pytest.mark.parametrize("zones", [(), ("su1", "su2")], ids=["flat", "zones"])
def test_two_nodes_swap_their_slots_when_allowed(zones):
    su = [{"name": zone, "supernets": [f"172.17.{128 * n}.0/17"], "max_nodes": 8} for n, zone in enumerate(zones)]
    raw = exclusive(**({"zones": su} if zones else {}))
    one, two = [[name] for name in zones] or [[], []]
    first = plan(raw, [{"host": "node1", "groups": one}, {"host": "node2", "groups": two}])
    pin = 0 if zones else 1
    back = [{"host": "node1", "slot": pin, "groups": two}, {"host": "node2", "slot": 0, "groups": one}]

    assert "fabric_allow_renumber=true" in str(failure(raw, back, first.lock))

    swapped = plan({**raw, "allow_renumber": True}, back, first.lock)
    assert swapped.address("node1", 1) == first.address("node2", 1)
    assert swapped.address("node2", 1) == first.address("node1", 1)


# --- frozen parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "text"),
    [
        pytest.param({"supernets": ["10.0.0.0/16"]}, "rail1 from 172.17.0.2/27", id="supernet"),
        pytest.param({"node_prefix": 26}, "to 172.17.0.2/26", id="prefix"),
        pytest.param({"subnet_offset": 1}, "to 172.17.1.2/27", id="first-block"),
        pytest.param({"gateway": "last"}, "to 172.17.0.1/27 by 172.17.0.30", id="gateway"),
        pytest.param({"max_nodes": 9}, "rail2 from 172.17.1.2/27 by 172.17.1.1 to 172.17.2.2/27", id="growth-too-far"),
        pytest.param({"rails": rails(7)}, "rail8 from 172.17.7.2/27 by 172.17.7.1 to nothing", id="rail-gone"),
        pytest.param(
            {"rails": list(reversed([{**r, "name": f"rail{i}"} for i, r in enumerate(rails(), 1)]))},
            "rail1",
            id="order",
        ),
        pytest.param(
            {"reserved": ["172.17.0.2"]}, "rail1 from 172.17.0.2/27 by 172.17.0.1 to 172.17.0.3/27", id="reserved"
        ),
        pytest.param({"mode": "shared"}, "node2: rail1 from 172.17.0.34/27", id="mode"),
        pytest.param({"table_base": 3000}, "fabric_table_base from 1000 to 3000", id="table-base"),
        pytest.param({"supernets": ["fd00::/48"]}, "to nothing", id="family"),
    ],
)
def test_a_change_that_renumbers_is_refused_and_says_who_and_where_to(more, text):
    first = plan(exclusive(), hosts(8))

    error = failure(exclusive(**more), hosts(8), first.lock)

    assert "would renumber" in str(error)
    assert text in str(error)
    assert "fabric_allow_renumber=true" in str(error)
    assert plan(exclusive(**more, allow_renumber=True), hosts(8), first.lock).allocation.changes["moved"]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"supernets": ["172.16.0.0/15"], "subnet_offset": 256}, id="wider-supernet-same-place"),
        pytest.param({"rails": rails(9), "supernets": ["172.17.0.0/16"]}, id="a-rail-more"),
        pytest.param({"reserved": ["172.17.0.20"]}, id="reserved-pod-address"),
        pytest.param({"pods_per_node": 10}, id="fewer-pods"),
        pytest.param({"supernets": ["172.17.0.0/16", "fd00::/48"]}, id="second-family"),
    ],
)
def test_a_change_that_moves_no_node_is_allowed(more):
    named = [{**rail, "name": f"rail{number}"} for number, rail in enumerate(rails(9), 1)]
    base = exclusive(rails=named[:8])
    more = {**more, "rails": named} if "rails" in more else more
    first = plan(base, hosts(8))
    second = plan({**base, **more}, hosts(8), first.lock)

    for host in ("node1", "node8"):
        for rail in range(1, 9):
            assert first.address(host, rail) == second.address(host, rail)


def test_growth_into_pod_addresses_of_a_shared_rail_is_refused():
    first = plan(shared(max_nodes=50), hosts(2))

    error = failure(shared(max_nodes=60), hosts(2), first.lock)

    assert "172.17.1.52-172.17.1.61 are pod addresses and would become the nodes'" in str(error)


TWO = [{"name": f"su{number}", "supernets": [f"10.{number}.0.0/16"]} for number in (1, 2)]


def zoned(*zones):
    return exclusive(supernets=[], zones=list(zones))


def in_groups(*groups):
    """Return the nodes a, b and so on, each in its group."""
    return [{"host": name, "groups": [group]} for name, group in zip("abc", groups, strict=False)]


def test_a_renamed_zone_or_group_renumbers_no_node():
    first = plan(zoned(*TWO), in_groups("su1", "su2", "su2"))
    east = {"name": "east", "group": "hall_east", "supernets": ["10.2.0.0/16"]}

    second = plan(zoned(TWO[0], east), in_groups("su1", "hall_east", "hall_east"), first.lock)

    assert slots(second) == {"a": 0, "b": 0, "c": 1}
    assert first.address("c", 8) == second.address("c", 8)


def test_a_node_that_changes_its_zone_is_refused_or_moves_when_allowed():
    raw = zoned(*TWO)
    first = plan(raw, in_groups("su1", "su2"))
    nodes = in_groups("su2", "su2")

    assert "a would move from zone 'su1' to 'su2'" in str(failure(raw, nodes, first.lock))
    assert slots(plan({**raw, "allow_renumber": True}, nodes, first.lock)) == {"a": 1, "b": 0}


def test_a_retired_slot_in_a_removed_zone_has_to_be_released():
    first = plan(zoned(*TWO), in_groups("su1", "su2"))
    second = plan({**zoned(*TWO), "retire": ["b"]}, in_groups("su1"), first.lock)

    assert "Name b in fabric_release" in str(failure(zoned(TWO[0]), in_groups("su1"), second.lock))
    assert slots(plan({**zoned(TWO[0]), "release": ["b"]}, in_groups("su1"), second.lock)) == {"a": 0}


# --- the lock itself --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "change", "place", "text"),
    [
        pytest.param(("nodes", "node2"), {"slot": "x"}, "plan.json", "of node2 is 'x'", id="slot"),
        pytest.param((), {"nodes": []}, "plan.json", "nodes of the file is a list", id="nodes-a-list"),
        pytest.param((), {"frozen": None}, "plan.json", "frozen of the file is nothing", id="no-frozen"),
    ],
)
def test_a_lock_that_cannot_be_trusted_is_refused(part, change, place, text):
    def changed(data):
        for key in part:
            data = data[key]
        data.update(change)

    with pytest.raises(InputError) as caught:
        locks.parse_lock(tampered(plan(exclusive(), hosts(2)).lock, changed), "plan.json")

    assert caught.value.problems[0].place == place
    assert text in str(caught.value)


def test_a_merged_lock_is_taken_on_request():
    def merge(data):
        data["nodes"]["node9"] = {"zone": "", "slot": 2, "retired": False}

    lock = tampered(plan(exclusive(), hosts(2)).lock, merge)
    nodes = [*hosts(2), {"host": "node9"}]

    assert "fabric_accept_lock=true" in str(failure(exclusive(), nodes, lock))
    assert slots(plan(exclusive(accept_lock=True), nodes, lock))["node9"] == 2


def test_naming_the_only_zone_later_renumbers_no_node():
    first = plan(exclusive(), hosts(2))
    zones = [{"name": "su1", "supernets": ["172.17.0.0/16"]}, {"name": "su2", "supernets": ["172.18.0.0/16"]}]

    second = plan(zoned(*zones), [{**node, "groups": ["su1"]} for node in hosts(2)], first.lock)

    assert first.address("node2", 8) == second.address("node2", 8)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which deviation is the cause of which others, and the cards that are made of causes."""

from __future__ import annotations

import subprocess

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._check import by_role, deviation, warning
from ansible_collections.railops.rdma.plugins.module_utils._route import path_checks, paths
from ansible_collections.railops.rdma.plugins.module_utils._route.model import MAIN_TABLE, Route
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.causes import explains
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.repairs import HOSTS, pattern, repair_of
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.text import terminal
from ansible_collections.railops.rdma.tests.unit.planted import Fleet, plant

RAILS = ["rail1", "rail2"]
ROLE = by_role("rail_network")


def short(**more):
    planned, observed = {"spidernet.io/fabric_rail1": 100}, {"spidernet.io/fabric_rail1": 0}
    return deviation("node_resources", planned, observed, "too little", "look", node="node1", **more)


def judged(nodes=(), total=None, **checks):
    results = [merge.host_result(name, name, "d", own) for name, own in checks.items()]
    return with_causes(merge.merge("d", results, {name: name for name in checks}, nodes=nodes, rails=RAILS), {}, total)


def bad(name, rail="rail1", **more):
    return deviation(name, "so", "not so", f"why {name}", "", rail=rail, **more)


@pytest.mark.parametrize(
    ("own", "cause"),
    [
        pytest.param([bad("rdma_port_state"), bad("rdma_device")], "rdma_device", id="device-first"),
        pytest.param([bad("rdma_device_files")], "rdma_device_files", id="files"),
        pytest.param([bad("rdma_modules", None)], "rdma_modules", id="of-the-host"),
        pytest.param([bad("rdma_device", "rail2")], None, id="of-another-rail"),
        pytest.param([warning("rdma_device", "so", "not so", "why", "fix", rail="rail1")], None, id="a-warning"),
        pytest.param([], None, id="not-looked-at"),
    ],
)
def test_what_the_host_found_is_the_cause(own, cause):
    made = judged([short(rail="rail1")], node1=own)
    (found,) = [check for check in made["hosts"]["node1"]["checks"] if check["id"] == "node_resources"]
    assert (found.get("caused_by"), found["fix"]) == (cause, "" if cause else "look")


def test_of_a_node_without_a_result_the_cluster_reports():
    made = judged([short()], node7=[])
    assert made["hosts"]["node7"]["checks"] == []
    (left,) = made["cluster"]["checks"]
    assert (left["node"], left["observed"].partition(": ")[0]) == ("node1", "node1")


def test_equal_causes_are_one_card_with_one_command():
    rows = {
        f"node{n}": [
            deviation("network_rules", [f"1000{n}: from 10.0.0.{n} lookup 1"], [], "missing", ROLE, rail="rail1")
        ]
        for n in (1, 2, 3)
    }
    (card,) = judged(**rows, node4=[])["causes"]
    assert card["sentence"] == "node[1-3] rail1: policy rules are missing."
    assert card["command"] == "ansible-playbook railops.rdma.hosts --tags rail_network --limit node1,node2,node3"
    assert (card["hosts"], card["checks"], card["impact"]) == (["node1", "node2", "node3"], 3, "none")
    (card,) = judged(total=3, **rows)["causes"]
    assert card["command"] == "ansible-playbook railops.rdma.hosts --tags rail_network"


@pytest.mark.parametrize(
    ("missing", "check", "expected"),
    [
        ("SpiderIPPool fabric-rail1-v4-node1", "pod_network", True),
        ("SpiderIPPool fabric-rail2-v4-node1", "pod_network", False),
        ("SpiderIPPool fabric-rail1-v4-node1", "node_resources", False),
        ("SriovNetworkNodePolicy spiderpool/fabric-rail1", "node_resources", True),
    ],
)
def test_a_missing_object_explains_pods_of_its_rail_and_what_its_policy_offers(missing, check, expected):
    cause = deviation("object_state", missing, "not there", "the object was deleted", "")
    assert explains(cause, bad(check)) is expected
    # Names of rails may have a dash.
    dashed = {**cause, "planned": missing.replace("-rail", "-gpu-rail")}
    assert explains(dashed, bad(check, "gpu-rail1")) is expected


def test_a_node_outside_the_cluster_explains_its_missing_prefix():
    prefix = deviation("pool_prefix", "one", "nothing", "", "Run the playbook railops.rdma.cluster.", node="n1")
    outside = deviation("node_in_cluster", "n1", None, "", "Join it.", node="n1")
    (card,) = judged(nodes=[prefix, outside], n1=[])["causes"]
    assert (card["check"], "command" in card, card["follows"]) == ("node_in_cluster", False, 1)


def test_a_host_without_a_result_is_a_cause():
    results = [merge.host_result("node1", "node1", "d", [bad("ping_neighbor", peers=["node2"])])]
    made = with_causes(merge.merge("d", results, {"node1": "node1", "node2": "node2"}, rails=["rail1"]), {})
    (card,) = made["causes"]
    assert (card["check"], card["hosts"], card["affected"], card["follows"]) == ("host_result", ["node2"], ["node1"], 1)


@pytest.mark.parametrize("observed", ["x", None, ["a"], 1])
def test_an_odd_answer_about_sysctls_is_shown_as_it_is(observed):
    check = deviation("network_sysctls", {"a": "1"}, observed, "It differs.", "", rail="rail1")
    (card,) = judged(node1=[check])["causes"]
    assert card["sentence"] == "node1 rail1: It differs."


def test_a_host_chooses_no_command():
    """A fix counts only where the table allows its tags for the check."""
    for tags, (_impact, checks) in HOSTS.items():
        allowed = {**bad("network_rules"), "id": checks[0], "fix": by_role(tags)}
        assert (
            repair_of(allowed).command(["node1"]) == f"ansible-playbook railops.rdma.hosts --tags {tags} --limit node1"
        )
    for fix in (by_role("rdma_host,reboot"), by_role("rail_network id"), "Run the playbook railops.rdma.teardown."):
        assert repair_of({**bad("network_rules"), "fix": fix}).command(["node1"]) == ""
    cluster = "Run the playbook railops.rdma.cluster."
    for name, fix in (("rdma_mtu", ROLE), ("route_path", ROLE), ("node_resources", cluster)):
        assert not repair_of({**bad(name), "fix": fix}).playbook


NAMES = st.lists(
    st.builds("{}{}".format, st.sampled_from(["gpu", "gpu-", "a.b", "n"]), st.integers(0, 2000).map(str))
    | st.builds("gpu{:04}".format, st.integers(0, 2000)),
    min_size=1,
    max_size=60,
    unique=True,
)


@given(NAMES, st.data())
def test_a_pattern_matches_exactly_its_hosts(names, data):
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    inventory = InventoryManager(DataLoader(), sources=[",".join(names) + ","])
    inventory.subset(pattern(chosen))
    assert {host.name for host in inventory.list_hosts("all")} == {*chosen}


def test_a_command_is_one_line_that_a_shell_reads_as_it_is():
    command = repair_of({**bad("network_rules"), "fix": ROLE}).command([f"gpu{n:03}" for n in range(1, 501)])
    assert len(command) < 120
    words = subprocess.run(["bash", "-c", f"printf '%s\n' {command}"], capture_output=True, text=True, check=True)
    assert words.stdout.splitlines()[-1] == "~^gpu(00[1-9]|0[1-9][0-9]|[1-4][0-9][0-9]|500)$"


def test_a_cause_on_two_thirds_of_500_hosts_fits_a_terminal():
    def checks(number):
        rule = [f"10001: from 10.0.0.{number} lookup 1001"]
        return [deviation("network_rules", rule, [], "missing", ROLE, rail="rail1")] if number % 3 else []

    made = judged(**{f"gpu{number:03}": checks(number) for number in range(1, 501)})
    lines = terminal(made, "fabric").splitlines()
    assert len(lines) <= 60
    assert "  ✗ gpu001 and 333 more rail1: policy rule 10001 is missing." in lines
    assert max(len(line) for line in lines if "ansible-playbook" not in line) <= 120
    assert len(made["causes"][0]["hosts"]) == 334


def test_a_cause_of_a_rail_and_of_a_host_names_both_places():
    verdict = judged(node1=[bad("persist_file")], node2=[bad("persist_file", None)])
    assert verdict["causes"][0]["sentence"].startswith("node1 rail1, node2: ")


@pytest.mark.parametrize("number", [1, 6, 7, 40])
def test_a_path_of_any_number_of_targets_shows_why_it_is_wrong(number):
    fleet = Fleet()
    plant(fleet, "foreign_rule", "node1", "rail1")
    machine = fleet.machines["node1"]
    host = machine._host(machine.now)
    addresses = [f"172.17.0.{place}" for place in range(66, 65 + number)]
    targets = [*paths.targets_of(machine.want, host, [], {"rail1": addresses})]
    lookups = tuple(machine.lookup(target, flow) for target in targets for flow in target.flows)
    checks = path_checks.checks_of(machine.want, targets, paths.PathState(host, lookups))
    (card,) = judged(node1=[check for check in checks if check["rail"] == "rail1"])["causes"]
    assert card["sentence"] == (
        "node1 rail1: traffic leaves by eth0 via 203.0.113.1 instead of ens1np0; rule `5000: from 172.17.0.2 lookup 77`"
        " (made by static) selects it; route `default via 203.0.113.1 dev eth0 table 77` (made by static)."
    )


def test_a_long_cause_is_one_card_for_addresses_of_any_length():
    def check(number):
        machine = Fleet().machines["node1"]
        routes = [Route(4, MAIN_TABLE, f"172.17.0.{number + place}", 0, "eth0") for place in range(6)]
        return path_checks.existing_routes_check(machine.want, machine._host(machine.now), routes)

    (card,) = judged(node1=[check(1)], node2=[check(50)], node3=[check(200)])["causes"]
    assert card["hosts"] == ["node1", "node2", "node3"]
    assert card["sentence"].endswith("... (and others like it).")
    assert len(card["sentence"]) < 250

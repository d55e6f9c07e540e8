# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet that is not complete: one broken host or rail stops only itself, a wrong declaration stops the run.

The tests of this file share one fleet and run in their order.
"""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import wait_for
from ansible_collections.railops.rdma.tests.site.conftest import started

HOSTS = ("node1", "node2", "node3", "node4")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Four hosts with two rails."""
    with started("broken", tmp_path_factory.mktemp("broken"), 4, 2) as made:
        made.plan(site_serial=[1, "100%"])
        yield made


def has_rails(fleet, host):
    return "lookup 1001" in fleet.ip(host, "rule")


def other_rule(fleet, verb, *hosts):
    """Add another tool's rule, or delete it."""
    for host in hosts:
        fleet.ip(host, "rule", verb, "fwmark", "7", "lookup", "77", "pref", "10002")


def test_a_broken_host_is_left_out_and_named_and_all_others_are_configured(fleet):
    other_rule(fleet, "add", "node1")
    before = fleet.dump("node1")
    run = fleet.play("hosts", code=2)
    assert "Left out of this run, and not as planned after it:\n  - node1: the existing rule `10002: " in run.output
    assert "Hosts that are not as planned:\n  - node1: the existing rule `10002: " in run.output
    assert {task["host"] for task in run.tasks if task["status"] == "failed"} == {"node1", "localhost"}
    assert [has_rails(fleet, host) for host in HOSTS] == [False, True, True, True]
    assert fleet.dump("node1") == before
    assert fleet.play("site", code=2).changed() == []
    entries = fleet.verdict()["hosts"]
    assert entries["node1"]["status"] == "error"
    assert entries["node1"]["error"].startswith("Left out of the run: the existing rule `10002: ")
    for host in HOSTS[1:]:
        bad = [check for check in entries[host]["checks"] if check["status"] == "deviation"]
        assert {check.get("attributed_to") for check in bad} <= {"node1"}


def test_the_same_problem_on_all_hosts_is_a_wrong_declaration(fleet):
    other_rule(fleet, "add", *HOSTS[1:])
    run = fleet.play("hosts", "-e", "site_max_excluded=100%", code=2)
    other_rule(fleet, "del", *HOSTS)
    assert "Nothing was changed. The run stops here:\n  - The same on every host of the fabric" in run.output


def test_a_host_that_fails_while_it_is_changed_is_named_after_the_others(fleet):
    """Its gateway does not answer, which shows only after the change."""
    kept = [fleet.folder / "verify/fabric" / name for name in ("verdict.prom", "history.json")]
    before = [path.read_bytes() for path in kept]
    for host in ("node2", "node4"):
        gateway = fleet.ip(host, "route", "show", "table", "1001").partition(" via ")[2].split()[0]
        fleet.ip(host, "neigh", "replace", gateway, "dev", "ens1np0", "lladdr", "02:00:00:00:00:99", "nud", "permanent")
    # node1 was left out until now.
    for host in HOSTS[1:]:
        fleet.ip(host, "rule", "del", "pref", "10001")
    words = ("-e", '{"site_serial": 1, "rail_network_gateways": "require", "rail_network_confirm_timeout": 30}')
    run = fleet.play("hosts", *words, code=2)
    # Until its timer ends node2 has the change that it could not confirm.
    wait_for(lambda: has_rails(fleet, "node2"), False)
    others = ("node1", "node3", "node4")
    assert [has_rails(fleet, host) for host in others] == [True, False, False], "stops before the next batch"
    run = fleet.play("hosts", *words, "-e", "site_max_fail_percentage=100", code=2)
    assert [has_rails(fleet, host) for host in others[:2]] == [True, True]
    assert {task["host"] for task in run.tasks if task["status"] == "failed"} >= {"node2", "node4", "localhost"}
    assert "node2: it failed, as shown above." in run.output
    entries = fleet.verdict()["hosts"]
    assert [entry["status"] for entry in entries.values()] == ["not_verified", "error"] * 2
    assert [path.read_bytes() for path in kept] == before
    for host in ("node2", "node4"):
        assert "The change is not confirmed" in entries[host]["error"]
        wait_for(lambda host=host: has_rails(fleet, host), False)
        fleet.ip(host, "neigh", "flush", "dev", "ens1np0", "nud", "permanent")


def test_a_lost_interface_excludes_only_its_rail(fleet):
    """node2 is changed in the same run."""
    for words in ("down", "name dead0"):
        fleet.ip("node2", "link", "set", "ens2np0", *words.split())
    run = fleet.play("hosts", code=2)
    assert "node2: rail2: this host has no interface 'ens2np0'" in run.output
    assert all(has_rails(fleet, host) for host in HOSTS)
    fleet.play("audit", code=2)
    assert fleet.deviations() == [("node2", "rail2", "network_link")]

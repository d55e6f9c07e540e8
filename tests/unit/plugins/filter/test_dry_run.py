# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible import constants, context

from ansible_collections.railops.rdma.plugins.filter.filters import dry_run, reboot_plan
from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok


class Hosts(dict):
    def raw_get(self, name):
        return self[name]


NOTHING = {part: [] for part in ("links", "addresses", "routes", "rules", "sysctls")}
LIVE = {
    "before": {**NOTHING, "links": ["a down", "b up"]},
    "after": {**NOTHING, "links": ["a up", "b up"], "addresses": [1, 2], "rules": [1]},
}
FILE = {"checks": [deviation("persist_file", "f", "missing", "gone", "Run."), ok("persist_file", "g", "g")]}
NETWORK = {"__rail_network_live": LIVE, "__rail_network_files": FILE}
RUN = {"playbook": "site", "limit": "", "tags": ["all"], "skip_tags": []}
WROTE = "  write (rail_network): 1 link, 2 addresses, 1 rule, 1 file"


def lines(hosts, problems=(), command=RUN, answering=None):
    return dry_run(Hosts(hosts), list(hosts), list(hosts) if answering is None else answering, problems, command)


def test_300_equal_hosts_are_one_block_and_the_command_is_the_last_line(monkeypatch):
    monkeypatch.setattr(context, "CLIARGS", {"inventory": tuple(constants.DEFAULT_HOST_LIST)})
    assert lines({f"node{number:03}": NETWORK for number in range(1, 301)}) == [
        "300 of 300 hosts would change. Nothing was changed.",
        "",
        "node[001-300], impact: none",
        WROTE,
        "",
        "Do this:",
        "  impact: none",
        "    ansible-playbook railops.rdma.site",
    ]
    given = {"extra_vars": ("site_serial=1",), "inventory": (f"{os.getcwd()}/lab/my hosts", "/srv/more")}
    monkeypatch.setattr(context, "CLIARGS", given)
    assert lines({"node1": NETWORK})[-3:] == [
        "Do this, with the -e options of this run:",
        "  impact: none",
        "    ansible-playbook -i 'lab/my hosts' -i /srv/more railops.rdma.site",
    ]


def test_problems_come_first_and_hosts_that_change_more_have_a_block_of_their_own():
    driver = {"rdma_driver_result": {"changed": True, "packages": ["rdma-core"], "reboot_required": True}}
    reboot = {"lines": ["drain: cordon the node and move its pods", "reboot: rdma_driver: another kernel module"]}
    lossless = {"changes": ["ens1np0: PFC 0 to 3"], "disruptions": {"ens1np0": ["its link goes down"]}, "notes": ["n"]}
    hosts = {
        "node1": NETWORK,
        "node2": {**NETWORK, **driver, "__rdma_host_reboot": reboot},
        "node3": {"__lossless_roce_result": lossless, "rdma_driver_result": {"skipped": True}},
        "node4": {},
        "node5": {
            "__rail_network_live": {**LIVE, "after": LIVE["before"], "problems": [{"problem": "p.", "fix": "f."}]}
        },
        "node6": {},
    }
    command = {"playbook": "hosts", "limit": "node[1:6] x", "tags": ["rail_network", "reboot"], "skip_tags": []}
    answering = [name for name in hosts if name != "node6"]
    assert lines(hosts, ["node9: gone."], command, answering) == [
        "3 of 6 hosts would change. Nothing was changed.",
        "✗ node9: gone.",
        "✗ node6: no answer",
        "✗ node5: the dry run failed: p. f.",
        "",
        "node[1-2], impact: none",
        WROTE,
        "",
        "node2, impact: reboot",
        "  write (rdma_driver): rdma-core",
        "  drain: cordon the node and move its pods",
        "  reboot: rdma_driver: another kernel module",
        "",
        "node3, impact: rail_restart",
        "  write (lossless_roce): ens1np0: PFC 0 to 3",
        "  restart (lossless_roce): ens1np0: its link goes down",
        "  note (lossless_roce): n",
        "",
        "Do this:",
        "  impact: reboot",
        "    ansible-playbook railops.rdma.hosts --limit 'node[1:6] x' --tags rail_network,reboot",
    ]


def test_a_fleet_as_planned_and_a_run_that_would_stop_have_no_command():
    same = {**NETWORK, "__rail_network_live": {"before": LIVE["after"], "after": LIVE["after"]}}
    same["__rail_network_files"] = {"checks": [ok("persist_file", "g", "g")]}
    as_planned = {"__rdma_host_reboot": reboot_plan({})}
    assert lines({"node1": same, "node2": as_planned}) == ["0 of 2 hosts would change. Nothing was changed."]
    assert "Do this:" not in lines({"node1": NETWORK}, ["a network overlaps."], None)


def test_addresses_do_not_part_hosts_and_many_lines_are_counted():
    hosts = {f"node{number}": {"gpudirect_result": {"notes": [f"10.0.0.{number} waits"]}} for number in (1, 2)}
    assert lines(hosts)[2:4] == ["node[1-2], impact: none", "  note (gpudirect): 10.0.0.1 waits"]
    hosts = {"node1": {"gpudirect_result": {"notes": [f"note {number}" for number in range(27)]}}}
    assert lines(hosts)[0] == "0 of 1 host would change. Nothing was changed."
    assert lines(hosts)[-1] == "  and 3 more"
    hosts = {f"node{number}": {"gpudirect_result": {"notes": [f"n {number * 'x'}"]}} for number in range(20)}
    assert "and 8 more groups of hosts" in lines(hosts)


def test_a_role_without_a_list_of_changes_shows_what_its_checks_found():
    card = {"changed": True, "checks": [deviation("nic_link_type", "IB", "ETH", "", "", object="0000:1b:00")]}
    cycle = {"lines": ["power cycle (nic_link_type): card 0000:1b:00: waits"]}
    assert lines({"node1": {"nic_link_type_result": card, "__rdma_host_reboot": cycle}})[2:5] == [
        "node1, impact: physical",
        "  write (nic_link_type): nic_link_type 0000:1b:00: ETH -> IB",
        "  power cycle (nic_link_type): card 0000:1b:00: waits",
    ]
    assert lines({"node1": {"nic_link_type_result": {"changed": True}}})[3] == (
        "  write (nic_link_type): see its own task with --diff"
    )


@pytest.mark.parametrize("why", [5, None, "ab", {"a": 1}, []])
def test_a_disruption_without_a_list_of_reasons_is_shown_as_invalid(why):
    answer = {"disruptions": {"ens1np0": why, "ens2np0": ["its link goes down"], 3: ["x"]}}
    assert lines({"node1": {"__lossless_roce_result": answer}})[3] == (
        "  restart (lossless_roce): ens1np0: an invalid answer, ens2np0: its link goes down, 3: x"
    )


def test_what_a_host_says_is_one_harmless_line():
    odd = [
        {"before": 5, "after": []},
        {"before": {"links": [[]]}, "after": {"links": ["\x1b[2J"]}},
        {"checks": 7},
        "x",
        {"problems": [{"problem": "\x1b[2J\nPLAY RECAP", "fix": 5}, 7], "failed": True},
        {"changes": ["\x1b[2J", 7, {"a": 1}], "notes": "abc", "disruptions": {"\n": [1, "\x1b"]}, "packages": 7},
    ]
    for answer in odd:
        names = ("__rail_network_live", "__rail_network_files", "rdma_driver_result", "__lossless_roce_result")
        made = lines({"node1": {**dict.fromkeys(names, answer), "__rdma_host_reboot": {"lines": ["\x1b[2J\n", 5]}}})
        assert all(text.isprintable() for text in made), answer

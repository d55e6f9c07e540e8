# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.filter.filters import PARTS, preview_table
from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok


class Hosts(dict):
    def raw_get(self, name):
        return self[name]


NOTHING = {part: [] for part in PARTS}
LIVE = {
    "before": {**NOTHING, "links": ["a down", "b up"]},
    "after": {**NOTHING, "links": ["a up", "b up"], "rules": [1]},
}
FILE = {"checks": [deviation("persist_file", "f", "missing", "gone", "Run."), ok("persist_file", "g", "g")]}


def rows(hosts, answering=None):
    made = preview_table(Hosts(hosts), list(hosts), list(hosts) if answering is None else answering)
    assert made[0].split() == ["host", *PARTS, "files", "packages", "reboot", "also"]
    return [line.split() for line in made[1:]]


def test_numbers_of_what_would_change_equal_hosts_in_one_row():
    whole = {"__rail_network_live": LIVE, "__rail_network_files": FILE, "rdma_driver_result": {"packages": ["p", "q"]}}
    more = {**whole, "__rdma_host_netns": {"changed": True, "reboot_required": True}}
    assert rows({"node1": whole, "node2": whole, "node3": more}) == [
        ["node[1-2]", "1", "0", "0", "1", "0", "1", "2", "no"],
        ["node3", "1", "0", "0", "1", "0", "1", "2", "yes", "rdma_host"],
    ]


def test_what_was_not_asked_or_cannot_be_previewed_is_no_number():
    missing = {"__rail_network_live": {"before": NOTHING, "after": NOTHING, "problems": [{"problem": "no pyroute2"}]}}
    failed = {"__rail_network_live": {"failed": True}, "rdma_driver_result": {"skipped": True}}
    assert rows({"bare": missing, "odd": failed, "gone": {}}, ["bare", "odd"]) == [
        ["bare,", "odd", *["?"] * 5, "-", "-", "no"],
        ["gone", "no", "answer"],
    ]


def test_what_a_host_says_is_counted_and_never_shown():
    odd = [{"before": 5, "after": []}, {"before": {"links": [[]]}, "after": {"links": ["\x1b[2J"]}}, {"checks": 7}, "x"]
    for answer in odd:
        values = {"__rail_network_live": answer, "__rail_network_files": answer, "rdma_driver_result": answer}
        values["gpudirect_result"] = {"changed": "\x1b[2J", "reboot_required": "yes"}
        (row,) = rows({"node1": values})
        assert set(row[1:]) <= {"?", "-", "0", "no"}, answer

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok, skipped, warning
from ansible_collections.railops.rdma.plugins.plugin_utils._report.equal import differing
from ansible_collections.railops.rdma.plugins.plugin_utils._report.verdict import findings


def test_the_page_lists_deviations_and_warnings_once():
    made = [
        ok("network_mtu", 9000, 9000, rail="rail1"),
        skipped("traffic_rdma", "no traffic", rail="rail1"),
        warning("fleet_firmware", "28.2", "28.1", "It is older.", "Update it.", rail="rail1"),
        deviation("network_link", "up", "down", "no carrier", "Look at the cable.", rail="rail1"),
    ]
    verdict = {"hosts": {"node1": {"status": "deviation", "rails": {"rail1": "deviation"}, "checks": made}}}
    assert [(count, where, check["id"]) for count, where, check in findings(verdict)] == [
        (1, "node1 rail1", "network_link"),
        (1, "node1 rail1", "fleet_firmware"),
    ]


@pytest.mark.parametrize(
    ("planned", "observed", "shown"),
    [
        (["a", "b"], ["b", "c"], (["a"], ["c"])),
        (["a", "b"], ["b"], (["a"], [])),
        (["b"], ["b", {"c": 1}], ([], [{"c": 1}])),
        (["a", "b"], ["b", "a"], (["a", "b"], ["b", "a"])),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, ({"a": 1}, {"c": 3})),
        ("up", "down", ("up", "down")),
    ],
)
def test_of_two_lists_or_objects_only_what_differs_is_shown(planned, observed, shown):
    assert differing(planned, observed) == shown


class Compared(int):
    """A number that counts how often it is compared."""

    times = 0

    def __eq__(self, other):
        Compared.times += 1
        return int(self) == int(other)

    __hash__ = int.__hash__


def test_long_lists_are_not_compared_item_by_item():
    rows = [Compared(number) for number in range(2000)]
    assert differing(rows, rows[1000:]) == (rows[:1000], [])
    assert Compared.times < 10_000

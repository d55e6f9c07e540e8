# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.plugin_utils._report.equal import group_diffs


def diff(number: int, more: str = "") -> str:
    return (
        f"--- before: host network\n+++ after: host network\n@@ -1 +1,3 @@\n-link ens1np0 down\n+link ens1np0 up\n"
        f"+address 172.17.{number // 8}.{number % 8 * 32 + 2}/27 dev ens1np0\n+address fd00::{number:x}/64\n{more}\n"
    )


def lines(diffs, shown=True):
    return [line for group in group_diffs(diffs) for line in group.lines(shown=shown)]


def test_300_equal_hosts_are_two_lines():
    hosts = {f"node{number:03}": diff(number) for number in range(1, 301)}
    assert lines(hosts) == [
        "[node001]",
        "[node[002-300]]: the same 4 changes as node001, each with its own addresses",
    ]
    assert lines(dict.fromkeys(hosts, "")) == ["[node[001-300]]"]
    assert lines(dict.fromkeys(hosts, diff(1)))[1] == "[node[002-300]]: the same 4 changes as node001"


def test_hosts_with_another_change_are_a_group_of_their_own_after_the_larger_one():
    hosts = {f"node{number}": diff(number) for number in range(1, 301)}
    for name in ("node1", "node77"):
        hosts[name] += "+rule 10001: from 172.17.0.2 lookup 1001\n"
    assert lines(hosts) == [
        "[node2]",
        "[node[3-76,78-300]]: the same 4 changes as node2, each with its own addresses",
        "[node1]",
        "[node77]: the same 5 changes as node1, each with its own addresses",
    ]
    assert lines(hosts, shown=False) == [
        "[node[2-76,78-300]]: 4 changes more (shown with -v)",
        "[node[1,77]]: 5 changes more (shown with -v)",
    ]


def test_a_diff_with_colors_has_as_many_changes():
    assert (
        group_diffs({"a": "\033[0;32m+link up\033[0m\n\033[0;31m-link down\033[0m\n--- before\n+++ after\n"})[0].changes
        == 2
    )

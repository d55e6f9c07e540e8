# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The defects of the guides' scripts setNicAddr.sh (01 to 21) and setRdmaRule.sh, each as what is right instead.

Each test begins from a host as such a script would find it, and shows what this collection does instead.
"""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, run, want_of

RAILS = 2


@pytest.fixture
def host():
    with Fabric("defect", 1, RAILS) as fabric:
        yield fabric.hosts[0]


def rules(host, family="-4"):
    return [line.split("\t") for line in host.ip(family, "rule").splitlines()]


def routed(host, source, target):
    return host.ip("route", "get", target, "from", source)


# --- setRdmaRule.sh ---------------------------------------------------------------------------------------------------


def test_the_exclusion_rule_is_before_the_rails_rules_and_after_spiderpools_whatever_the_order(host):
    for when in ("before", "after"):
        if when == "before":
            host.ip("rule", "add", "priority", "1000", "lookup", "500")
        host.apply(want_of(0, RAILS, policy="default_route"))
        numbers = [int(line[0][:-1]) for line in rules(host)]
        assert numbers == [0, 1000, 2000, 10001, 10002, 32766, 32767]
    assert ["2000:", "not from all to 172.17.0.0/16 lookup main proto 143"] in rules(host)
    assert ["2000:", "not from all to fd00:17::/32 lookup main proto 143"] in rules(host, "-6")


def test_the_exclusion_rule_sends_what_is_not_rdma_by_main_though_its_source_is_a_rail(host):
    host.apply(want_of(0, RAILS, policy="default_route"))
    assert "dev eth0" in routed(host, "172.17.1.2", "203.0.113.9")
    assert "dev ens2np0" in routed(host, "172.17.1.2", "172.17.77.7")


def test_ipv6_addresses_are_usable_at_once_and_without_carrier(host):
    run("ip", "-n", host.name.replace("-h1", "-core"), "link", "set", "h1r2", "down")
    host.apply(want_of(0, RAILS))
    addresses = [line for line in host.dump()["addresses"] if "fd00:17:2:1::2" in line]
    assert addresses
    assert "tentative" not in addresses[0]
    again = host.apply(want_of(0, RAILS))
    assert not again["changed"]
    wrong = [check for check in again["checks"] if check["status"] == "deviation"]
    assert [(check["rail"], check["observed"]) for check in wrong] == [("rail2", "no carrier")]

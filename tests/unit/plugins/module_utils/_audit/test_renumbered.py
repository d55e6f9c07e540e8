# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that a plan would take from a host, in what the kernel has and in the files of each network manager."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._audit import renumbered
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options

FIRST = [{"address": "172.17.0.2", "subnet": "172.17.0.0/24"}, {"address": "fd00::2", "subnet": "fd00::/64"}]
SECOND = [{"address": "172.17.1.2", "subnet": "172.17.1.0/24"}]
RAILS = [
    {"interface": "ens1", "addresses": FIRST},
    {"interface": "ens2", "vlan": 5, "addresses": SECOND},
]
WANT = parse_options({"rails": RAILS, "rdma_prefixes": ["172.17.0.0/20", "fd00::/48"]})
OWN = {("ens1", "172.17.0.2"), ("ens1", "fd00::2"), ("ens2.5", "172.17.1.2")}


def decide(live=(), ours=()):
    checks, facts = renumbered.checks_of(WANT, {}, set(live), set(ours))
    rows = [(check["rail"], check["observed"], check["planned"]) for check in checks]
    return rows, facts[renumbered.UNPLANNED_ADDRESSES]


@pytest.mark.parametrize(
    ("live", "kept"),
    [
        pytest.param((), (), id="untouched"),
        pytest.param(OWN, OWN, id="as planned"),
        pytest.param({("ens1", "172.17.1.2"), ("ens2.5", "172.17.0.2")}, (), id="its own on another rail"),
        pytest.param({("ens1", "192.168.0.7"), ("ens9", "10.0.0.1"), ("ens1", "fe80::1")}, (), id="of other networks"),
    ],
)
def test_nothing_is_lost(live, kept):
    assert decide(live, kept) == ([], [])


@pytest.mark.parametrize(
    ("live", "kept", "rail"),
    [
        pytest.param(
            [("ens1", "172.17.0.34")], [("ens1", "172.17.0.34")], ("rail1", "172.17.0.34", "172.17.0.2"), id="live"
        ),
        pytest.param([("ens1", "fd00::9")], [("ens1", "fd00::9")], ("rail1", "fd00::9", "fd00::2"), id="live IPv6"),
        pytest.param(
            [], [("ens2.5", "172.17.1.34")], ("rail2", "172.17.1.34", "172.17.1.2"), id="file, interface down"
        ),
        pytest.param([], [("ens1", "10.9.0.2")], ("rail1", "10.9.0.2", "172.17.0.2"), id="file of other networks"),
        pytest.param(
            OWN, [("ens1", "172.17.0.34")], ("rail1", "172.17.0.34", "172.17.0.2"), id="file, the new one is live"
        ),
    ],
)
def test_an_address_that_the_rail_would_lose_is_named_with_the_new_one(live, kept, rail):
    assert decide(live, kept) == ([rail], [rail[1]])


def test_the_controller_compares_addresses_beside_the_planned_one():
    assert decide([*OWN, ("ens1", "172.17.0.30"), ("ens7", "172.17.0.66")]) == ([], ["172.17.0.30", "172.17.0.66"])
    # A manual address in the planned subnet stays, also before the first run.
    assert decide([("ens1", "172.17.0.30")]) == ([], ["172.17.0.30"])


def test_the_remedy_is_part_of_it():
    checks, _facts = renumbered.checks_of(WANT, {}, {("ens1", "172.17.0.34")}, {("ens1", "172.17.0.34")})
    assert "172.17.0.34" in checks[0]["cause"]
    assert "172.17.0.2" in checks[0]["cause"]
    assert "fabric_allow_renumber=true" in checks[0]["fix"]
    assert checks[0]["id"] == "address_renumbered"

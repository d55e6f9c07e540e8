# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Duplicate addresses on a real kernel: another host, a proxy, the gateway itself, and no answer; no cache changes."""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, give, inside, options, run, wait_for

RAILS = 3


def duplicates_of(host, rails):
    result = host.audit({"rails": rails}, "duplicates")
    return {(check["rail"], check["family"]): check for check in result["checks"]}, result["facts"]


def neighbors(name):
    """The address and MAC address of every entry of the caches of a namespace; link-local ones are the NS's."""
    lines = run("ip", "-n", name, "neighbor").splitlines() + run("ip", "-n", name, "-6", "neighbor").splitlines()
    words = [line.split() for line in lines]
    return {
        (word[2], word[0]): word[word.index("lladdr") + 1]
        for word in words
        if "lladdr" in word and not word[0].startswith("fe80:")
    }


def mac(name, interface):
    return run("ip", "netns", "exec", name, "cat", f"/sys/class/net/{interface}/address").strip()


@pytest.fixture
def fabric():
    with Fabric("dup", 3, RAILS) as made:
        made.wants = [options(slot, RAILS, mode="shared")["rails"] for slot in range(3)]
        made.manual([{"rails": rails} for rails in made.wants])
        yield made


def talk(fabric):
    """Fill all caches of all hosts, so that a cache that changed would show."""
    for host in fabric.hosts:
        for other, rails in zip(fabric.hosts, fabric.wants, strict=True):
            for rail in rails:
                for item in rail["addresses"]:
                    for address in (item["gateway"], *([item["address"]] if other is not host else [])):
                        argv = ["ping", "-c1", "-W1", "-I", rail["interface"], address]
                        subprocess.run(["ip", "netns", "exec", host.name, *argv], capture_output=True, check=False)


def test_without_a_duplicate_no_answer_comes_and_no_cache_changes(fabric):
    talk(fabric)
    names = [fabric.core, *(host.name for host in fabric.hosts)]
    before = {name: neighbors(name) for name in names}
    assert all(before.values())
    checks, facts = duplicates_of(fabric.hosts[0], fabric.wants[0])
    assert {check["status"] for check in checks.values()} == {"ok"}
    assert len(checks) == RAILS * 2
    assert {name: neighbors(name) for name in names} == before
    assert facts["macs"]["rail2"] == mac(fabric.hosts[0].name, "ens2np0")


def test_a_host_on_the_same_leaf_is_named_by_its_mac_address(fabric):
    talk(fabric)
    thief, own = fabric.hosts[1], fabric.wants[0]
    # As a host that came up with the wrong address: nothing is announced, so no cache moves before the check.
    for item in own[1]["addresses"]:
        give(thief.name, "ens2np0", item["address"], item["subnet"])
    names = [fabric.core, fabric.hosts[2].name]
    before = {name: neighbors(name) for name in names}
    checks, _facts = duplicates_of(fabric.hosts[0], own)
    bad = {key: check for key, check in checks.items() if check["status"] != "ok"}
    assert set(bad) == {("rail2", 4), ("rail2", 6)}
    for check in bad.values():
        assert check["status"] == "deviation"
        assert check["observed"] == mac(thief.name, "ens2np0")
        assert "another host or pod has the address" in check["cause"]
    assert {name: neighbors(name) for name in names} == before


def test_a_host_that_has_taken_the_gateways_address_is_named(fabric):
    thief = fabric.hosts[1]
    for item in fabric.wants[0][1]["addresses"]:
        give(thief.name, "ens2np0", item["gateway"], item["subnet"])
    for number in (0, 2):
        checks, _facts = duplicates_of(fabric.hosts[number], fabric.wants[number])
        bad = {key: check for key, check in checks.items() if check["status"] == "deviation"}
        assert set(bad) == {("rail2", 4), ("rail2", 6)}
        both = " and ".join(sorted((mac(thief.name, "ens2np0"), mac(fabric.core, "leaf2"))))
        assert {check["observed"] for check in bad.values()} == {both}


def test_a_proxy_at_the_gateway_is_named_as_that(fabric):
    address = fabric.wants[0][0]["addresses"][1]["address"]
    inside(fabric.core, write, "net/ipv6/conf/leaf1/proxy_ndp", "1")
    inside(fabric.core, write, "net/ipv4/conf/leaf1/proxy_arp", "1")
    run("ip", "-n", fabric.core, "neighbor", "add", "proxy", address, "dev", "leaf1")
    checks, _facts = duplicates_of(fabric.hosts[0], fabric.wants[0])
    found = checks.pop(("rail1", 6))
    assert found["status"] == "warning"
    assert "a proxy" in found["cause"]
    assert mac(fabric.core, "leaf1") in found["observed"]
    # Linux' proxy ARP does not answer probes: nothing else may be red.
    assert {check["status"] for check in checks.values()} == {"ok"}


def test_a_gateway_that_has_the_address_itself(fabric):
    for item in fabric.wants[0][2]["addresses"]:
        more = ["/128", "nodad"] if ":" in item["address"] else ["/32"]
        run("ip", "-n", fabric.core, "address", "add", item["address"] + more[0], "dev", "leaf3", *more[1:])
    checks, _facts = duplicates_of(fabric.hosts[0], fabric.wants[0])
    four, six = checks[("rail3", 4)], checks[("rail3", 6)]
    assert (four["status"], six["status"]) == ("warning", "deviation")
    assert "has the address itself" in four["cause"]
    assert "has fd00:17:3::2 itself" in six["cause"]


def test_the_kernels_own_verdict_counts(fabric):
    host, thief = fabric.hosts[0], fabric.hosts[1]
    host.ip("address", "del", "fd00:17:1::2/64", "dev", "ens1np0")
    thief.ip("address", "add", "fd00:17:1::2/64", "dev", "ens1np0", "nodad")
    host.ip("address", "add", "fd00:17:1::2/64", "dev", "ens1np0")
    wait_for(lambda: "dadfailed" in host.ip("address", "show", "dev", "ens1np0"), True)
    checks, _facts = duplicates_of(host, fabric.wants[0])
    assert checks[("rail1", 6)]["observed"] == "refused by the kernel (dadfailed)"


def test_own_rails_in_one_network_are_no_duplicates(fabric):
    # The same leaf for two rails, and a kernel that answers for all its addresses on every interface.
    run("ip", "-n", fabric.core, "link", "set", "h1r2", "master", "leaf1")
    fabric.hosts[0].sysctl("net/ipv4/conf/ens2np0/arp_ignore", "0")
    checks, _facts = duplicates_of(fabric.hosts[0], fabric.wants[0])
    assert {check["status"] for check in checks.values()} == {"ok"}


def test_what_cannot_be_read_is_skipped_with_its_reason(fabric):
    host = fabric.hosts[0]
    run("ip", "-n", fabric.core, "link", "set", "h1r1", "down")
    host.sysctl("net/ipv6/conf/ens2np0/addr_gen_mode", "1")
    host.ip("-6", "address", "flush", "dev", "ens2np0", "scope", "link")
    rails = [*fabric.wants[0], {**fabric.wants[0][2], "name": "rail4", "interface": "ens9np0"}]
    checks, _facts = duplicates_of(host, rails)
    assert "no carrier" in checks[("rail1", 4)]["cause"]
    assert "no link-local address" in checks[("rail2", 6)]["cause"]
    assert checks[("rail2", 4)]["status"] == "ok"
    assert "no such interface" in checks[("rail4", 6)]["cause"]
    assert {checks[key]["status"] for key in checks if key[0] in ("rail1", "rail4")} == {"skipped"}


def write(key, value):
    with open(f"/proc/sys/{key}", "w") as stream:
        stream.write(value)

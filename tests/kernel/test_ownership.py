# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is ours by proof, on a real kernel: others' rules, routes and addresses in our ranges stay or are refused."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, files_of, give, options, save, wait_for

RAILS = 3
MANAGERS = ("netplan", "networkmanager", "networkd")
# A person's own policy routing by a rail, in our ranges; and a rule of the management network there.
OWN_ROUTING = """
link set ens1np0 up
address add 10.66.0.5/24 dev ens1np0
route add 10.66.0.0/16 via 10.66.0.1 dev ens1np0 table 1005 proto static
route add 10.67.0.0/16 via 10.66.0.1 dev ens1np0 metric 105 proto static
rule add from 10.66.0.5 lookup 1005 priority 10005 protocol static
"""
MANAGEMENT = "rule add from 198.51.100.1 lookup 1004 priority 10004\nroute add default via 198.51.100.254 table 1004\n"
PLANNED_NUMBERS = "rule add from 198.51.100.1 lookup 1003 priority 10003\n"


@pytest.fixture
def host():
    with Fabric("proof", 1, RAILS) as made:
        yield made.hosts[0]


def network_of(host):
    """The network of a host, without its links."""
    return {part: rows for part, rows in host.dump().items() if part != "links"}


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("lines", [OWN_ROUTING, MANAGEMENT, PLANNED_NUMBERS])
def test_a_persons_own_policy_routing_is_refused_by_name_and_never_taken(host, lines, applied):
    want = options(0, RAILS)
    if applied:
        host.apply(want)
    host.batch(lines)
    text = host.refused(want)
    for line in lines.splitlines():
        priority = line.partition("priority ")[2].partition(" ")[0]
        if priority:
            assert f"ip rule delete priority {priority} from" in text
    assert ("10.67.0.0/16 via 10.66.0.1 dev ens1np0 metric 105" in text) == (lines == OWN_ROUTING)
    assert ("`nmcli c modify NAME ipv4.route-metric 300`" in text) == (lines == OWN_ROUTING)
    absent = {**want, "state": "absent"}
    assert host.apply(absent, check=True)["changed"] == applied
    assert host.apply(absent)["changed"] == applied
    left = str(host.dump())
    for line in lines.splitlines():
        what = line.partition(" add ")[2].split()
        assert not what or what[1] in left, line


@pytest.mark.parametrize("lines", [OWN_ROUTING, MANAGEMENT, PLANNED_NUMBERS, "address add 172.17.0.2/27 dev ens1np0\n"])
def test_teardown_of_a_host_without_anything_managed_changes_nothing(host, lines):
    host.batch(lines)
    before = host.dump()
    assert not host.apply(options(0, RAILS, state="absent"))["changed"]
    assert not host.apply({"rails": [], "state": "absent"})["changed"]
    assert host.dump() == before


@pytest.mark.parametrize("manager", [None, *MANAGERS])
def test_a_planned_address_that_existed_before_stays(host, own_files, manager):
    """Live, and where a boot has taken our number from what is ours."""
    want = options(0, RAILS)
    host.batch("link set ens1np0 up\naddress add 172.17.0.2/27 dev ens1np0\n")
    before = network_of(host)["addresses"]
    host.apply(want)
    assert not host.apply(want)["changed"]
    if manager:
        save(own_files, files_of(want, manager))
        host.reboot()
        assert not host.apply(want)["changed"]
    for _run in range(2):  # the second one after a run that ended before it removed the files
        host.apply({**want, "state": "absent"})
        after = network_of(host)
        assert after["addresses"] == before
        assert not [line for line in (*after["rules"], *after["routes"]) if "1001" in line]
    assert (own_files / "var/lib/railops-rdma/original-state.json").exists() is bool(manager)
    # Taken away by its owner it is made by us, and goes with us.
    host.ip("address", "del", "172.17.0.2/27", "dev", "ens1np0")
    host.apply(want)
    host.apply({**want, "state": "absent"})
    assert not [line for line in host.dump()["addresses"] if "172.17.0.2/" in line]


def test_an_address_without_protocol_is_ours_where_a_managed_rule_says_so(host):
    """Kernels before 5.18 keep no protocol of an address."""
    want = options(0, RAILS)
    host.apply(want)
    for rail in want["rails"]:
        for item in rail["addresses"]:
            host.ip("address", "del", f"{item['address']}/{item['subnet'].partition('/')[2]}", "dev", rail["interface"])
            give(host.name, rail["interface"], item["address"], item["subnet"])
    host.apply(want)
    host.apply({**want, "state": "absent"})
    assert not [line for line in host.dump()["addresses"] if "172.17." in line or "fd00:17:" in line]


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
@pytest.mark.parametrize("manager", MANAGERS)
def test_objects_of_an_earlier_plan_are_known_after_a_boot(host, own_files, manager, policy):
    """A host with another slot and two rails less: all that it had goes, and nothing of it without the files."""
    old, new = options(0, RAILS, policy=policy), options(3, RAILS, policy=policy)
    del new["rails"][1:]
    new["sysctls"] = {}
    host.apply(old)
    host.reboot()
    assert "10002: from 172.17.1.2 lookup 1002` uses a claimed" in host.refused(new)
    save(own_files, files_of(old, manager))
    assert not host.apply(old)["changed"]
    host.apply(new)
    left = str(network_of(host))
    assert "172.17.1.2" not in left
    assert "172.17.0.2" not in left
    assert "172.17.0.98" in left
    host.apply({**new, "state": "absent"})
    assert "172.17." not in str(network_of(host))


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
@pytest.mark.parametrize("manager", MANAGERS)
def test_teardown_after_a_boot_takes_all_that_our_files_name(host, own_files, manager, policy):
    want = options(0, RAILS, policy=policy)
    before = network_of(host)
    host.apply(want)
    save(own_files, files_of(want, manager))
    host.reboot()
    host.batch(MANAGEMENT)
    host.apply({"rails": [], "state": "absent"})
    host.batch(MANAGEMENT.replace(" add ", " del "))
    assert network_of(host) == before


# --- addresses that end, and where Ansible comes from -----------------------------------------------------------------


def test_a_planned_address_with_a_lifetime_is_set_again_without_one(host):
    want = options(0, RAILS)
    host.batch("link set ens1np0 up\naddress add 172.17.0.2/27 dev ens1np0 valid_lft 9 preferred_lft 9\n")
    host.ip("address", "add", "fd00:17:1:1::2/64", "dev", "ens1np0", "valid_lft", "9", "preferred_lft", "9", "nodad")
    assert "address 172.17.0.2/27 dev ens1np0 dynamic" in host.apply(want, check=True)["diff"]["before"]
    host.apply(want)
    shown = host.ip("address", "show", "dev", "ens1np0")
    assert "172.17.0.2" in shown
    assert "valid_lft 9sec" not in shown
    assert not host.apply(want)["changed"]


def test_a_change_that_is_taken_back_leaves_the_lifetime(host):
    host.batch("link set ens1np0 up\naddress add 172.17.0.2/27 dev ens1np0 valid_lft 900 preferred_lft 900\n")
    before = host.dump()
    token = host.apply({**options(0, RAILS), "confirm_timeout": 1})["token"]
    wait_for(host.dump, before)
    assert "sec" in host.ip("-4", "address", "show", "dev", "ens1np0").partition("valid_lft")[2]
    assert host.module(policy_route, {"confirm": token})["rolled_back"]


def test_a_connection_from_inside_of_a_prefix_is_refused(host):
    environ = {"SSH_CONNECTION": "172.17.9.9 50000 198.51.100.1 22"}
    result = host.module(policy_route, options(0, RAILS), environ=environ)
    assert "Ansible's connection comes from 172.17.9.9, inside of 172.17.0.0/16" in result["msg"]
    beside = {"SSH_CONNECTION": "198.51.100.254 50000 198.51.100.1 22"}
    assert host.apply(options(0, RAILS), environ=beside)["changed"]


def out_of_service(want, *numbers):
    """The plan with some rails (from 0) out of service."""
    rails = [rail for number, rail in enumerate(want["rails"]) if number not in numbers]
    sysctls = {
        key: value for key, value in want["sysctls"].items() if any(f"/{rail['interface']}/" in key for rail in rails)
    }
    return {**want, "rails": rails, "sysctls": sysctls, "out_of_service": [want["rails"][number] for number in numbers]}


@pytest.mark.parametrize("booted", [False, True])
@pytest.mark.parametrize("number", range(RAILS))
def test_a_rail_out_of_service_stays_as_it_is(host, own_files, number, booted):
    """Whatever is on it: ours, what a boot made of that, and a rule and an address of another tool."""
    want = options(0, RAILS)
    host.apply(want)
    if booted:
        save(own_files, files_of(want, "networkd"))
        host.reboot()
    name, own = f"ens{number + 1}np0", 10001 + number
    host.batch(
        f"rule add fwmark 7 lookup 77 priority {own}\naddress add 172.17.200.1/27 dev {name}\n"
        f"link set {name} mtu 1400\n"
    )
    out = out_of_service(want, number)
    before = host.dump()
    result = host.apply(out)
    assert not result["changed"]
    assert {check["status"] for check in result["checks"]} == {"ok"}
    assert f"rail{number + 1}" not in {check["rail"] for check in result["checks"]}
    host.batch(f"rule del priority {10001 + (number + 1) % RAILS}\n")
    assert host.apply(out)["changed"]
    assert host.audit(out, "preflight")["checks"] == []
    if not booted:
        assert host.dump() == before
    host.batch(f"rule del fwmark 7\naddress del 172.17.200.1/27 dev {name}\n")
    assert host.apply(want)["changed"], "its MTU"
    host.apply({**out, "state": "absent"})
    assert not host.apply({"rails": [], "state": "absent"})["changed"]


def test_an_absent_card_may_be_out_of_service(host):
    host.batch("link del ens2np0\n")
    out = out_of_service(options(0, RAILS), 1)
    assert host.apply(out)["changed"]
    assert not host.apply(out)["changed"]
    assert [check for check in host.audit(out, "network", "preflight")["checks"] if check["status"] != "ok"] == []

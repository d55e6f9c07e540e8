# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""policy_route on a real kernel, in network namespaces. What is checked is asked of iproute2 and of counters."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import (
    Fabric,
    call_module,
    drop_capabilities,
    inside,
    options,
    own_sysfs,
    run,
    wait_for,
)

RAILS = 3
CONSOLE = Path(__file__).parents[2] / "docs/troubleshooting/console.md"


@pytest.fixture
def fabric(request):
    name = request.node.name.partition("[")[0][-12:].strip("_").replace("_", "-")
    with Fabric(name, 2, RAILS) as made:
        yield made


@pytest.fixture
def host(fabric):
    return fabric.hosts[0]


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_first_run_changes_second_does_not_and_check_mode_predicts(host, mode, policy):
    want = options(0, RAILS, mode=mode, policy=policy)
    before = host.dump()
    predicted = host.apply(want, check=True)
    assert predicted["changed"]
    assert host.dump() == before
    first = host.apply(want)
    assert first["diff"] == predicted["diff"]
    assert first["diff"]["before"] != first["diff"]["after"]
    after = host.dump()
    second = host.apply(want)
    assert not second["changed"]
    assert second["diff"]["before"] == second["diff"]["after"] == ""
    assert {check["status"] for check in second["checks"]} == {"ok"}
    assert host.dump() == after


def test_ports_that_changed_places_are_refused_until_the_memory_of_them_goes(host, own_files):
    """Found by an attack: two ports came up with each other's names, and the next run gave the addresses to them."""
    want = options(0, RAILS)
    host.apply(want)
    for old, new in (("ens1np0", "other"), ("ens2np0", "ens1np0"), ("other", "ens2np0")):
        host.ip("link", "set", old, "down")
        host.ip("link", "set", old, "name", new)
    text = host.refused(want)
    assert "rail1: ens1np0 has the MAC address" in text
    assert "rail2: ens2np0 has the MAC address" in text
    (rail1, rail2) = want["rails"][:2]
    turned = [{**rail1, "interface": "ens2np0"}, {**rail2, "interface": "ens1np0"}, *want["rails"][2:]]
    assert host.apply({**want, "rails": turned}, check=True)["changed"], "exchanged in the inventory"
    settings = {"policy_route": {"on_conflict": "report"}, "preflight": {"persist": False}}
    for group in ("preflight", "network"):
        checks = host.audit(want, group, settings=settings)["checks"]
        causes = [check["cause"][:13] for check in checks if check["id"] == "network_preflight"]
        assert causes == ["rail1: ens1np", "rail2: ens2np"], group
    (own_files / "var/lib/railops-rdma/rails.json").unlink()
    assert host.apply(want)["changed"]


def test_arp_off_and_a_dormant_port_are_causes(host):
    """802.1X sets the state dormant."""
    want = options(0, RAILS)
    host.apply(want)
    for words in ("ens1np0 arp off", "ens2np0 mode dormant", "ens2np0 state DORMANT"):
        host.ip("link", "set", *words.split())
    links = [check for check in host.apply(want, check=True)["checks"] if check["id"] == "network_link"]
    assert [check["observed"] for check in links] == ["ARP off", "dormant", "up"]


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_traffic_leaves_and_returns_by_its_own_rail(fabric, mode, policy):
    """From every rail address to every rail of the other host, both families, seen in the interfaces' counters."""
    wants = [options(slot, RAILS, mode=mode, policy=policy) for slot in (0, 1)]
    fabric.converge(wants)
    one, two = fabric.hosts
    packets = 20

    def address(number, rail, family):
        items = wants[number]["rails"][rail]["addresses"]
        return next(item["address"] for item in items if (":" in item["address"]) == (family == 6))

    for family in (4, 6):
        for source in range(RAILS):
            for target in range(RAILS):
                ends = address(0, source, family), address(1, target, family)
                ping(one, *ends, 1)
                sent, back = one.counters("tx"), one.counters("rx")
                there, reply = two.counters("rx"), two.counters("tx")
                assert f" {packets} received" in ping(one, *ends, packets)
                for before, now, rail in (
                    (sent, one.counters("tx"), source),
                    (back, one.counters("rx"), source),
                    (there, two.counters("rx"), target),
                    (reply, two.counters("tx"), target),
                ):
                    moved = {name for name in now if now[name] - before[name] >= packets}
                    assert moved == {f"ens{rail + 1}np0"}, (family, source, target)


def ping(host, source, target, count):
    """Send echo requests from an address of a host; return what ping says."""
    words = ["-c", str(count), "-i", "0.002", "-W", "2", "-I", source, target]
    return run("ip", "netns", "exec", host.name, "ping", *words, check=False)


# --- the rules and routes of a default route --------------------------------------------------------------------------


def test_the_exclusion_rule_is_before_the_rails_rules_and_after_spiderpools_whatever_the_order(host):
    for when in ("before", "after"):
        if when == "before":
            host.ip("rule", "add", "priority", "1000", "lookup", "500")
        host.apply(options(0, RAILS, policy="default_route"))
        numbers = [int(line.partition(":")[0]) for line in host.ip("-4", "rule").splitlines()]
        assert numbers == [0, 1000, 2000, *(10001 + rail for rail in range(RAILS)), 32766, 32767]
    assert "2000:\tnot from all to 172.17.0.0/16 lookup main proto 143" in host.ip("-4", "rule")
    assert "2000:\tnot from all to fd00:17::/32 lookup main proto 143" in host.ip("-6", "rule")
    # What is not RDMA goes by main, though its source is a rail.
    assert "dev eth0" in host.ip("route", "get", "203.0.113.9", "from", "172.17.1.2")
    assert "dev ens2np0" in host.ip("route", "get", "172.17.77.7", "from", "172.17.1.2")


def test_ipv6_addresses_are_usable_at_once_and_without_carrier(fabric, host):
    run("ip", "-n", fabric.core, "link", "set", "h1r2", "down")
    host.apply(options(0, RAILS))
    addresses = [line for line in host.dump()["addresses"] if "fd00:17:2:1::2" in line]
    assert addresses
    assert "tentative" not in addresses[0]
    again = host.apply(options(0, RAILS))
    assert not again["changed"]
    wrong = [check for check in again["checks"] if check["status"] == "deviation"]
    assert [(check["rail"], check["observed"]) for check in wrong] == [("rail2", "no carrier")]


# --- others' state ----------------------------------------------------------------------------------------------------


def test_a_rail_may_be_named_by_an_alternative_name(host):
    host.ip("link", "property", "add", "dev", "ens1np0", "altname", "fabric-rail-one")
    host.ip("link", "property", "add", "dev", "ens2np0", "altname", "fabric-rail-number-two")
    want = options(0, RAILS)
    for rail, name in zip(want["rails"], ("fabric-rail-one", "fabric-rail-number-two"), strict=False):
        rail["interface"] = name
    want["sysctls"] = {"net/ipv4/conf/fabric-rail-one/arp_ignore": "1"}
    host.apply(want)
    assert not host.apply(want)["changed"]
    assert host.sysctl("net/ipv4/conf/ens1np0/arp_ignore") == "1"
    assert any("172.17.1.2/27" in line and "ens2np0" in line for line in host.dump()["addresses"])
    want["rails"][1]["interface"] = "ens1np0"
    assert "rail1 already" in host.refused(want)


def test_ipv6_switched_off_is_named_and_taken_back(host):
    host.sysctl("net/ipv6/conf/ens2np0/disable_ipv6", "1")
    before = host.dump()
    result = host.module(policy_route, options(0, RAILS))
    assert "disabled" in result["msg"]
    assert result["fix"]
    assert (result["rolled_back"], host.dump()) == (True, before)


# --- bad inputs: a clear error, and nothing changed -------------------------------------------------------------------


def test_a_port_of_a_bridge_is_no_rail_unless_forced(host):
    host.ip("link", "add", "br0", "type", "bridge")
    host.ip("link", "set", "ens2np0", "master", "br0")
    assert "ens2np0 is a port of br0" in host.refused(options(0, RAILS))
    assert host.apply(options(0, RAILS, force=["ens2np0"]))["changed"]
    # Taking away needs no permission: the address may be from before.
    assert host.apply(options(0, RAILS, state="absent"))["changed"]


def test_without_cap_net_admin_the_error_says_become(host):
    def unprivileged():
        drop_capabilities()
        return call_module(policy_route, {**options(0, 1), "sysctls": {}})

    before = host.dump()
    result = inside(host.name, unprivileged)
    assert result["failed"]
    assert "become" in result["fix"]
    assert result["rolled_back"]
    assert host.dump() == before


# --- the rollback timer -----------------------------------------------------------------------------------------------


@pytest.fixture
def pod(host):
    """A namespace with a macvlan on the first rail, as Spiderpool gives pods one; another one is on the host."""
    name = f"{host.name}-pod"
    host.ip("link", "set", "ens1np0", "mtu", "9000", "up")
    host.ip("link", "add", "a0", "link", "ens1np0", "type", "macvlan")
    host.ip("link", "set", "a0", "mtu", "9000", "up")
    run("ip", "netns", "add", name)
    host.ip("link", "add", "net1", "link", "ens1np0", "netns", name, "type", "macvlan")
    run("ip", "-n", name, "link", "set", "net1", "mtu", "8000", "up")
    yield lambda: json.loads(run("ip", "-n", name, "-j", "link", "show", "net1"))[0]["mtu"]
    run("ip", "netns", "del", name, check=False)


@pytest.mark.usefixtures("pod")
def test_an_mtu_below_that_of_an_upper_device_is_refused_by_name(host):
    text = host.refused(options(0, RAILS))
    assert "9000" in text
    assert "4200 would also lower interfaces stacked on it: a0 with 9000, net1 (" in text
    assert f"{host.name}-pod) with 8000" in text
    want = options(0, RAILS)
    for rail in want["rails"]:
        rail["mtu"] = 9000
    assert host.apply(want)["changed"]


def test_an_upper_device_is_in_the_diff_and_gets_its_mtu_back(host, pod):
    before = host.dump()
    want = {**options(0, RAILS), "adopt_ports": ["ens1np0"]}
    predicted = host.apply(want, check=True)
    result = host.apply({**want, "confirm_timeout": 1})
    assert result["diff"] == predicted["diff"]
    assert "link a0 mtu 9000 up" in result["diff"]["before"]
    assert "link a0 mtu 4200 up" in result["diff"]["after"]
    assert f"link net1 (/run/netns/{host.name}-pod) mtu 8000 up" in result["diff"]["before"]
    assert pod() == 4200
    wait_for(lambda: (host.dump(), pod()), (before, 8000))
    assert host.apply(want)["changed"]
    assert not host.apply(want)["changed"]


def test_a_pod_that_ends_meanwhile_keeps_nothing_from_being_taken_back(host, pod):
    before = host.dump()
    assert pod() == 8000
    host.apply({**options(0, RAILS), "adopt_ports": ["ens1np0"], "confirm_timeout": 2})
    run("ip", "-n", f"{host.name}-pod", "link", "delete", "net1")
    run("ip", "netns", "del", f"{host.name}-pod")
    wait_for(host.dump, before)


def test_a_change_that_fails_keeps_the_upper_devices(host, pod):
    before = host.dump()
    want = {**options(0, RAILS), "adopt_ports": ["ens1np0"]}

    def failing():
        from ansible_collections.railops.rdma.plugins.module_utils._route import run as route_run

        class Full(route_run.Kernel):
            def transact(self, messages):
                if messages[0][0].verb == "add" and "rule" in str(messages[0][0]):
                    raise self.refusal(messages[0][0], 105, "injected")
                return super().transact(messages)

        route_run.Kernel = Full
        return call_module(policy_route, want)

    result = inside(host.name, failing)
    assert result["rolled_back"] is True
    assert (host.dump(), pod()) == (before, 8000)


def test_a_person_on_the_host_can_take_it_back_at_once_or_keep_it(host, own_files):
    """The commands of docs/troubleshooting/console.md, as the page prints them."""

    def console(question):
        row = next(line for line in CONSOLE.read_text().splitlines() if line.startswith(f"| {question} |"))
        assert "/run/railops-rdma/" in row
        run("sh", "-c", row.split("`")[1].replace("/run/railops-rdma", f"{own_files}/run/timers"))

    before = host.dump()
    host.apply({**options(0, RAILS), "confirm_timeout": 60})
    console("Is a change unconfirmed?")
    console("Roll that change back now")
    wait_for(host.dump, before)
    host.apply({**options(0, RAILS), "confirm_timeout": 5})
    after = host.dump()
    console("Keep that change")
    time.sleep(5.5)
    assert host.dump() == after


def test_a_confirmed_change_stays(host):
    result = host.apply({**options(0, RAILS), "confirm_timeout": 5})
    after = host.dump()
    confirmed = host.apply({"confirm": result["token"]})
    assert (confirmed["changed"], confirmed["confirmed"]) == (False, True)
    time.sleep(5.5)
    assert host.dump() == after
    assert host.apply({**options(0, RAILS), "confirm_timeout": 1})["token"] == ""


@pytest.mark.usefixtures("slow_start")
def test_a_timer_that_starts_slowly_leaves_the_full_time(host):
    result = host.apply({**options(0, RAILS), "confirm_timeout": 5})
    assert host.module(policy_route, {"confirm": result["token"]})["confirmed"]


def test_the_timer_brings_back_a_host_whose_management_route_was_removed(host):
    before = host.dump()
    host.apply({**options(0, RAILS), "confirm_timeout": 1})
    host.ip("route", "del", "default")
    wait_for(host.dump, before)


def test_the_timer_takes_the_rest_back_when_an_interface_was_removed(host):
    before = host.dump()
    host.apply({**options(0, RAILS), "confirm_timeout": 2})
    host.ip("link", "delete", f"ens{RAILS}np0")
    wait_for(lambda: host.dump()["rules"], before["rules"])
    gone = f"ens{RAILS}np0"
    wait_for(lambda: host.dump()["routes"], [line for line in before["routes"] if gone not in line])


def test_a_run_cut_off_before_its_confirmation_is_taken_over_by_the_next(host):
    before = host.dump()
    want = {**options(0, RAILS), "confirm_timeout": 60}
    first = host.apply(want)
    assert "waits" in host.module(policy_route, options(0, RAILS))["msg"]
    second = host.apply({**want, "confirm_timeout": 1})
    assert not second["changed"]
    assert second["token"]
    assert second["token"] != first["token"]
    # Unconfirmed again: what comes back is what was before the first.
    wait_for(host.dump, before)


def test_a_timer_that_was_killed_is_reported_and_taken_over(host, own_files):
    before = host.dump()
    token = host.apply({**options(0, RAILS), "confirm_timeout": 600})["token"]
    (state,) = own_files.glob("run/timers/*/*/state.json")
    data = json.loads(state.read_text())
    state.write_text(json.dumps({**data, "deadline": data["deadline"] - 900}))
    assert "does not run" in host.module(policy_route, options(0, RAILS))["msg"]
    assert host.apply({**options(0, RAILS), "confirm_timeout": 1})["token"] not in ("", token)
    wait_for(host.dump, before)


def test_check_mode_arms_no_timer(host):
    assert host.apply({**options(0, RAILS), "confirm_timeout": 1}, check=True)["token"] == ""


@pytest.mark.parametrize("rebooted", [False, True])
def test_the_commands_of_the_guide_take_everything_off_by_hand(host, rebooted):
    begin = "for family in"
    script = begin + CONSOLE.read_text().split(f"```sh\n{begin}")[1].split("```")[0]
    host.apply(options(0, RAILS))
    if rebooted:
        host.reboot()
    host.ip("rule", "add", "priority", "1000", "lookup", "500")
    run("ip", "netns", "exec", host.name, "sh", "-c", script)
    dump = host.dump()
    assert not [line for line in dump["rules"] if line.startswith("100") and not line.startswith("1000:")]
    assert [line for line in dump["rules"] if line.startswith("1000:")]
    assert not [line for line in dump["routes"] if "table 100" in line or "proto 143" in line or "metric 10" in line]


def test_a_dead_card_of_a_rail_without_a_name_leaves_the_other_rails(host, tmp_path):
    """Its rail has only a PCI address, which has no interface any more."""
    want = {**options(0, 2), "sysctls": {}}
    for rail in want["rails"]:
        rail["pci"] = f"0000:{rail['index']}1:00.0"
        (tmp_path / rail["pci"] / "net" / rail.pop("interface")).mkdir(parents=True)

    def call():
        own_sysfs()
        run("mount", "--bind", str(tmp_path), "/sys/bus/pci/devices")
        return call_module(policy_route, want)

    def applied():
        result, again = inside(host.name, call), inside(host.name, call)
        assert not result.get("failed"), result["msg"]
        assert not again["changed"]
        return {(check["rail"], check["id"]): check["fix"] for check in again["checks"] if check["status"] != "ok"}

    assert applied() == {}
    rules = host.dump()["rules"]
    shutil.rmtree(tmp_path / "0000:21:00.0")
    host.batch("link set ens2np0 down\nlink set ens2np0 name dead0\nrule del pref 10001")
    lost = applied()
    assert [*lost] == [("rail2", "network_link")]
    assert lost["rail2", "network_link"].endswith("[interface_lost]")
    assert host.dump()["rules"] == rules
    (tmp_path / "0000:21:00.0/net/ens2np0").mkdir(parents=True)
    assert "[interface_lost]" in applied()["rail2", "network_link"], "the address leads to no interface"
    host.batch("link set dead0 name ens2np0")
    assert applied() == {}
    assert host.dump()["rules"] == rules

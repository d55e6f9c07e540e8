# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The defects of the guides' scripts setNicAddr.sh (01 to 21) and setRdmaRule.sh, each as what is right instead.

Each test begins from a host as such a script would find it, and shows what this collection does instead.
"""

from __future__ import annotations

import inspect
import re

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError, RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._persist import host as persist_host
from ansible_collections.railops.rdma.plugins.module_utils._persist import netplan, networkd, networkmanager
from ansible_collections.railops.rdma.plugins.module_utils._persist import plan as persist
from ansible_collections.railops.rdma.plugins.module_utils._persist import run as persist_run
from ansible_collections.railops.rdma.plugins.module_utils._route.want import parse_want
from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, run, want_of
from ansible_collections.railops.rdma.tests.unit.played_host import PlayedHost

RAILS = 2


@pytest.fixture
def host():
    with Fabric("defect", 1, RAILS) as fabric:
        yield fabric.hosts[0]


def persisted(manager, **more):
    want = parse_want(want_of(0, RAILS, **more))
    names = {rail.name: rail.interface for rail in want.rails}
    return {file.path: file for file in persist.files_of(want, names, manager)}


def rules(host, family="-4"):
    return [line.split("\t") for line in host.ip(family, "rule").splitlines()]


def routed(host, source, target):
    return host.ip("route", "get", target, "from", source)


def test_defect_01_tables_are_fixed_numbers_and_never_reach_the_systems_own(host):
    for table in (*range(151, 180), 252):
        host.ip("rule", "add", "from", "10.9.9.9", "lookup", str(table))
    host.apply(want_of(0, RAILS))
    ours = {line[1].split("lookup ")[1].split()[0] for line in rules(host) if line[0].startswith("1000")}
    assert ours == {"1001", "1002"}


def test_defect_02_routes_without_a_rule_and_ipv6_are_seen(host):
    host.ip("-6", "route", "add", "2001:db8::/32", "dev", "eth0", "table", "1001")
    assert "table 1001" in host.module(policy_route, want_of(0, RAILS))["msg"]


def test_defect_03_a_second_run_changes_nothing_and_takes_no_other_table(host):
    host.apply(want_of(0, RAILS))
    before = host.dump()
    assert not host.apply(want_of(0, RAILS))["changed"]
    assert host.dump() == before


def test_defect_04_peers_in_the_same_subnet_are_reached_directly(host):
    host.apply(want_of(0, RAILS))
    said = routed(host, "172.17.1.2", "172.17.1.9")
    assert "dev ens2np0" in said
    assert "via" not in said
    assert "via 172.17.1.1" in routed(host, "172.17.1.2", "172.17.0.99")


def test_defect_05_ipv6_has_its_rules_and_its_table(host):
    host.apply(want_of(0, RAILS))
    assert ["10002:", "from fd00:17:2:1::2 lookup 1002 proto 143"] in rules(host, "-6")
    assert "via fd00:17:2:1::1 dev ens2np0" in routed(host, "fd00:17:2:1::2", "fd00:17:1:9::2")


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
def test_defect_06_the_default_route_of_the_host_stays_its_own(host, policy):
    before = host.ip("route", "show", "default")
    host.apply(want_of(0, RAILS, policy=policy))
    assert host.ip("route", "show", "default") == before
    assert "dev eth0" in host.ip("route", "get", "203.0.113.1")


def test_defect_07_there_is_one_way_to_name_a_table_and_one_block_of_routes():
    text = persisted("netplan")["/etc/netplan/zz-railops-ens1np0.yaml"].text
    assert text.count("routes:") == 1
    assert text.count("routing-policy:") == 1


@pytest.mark.parametrize("manager", persist.MANAGERS)
def test_defect_08_and_09_no_dhcp_and_nothing_empty_is_written(manager):
    for file in persisted(manager).values():
        assert not re.search(r"(via|from|to|Gateway|From|To|Destination)[:=]\s*$", file.text, re.MULTILINE)
        assert not re.search(r"dhcp[46]: true|DHCP=yes|method=auto", file.text)


def test_defect_10_an_mtu_alone_gives_a_valid_file():
    want = parse_want({"rails": [{"interface": "ens1np0", "mtu": 4200}]})
    files = persist.files_of(want, {"rail1": "ens1np0"}, "netplan")
    text = next(file.text for file in files if file.path.endswith(".yaml"))
    assert "mtu: 4200" in text
    assert "addresses" not in text
    persist.MANAGERS["netplan"].at_boot(PlayedHost(), {file.path: file.text for file in files})


def test_defect_11_every_rule_has_its_priority_whatever_was_there_before(host):
    host.ip("rule", "add", "priority", "1000", "lookup", "500")
    host.ip("rule", "add", "priority", "1999", "from", "10.9.9.9", "lookup", "77")
    host.apply(want_of(0, RAILS))
    priorities = [int(line[0][:-1]) for line in rules(host)]
    assert priorities == [0, 1000, 1999, 10001, 10002, 32766, 32767]


def test_defect_12_a_fault_takes_everything_back_and_files_are_checked_first(host, tmp_path):
    host.ip("route", "add", "172.17.0.0/16", "via", "198.51.100.254")
    before = host.dump()
    assert host.module(policy_route, want_of(0, RAILS))["failed"]
    assert host.dump() == before
    nmcli = tmp_path / "usr/bin/nmcli"
    nmcli.parent.mkdir(parents=True)
    nmcli.write_text("#!/bin/sh\necho no such property >&2\nexit 2\n")
    nmcli.chmod(0o755)
    files = PlayedHost(str(tmp_path))
    with pytest.raises(RdmaError, match="nothing was written: no such property"):
        persist_run.converge(parse_want(want_of(0, RAILS)), files, "networkmanager", check_mode=False)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == [nmcli]


def test_defect_13_networkd_is_told_to_keep_other_programs_rules():
    for manager in ("netplan", "networkd"):
        text = persisted(manager)["/etc/systemd/networkd.conf.d/90-railops.conf"].text
        assert "ManageForeignRoutingPolicyRules=no" in text
        assert "ManageForeignRoutes=no" in text
    for module in (persist_host, persist, persist_run, netplan, networkd, networkmanager):
        assert '"apply"' not in inspect.getsource(module)


def test_defect_14_the_renderer_stays_the_hosts_own():
    assert all("renderer" not in file.text for file in persisted("netplan").values())


def test_defect_15_files_of_others_keep_their_mode_and_text(tmp_path):
    other = tmp_path / "etc/netplan/50-cloud-init.yaml"
    other.parent.mkdir(parents=True)
    other.write_text("network: {version: 2}\n")
    other.chmod(0o644)
    want = parse_want(want_of(0, RAILS))
    persist_run.converge(want, persist_host.Host(str(tmp_path)), "netplan", check_mode=False)
    assert other.stat().st_mode & 0o777 == 0o644
    assert other.read_text() == "network: {version: 2}\n"
    own = tmp_path / "etc/netplan/zz-railops-ens1np0.yaml"
    assert own.stat().st_mode & 0o777 == 0o600


def test_defect_16_infiniband_has_its_own_type_and_no_policy_routes():
    files = persisted("networkmanager", network="infiniband")
    text = files["/etc/NetworkManager/system-connections/railops-ens1np0.nmconnection"].text
    assert "type=infiniband" in text
    assert "transport-mode=connected" in text  # 4200 bytes do not fit into a datagram of IPoIB
    assert "[ethernet]" not in text
    assert "routing-rule" not in text


def test_defect_17_other_profiles_stay_and_ours_wins_at_boot():
    files = persisted("networkmanager")
    text = files["/etc/NetworkManager/system-connections/railops-ens1np0.nmconnection"].text
    assert "id=railops-ens1np0" in text
    assert "autoconnect-priority=999" in text
    assert text.index("method=manual") < text.index("address1=")


def test_defect_18_no_dispatcher_script_is_written():
    for manager in persist.MANAGERS:
        files = persisted(manager, policy="default_route")
        assert not [path for path in files if "dispatcher" in path or path.endswith(".sh")]
    text = persisted("networkmanager")["/etc/NetworkManager/system-connections/railops-ens1np0.nmconnection"].text
    assert "routing-rule1=priority 10001 from 172.17.0.2/32 table 1001" in text


def test_defect_19_the_rdma_prefix_is_in_main_once_per_rail(host):
    host.apply(want_of(0, RAILS))
    lines = host.ip("route", "show", "172.17.0.0/16").splitlines()
    assert [re.search(r"dev (\S+).* metric (\d+)", line).groups() for line in lines] == [
        ("ens1np0", "101"),
        ("ens2np0", "102"),
    ]
    assert "dev ens1np0" in host.ip("route", "get", "172.17.200.1")


def test_defect_20_values_are_checked_and_what_is_not_planned_any_more_goes(host):
    bad = want_of(0, RAILS)
    bad["rails"][0]["addresses"][0]["gateway"] = "172.17.99.1"
    with pytest.raises(InputError, match="outside of the subnet"):
        parse_want(bad)
    host.apply(want_of(0, RAILS))
    host.apply(want_of(4, RAILS))
    dump = host.dump()
    everything = "\n".join(line for part in dump.values() for line in part)
    assert not re.search(r"172\.17\.[01]\.2\b", everything)
    assert "172.17.0.130" in everything


def test_defect_21_all_rails_in_one_call_with_check_mode_and_diff(host):
    predicted = host.apply(want_of(0, RAILS), check=True)
    done = host.apply(want_of(0, RAILS))
    assert predicted["diff"] == done["diff"]
    assert {line.split()[0] for line in done["after"]["links"]} == {"ens1np0", "ens2np0"}


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


def test_another_prefix_replaces_the_exclusion_rule_of_the_old_one(host):
    want = want_of(0, RAILS, policy="default_route", six=False)
    host.apply(want)
    host.apply({**want, "rdma_prefixes": ["172.16.0.0/12"]})
    found = [line[1] for line in rules(host) if line[0] == "2000:"]
    assert found == ["not from all to 172.16.0.0/12 lookup main proto 143"]


def test_an_exclusion_rule_of_someone_else_is_named_and_not_doubled(host):
    host.ip("rule", "add", "not", "to", "172.16.0.0/16", "lookup", "main", "priority", "2000")
    said = host.module(policy_route, want_of(0, RAILS, policy="default_route"))
    assert "rdma-routing.service" in said["fix"] + said["msg"]
    host.apply(want_of(0, RAILS))


def test_nothing_else_runs_at_boot_than_the_network_manager():
    for manager in persist.MANAGERS:
        assert not [path for path in persisted(manager, policy="default_route") if path.endswith(".service")]


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

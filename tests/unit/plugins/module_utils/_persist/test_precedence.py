# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files are for an interface, as the managers' manuals have it; the managers themselves are in tests/kernel."""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._persist import networkd, networkmanager, precedence, sysctl
from ansible_collections.railops.rdma.plugins.module_utils._persist import plan as persist
from ansible_collections.railops.rdma.plugins.module_utils._persist.host import PersistHost
from ansible_collections.railops.rdma.plugins.module_utils._persist.model import Port
from ansible_collections.railops.rdma.plugins.module_utils._programs import ProgramResult
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.plugins.module_utils._route.test_plan import RAIL1
from ansible_collections.railops.rdma.tests.unit.simulated_host import SimulatedHost

MAC = "00:00:5e:00:53:01"
CARD = Port("ens1np0", frozenset({"rail1"}), MAC, MAC, "pci-0000:1a:00.0", "mlx5_core")
VLAN = Port("ens1np0.101", mac=MAC, driver="802.1Q VLAN Support", kind="vlan")
NETWORKS, PROFILES = "/etc/systemd/network", "/etc/NetworkManager/system-connections"


@pytest.mark.parametrize(
    ("match", "card", "vlan"),
    [
        pytest.param("Name=en*", True, True, id="glob"),
        pytest.param("Name=eth0 ens1np0", True, False, id="list"),
        pytest.param("Name=rail1", True, False, id="alternative-name"),
        pytest.param("Name=!lo eth*", True, True, id="all-but"),
        pytest.param("Name=!ens1*", False, False, id="not-this"),
        pytest.param("MACAddress=00-00-5E-00-53-01", True, True, id="address-of-the-vlan-too"),
        pytest.param("PermanentMACAddress=00:00:5e:00:53:01", True, False, id="permanent-address"),
        pytest.param("Path=pci-0000:1a:*", True, False, id="path"),
        pytest.param("Driver=mlx5_core\nType=ether", True, False, id="driver"),
        pytest.param("Name=en*\nType=wlan", False, False, id="every-key-counts"),
        pytest.param("Host=elsewhere", True, True, id="what-is-not-about-interfaces-counts-as-met"),
        pytest.param("", False, False, id="nothing"),
    ],
)
def test_what_a_file_of_networkd_matches(match, card, vlan):
    (profile,) = networkd.profiles({f"{NETWORKS}/50-a.network": f"[Match]\n{match}\n"})
    assert (profile.matches(CARD), profile.matches(VLAN)) == (card, vlan)


def test_a_file_in_etc_hides_its_name_elsewhere_and_files_beside_it_add_to_it():
    texts = {
        "/usr/lib/systemd/network/80-a.network": "[Match]\nName=*\n\n[Network]\nDHCP=yes\n",
        f"{NETWORKS}/80-a.network": "[Match]\nName=*\n\n[Link]\nMTUBytes=1500\n\n[Network]\nVLAN=a b\n",
        "/run/systemd/network/80-a.network.d/x.conf": "[Link]\nMTUBytes=9000\n\n[Route]\nGateway=192.0.2.9\nTable=7\n",
    }
    (profile,) = networkd.profiles(texts)
    assert (profile.path, profile.dhcp) == (f"{NETWORKS}/80-a.network", False)
    assert profile.holds == {"MTU 9000", "VLAN a", "VLAN b", "route 0.0.0.0/0 gateway 192.0.2.9 table 7"}


KEYFILE = "[connection]\nid=a\ntype={}\n{}\n\n[ipv4]\nmethod=auto\n"


@pytest.mark.parametrize(
    ("kind", "more", "card", "vlan"),
    [
        pytest.param("ethernet", "", True, False, id="any"),
        pytest.param("802-3-ethernet", "interface-name=ens1np0", True, False, id="name"),
        pytest.param("ethernet", "\n[ethernet]\nmac-address=00:00:5E:00:53:01", True, False, id="address"),
        pytest.param("ethernet", "\n[match]\ninterface-name=eth*;en*;", True, False, id="globs"),
        pytest.param("ethernet", "\n[match]\ninterface-name=eth*", False, False, id="other-globs"),
        pytest.param("infiniband", "", False, False, id="another-kind"),
        pytest.param("vlan", "interface-name=ens1np0.101", False, True, id="vlan"),
        pytest.param("vlan", "interface-name=ens2np0.101", False, False, id="another-vlan"),
        pytest.param("vlan", "\n[vlan]\nid=101", False, True, id="vlan-without-a-name"),
        pytest.param("vlan", f"\n[ethernet]\nmac-address={MAC[:-1]}2", False, False, id="vlan-of-another-address"),
    ],
)
def test_what_a_profile_of_networkmanager_matches(kind, more, card, vlan):
    (profile,) = networkmanager.profiles({f"{PROFILES}/a": KEYFILE.format(kind, more)})
    assert (profile.matches(CARD), profile.matches(VLAN), profile.dhcp) == (card, vlan, True)


def test_a_profile_that_does_not_come_up_by_itself_and_a_hidden_file_do_not_count():
    never = KEYFILE.format("ethernet", "autoconnect=false")
    assert not list(networkmanager.profiles({f"{PROFILES}/a": never, f"{PROFILES}/.b": KEYFILE.format("ethernet", "")}))


def test_a_file_of_network_scripts_is_a_profile_too():
    text = 'DEVICE="ens1np0"\nONBOOT=yes\nBOOTPROTO=none\nIPADDR=192.0.2.9\nPREFIX=24\nGATEWAY=192.0.2.1\nMTU=9000\n'
    more = "AUTOCONNECT_PRIORITY=7\nMASTER=bond0\n"
    folder = "/etc/sysconfig/network-scripts"
    (profile,) = networkmanager.profiles(
        {f"{folder}/ifcfg-a": text + more, f"{folder}/route-a": "default via 192.0.2.1"}
    )
    assert (profile.matches(CARD), profile.rank, profile.dhcp) == (True, -7, False)
    wanted = {"address 192.0.2.9/24", "route 0.0.0.0/0 gateway 192.0.2.1", "MTU 9000", "port of bond0"}
    assert profile.holds == wanted


@pytest.mark.parametrize(("text", "vlan"), [("VLAN_ID=101\n", True), ("DEVICE=ens2np0.101\n", False)])
def test_a_vlan_of_network_scripts_may_have_no_name(text, vlan):
    path = "/etc/sysconfig/network-scripts/ifcfg-a"
    (profile,) = networkmanager.profiles({path: f"VLAN=yes\nTYPE=Vlan\nONBOOT=yes\nBOOTPROTO=none\nMTU=9000\n{text}"})
    assert (profile.matches(CARD), profile.matches(VLAN), profile.holds) == (False, vlan, {"MTU 9000"})


@pytest.mark.parametrize(
    ("devices", "alone"),
    [
        ("interface-name:ens*np*", True),
        ("ens1np0", True),
        ("interface-name:eth*;mac:00:00:5E:00:53:01", True),
        ("type:ethernet,except:driver:mlx5_core", False),
        ("*,except:type:wifi,except:type:gsm", True),
        ("except:interface-name:eth0", True),
        ("except:interface-name:=ens1np0", False),
        ("interface-name:ens9np0", False),
        ("", False),
    ],
)
def test_a_list_of_devices_that_networkmanager_does_not_manage(devices, alone):
    path = "/etc/NetworkManager/conf.d/a.conf"
    texts = {
        path: f"[keyfile]\nunmanaged-devices={devices}\n",
        "/etc/NetworkManager/conf.d/b.txt": "[device]\nmanaged=0",
    }
    assert networkmanager.leaves_alone(texts, CARD) == (path if alone else "")


def test_networkmanager_s_own_file_comes_between_those_of_run_and_those_of_etc():
    """As `NetworkManager --print-config` of 1.42 says."""
    one, other = (f"[keyfile]\nunmanaged-devices={name}\n" for name in ("ens1np0", "ens9"))
    main = "/etc/NetworkManager/NetworkManager.conf"
    assert networkmanager.leaves_alone({"/run/NetworkManager/conf.d/z.conf": other, main: one}, CARD) == main
    assert not networkmanager.leaves_alone({main: one, "/etc/NetworkManager/conf.d/a.conf": other}, CARD)


def test_the_last_word_of_sysctl_d_by_the_names_of_its_files():
    texts = {
        "/etc/sysctl.d/10-a.conf": "net.ipv4.conf.a.x = 1\n-net.ipv4.conf.b.x=1\n; net.ipv4.conf.c.x=1\n",
        "/usr/lib/sysctl.d/10-a.conf": "net.ipv4.conf.hidden.x = 1\n",
        "/run/sysctl.d/20-b.conf": "net/ipv4/conf/a/x=2\nnet.ipv4.conf.ens1/101.x = 3\n",
        "/etc/sysctl.d/README": "net.ipv4.conf.a.x = 9\n",
    }
    assert {key: (path[-6:], value) for key, (path, value) in sysctl.last_words(texts).items()} == {
        "net/ipv4/conf/a/x": ("b.conf", "2"),
        "net/ipv4/conf/b/x": ("a.conf", "1"),
        "net/ipv4/conf/ens1.101/x": ("b.conf", "3"),
    }


def test_a_setting_without_an_interface_that_another_file_overrides(judged):
    files, key = {"/etc/sysctl.d/99-site.conf": "net.core.rmem_max = 1\n"}, "net/core/rmem_max"
    assert judged(files, [link("ens1np0")], sysctls={key: "2"})["persist_precedence", key][0] == "deviation"


def link(name, **more):
    return {"ifindex": 3, "ifname": name, "link_type": "ether", "address": MAC, "addr_info": [], **more}


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return what a running host of networkd with these files and links makes of a rail."""
    monkeypatch.setattr(PersistHost, "live", True)
    machines.program(tmp_path / "usr/sbin/ip", "")

    def judge(files, links, manager="networkd", **more):
        for path, text in files.items():
            machines.put(tmp_path, path.lstrip("/"), text)
        host = SimulatedHost(str(tmp_path), lambda argv: ProgramResult(0, json.dumps(links), ""))
        options = {key: more.pop(key, {}) for key in ("adopt_ports", "sysctls")}
        want = parse_options({**options, "rails": [{**RAIL1, **more}]})
        names = {"rail1": "ens1np0"}
        ours = persist.files_of(want, names, manager)
        checks, _aside = precedence.precedence_checks(host, manager, want, names, ours)
        return {(check["id"], check.get("object")): (check["status"], check["cause"]) for check in checks}

    return judge


DHCP = {f"{NETWORKS}/80-all.network": "[Match]\nName=en*\n\n[Network]\nDHCP=yes\n"}


@pytest.mark.parametrize(
    ("held", "dynamic", "status"),
    [
        ("198.51.100.7/24", True, "deviation"),
        ("198.51.100.7/24", False, "warning"),
        ("2001:db8:7::9/128", True, "deviation"),
        # By a router's advertisement.
        ("2001:db8:7::9/64", True, "warning"),
    ],
)
def test_dhcp_is_in_the_way_where_it_has_given_an_address(judged, held, dynamic, status):
    local, _slash, length = held.partition("/")
    address = {"family": "inet6" if ":" in local else "inet", "local": local, "prefixlen": int(length)}
    address |= {"dynamic": True} if dynamic else {}
    found = judged(DHCP, [link("ens1np0", addr_info=[address])])
    assert found["persist_existing", "ens1np0"][0] == status
    assert (held in found["persist_existing", "ens1np0"][1]) is (status == "deviation")


@pytest.mark.parametrize("adopt_ports", [[], ["ens1np0"]])
def test_a_profile_of_the_initrd_is_named_with_the_kernel_command_line_and_never_taken_over(judged, adopt_ports):
    path = "/run/NetworkManager/system-connections/default_connection.nmconnection"
    files = {path: KEYFILE.format("ethernet", "autoconnect-priority=-100")}

    found = judged(files, [link("ens1np0")], "networkmanager", adopt_ports=adopt_ports)

    cause = f"ens1np0: the initrd creates {path} at each boot, by the kernel command line."
    assert found == {("persist_precedence", "ens1np0"): ("deviation", cause)}


@pytest.mark.parametrize("interface", ["ens1np0", "rail1"])
def test_a_rail_in_a_vlan_is_queried_for_its_port_and_for_the_vlan(judged, interface):
    files = {f"{NETWORKS}/20-a.network": f"[Match]\nMACAddress={MAC}\n\n[Network]\nAddress=198.51.100.7/24\n"}
    found = judged(files, [link("ens1np0")], interface=interface, vlan=101)
    assert {key: status for key, (status, _cause) in found.items()} == {
        ("persist_precedence", "ens1np0"): "ok",
        ("persist_existing", "ens1np0"): "deviation",
        ("persist_precedence", f"{interface}.101"): "ok",
        ("persist_existing", f"{interface}.101"): "deviation",
    }


def test_a_card_that_still_has_another_name_is_known_by_its_place(judged, tmp_path):
    (tmp_path / "sys/bus/pci/devices/0000:1a:00.0/net/ens5").mkdir(parents=True)
    files = {f"{NETWORKS}/20-a.network": "[Match]\nName=ens5\n\n[Network]\nAddress=198.51.100.7/24\n"}
    found = judged(files, [link("ens5")], pci="0000:1a:00.0")
    assert found["persist_existing", "ens1np0"][0] == "deviation"


@pytest.mark.parametrize(
    "text",
    [
        "iface ens1np0 inet static\n",
        "iface ens1np0:0 inet static\n",
        "iface bond0 inet manual\n  bond-slaves ens9 ens1np0\n",
        "iface br0 inet dhcp\n  bridge_ports ens1np0\n",
        "source /etc/network/site/*.cfg\n",
        "source-directory site\n",
    ],
)
def test_ifupdown_beside_another_manager_is_in_the_way(judged, text):
    more = {"/etc/network/site/a.cfg": "iface ens1np0 inet static\n"} if "source" in text else {}
    found = judged({"/etc/network/interfaces": f"iface lo inet loopback\n{text}", **more}, [link("ens1np0")])
    assert "/etc/network/interfaces" in found["persist_existing", "ens1np0"][1]


RUN = "/run/systemd/network/10-netplan-ens1np0"
MTU = "[Match]\nName=ens1np0\n\n[Link]\nMTUBytes={}\n"


@pytest.fixture
def by_netplan(tmp_path, monkeypatch):
    """Return what deviates where netplan makes these files, without ours and with them."""

    def reported(theirs, ours):
        def at_boot(host, texts):
            return {**texts, **(ours if any("railops" in path for path in texts) else theirs)}

        monkeypatch.setattr(persist.MANAGERS["netplan"], "at_boot", at_boot)
        want, names = parse_options({"rails": [{"interface": "ens1np0", "mtu": 4200}]}), {"rail1": "ens1np0"}
        files = persist.files_of(want, names, "netplan")
        checks, _aside = precedence.precedence_checks(PersistHost(str(tmp_path)), "netplan", want, names, files)
        return [check for check in checks if check["status"] == "deviation"]

    return reported


def test_a_link_file_that_netplan_s_would_hide_is_reported_with_what_it_sets(tmp_path, by_netplan):
    """What netplan makes is as version 0.106 made it (tests/kernel runs the real one)."""
    rings = "[Match]\nOriginalName=ens1*\n\n[Link]\nRxBufferSize=4096\nMTUBytes=1500\n"
    made = {f"{RUN}.link": "[Match]\nOriginalName=ens1np0\n\n[Link]\nWakeOnLan=off\n"}
    made[f"{RUN}.network"] = MTU.format(4200)

    def reported(name, text):
        machines.put(tmp_path, f"etc/systemd/network/{name}", text)
        found = by_netplan({}, made)
        (tmp_path / f"etc/systemd/network/{name}").unlink()
        return [check["cause"] for check in found]

    assert reported("05-rings.link", rings) == []
    (cause,) = reported("50-rings.link", rings)
    assert "/etc/systemd/network/50-rings.link sets RxBufferSize=4096, and" in cause
    # A file by the name alone (OriginalName) is for the port only once it has that name: a name is not lost by it.
    name = "[Link]\nName=ens1np0\nNamePolicy=keep\n"
    assert reported("50-name.link", f"[Match]\nOriginalName=ens*\n\n{name}") == []


def test_setting_in_the_netplan_entry_is_reported(by_netplan):
    """MAAS writes `mtu` into the entry that ours merges with: it cannot be moved there."""
    (reported,) = by_netplan({f"{RUN}.network": MTU.format(9000)}, {f"{RUN}.network": MTU.format(4200)})
    assert "sets MTU 9000" in reported["cause"]
    assert reported["fix"].startswith("It is in the entry 'ens1np0', with which the managed file merges: remove it")

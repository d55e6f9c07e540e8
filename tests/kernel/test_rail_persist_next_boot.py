# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What else decides about a rail at the next boot than the files that are for its port, by the real managers.

A verdict is green only where the boot is: what is refused here is shown to be a boot without the rail. And what others
have set for its port is lost by name, whatever it is, but for what plain installs write.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.railops.rdma.tests.kernel import managers
from ansible_collections.railops.rdma.tests.kernel.managers import MANAGED, boot, mac, needs_managers, wrote

pytestmark = needs_managers

SYSCTLS = {"net/ipv4/conf/ens1np0/rp_filter": "2", "net/ipv4/conf/ens1np0/arp_ignore": "1"}
NETWORKS, CONF = "/etc/systemd/network", "/etc/NetworkManager/conf.d"
PROFILES = "/etc/NetworkManager/system-connections"
DROP_IN = f"{NETWORKS}/0-railops-ens1np0.network.d/mine.conf"
STARTS = "/etc/systemd/system/multi-user.target.wants"


def persist(manager, **more):
    return managers.persist(manager, sysctls=SYSCTLS, **more)


def inspect(manager, **more):
    return {**persist(manager, **more), "check": True}


def verdict(result):
    """Return the status of each of both checks; of a refusal nothing and its text."""
    if "failed" in result:
        return {"persist_precedence": "", "persist_existing": result["failed"]}
    return {check["id"]: check["status"] for check in result["checks"] if check["id"] != "persist_file"}


def netplan(**sections):
    return json.dumps({"network": {"version": 2, **sections}})


def test_plain_installs_get_the_verdict_that_they_had(run_steps):
    plains = yaml.safe_load(Path(__file__).with_name("plain_installs.yml").read_text(encoding="utf-8"))
    steps = [step for one in plains.values() for step in (wrote(one["files"], instead=True), inspect(one["manager"]))]
    found = dict(zip(plains, map(verdict, run_steps(*steps)[1::2]), strict=True))
    why = {name: (found[name]["persist_precedence"], found[name]["persist_existing"]) for name in plains}
    wanted = {name: (one["wins"], one["foreign"]) for name, one in plains.items()}
    shown = {name: (wins, wanted[name][1] if wanted[name][1] in text else text) for name, (wins, text) in why.items()}
    assert shown == wanted


# What networkd knows and ours does not say, as a user's file for the port has it: word in the refusal, and the lines.
SET = {
    "LinkLayerAddress=00:00:5e:00:53:99": "[Neighbor]\nAddress=192.0.2.9\nLinkLayerAddress=00:00:5e:00:53:99",
    "MACsec=macsec0": "[Network]\nMACsec=macsec0",
    "MACAddress=00:00:5e:00:53:77": "[Link]\nMACAddress=00:00:5e:00:53:77",
    "ARP=no": "[Link]\nARP=false",
    "Promiscuous=yes": "[Link]\nPromiscuous=yes",
    "ActivationPolicy=manual": "[Link]\nActivationPolicy=manual",
    "Unmanaged=yes": "[Link]\nUnmanaged=yes",
    "[SR-IOV] VirtualFunction=0": "[SR-IOV]\nVirtualFunction=0\nTrust=yes",
    "DHCPServer=yes": "[Network]\nDHCPServer=yes",
    "IPMasquerade=both": "[Network]\nIPMasquerade=both",
    "DNS=198.51.100.53": "[Network]\nDNS=198.51.100.53",
    "IPv6AcceptRA=yes": "[Network]\nIPv6AcceptRA=yes",
    "[FairQueueing] PacketLimit=9": "[FairQueueing]\nPacketLimit=9",
    "[NextHop] Id=7": "[NextHop]\nId=7\nGateway=192.0.2.9",
    "EmitLLDP=yes": "[Network]\nEmitLLDP=yes",
    "metric 50": "[Route]\nDestination=10.9.0.0/16\nGateway=192.0.2.9\nMetric=50",
}
ENTRY = {
    "DNS=198.51.100.53": {"nameservers": {"addresses": ["198.51.100.53"]}},
    "IPv6AcceptRA=yes": {"accept-ra": True},
    "EmitLLDP=yes": {"emit-lldp": True},
    "LinkLocalAddressing=no": {"link-local": []},
}
KEYS = {
    "[sriov] total-vfs=4": "[sriov]\ntotal-vfs=4",
    "[ethtool] ring-rx=4096": "[ethtool]\nring-rx=4096",
    "[dcb] priority-flow-control-flags=1": "[dcb]\npriority-flow-control-flags=1",
    "[802-1x] eap=tls;": "[802-1x]\neap=tls;\nidentity=host",
    "cloned-mac-address=00:00:5E:00:53:77": "[ethernet]\ncloned-mac-address=00:00:5E:00:53:77",
    "[ipv4] method=shared": "[ipv4]\nmethod=shared",
    "[ipv4] dns=198.51.100.53;": "[ipv4]\nmethod=auto\ndns=198.51.100.53;",
    "[connection] zone=trusted": "",
}
PROFILE = (
    "[connection]\nid=user\nuuid=6f1c0b0e-7d0a-3a5c-9a0b-0d3a1c5f7e12\ntype=ethernet\ninterface-name=ens1np0\n{}\n\n"
)


def test_every_setting_that_ours_does_not_have_is_refused_by_its_name(run_steps):
    user, entry, profile = f"{NETWORKS}/50-user.network", "/etc/netplan/50-user.yaml", f"{PROFILES}/user.nmconnection"
    cases = [("networkd", user, word, f"[Match]\nName=ens1np0\n\n{text}\n") for word, text in SET.items()]
    one = {"match": {"name": "ens1*"}}
    cases += [("netplan", entry, word, netplan(ethernets={"a": {**one, **more}})) for word, more in ENTRY.items()]
    for word, text in KEYS.items():
        cases.append(("networkmanager", profile, word, PROFILE.format("zone=trusted" * ("zone" in word)) + text + "\n"))
    steps = [
        step for manager, path, _word, text in cases for step in (wrote({path: text}, instead=True), inspect(manager))
    ]
    results = run_steps(*steps)[1::2]
    for (_manager, path, word, _text), result in zip(cases, results, strict=True):
        seen = verdict(result)["persist_existing"]
        assert (path in seen, word in seen, "rail_network_adopt_ports" in seen) == (True, True, True), f"{word}: {seen}"


# --- what decides beside ----------------------------------------------------------------------------------------------

# By the file of NetworkManager.conf(5): what leaves the port alone, and what does not.
UNMANAGED = {
    "list": (f"{CONF}/50-site.conf", "[keyfile]\nunmanaged-devices=interface-name:ens*np*\n"),
    "section": (f"{CONF}/50-site.conf", "[device-rails]\nmatch-device=interface-name:ens1np0\nmanaged=0\n"),
    "ubuntu": (
        "/usr/lib/NetworkManager/conf.d/10-globally-managed-devices.conf",
        "[keyfile]\nunmanaged-devices=*,except:type:wifi,except:type:gsm,except:type:cdma\n",
    ),
}


@pytest.mark.parametrize("case", UNMANAGED)
def test_a_device_unmanaged_by_networkmanager_is_no_rail_at_the_next_boot(run_steps, case):
    path, text = UNMANAGED[case]
    _made, before, _wrote, refused, booted = run_steps(
        persist("networkmanager"),
        inspect("networkmanager"),
        wrote({path: text}),
        inspect("networkmanager"),
        boot("networkmanager"),
    )
    assert verdict(before) == {"persist_precedence": "ok", "persist_existing": "ok"}
    assert f"NetworkManager does not manage it ({path})" in refused["failed"]
    assert "192.0.2.2/27" not in booted["links"]["ens1np0"]


def test_device_managed_despite_the_list_is_a_rail(run_steps):
    """The last word, an exception, and a name in /etc that hides the one of the distribution."""
    path, text = UNMANAGED["ubuntu"]
    spared = {
        path: text,
        f"{CONF}/60-rails.conf": "[keyfile]\nunmanaged-devices+=except:interface-name:ens1np0\n",
        f"{CONF}/10-a.conf": "[device]\nmanaged=0\n",
        f"{CONF}/20-b.conf": "[device-b]\nmatch-device=type:ethernet\nmanaged=1\n",
    }
    hidden = {path: text, f"{CONF}/10-globally-managed-devices.conf": ""}
    results = run_steps(
        wrote(hidden),
        persist("networkmanager"),
        boot("networkmanager", MANAGED),
        wrote(spared, instead=True),
        persist("networkmanager"),
        boot("networkmanager", MANAGED),
    )
    for _files, made, booted in (results[:3], results[3:]):
        assert "failed" not in made
        assert set(MANAGED["ens1np0"]) <= set(booted["links"]["ens1np0"])


def test_the_manager_that_the_boot_starts_is_the_one_that_is_written_for(run_steps):
    """/run/NetworkManager is there, networkd is what is enabled, and a file of it has the port."""
    user = f"{NETWORKS}/10-rails.network"
    text = "[Match]\nName=ens1np0\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress=10.66.0.5/24\n"
    there = {user: text, "/run/NetworkManager/x": "", f"{STARTS}/systemd-networkd.service": ""}
    _wrote, refused, _taken, booted = run_steps(
        wrote(there, instead=True), inspect("auto"), persist("auto", adopt_ports=["ens1np0"]), boot("networkd", MANAGED)
    )
    assert (user in refused["failed"], "10.66.0.5/24" in refused["failed"]) == (True, True)
    assert set(MANAGED["ens1np0"]) <= set(booted["links"]["ens1np0"])
    # Written for the other on purpose: what is started beside it takes the port as well.
    _files, refused = run_steps(wrote(there), inspect("networkmanager"))
    assert f"the next boot uses {user} and not" in refused["failed"]
    assert "rail_network_manager" in refused["failed"]


# What the host's netplan gets, the word of the refusal, and what the boot makes of it.
PORT = {"ethernets": {"ens1np0": {}}}
NETPLAN = {
    "manual": ({"ethernets": {"ens1np0": {"activation-mode": "manual"}}}, "ActivationPolicy=manual", "down"),
    "off": ({"ethernets": {"ens1np0": {"activation-mode": "off"}}}, "ActivationPolicy=always-down", "down"),
    "bridge": ({**PORT, "bridges": {"br0": {"interfaces": ["ens1np0"]}}}, "Bridge br0", "master br0"),
    "bond": ({**PORT, "bonds": {"bond0": {"interfaces": ["ens1np0"]}}}, "Bond bond0", "master bond0"),
    "vrf": ({**PORT, "vrfs": {"v0": {"table": 9, "interfaces": ["ens1np0"]}}}, "VRF v0", "master v0"),
}
BOOTED = ("manual", "bridge")


def test_conflicting_netplan_entry_is_refused(run_steps):
    path, steps = "/etc/netplan/50-user.yaml", []
    for sections, _word, _upper in NETPLAN.values():
        steps += [wrote({path: netplan(**sections)}, instead=True), inspect("netplan")]
    for (_sections, word, _upper), result in zip(NETPLAN.values(), run_steps(*steps)[1::2], strict=True):
        if managers.FIRST_PROGRAMS and word == "VRF v0":
            assert f"netplan refuses the files, and nothing was written: {path}" in result.get("failed", "")
            continue
        assert f"{path} outranks" in result.get("failed", ""), word
        assert word in result["failed"]


def test_a_replaced_card_behind_the_mac_address_of_the_old_one_is_named(run_steps):
    """cloud-init, MAAS and installers write the entry by MAC address, and our file merges into it."""
    path, old = "/etc/netplan/50-cloud-init.yaml", "00:00:5e:00:53:99"
    cloud = {address: {"match": {"macaddress": address}, "set-name": "ens1np0"} for address in (mac(1), old)}
    texts = {address: netplan(ethernets={"ens1np0": entry}) for address, entry in cloud.items()}
    _wrote, made, _replaced, refused = run_steps(
        wrote({path: texts[mac(1)]}, instead=True), persist("netplan"), wrote({path: texts[old]}), inspect("netplan")
    )
    assert "failed" not in made
    assert f"{path} matches the MAC address {old}, and the card has {mac(1)}: it was replaced" in refused["failed"]
    assert f"Change the address to {mac(1)} in {path}" in refused["failed"]
    assert "bug" not in refused["failed"]


@pytest.mark.parametrize("case", BOOTED)
def test_refused_netplan_entry_breaks_the_rail_at_boot(run_steps, case):
    sections, _word, upper = NETPLAN[case]
    _made, _wrote, booted = run_steps(
        persist("netplan"), wrote({"/etc/netplan/50-user.yaml": netplan(**sections)}), boot("netplan")
    )
    assert upper in booted["links"]["ens1np0"]


DROP_INS = {
    "Unmanaged=yes": "[Link]\nUnmanaged=yes\n",
    "ActivationPolicy=manual": "[Link]\nActivationPolicy=manual\n",
    "Bridge br0": "[Network]\nBridge=br0\n",
    "networkd ignores": "[Match]\nName=\nName=ens7\n",
}


def test_drop_in_that_removes_settings_is_refused(run_steps):
    steps = [persist("networkd")]
    for text in DROP_INS.values():
        steps += [wrote({DROP_IN: text}), inspect("networkd")]
    steps += [wrote({DROP_IN: "[Network]\nAddress=10.66.0.5/24\n"}), inspect("networkd")]
    results = run_steps(*steps)[2::2]
    for word, result in zip(DROP_INS, results, strict=False):
        assert (DROP_IN in result.get("failed", ""), word in result.get("failed", "")) == (True, True), (word, result)
    assert verdict(results[-1]) == {"persist_precedence": "ok", "persist_existing": "ok"}


def test_refused_drop_in_breaks_the_rail_at_boot(run_steps):
    *_, booted = run_steps(persist("networkd"), wrote({DROP_IN: DROP_INS["Unmanaged=yes"]}), boot("networkd"))
    assert "192.0.2.2/27" not in booted["links"]["ens1np0"]


def test_the_last_word_of_sysctl_d_is_ours_or_is_named(run_steps):
    """What counts is what systemd's own program of the boot sets."""
    site = "/etc/sysctl.d/99-site.conf"
    settings_of = {"do": "settings", "port": "ens1np0", "names": ["rp_filter", "arp_ignore"]}
    lines = "net.ipv4.conf.ens1np0.rp_filter=1\n# x\nnet/ipv4/conf/ens1np0/arp_ignore = 0\n"
    globs = "net.ipv4.conf.*.rp_filter=1\n-net.ipv4.conf.all.rp_filter\nnet.ipv4.conf.ens1np0.arp_ignore = 1\n"
    _made, first, _wrote, refused, broken, _again, fine, kept = run_steps(
        persist("networkd"),
        settings_of,
        wrote({site: lines}),
        inspect("networkd"),
        settings_of,
        wrote({site: globs}),
        inspect("networkd"),
        settings_of,
    )
    assert first["now"] == kept["now"] == {"rp_filter": "2", "arp_ignore": "1"}, kept["output"]
    assert broken["now"] == {"rp_filter": "1", "arp_ignore": "0"}
    settings = re.findall(rf"{site} sets (\S+) = (\d)", refused["failed"])
    assert settings == [("net/ipv4/conf/ens1np0/arp_ignore", "0"), ("net/ipv4/conf/ens1np0/rp_filter", "1")]
    assert verdict(fine) == {"persist_precedence": "ok", "persist_existing": "ok"}

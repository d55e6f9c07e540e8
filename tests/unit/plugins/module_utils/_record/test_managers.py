# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network managers' files are parsed: what readers need comes out as it was, and nothing else does."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._netns.plan import owned_text
from ansible_collections.railops.rdma.plugins.module_utils._persist import netplan, networkd, networkmanager
from ansible_collections.railops.rdma.plugins.module_utils._persist import plan as persist
from ansible_collections.railops.rdma.plugins.module_utils._rdma.host_plan import link_text, modules_text
from ansible_collections.railops.rdma.plugins.module_utils._record import managers
from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub
from ansible_collections.railops.rdma.plugins.module_utils._route.want import parse_want
from ansible_collections.railops.rdma.tests.unit.plugins.module_utils._route.test_plan import PARAMS, RAIL1

VLAN = {"name": "rail2", "interface": "enp65s0f1np1", "vlan": 7}
VLAN["addresses"] = [{"address": "192.0.2.34", "subnet": "192.0.2.32/27"}]
KINDS = {"yaml": "yaml", "network": "ini", "netdev": "ini", "nmconnection": "ini"}
SECRET = "hunter2secret"


@pytest.fixture
def reader():
    return managers.Reader(Scrub("key").allow)


def of_rails(manager, **more):
    want = parse_want({**PARAMS, "rails": [RAIL1, VLAN], **more})
    return persist.files_of(want, {rail.name: rail.interface for rail in want.rails}, manager)


@pytest.mark.parametrize("manager", persist.MANAGERS)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"policy": "default_route"},
        {"network": "infiniband", "rails": [{**RAIL1, "interface": "ibp1s0", "ipoib_mode": "connected"}]},
    ],
)
def test_our_own_files_come_out_as_they_are(reader, manager, more):
    """Whether they are what is wanted is told by their whole text."""
    for file in of_rails(manager, **more):
        if file.text.startswith("#"):
            kind = KINDS.get(file.path.rpartition(".")[2], "ours")
            assert reader.read(kind, file.text) == file.text, file.path


def test_the_other_files_of_ours_come_out_as_they_are(reader):
    texts = [owned_text("shared"), owned_text("exclusive"), modules_text(("ib_uverbs", "rdma_ucm")), *managers.UNITS]
    for text in texts:
        assert reader.read("ours", text) == text
    text = link_text("rail1", "0000:15:00.0", "rail1", "name")
    assert reader.read("ini", text) == text


@pytest.mark.parametrize(
    "text",
    [
        'access-points: {"corp": {\n  mode: infrastructure, password: "SECRET"\n}}',
        "tunnels: {wg0: {\n  mode: wireguard, key: SECRET\n}}",
        "ethernets:\n  eth0:\n    auth:\n      password: |\n        name: SECRET\n",
        "ethernets:\n  eth0:\n    mtu: 9000   # console password: SECRET, call alice@SECRET",
        "wifis:\n  wlan0:\n    access-points:\n      SECRET:\n        mode: infrastructure\n",
        "ethernets:\n  SECRET: {mtu: 9000}\n",
        "ethernets: {eth0: {? [SECRET] : SECRET, set-name: SECRET}}",
        "ethernets: {eth0: {match: &SECRET {name: SECRET}, mtu: !SECRET SECRET}}",
        'ethernets: {eth0: {macaddress: "SECRET", addresses: [SECRET, {SECRET: {label: SECRET}}]}}',
    ],
)
def test_a_secret_is_in_no_place_of_netplan(reader, text):
    done = reader.read("yaml", text.replace("SECRET", SECRET))
    assert SECRET not in done
    assert "hunter" not in done


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("words", "iface eth0 inet static\n  up ip macsec add eth0 rx port 1 key 00 SECRET\n  up ip link set eth0 up"),
        (
            "words",
            "iface eth0 inet static\n  up curl -u svc:SECRET\n  post-up echo SECRET | vpn\n  mode managed key SECRET",
        ),
        ("words", "iface eth0 inet static\n  address 192.0.2.1 \\\n SECRET\n  mtu 9000 # SECRET"),
        (
            "script",
            "TYPE=Wireless; KEY=s:SECRET\nMODE=Managed WPA_PSK=SECRET\nIPADDR=192.0.2.1 # SECRET\nNAME=$(SECRET)",
        ),
        ("ini", "[Match]\nName=eth0\n[WireGuard]\nPrivateKey=\\\nname=SECRET"),
        ("ini", "[wireguard-peer.SECRET]\nendpoint=SECRET:51820\n[SECRET]\nmtu=9000"),
        (
            "ini",
            "[connection]\nid=SECRET VPN\n[vpn]\ngateway=vpn.SECRET.example\n[802-1x]\nidentity=SECRET\nmtu=SECRET",
        ),
        ("ini", "[Link]\nWakeOnLanPassword=SECRET\nAlias=SECRET\nMTUBytes=9000\n; SECRET\nSECRET"),
        ("ours", f"{managers.HEADER}options ib_core netns_mode=0\nEnvironment=TOKEN=SECRET\n# SECRET"),
    ],
)
def test_a_secret_is_in_no_place_of_other_managers(reader, kind, text):
    done = reader.read(kind, text.replace("SECRET", SECRET))
    assert SECRET not in done
    assert "not recorded)" in done or "name-" in done
    assert "up ip" not in done
    assert kind != "words" or "iface eth0 inet static" in done


def test_an_own_name_with_a_strangers_settings_is_filtered_too(reader):
    (file, *_more) = [file for file in of_rails("networkmanager") if file.path.endswith("nmconnection")]
    done = reader.read("ini", f"{file.text}\n[802-1x]\neap=peap;\nidentity=alice\npassword={SECRET}\n")
    assert done.startswith(file.text)
    assert [word for word in ("alice", SECRET, "peap") if word in done] == []


def test_what_readers_need_of_netplan_stays(reader):
    text = """network:
  version: 2
  renderer: networkd
  ethernets:
    "eth1":
      match: {macaddress: "00:00:5e:00:53:01", name: "en*"}
      set-name: eth1
      addresses:
      # the first
      - 192.0.2.7/24
      # the second
      - "2001:db8::7/64"
      nameservers: {search: [corp.example]}
      routes: [{to: default, via: 192.0.2.1, metric: 100}]
  vlans:
    acme-uplink: {id: 7, link: eth1, mtu: 9000}
"""
    done = yaml.safe_load(reader.read("yaml", text))["network"]
    assert "corp" not in str(done["ethernets"]["eth1"].pop("nameservers"))
    assert done["ethernets"]["eth1"] == {
        "match": {"macaddress": "00:00:5e:00:53:01", "name": "en*"},
        "set-name": "eth1",
        "addresses": ["192.0.2.7/24", "2001:db8::7/64"],
        "routes": [{"to": "default", "via": "192.0.2.1", "metric": 100}],
    }
    (name,) = done["vlans"]
    assert done["vlans"][name] == {"id": 7, "link": "eth1", "mtu": 9000}
    assert "acme" not in name


@pytest.mark.parametrize(
    "text",
    [
        "network: {version: 2}\n---\nnetwork: {version: 2}\n",
        "network: [",
        "- a\n",
        "",
        "network: &a [*a]\n",
        "a: &a [1,1,1,1,1,1,1,1]\n"
        + "".join(
            f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n" for a, b in ("ac", "cd", "de", "ef", "fg", "gh")
        ),
        "network: " + "[" * 5000,
    ],
)
def test_yaml_that_is_not_understood_is_left_out(reader, text):
    assert reader.read("yaml", text) in (None, "# (1 not recorded)\n", "# (8 not recorded)\n", "# (7 not recorded)\n")


def test_without_a_yaml_library_netplan_is_left_out(reader, monkeypatch):
    monkeypatch.setattr(managers, "yaml", None)
    assert reader.read("yaml", "network: {version: 2}") is None


def test_profiles_are_the_same_before_and_after(reader):
    """What the next boot would use is judged by these."""
    keyfile = "[connection]\nid=a\ntype=ethernet\ninterface-name=eth0\nautoconnect-priority=5\n[ethernet]\nmtu=9000\n"
    keyfile += "[ipv4]\nmethod=manual\naddress1=192.0.2.7/24,192.0.2.1\nroute1=198.51.100.0/24,192.0.2.9\n"
    keyfile += "route1_options=table=7\nrouting-rule1=priority 7 from 192.0.2.7 table 7\n"
    script = 'DEVICE="eth0"\nBOOTPROTO=none\nIPADDR0=192.0.2.7\nPREFIX0=24\nMTU=9000\nMASTER=bond0\n'
    network = (
        "[Match]\nName=eth* !lo\n[Network]\nAddress=192.0.2.7/24\nVLAN=eth0.7\n[Route]\nGateway=192.0.2.1\nTable=7\n"
    )
    link = "[Match]\nPath=pci-0000:15:00.0\n[Link]\nMTUBytes=9000\nNamePolicy=kernel database onboard slot path\n"
    home, run = networkmanager.FOLDER, "/etc/systemd/network"
    for path, kind, text, profiles in (
        (f"{home}/a.nmconnection", "ini", keyfile, networkmanager.profiles),
        (f"{networkmanager.SCRIPTS}/ifcfg-eth0", "script", script, networkmanager.profiles),
        (f"{run}/10-a.network", "ini", network, networkd.profiles),
        (f"{run}/10-a.link", "ini", link, networkd.profiles),
    ):
        before, after = (next(profiles({path: item})) for item in (text, reader.read(kind, text)))
        assert (before.holds, before.dhcp, before.rank) == (after.holds, after.dhcp, after.rank)
        assert len(before.holds) > 0
        assert path == after.path
    assert netplan.RENDERER.search(reader.read("yaml", "network: {renderer: NetworkManager}")) is not None

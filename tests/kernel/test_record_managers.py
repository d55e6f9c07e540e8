# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts of real network managers are recorded and replayed: the next boot is judged alike, and no secret is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.modules import rail_audit
from ansible_collections.railops.rdma.tests.kernel.managers import (
    DAEMON,
    OURS,
    boot,
    in_managers,
    needs_managers,
    persist,
    wrote,
)
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import call_module
from ansible_collections.railops.rdma.tests.kernel.test_rail_persist_others import (
    NETWORKS,
    PROFILES,
    entry,
    network,
    profile,
)
from ansible_collections.railops.rdma.tests.unit.one_rail import WANT
from ansible_collections.railops.rdma.tests.unit.played_host import PlayedHost, command
from ansible_collections.railops.rdma.tests.unit.replay import Replay, stand_ins, stood_in

pytestmark = needs_managers

KEY, NAMES, SECRET = "key", ["acme-corp"], "hunter2secret"
UUID = "12345678-1234-4678-9234-123456789abc"
VPN = f"[connection]\nid=Acme VPN\nuuid={UUID}\ntype=vpn\n[vpn]\nuser=alice\npassword={SECRET}\n"
WIFI = f"[connection]\nid=acme-corp\ntype=wifi\n[wifi]\nssid=acme-corp\n[wifi-security]\npsk={SECRET}\n"
TUNNEL = f"[NetDev]\nName=wg0\nKind=wireguard\n[WireGuard]\nPrivateKey={SECRET}\n"
ACCESS = {"access-points": {"acme-corp": {"password": SECRET}}}
WIFIS = json.dumps({"network": {"version": 2, "wifis": {"wlan0": {"dhcp4": True, **ACCESS}}}})
BESIDE = {
    "netplan": {"/etc/netplan/50-acme-corp.yaml": WIFIS},
    "networkmanager": {f"{PROFILES}/acme-corp.nmconnection": VPN, f"{PROFILES}/wifi.nmconnection": WIFI},
    "networkd": {f"{NETWORKS}/90-wg.netdev": TUNNEL},
}
FAULTS = {
    "netplan": {"/etc/netplan/50-b.yaml": entry("ens1np0", addresses=["198.51.100.5/24"], mtu=9000)},
    "networkmanager": {f"{PROFILES}/storage.nmconnection": profile("storage", 999, "198.51.100.5/24", "ens1np0")},
    "networkd": {f"{NETWORKS}/0-a.network": network("Name=ens1np0", "Address=198.51.100.5/24", link=["MTUBytes=1500"])},
}


@pytest.mark.parametrize("faulty", [False, True])
@pytest.mark.parametrize("manager", FAULTS)
def test_a_host_of_a_real_manager_is_judged_alike(life, tmp_path, monkeypatch, manager, faulty):
    record = {"do": "record", "daemon": DAEMON[manager], "key": KEY, "names": NAMES}
    files = {**BESIDE[manager], **(FAULTS[manager] if faulty else {})}
    steps = [persist(manager), wrote(files), {**persist(manager), "check": True, "report": True}, record]
    _made, _files, judged, recorded = life(*steps)
    archive, text = recorded["record"], stand_ins(KEY, NAMES)
    said = json.dumps(archive)
    assert [word for word in (SECRET, "hunter2", "alice", "Acme", "acme-corp", "198.51.100.5") if word in said] == []
    (tmp_path / "replay").mkdir()
    replay = Replay(archive, tmp_path / "replay")
    with monkeypatch.context() as patched:
        replay.play(patched)

        host = PlayedHost(str(replay.root), lambda argv, stdin: program(replay, argv, stdin))
        played = host.brought(stood_in(WANT, text), manager, check_mode=True, report=True)
    assert settled(played["checks"]) == settled(stood_in(judged["checks"], text))
    bad = {check["id"] for check in played["checks"] if check["status"] == "deviation"}
    # netplan merges by names, ours last: nothing wins over it, and what they lose by that is said.
    found = {"persist_foreign"} if manager == "netplan" else {"persist_wins", "persist_foreign"}
    assert bad == (found if faulty else set()), played["checks"]


def settled(checks):
    """Return checks without what files of people are called, which has a stand-in."""
    return [(check["id"], check["status"], check["rail"], check["planned"]) for check in checks]


# An NM host's own network, as the daemon left it: what an audit finds of it.
RAILS = {**WANT, "policy": "prefixes", "network": "roce"}
LIVE = {
    "": ([], set()),
    "mtu and rule": (
        [["sh", "-c", "ip link set ens1np0 mtu 1500; ip rule del priority $(ip rule | sed -n 2s/:.*//p)"]],
        {"network_mtu", "network_rules"},
    ),
}


@pytest.mark.parametrize("kind", LIVE)
def test_an_audit_of_a_networkmanager_host_is_replayed(life, tmp_path, monkeypatch, kind):
    after, expected = LIVE[kind]
    params = {**RAILS, "checks": ["network", "persist"], "settings": {}}
    audit = {"do": "audit", "after": after, "params": params}
    record = {"do": "record", "daemon": "networkmanager", "key": KEY, "names": NAMES}
    _made, booted, live, recorded = life(persist("networkmanager"), boot("networkmanager", OURS), audit, record)
    assert set(OURS["ens1np0"]) <= set(booted["links"]["ens1np0"])
    (tmp_path / "replay").mkdir()
    replay, text = Replay(recorded["record"], tmp_path / "replay"), stand_ins(KEY, NAMES)
    with monkeypatch.context() as patched:
        replay.play(patched)
        played = call_module(rail_audit, stood_in(params, text), diff=False)
    assert (live["errors"], replay.lacks) == ([], [])
    assert played["checks"] == stood_in(live["checks"], text)
    assert {check["id"] for check in played["checks"] if check["status"] == "deviation"} == expected


def program(replay, argv, stdin):
    """Run a recorded program; netplan makes files of files: the real one does it of those of the record."""
    if argv[0].endswith("/netplan"):
        *words, root = argv[1:] if "--root-dir" in argv else [*argv[1:], "--root-dir", str(replay.root)]
        paths = ["/usr/bin/env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
        return command([*paths, *in_managers(["netplan", *words, "/mnt"], Path(root))])
    return command([str(replay.programs / argv[0].rpartition("/")[2]), *argv[1:]], stdin)

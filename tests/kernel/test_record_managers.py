# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts of real network managers are recorded and replayed: the next boot is judged alike, and no secret is kept."""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._persist.run import converge
from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub
from ansible_collections.railops.rdma.plugins.module_utils._route.want import parse_want
from ansible_collections.railops.rdma.tests.kernel.managers import needs_managers, persist, wrote
from ansible_collections.railops.rdma.tests.kernel.test_rail_persist_others import NETWORKS, PROFILES, network, profile
from ansible_collections.railops.rdma.tests.unit.one_rail import WANT
from ansible_collections.railops.rdma.tests.unit.played_host import PlayedHost, command
from ansible_collections.railops.rdma.tests.unit.replay import Replay, stood_in

pytestmark = needs_managers

KEY, NAMES, SECRET = "key", ["acme-corp"], "hunter2secret"
UUID = "12345678-1234-4678-9234-123456789abc"
VPN = f"[connection]\nid=Acme VPN\nuuid={UUID}\ntype=vpn\n[vpn]\nuser=alice\npassword={SECRET}\n"
WIFI = f"[connection]\nid=acme-corp\ntype=wifi\n[wifi]\nssid=acme-corp\n[wifi-security]\npsk={SECRET}\n"
TUNNEL = f"[NetDev]\nName=wg0\nKind=wireguard\n[WireGuard]\nPrivateKey={SECRET}\n"
BESIDE = {
    "networkmanager": {f"{PROFILES}/acme-corp.nmconnection": VPN, f"{PROFILES}/wifi.nmconnection": WIFI},
    "networkd": {f"{NETWORKS}/90-wg.netdev": TUNNEL},
}
FAULTS = {
    "networkmanager": {f"{PROFILES}/storage.nmconnection": profile("storage", 999, "198.51.100.5/24", "ens1np0")},
    "networkd": {f"{NETWORKS}/0-a.network": network("Name=ens1np0", "Address=198.51.100.5/24", link=["MTUBytes=1500"])},
}


@pytest.mark.parametrize("faulty", [False, True])
@pytest.mark.parametrize("manager", FAULTS)
def test_a_host_of_a_real_manager_is_judged_alike(life, tmp_path, monkeypatch, manager, faulty):
    record = {"do": "record", "daemon": manager, "key": KEY, "names": NAMES}
    files = {**BESIDE[manager], **(FAULTS[manager] if faulty else {})}
    steps = [persist(manager), wrote(files), {**persist(manager), "check": True, "report": True}, record]
    _made, _files, judged, recorded = life(*steps)
    archive, text = recorded["record"], Scrub(KEY, NAMES).text
    said = json.dumps(archive)
    assert [word for word in (SECRET, "hunter2", "alice", "Acme", "acme-corp", "198.51.100.5") if word in said] == []
    (tmp_path / "replay").mkdir()
    replay = Replay(archive, tmp_path / "replay")
    with monkeypatch.context() as patched:
        replay.play(patched)

        host = PlayedHost(str(replay.root), lambda argv, stdin: program(replay, argv, stdin))
        played = converge(parse_want(stood_in(WANT, text)), host, manager, check_mode=True, report=True)
    assert settled(played["checks"]) == settled(stood_in(judged["checks"], text))
    bad = {check["id"] for check in played["checks"] if check["status"] == "deviation"}
    assert bad == ({"persist_wins", "persist_foreign"} if faulty else set()), played["checks"]


def settled(checks):
    """Return checks without what files of people are called, which has a stand-in."""
    return [(check["id"], check["status"], check["rail"], check["planned"]) for check in checks]


def program(replay, argv, stdin):
    """Run a recorded program."""
    return command([str(replay.programs / argv[0].rpartition("/")[2]), *argv[1:]], stdin)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Traffic on all rails while rail_audit looks at a host, and while it does not: no more loss, no cache changes."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from ansible_collections.railops.rdma.plugins.modules import rail_audit
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import (
    Fabric,
    call_module,
    inside,
    options,
    own_sysfs,
    run,
)

RAILS = 4
PORT = 4791
# Sends a packet to each address every two milliseconds, with the number of the window that it is reported on its input.
SENDER = """
import json, select, socket, sys, time
pairs, sent, window = json.loads(sys.argv[1]), {}, "0"
socks = []
for source, target in pairs:
    sock = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((source, 0))
    socks.append((sock, target))
while True:
    if select.select([sys.stdin], [], [], 0.002)[0]:
        window = sys.stdin.readline().strip()
        if not window:
            break
    for sock, target in socks:
        sock.sendto(window.encode(), (target, int(sys.argv[2])))
        sent[window] = sent.get(window, 0) + 1
print(json.dumps(sent))
"""
RECEIVER = """
import json, select, socket, sys
got, socks = {}, []
for address in json.loads(sys.argv[1]):
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE: a slow reader is not a lost packet
    sock.bind((address, int(sys.argv[2])))
    socks.append(sock)
print("ready", flush=True)
while True:
    for sock in select.select([*socks, sys.stdin], [], [])[0]:
        if sock is sys.stdin:
            print(json.dumps(got))
            sys.exit()
        window = sock.recv(64).decode()
        got[window] = got.get(window, 0) + 1
"""


def start(space: str, script: str, *args: str) -> subprocess.Popen:
    argv = ["ip", "netns", "exec", space, sys.executable, "-c", script, *args]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def caches(fabric: Fabric) -> dict[tuple[str, str, str], str]:
    """The MAC address of every planned address in every cache; link-local ones come by solicitations."""
    found = {}
    for name in (fabric.core, *(host.name for host in fabric.hosts)):
        for line in run("ip", "-n", name, "neighbor").splitlines():
            words = line.split()
            if "lladdr" in words and not words[0].startswith("fe80:"):
                found[(name, words[2], words[0])] = words[words.index("lladdr") + 1]
    return found


def test_looking_costs_no_packet_and_changes_no_neighbor():
    with Fabric("looks", 2, RAILS) as fabric:
        plans = [options(slot, RAILS, mode="shared") for slot in range(2)]
        wants = [plan["rails"] for plan in plans]
        fabric.manual(plans)
        # Both families, from the host that is checked.
        addresses = [[item["address"] for rail in rails for item in rail["addresses"]] for rails in wants]
        receiver = start(fabric.hosts[1].name, RECEIVER, json.dumps(addresses[1]), str(PORT))
        assert receiver.stdout.readline() == "ready\n"
        pairs = json.dumps(list(zip(*addresses, strict=True)))
        sender = start(fabric.hosts[0].name, SENDER, pairs, str(PORT))
        try:
            time.sleep(2)  # window 0 makes the caches
            before, seen = caches(fabric), []
            for turn in range(4):
                looked = turn % 2 == 0
                sender.stdin.write(f"{'with' if looked else 'without'} {turn}\n")
                sender.stdin.flush()
                if looked:
                    seen += inside(fabric.hosts[0].name, look_at_everything, plans[0])
                else:
                    time.sleep(2)
                # A ping of the gateway adds entries; nothing changes one.
                assert before.items() <= caches(fabric).items()
            sent, _error = sender.communicate("\n", timeout=120)
            time.sleep(0.5)
            got, _error = receiver.communicate("\n", timeout=120)
        finally:
            for process in (sender, receiver):
                process.kill()
                process.wait()
    sent, got = json.loads(sent), json.loads(got)
    lost = {
        kind: sum(sent[key] - got.get(key, 0) for key in sent if key.split()[0] == kind) for kind in ("with", "without")
    }
    assert all(count > 500 for key, count in sent.items()), sent
    assert lost["with"] <= lost["without"], (sent, got)
    assert {status for name, status in seen if name in ("address_duplicate", "ping_gateway")} == {"ok"}
    assert {"route_path", "cable_leaf", "port_flaps", "network_rules"} <= {name for name, _status in seen}
    assert len(before) >= RAILS * 2


def look_at_everything(want):
    own_sysfs()
    groups = ["network", "paths", "duplicates", "cabling", "counters", "pings"]
    result = call_module(rail_audit, {**want, "checks": groups})
    assert result["errors"] == []
    return [(check["id"], check["status"]) for check in result["checks"]]

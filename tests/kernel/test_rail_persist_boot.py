# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of rail_persist read by the real network managers, each in a namespace as after a boot.

One host gets the live change, the other the files and the manager: both must end up the same, protocols aside.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.managers import in_managers, needs_managers
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, files_of, options, save

pytestmark = needs_managers

RAILS = 2
# The folder with the host's files is /mnt there.
BEGIN = """
set -e
mount -o remount,ro /sys
sysctl -q -p /mnt/etc/sysctl.d/90-railops-rails.conf
"""
BOOT_NETWORKD = (
    BEGIN
    + """
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp /run/systemd/network /run/udev/data
for number in $(seq 1 200); do echo I:1 > /run/udev/data/n$number; done
chown -R systemd-network: /run/systemd/netif
mount --bind /mnt/etc/systemd /etc/systemd
if [ -d /mnt/run/systemd/network ]; then cp -p /mnt/run/systemd/network/* /run/systemd/network/; fi
exec /lib/systemd/systemd-networkd
"""
)
BOOT_NETWORKMANAGER = (
    BEGIN
    + """
mkdir -p /run/dbus /run/NetworkManager /run/state
dbus-daemon --system --fork --nopidfile --address=unix:path=/run/dbus/system_bus_socket
mount --bind /mnt/etc/NetworkManager /etc/NetworkManager
mount -t tmpfs tmpfs /var/lib/NetworkManager
# Ubuntu's own file there leaves all but wireless alone, and is refused by its name (test_rail_persist_next_boot.py).
mount -t tmpfs tmpfs /usr/lib/NetworkManager/conf.d
exec NetworkManager --no-daemon
"""
)
BOOTS = {"networkd": BOOT_NETWORKD, "netplan": BOOT_NETWORKD, "networkmanager": BOOT_NETWORKMANAGER}


def boot(host, script, root):
    command = ["ip", "netns", "exec", host.name, *in_managers(["sh", "-c", script], root)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(root / "output").open("a"))


def end(process):
    """End the manager as systemd would; what it has started ends with it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    for number in children:
        os.kill(int(number), signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=10)


def comparable(host):
    """The host's dump without protocols, the management interface, and how DAD was switched off."""
    dump = host.dump()
    out = {"links": dump["links"], "rules": dump["rules"]}
    out["addresses"] = [re.sub(r" \[.*\]", "", line) for line in dump["addresses"] if "eth0" not in line]
    out["routes"] = [line for line in dump["routes"] if "eth0" not in line]
    # What networkd makes beside the same entry of protocol 143 stands there twice and does the same.
    return {key: sorted({re.sub(r" proto \S+", "", line).strip() for line in lines}) for key, lines in out.items()}


@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
@pytest.mark.parametrize(("manager", "script"), BOOTS.items(), ids=BOOTS)
def test_the_manager_brings_the_same_host_back(own_files, manager, script, policy):
    root, want = own_files, options(0, RAILS, policy=policy)
    with Fabric(f"boot-{manager[:8]}", 2, RAILS) as fabric:
        live, booted = fabric.hosts
        live.apply(want)
        save(root, files_of(want, manager))
        if manager == "netplan":
            subprocess.run(in_managers(["netplan", "generate", "--root-dir", "/mnt"], root), check=True)
        wanted = comparable(live)
        # The booted host has the same addresses, and NetworkManager looks for duplicates.
        for rail in want["rails"]:
            live.ip("link", "set", rail["interface"], "down")
        process = boot(booted, script, root)
        try:
            until = time.monotonic() + 90
            while comparable(booted) != wanted and time.monotonic() < until and process.poll() is None:
                time.sleep(0.3)
            assert comparable(booted) == wanted, (root / "output").read_text()
            again = booted.module(policy_route, want)
            assert not again.get("failed"), again["msg"]
            assert not again["changed"], again["diff"]
        finally:
            end(process)
        assert "tentative" not in booted.ip("address", "show", "scope", "global")
        # What is there because of the files is still ours to take away.
        gone = booted.module(policy_route, {**want, "state": "absent"})
        assert not gone.get("failed"), gone["msg"]
        assert not [line for line in booted.dump()["rules"] if re.match(r"(2000|100\d\d):", line)]


def test_a_restart_of_networkd_keeps_everybodys_rules_and_routes(tmp_path):
    """What the drop-in is for: without it, networkd removes rules and routes that it has not made."""
    foreign = [
        "rule add priority 1000 lookup 500",
        "route add 172.17.0.99/32 dev eth0 table 500",
        "rule add from 10.9.0.0/16 lookup 77 priority 151",
    ]
    want = options(0, RAILS)
    with Fabric("restart", 1, RAILS) as fabric:
        (host,) = fabric.hosts
        for line in foreign:
            host.ip(*line.split())
        host.apply(want)
        save(tmp_path, files_of(want, "networkd"))
        before = comparable(host)
        for _restart in range(2):
            process = boot(host, BOOT_NETWORKD, tmp_path)
            time.sleep(4)
            assert process.poll() is None, (tmp_path / "output").read_text()
            assert comparable(host) == before
            end(process)
        assert comparable(host) == before
        # Twice or not, all of it goes.
        assert not host.module(policy_route, want)["changed"]
        host.apply({**want, "state": "absent"})
        left = comparable(host)
        assert not [line for line in left["rules"] if re.match(r"100\d\d:", line)]
        assert not [line for line in left["routes"] if "table 100" in line or "metric 10" in line]
        assert len([line for line in left["rules"] if line.startswith(("1000:", "151:"))]) == 2

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's life between its files and its boots, with the real network managers: run by the host's own Python.

Reads /mnt/steps.json and writes /mnt/results.json. It runs in a system of its own (managers.py), whose /etc it replaces
by a copy that it may write, in the network namespace of its parent. A boot is a manager's own start: it makes of
the files what it makes of them on any host, and nothing else sets an address.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.tests.unit.simulated_host import SimulatedHost, command

OWN_FOLDERS = ("/etc/netplan", "/etc/systemd/network", "/etc/NetworkManager/system-connections")
OWN_FOLDERS += ("/var/lib/railops-rdma/kept",)
# What others than the rails' files are in; those of daemons that are at work among them.
MORE_FOLDERS = ("/etc/NetworkManager/conf.d", "/usr/lib/NetworkManager/conf.d", "/etc/sysctl.d", "/run/systemd/netif")
MORE_FOLDERS += ("/run/NetworkManager", "/run/netplan", "/etc/network", "/etc/sysconfig")
MORE_FOLDERS += ("/etc/systemd/system/multi-user.target.wants",)
NETWORKD = ["/lib/systemd/systemd-networkd"]
NETWORKMANAGER = ["NetworkManager", "--no-daemon"]
SETTLES = 45
CALM = 8


def prepare() -> None:
    shutil.copytree("/etc", "/run/etc", symlinks=True)
    for argv in (
        ["mount", "--bind", "/run/etc", "/etc"],
        ["mount", "-t", "tmpfs", "tmpfs", "/var/lib"],
        ["mount", "-t", "tmpfs", "tmpfs", "/usr/lib/NetworkManager/conf.d"],
        # As in a container: no wait for udev, which does not run.
        ["mount", "-o", "remount,ro", "/sys"],
    ):
        subprocess.run(argv, check=True)
    for folder in OWN_FOLDERS[:3]:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)


def files() -> dict[str, list]:
    """Return every file of the folders that managers read, with its mode."""
    found = {}
    for folder in OWN_FOLDERS:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_symlink():
                found[str(path)] = [os.readlink(path), 0o777]
            elif path.is_file():
                found[str(path)] = [path.read_text(), path.stat().st_mode & 0o777]
    return found


def write(step: dict) -> dict:
    """Write others' files; `instead` of all that was there before."""
    if step.get("instead"):
        for folder in (*OWN_FOLDERS, *MORE_FOLDERS):
            for path in map(str, Path(folder).glob("*")):
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    for path, content in step["files"].items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(content)
        # networkd reads them as a user of its own.
        os.chmod(path, 0o644 if "/systemd/" in path else 0o600)
    return {"files": files()}


def persist(step: dict) -> dict:
    try:
        options = {"check_mode": step.get("check", False), "report": step.get("report", False)}
        result = SimulatedHost().brought(step["want"], step["manager"], **options)
    except RdmaError as exc:
        return {"failed": str(exc), "files": files()}
    return {**result, "files": files()}


def links() -> dict[str, list[str]]:
    """Return what each interface has: its addresses, its MTU and its upper devices."""
    found = {}
    for link in json.loads(command(["ip", "-json", "address", "show"]).out):
        held = [
            f"{item['local']}/{item['prefixlen']}" for item in link.get("addr_info", ()) if item["scope"] == "global"
        ]
        upper = [f"master {link['master']}"] if "master" in link else []
        down = [] if "UP" in link["flags"] else ["down"]
        found[link["ifname"]] = sorted([*held, *upper, *down, f"mtu {link['mtu']}"])
    for route in json.loads(command(["ip", "-json", "route", "show", "table", "all"]).out):
        if route.get("type", "unicast") == "unicast" and route.get("protocol") != "kernel":
            found[route["dev"]].append(f"route {route['dst']}")
    return found


def known(daemon: str) -> bool:
    """Whether a manager has decided about every link."""
    if daemon != "networkd":
        result = command(["nmcli", "-t", "-f", "STATE", "device"])
        return not result.status and not re.search(r"connecting \((prepare|configuring)", result.out)
    states = [path.read_text() for path in Path("/run/systemd/netif/links").iterdir()]
    return bool(states) and not any(re.search("ADMIN_STATE=(pending|initialized)", text) for text in states)


def boot(step: dict) -> dict:
    """Start the manager on a network without a configuration until all that is expected is there; end it."""
    for link in json.loads(command(["ip", "-json", "-details", "link", "show"]).out):
        name, kind = link["ifname"], link.get("linkinfo", {}).get("info_kind", "")
        if kind not in ("veth", ""):
            command(["ip", "link", "delete", name])
        if kind == "veth" and not name.startswith("far"):
            for argv in (["address", "flush", "dev", name], ["link", "set", name, "mtu", "1500", "down"]):
                command(["ip", *argv])
    for folder in ("/run/systemd/network", "/run/systemd/netif", "/run/NetworkManager"):
        shutil.rmtree(folder, ignore_errors=True)
    if os.listdir("/etc/netplan"):
        done = command(["netplan", "generate"])
        assert not done.status, done
    if step["daemon"] == "networkd":
        for name in ("links", "leases", "lldp"):
            os.makedirs(f"/run/systemd/netif/{name}")
        command(["chown", "-R", "systemd-network:", "/run/systemd/netif"])
        # Ubuntu's waits for udev though /sys is read-only: by udev's own note each link has been seen.
        os.makedirs("/run/udev/data", exist_ok=True)
        for number in range(1, 200):
            Path(f"/run/udev/data/n{number}").write_text("I:1\n")
        argv = NETWORKD
    else:
        os.makedirs("/run/NetworkManager", exist_ok=True)
        if not os.path.exists("/run/dbus"):
            os.makedirs("/run/dbus")
            address = "--address=unix:path=/run/dbus/system_bus_socket"
            subprocess.run(["dbus-daemon", "--system", "--fork", "--nopidfile", address], check=True)
        os.makedirs("/var/lib/NetworkManager", exist_ok=True)
        argv = NETWORKMANAGER
    with open("/mnt/output", "a") as log:
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=log)
    until = time.monotonic() + SETTLES
    try:
        before, calm = None, 0
        while time.monotonic() < until and process.poll() is None:
            found = links()
            if step["expect"] and all(set(held) <= set(found.get(name, ())) for name, held in step["expect"].items()):
                break
            # Without expected results: until the manager has seen all links and nothing happened for a while.
            calm = calm + 1 if found == before and known(step["daemon"]) else 0
            if not step["expect"] and calm > CALM:
                break
            before = found
            time.sleep(0.3)
        return {"links": links(), "ended": process.poll()}
    finally:
        process.terminate()
        process.wait(timeout=120)


def udev(step: dict) -> dict:
    """Return the .link file that udev takes for a port."""
    assert not command(["netplan", "generate"]).status
    done = command(["udevadm", "test-builtin", "net_setup_link", f"/sys/class/net/{step['port']}"])
    return {"file": re.findall(r"ID_NET_LINK_FILE=(\S+)", done.out + done.err), "output": done.err}


def settings(step: dict) -> dict:
    """Return what systemd's own program of the boot makes of sysctl.d for a port."""
    place = f"/proc/sys/net/ipv4/conf/{step['port']}"
    done = command(["/lib/systemd/systemd-sysctl", f"--prefix={place[9:]}"])
    return {"output": done, "now": {name: Path(place, name).read_text().strip() for name in step["names"]}}


def main() -> None:
    prepare()
    steps = {"files": write, "persist": persist, "boot": boot, "udev": udev, "settings": settings}
    results = [steps[step["do"]](step) for step in json.loads(Path("/mnt/steps.json").read_text())]
    Path("/mnt/results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    sys.exit(main())

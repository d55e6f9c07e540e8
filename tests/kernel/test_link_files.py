# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which .link file is for a port: what rdma_host makes of the files, held against the real udev."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._rdma.host_model import LinkFile, Netdev
from ansible_collections.railops.rdma.plugins.module_utils._rdma.host_plan import link_text
from ansible_collections.railops.rdma.plugins.module_utils._rdma.link_files import applicable
from ansible_collections.railops.rdma.plugins.module_utils._systemd import sections
from ansible_collections.railops.rdma.tests.kernel.managers import in_managers, mac, needs_managers

FOLDER = "/run/systemd/network"
# Runs in a system of its own: for each host's files, what udev takes for the port and what it complains of.
ASK = """
import json, pathlib, shutil, subprocess
folder, found = pathlib.Path("/run/systemd/network"), []
for files in json.loads(pathlib.Path("/mnt/hosts.json").read_text()):
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    argv = ["udevadm", "test-builtin", "net_setup_link", "/sys/class/net/ens1np0"]
    done = subprocess.run(argv, capture_output=True, text=True)
    rows = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    complaints = [line for line in done.stderr.splitlines() if "/run/systemd/network" in line and "nknown" in line]
    found.append([rows["ID_NET_LINK_FILE"], complaints])
pathlib.Path("/mnt/found.json").write_text(json.dumps(found))
"""
LINK = "\n[Link]\nMTUBytes=2000\n"
MATCHES = [
    "MACAddress=00:00:5e:00:53:01",
    "MACAddress=00:00:5e:00:53:09 00-00-5E-00-53-01",
    "MACAddress=00:00:5e:00:53:09",
    "Driver=ve*",
    "Driver=!veth",
    "Driver=mlx5_core veth",
    "Type=ether",
    "Type=infiniband",
    "Type=!infiniband loopback",
    "OriginalName=*",
    "OriginalName=ens1*",
    "OriginalName=wl*",
    "Type=ether\nDriver=mlx5_core",
    "Driver=mlx5_core\nDriver=veth",
    "Driver=mlx5_core\nDriver=\nType=ether",
    "Path=pci-0000:ff:*",
    "Driver=veth \\\n mlx5_core",
]
HOSTS = [
    *({"10-theirs.link": f"[Match]\n{match}\n{LINK}"} for match in MATCHES),
    {"20-late.link": f"[Match]\nType=ether\n{LINK}", "10-early.link": f"# none\n[Match]\nDriver=veth\n{LINK}"},
    {"10-theirs.link": f"[Match]\nType=ether\n{LINK}", "10-theirs.link.d/more.conf": "[Match]\nDriver=mlx5_core\n"},
    {"10-theirs.link": ""},
]


@pytest.fixture
def udev(tmp_path):
    """Return what the real udev takes for a port of each of some hosts' files."""
    name = f"rr-link-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        words = ["link", "add", "ens1np0", "address", mac(1), "type", "veth", "peer", "name", "far1"]
        subprocess.run(["ip", "-n", name, *words], check=True)

        def udev_properties(hosts):
            (tmp_path / "hosts.json").write_text(json.dumps(hosts), encoding="utf-8")
            argv = ["ip", "netns", "exec", name, *in_managers(["python3", "-c", ASK], tmp_path)]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
            return json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))

        yield udev_properties
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def applied(files):
    """Return the file that rdma_host takes for the one of the port."""
    device = Netdev("ens1np0", "0000:00:00.0", mac=mac(1), driver="veth")
    parts = {name: text for name, text in files.items() if ".d/" not in name and text}
    more = {name: [files[part] for part in files if part.startswith(f"{name}.d/")] for name in parts}
    found = [
        LinkFile(f"{FOLDER}/{name}", [section for item in (text, *more[name]) for section in sections(item)])
        for name, text in parts.items()
    ]
    return applicable(found, device)


@needs_managers
def test_the_file_whose_settings_are_kept_is_the_one_that_udev_takes(udev):
    for files, (taken, _complaints) in zip(HOSTS, udev(HOSTS), strict=True):
        mine = applied(files)
        assert (mine.path if mine else None) == (taken if taken.startswith(FOLDER) else None), files


@needs_managers
def test_udev_takes_our_file_with_their_settings(udev):
    theirs = "[Match]\nType=ether\n[Link]\nNamePolicy=keep\nMTUBytes=2000\nGenericReceiveOffload=no\n"
    theirs += "AlternativeNamesPolicy=mac\n[SR-IOV]\nVirtualFunction=0\n"
    files = {"10-theirs.link": theirs}
    text = link_text("rail1", "0000:00:00.0", "roce1", applied(files))
    assert "MTUBytes=2000\n" in text
    # The port is on no PCI bus.
    text = text.replace("Path=pci-0000:00:00.0", f"MACAddress={mac(1)}")
    assert udev([{**files, "05-railops-rail1.link": text}]) == [[f"{FOLDER}/05-railops-rail1.link", []]]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of rail_persist read by the tools that own their formats: `netplan generate` and `nmcli --offline`."""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.railops.rdma.tests.kernel.managers import FIRST_PROGRAMS, in_managers, needs_managers
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import files_of, save
from ansible_collections.railops.rdma.tests.unit.machines import put
from ansible_collections.railops.rdma.tests.unit.plugins.module_utils._persist.test_plan import PARAMS, RAIL1

pytestmark = needs_managers
TAGGED = [{**RAIL1, "vlan": 101}]
# What the module does on a host, by the host's own Python: check files before any of them is written.
CHECK = """
import json, sys
from ansible_collections.railops.rdma.plugins.module_utils._persist import plan as persist
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.tests.unit.simulated_host import SimulatedHost

files = [persist.File(*file) for file in json.load(open("/mnt/files.json"))]
try:
    manager, here = persist.MANAGERS[sys.argv[1]], SimulatedHost()
    manager.at_boot(here, {file.path: file.text for file in files})
except RdmaError as exc:
    sys.exit(str(exc))
"""


def files(manager, **more):
    return files_of({**PARAMS, "policy": "prefixes", **more}, manager)


def run(argv, folder, text=None):
    return subprocess.run(
        in_managers(argv, folder), input=text, capture_output=True, text=True, check=False, timeout=600
    )


def checked(method, folder, *given):
    (folder / "files.json").write_text(json.dumps(given), encoding="utf-8")
    return run(["env", "TMPDIR=/run", "python3", "-c", CHECK, method], folder)


def test_netplan_itself_makes_the_vlan(tmp_path):
    save(tmp_path, files("netplan", rails=TAGGED))
    done = run(["netplan", "generate", "--root-dir", "/mnt"], tmp_path)
    assert done.returncode == 0, done.stderr
    made = tmp_path / "run/systemd/network"
    netdev = (made / "10-netplan-ens1np0.101.netdev").read_text(encoding="utf-8")
    assert ("Kind=vlan" in netdev, "Id=101" in netdev) == (True, True)
    port = (made / "10-netplan-ens1np0.network").read_text(encoding="utf-8")
    assert ("VLAN=ens1np0.101" in port, "LinkLocalAddressing=no" in port, "Address=" in port) == (True, True, False)
    assert "ConfigureWithoutCarrier=" in port
    text = (made / "10-netplan-ens1np0.101.network").read_text(encoding="utf-8")
    assert ("Address=192.0.2.2/27" in text, "Table=1001" in text, "Priority=10001" in text) == (True, True, True)


@pytest.mark.skipif(FIRST_PROGRAMS, reason="nmcli has no option --offline")
def test_networkmanager_itself_reads_the_vlan(tmp_path):
    profiles = [file for file in files("networkmanager", rails=TAGGED) if "connections" in file.path]
    assert [file.path.rpartition("/")[2] for file in profiles] == [
        "railops-ens1np0.101.nmconnection",
        "railops-ens1np0.nmconnection",
    ]
    shown = []
    for file in profiles:
        done = run(["nmcli", "--offline", "connection", "modify", "connection.autoconnect", "yes"], tmp_path, file.text)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    assert ("id=101" in shown[0], "parent=ens1np0" in shown[0], "192.0.2.2/27" in shown[0]) == (True, True, True)
    assert ("192.0.2.2" in shown[1], shown[1].count("method=disabled")) == (False, 2)


@pytest.mark.skipif(FIRST_PROGRAMS, reason="netplan has no key infiniband-mode")
def test_netplan_itself_keeps_the_mode_of_ipoib(tmp_path):
    rail = {"interface": "ibs1f0", "mtu": 65520, "addresses": [{"address": "192.0.2.2", "subnet": "192.0.2.0/24"}]}
    for renderer in ("networkd", "NetworkManager"):
        put(tmp_path / renderer, "/etc/netplan/01.yaml", f"network: {{version: 2, renderer: {renderer}}}\n")
        save(tmp_path / renderer, files("netplan", rails=[rail], network="infiniband"))
        done = run(["netplan", "generate", "--root-dir", f"/mnt/{renderer}"], tmp_path)
        assert done.returncode == 0, done.stderr
    made = (tmp_path / "networkd/run/systemd/network/10-netplan-ibs1f0.network").read_text(encoding="utf-8")
    assert "[IPoIB]\nMode=connected\n" in made
    folder = tmp_path / "NetworkManager/run/NetworkManager/system-connections"
    profile = (folder / "netplan-ibs1f0.nmconnection").read_text(encoding="utf-8")
    assert ("type=infiniband" in profile, "transport-mode=connected" in profile) == (True, True)


def test_netplan_s_refusal_is_an_error_before_anything_is_written(tmp_path):
    bad = "/etc/netplan/90-railops-x.yaml", "network:\n  version: 2\n  ethernets: 7\n", 0o600
    done = checked("netplan", tmp_path, bad)
    assert "nothing was written" in done.stderr
    assert done.returncode == 1

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rdma_info and the role lossless_roce on a guest with soft-RoCE.

    lab.py up --name try --kind guests --nodes 2
    RAILOPS_LAB=try pytest tests/guests

Uses the lab's last host. What ibv_devinfo and `rdma link` say is the measure.
"""

from __future__ import annotations

import functools
import json
import re
import time
from pathlib import Path

import pytest
from guest import LAB, PATIENCE, lab, marks
from guest import module as on_guest

PLAYBOOK = """
- name: Run the role
  hosts: "{{ chosen }}"
  gather_facts: false
  roles:
    - role: railops.rdma.lossless_roce
"""


def last_host():
    """Return the lab's last host; None when there is no such lab running, or none of guests."""
    if not LAB:
        return None
    done = lab("inventory", LAB, check=False)
    if done.returncode:
        return None
    inventory = json.loads((Path(done.stdout.strip()) / "lab.yml").read_text(encoding="utf-8"))
    host = sorted(inventory["all"]["children"]["gpu_nodes"]["hosts"])[-1]
    answer = lab("exec", LAB, "--host", host, "--", "rdma", "system", check=False)
    return host if answer.returncode == 0 else None


HOST = last_host()
module = functools.partial(on_guest, HOST)
pytestmark = marks(HOST)


def ansible(*words, check=True):
    return lab("exec", LAB, "--", *words, check=check)


def rails():
    """Return the lab's rails by name."""
    if not HOST:
        return []
    names = lab("exec", LAB, "--host", HOST, "--", "ls", "/sys/class/net").stdout.split()
    return sorted(name for name in names if re.fullmatch(r"ens\dnp0", name))


RAILS = rails()


def guest(*words):
    return lab("exec", LAB, "--host", HOST, "--", *words).stdout


@pytest.fixture(scope="module")
def result():
    rails = [{"name": f"rail{place}", "interface": name, "mtu": None} for place, name in enumerate(RAILS, 1)]
    return module("rdma_info", rails=rails, network="roce")


@pytest.fixture(scope="module")
def devinfo():
    """Return what ibv_devinfo says, by device."""
    found = {}
    for block in re.split(r"^hca_id:\s*", guest("ibv_devinfo"), flags=re.MULTILINE)[1:]:
        name, rest = block.split(None, 1)
        found[name] = dict(re.findall(r"^\s*(\w+):\s+(.+?)\s*$", rest, re.MULTILINE))
    return found


def test_every_device_agrees_with_ibv_devinfo(result, devinfo):
    devices = {device["name"]: device for device in result["info"]["devices"]}
    assert set(devices) == set(devinfo) != set()
    for name, info in devinfo.items():
        port = devices[name]["ports"][0]
        assert info["state"] == f"PORT_{port['state']} ({4 if port['state'] == 'ACTIVE' else 1})"
        assert info["active_mtu"].split()[0] == str(port["active_mtu"])
        assert info["max_mtu"].split()[0] == str(port["max_mtu"])
        assert info["link_layer"] == port["link_layer"]
        assert info["sm_lid"] == str(port["sm_lid"])
        assert info["node_guid"] == devices[name]["node_guid"]
        assert info["fw_ver"] == devices[name]["firmware"]


def test_every_port_agrees_with_rdma_link(result):
    links = {link["ifname"]: link for link in json.loads(guest("rdma", "-j", "link"))}
    for device in result["info"]["devices"]:
        port, link = device["ports"][0], links[device["name"]]
        assert port["netdev"] == link["netdev"]
        assert port["state"] == link["state"]
        assert port["phys_state"].upper() == link["physical_state"].replace("_", "")


def test_the_gid_tables_are_the_kernels(result):
    device = result["info"]["devices"][0]
    for gid in device["ports"][0]["gids"]:
        home = f"/sys/class/infiniband/{device['name']}/ports/1"
        assert guest("cat", f"{home}/gids/{gid['index']}").strip() == gid["gid"]
        assert guest("cat", f"{home}/gid_attrs/types/{gid['index']}").strip() == gid["type"]


def test_the_default_route_and_the_namespace_mode(result):
    assert result["info"]["default_interfaces"] == re.findall(
        r"^default .*dev (\S+)", guest("ip", "route"), re.MULTILINE
    )
    assert f"netns {result['info']['netns_mode']}" in guest("rdma", "system")


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Run the role, with a host plan of a plan made for the host."""
    folder = tmp_path_factory.mktemp("roles")
    (folder / "roles.yml").write_text(PLAYBOOK, encoding="utf-8")
    settings = {
        "fabric_mode": "exclusive",
        "fabric_network": "roce",
        "fabric_attachment": "macvlan",
        "fabric_supernets": ["172.17.0.0/16"],
        "fabric_max_nodes": 8,
        "fabric_rails": [{"name": f"rail{place}", "interface": name} for place, name in enumerate(RAILS, 1)],
        "fabric_plan_dir": str(folder / "plan"),
        "lossless_roce_unsupported": "report",
        "fabric_lossless": {"priority": 5, "dscp": 40},
        "chosen": HOST,
    }
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    ansible("ansible-playbook", "railops.rdma.plan", "-e", f"@{folder / 'settings.json'}")

    def run(*words, check=True):
        argv = ("ansible-playbook", str(folder / "roles.yml"), "-e", f"@{folder / 'settings.json'}", *words)
        done = ansible(*argv, check=check)
        recap = re.search(
            rf"^{HOST}\s+: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=(\d+)", done.stdout, re.MULTILINE
        )
        return int(recap.group(1)), int(recap.group(2)), done.stdout

    return run


def test_the_traffic_class_is_the_kernels_and_comes_back_with_the_device(play):
    play()
    file = "/sys/kernel/config/rdma_cm/rxe1/ports/1/default_roce_tos"
    assert guest("cat", file).strip() == "162"
    guest("sh", "-c", f"echo 0 > {file}")
    assert guest("cat", file).strip() == "0"
    unit = f"railops-roce-qos@{RAILS[0]}.service"
    guest("systemctl", "restart", unit)
    assert guest("cat", file).strip() == "162"
    # Without the device the unit waits, and fails; while it waits, the device may come.
    guest("rdma", "link", "delete", "rxe1")
    assert lab("exec", LAB, "--host", HOST, "--", "systemctl", "restart", unit, check=False).returncode
    assert guest("systemctl", "show", "-p", "Result", "--value", unit).strip() == "exit-code"
    assert unit in guest("systemctl", "--failed", "--plain", "--no-legend")
    guest("systemctl", "restart", "--no-block", unit)
    guest("rdma", "link", "add", "rxe1", "type", "rxe", "netdev", RAILS[0])
    guest("systemctl", "start", unit)
    assert guest("cat", file).strip() == "162"
    wants = guest("systemctl", "show", "-p", "Wants", "--value", f"sys-subsystem-net-devices-{RAILS[0]}.device")
    assert unit in wants
    ansible("ansible", HOST, "-m", "reboot", "-a", f"reboot_timeout={PATIENCE}")
    deadline = time.monotonic() + PATIENCE
    # The folder is the unit's: it makes it when the device has come.
    while (now := lab("exec", LAB, "--host", HOST, "--", "cat", file, check=False).stdout.strip()) != "162":
        assert time.monotonic() < deadline, f"{now!r}: {guest('systemctl', 'status', unit)}"
        time.sleep(3)


def test_the_settings_can_be_taken_back(play):
    changed, failed, _text = play("-e", "lossless_roce_state=absent")
    assert (changed, failed) == (1, 0)
    assert guest("cat", "/sys/kernel/config/rdma_cm/rxe1/ports/1/default_roce_tos").strip() == "0"
    left = lab("exec", LAB, "--host", HOST, "--", "ls", "/etc/railops-rdma/roce-qos.json", check=False)
    assert left.returncode != 0
    changed, _failed, _text = play("-e", "lossless_roce_state=absent")
    assert changed == 0

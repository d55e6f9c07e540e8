# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a preview says of a host that has more than rails: a recorded machine's /sys and tools, under real playbooks.

The machine has a rail's card beside each of seven GPUs, an eighth card that carries storage, a card that serves
NVSwitches, and flow control of its own on another priority. No card has been seen by this test.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import state as lab_state
from api_double import ApiDouble

from ansible_collections.railops.rdma.tests.unit.fixtures.mlx.cards import ETH, IB, SWITCH_VPD, Cards, card
from ansible_collections.railops.rdma.tests.unit.machines import lay_out, program, put
from ansible_collections.railops.rdma.tests.unit.plugins.modules.test_roce_qos import MLNX_QOS

pytestmark = pytest.mark.long
CARDS = [f"0000:{bus + 4:02x}:00" for bus in (0x15, 0x26, 0x37, 0x48, 0x97, 0xA7, 0xB7, 0xC7)]
SWITCHES = "0000:5a:00"
RAILS = [{"name": f"rail{n}", "interface": f"ens{n}np0", "pci": f"{CARDS[n - 1]}.0"} for n in range(1, 8)]
NETNS = "sys/module/ib_core/parameters/netns_mode"
QUEUE_PAIR = {"ifindex": 8, "ifname": "mlx5_7", "port": 1, "lqpn": 5, "type": "RC", "comm": "[nvme_rdma]"}
OTHER = {
    "trust": "dscp",
    "pfc": "0,0,0,1,0,0,0,0",
    "dcbx": "OS",
    "map": {str(d): 3 if d == 26 else d >> 3 for d in range(64)},
}


def restart(machine):
    """Load the cards' next values, as a reboot does."""
    cards = Cards.__new__(Cards)
    cards.state = machine / "mlx.json"
    cards.restart(power=False)


@pytest.fixture(scope="module")
def machine(fleet, tmp_path_factory):
    """Make node1 the recorded machine: its /sys, and tools that keep state."""
    root = tmp_path_factory.mktemp("machine")
    lay_out("one-switch-each", root)
    for function in ("0", "1"):
        place = Path(os.path.realpath(root / "sys/bus/pci/devices" / f"{SWITCHES}.{function}")) / "vpd"
        place.unlink(missing_ok=True)
        place.write_bytes(SWITCH_VPD)
    cards = Cards(root, {name: card(IB) for name in CARDS} | {SWITCHES: card(ETH, ports=2, vfs=8)})
    cards.install("mstconfig")
    take = f'[ "$4" != shared ] || echo Y >/{NETNS}'
    program(root / "bin/rdma", f"{take}\necho '{json.dumps([QUEUE_PAIR])}'")
    program(root / "bin/mlnx_qos", f"#!{sys.executable}\n{MLNX_QOS}".replace("@STATE@", str(root / "qos.json")))
    (root / "qos.json").write_text(json.dumps({"ens1np0": OTHER}))
    for name in ("ib_core", "ib_uverbs", "rdma_ucm", "ib_umad"):
        (root / "sys/module" / name).mkdir(parents=True, exist_ok=True)
    fleet.lab("exec", fleet.name, "--host", "node1", "--", "mount", "--bind", str(root / "sys"), "/sys")
    wrapper = lab_state.folder(fleet.name) / "node1/python"
    wrapper.write_text(wrapper.read_text().replace("exec ", f"PATH={root}/bin:$PATH exec ", 1))
    return root


def preview(fleet, *words, code=0, **more):
    values = {"fabric_rails": RAILS, "site_host_roles": ["nic_link_type", "rdma_host", "lossless_roce"], **more}
    words = words or ("--check", "--diff")
    return fleet.play("site", *words, "--limit", "node1,localhost", "-e", json.dumps(values), code=code)


def test_a_dry_run_lists_skipped_parts(fleet, machine):
    """Storage cards, NVSwitches' cards and another priority, in `site --check --diff`."""
    kept = {name: (machine / name).read_bytes() for name in ("mlx.json",)}
    run = preview(fleet)
    text = " ".join(run.output.split())
    assert f"skip (nic_link_type): card {SWITCHES}" in text
    assert "serves the NVSwitches (VPD SMDL=SW_MNG)" in text
    assert f"skip (nic_link_type): card {CARDS[7]}" in text
    assert "carries storage (nvme_rdma on mlx5_7)" in text
    assert "Unchanged: ens1np0 has flow control on priority 3 (DSCP 24, 25, 26, 27" in text, run.output[-6000:]
    assert f"write (nic_link_type): nic_link_type {CARDS[0]}: LINK_TYPE_P1=" in text
    for name in (SWITCHES, CARDS[7]):
        assert f"nic_link_type {name}" not in text
    assert {name: (machine / name).read_bytes() for name in kept} == kept


@pytest.fixture
def workers(fleet, machine, tmp_path):
    """Let a kubelet and a step of a job run on node1, where no other host sees them."""
    sleep = tmp_path / "kubelet"
    shutil.copy(shutil.which("sleep"), sleep)
    begin = tmp_path / "begin"
    lines = [
        "#!/bin/bash",
        f"{sleep} 600 < /dev/null &> /dev/null &",
        "(exec -a 'slurmstepd: [4711.batch]' sleep 600) < /dev/null &> /dev/null &",
        '"$@"',
        "code=$?",
        "kill %1 %2",
        "exit $code",
    ]
    program(begin, "\n".join(lines) + "\n")
    wrapper = lab_state.folder(fleet.name) / "node1/python"
    before = wrapper.read_text()
    wrapper.write_text(before.replace(" -- ", f" -- {begin} "))
    yield
    wrapper.write_text(before)


def test_busy_hosts_are_listed_first(fleet, machine, workers):
    """A preview goes on to show what the rest would be; a run stops before the cards."""
    kept = (machine / "mlx.json").read_bytes()
    run = preview(fleet, code=2)
    text = " ".join(run.output.split())
    assert "A kubelet runs here, no cluster is given to drain the node, and the run would reboot it: card" in text, (
        text[-6000:]
    )
    assert "job 4711 of Slurm: at work, and would be disturbed: card" in text
    real = preview(fleet, "--diff", code=2)
    assert "job 4711 of Slurm: at work, and would be disturbed: card" in " ".join(real.output.split())
    assert not [task for task in real.tasks if "link type" in task["task"]]
    checked = ("--check", "--diff", "--tags", "plan,preflight")
    preview(fleet, *checked, rdma_host_drain=False, rdma_host_busy="allow")
    with fleet.inside(ApiDouble) as double:
        double.add_node("gpu-1")
        kubeconfig = str(double.kubeconfig(fleet.folder / "kubeconfig"))
        other = preview(fleet, *checked, rdma_host_busy="allow", code=2, fabric_kubeconfig=kubeconfig)
    text = " ".join(other.output.split())
    assert "node1: The cluster has no node node1, and a kubelet runs on this host. Set fabric_node_name" in text, text[
        -3000:
    ]
    assert (machine / "mlx.json").read_bytes() == kept


ECN = "/sys/class/net/ens1np0/ecn/roce_np"
TOS = "/sys/kernel/config/rdma_cm/mlx5_0/ports/1"
CAUSES = {
    "mount --bind {root}/cpuinfo /proc/cpuinfo": "gpudirect lossless_roce nic_link_type nic_link_type,reboot rdma_host",
    "echo N >/{NETNS}; echo options ib_core netns_mode=0 >/etc/modprobe.d/zz-railops-rdma.conf": "rdma_host,reboot",
    "mkdir -p {ECN}/enable {TOS}; cd {ECN}; echo 0 | tee enable/5 cnp_dscp {TOS}/default_roce_tos": "lossless_roce",
}


def test_the_printed_commands_of_device_roles_repair_the_machine(fleet, machine):
    """Each runs once, as printed, until an audit prints none. The cards restart where a command only reboots."""
    setpci = f'cd {machine}; [ "${{3#*=}}" = "$3" ] || echo "${{3#*=}}" >"$2"; cat "$2" 2>/dev/null || echo 001d'
    program(machine / "bin/setpci", setpci)
    put(machine, "cpuinfo")
    put(machine, NETNS, "Y\n")
    values = {"fabric_rails": RAILS, "fabric_lossless": {"priority": 5, "dscp": 40}, "lossless_roce_replace": True}
    values |= {"gpudirect_acs": "relax", "rdma_host_reboot": False, "audit_traffic": "none"}
    values["site_host_roles"] = ["nic_link_type", "rdma_host", "gpudirect", "lossless_roce"]
    (fleet.folder / "group_vars/all.json").write_text(json.dumps(values), encoding="utf-8")
    fleet.play("plan")
    for script, tags in CAUSES.items():
        cause = script.format(root=machine, NETNS=NETNS, ECN=ECN, TOS=TOS)
        fleet.lab("exec", fleet.name, "--host", "node1", "--", "sh", "-ec", cause)
        ran: list[str] = []
        while commands := fleet.play("audit", "--limit", "node1,localhost", code=None).commands():
            assert not {*commands} & {*ran}
            ran += commands
            for command in commands:
                fleet.paste(command)
                restart(machine) if "nic_link_type,reboot" in command else None
        assert fleet.deviations() == []
        expected = [f"hosts --tags {tag} --limit node1" for tag in tags.split()]
        assert [command.partition(" railops.rdma.")[2] for command in ran] == expected

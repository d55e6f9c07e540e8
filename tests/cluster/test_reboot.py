# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one reboot of a node, drained: the real tasks and the real kubernetes.core against the API double.

The host is this machine over a connection plugin that only pretends to reboot; the role that asks for the reboot is
a stub that says before and after it what the test wants. tests/guests has the reboot of a real kernel.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
NODE, PATH, POD = "node1", "card 0000:1b:00: waits for a reboot", "trainer"
WAITS = {
    "changed": False,
    "reboot_required": True,
    "reboot_reasons": [PATH],
    "checks": [],
    "power_cycle_required": False,
}
DONE = {**WAITS, "reboot_required": False, "reboot_reasons": []}
STUCK = {
    **DONE,
    "power_cycle_required": True,
    "cards": [{"card": "0000:1b:00", "status": "power_cycle", "note": "kept its power", "was_reset": False}],
}

CONNECTION = """
import subprocess
from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = '''
name: pretend
short_description: This machine, which never really reboots
description: For tests.
author: tests
options:
  pipelining:
    default: false
    type: bool
    vars: [{name: ansible_pipelining}]
'''
BOOTS = %r


class Connection(Local):
    transport = 'pretend'

    def exec_command(self, cmd, in_data=None, sudoable=True):
        if 'shutdown' in cmd and ' -r ' in cmd:
            cmd = 'echo boot >> ' + BOOTS
        return super().exec_command(
            cmd.replace('cat /proc/sys/kernel/random/boot_id', 'cat ' + BOOTS), in_data, sudoable
        )

    def reset(self):
        pass
"""
STUB = """
- name: Say what the test wants
  ansible.builtin.set_fact:
    __nic_mode_result: "{{ (stub_after if lookup('file', boots).splitlines() | length > 1 else stub_before) }}"
"""
PLAY = """
- hosts: node1
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: railops.rdma.nic_mode
    - ansible.builtin.import_role:
        name: railops.rdma.rdma_host
        tasks_from: reboot
"""


@pytest.fixture
def site(tmp_path, environment, double):
    if not any(Path(folder, "shutdown").exists() for folder in ("/sbin", "/bin", "/usr/sbin", "/usr/bin")):
        pytest.skip("no shutdown command on this machine: the reboot action looks for one")
    return Site(tmp_path, environment, double)


class Site:
    """A node with a pod, a collection whose nic_mode is a stub, and a play."""

    def __init__(self, root, environment, double):
        self.root = root
        self.double = double
        self.boots = root / "boots"
        self.boots.write_text("boot\n")
        tree = root / "tree/ansible_collections"
        shutil.copytree(
            Path(environment["ANSIBLE_COLLECTIONS_PATH"]) / "ansible_collections",
            tree,
            symlinks=True,
            ignore=lambda folder, names: ["rdma"] if folder.endswith("railops") else [],
        )
        home = tree / "railops/rdma"
        (home / "roles").mkdir(parents=True)
        for entry in CHECKOUT.iterdir():
            if entry.name not in ("roles", ".git"):
                (home / entry.name).symlink_to(entry)
        for role in (CHECKOUT / "roles").iterdir():
            if role.name != "nic_mode":
                (home / "roles" / role.name).symlink_to(role)
        (home / "roles/nic_mode/tasks").mkdir(parents=True)
        (home / "roles/nic_mode/tasks/main.yml").write_text(STUB)
        (root / "plugins").mkdir()
        (root / "plugins/pretend.py").write_text(CONNECTION % str(self.boots))
        (root / "play.yml").write_text(PLAY)
        (root / "hosts").write_text(f"{NODE} ansible_connection=pretend ansible_python_interpreter={sys.executable}\n")
        double.kubeconfig(root / "kubeconfig")
        double.put("v1", "Pod", POD, "default", spec={"nodeName": NODE, "containers": []}, status={"phase": "Running"})
        self.environment = {
            **environment,
            "ANSIBLE_COLLECTIONS_PATH": str(root / "tree"),
            "ANSIBLE_CONNECTION_PLUGINS": str(root / "plugins"),
        }

    def play(self, before, after, *options, **more):
        values = {
            "stub_before": before,
            "stub_after": after,
            "boots": str(self.boots),
            "fabric_kubeconfig": str(self.root / "kubeconfig"),
            "rdma_host_reboot_delay": 0,
            "rdma_host_drain_force": True,
            "rdma_host_drain_timeout": 20,
            **more,
        }
        return subprocess.run(
            ["ansible-playbook", "-i", "hosts", "play.yml", "-e", json.dumps(values), *options],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @property
    def reboots(self):
        return len(self.boots.read_text().splitlines()) - 1

    @property
    def node(self):
        node = self.double.objects("Node")[NODE]
        mark = "railops.io/reboot-drain" in (node["metadata"].get("annotations") or {})
        return bool(node["spec"].get("unschedulable")), mark


def test_drained_rebooted_once_verified_and_uncordoned(site):
    done = site.play(WAITS, DONE)
    assert done.returncode == 0, done.stdout
    assert (site.reboots, site.node) == (1, (False, False))
    assert POD not in site.double.objects("Pod")


def test_nothing_to_do_touches_neither_host_nor_cluster(site):
    done = site.play(DONE, DONE)
    assert done.returncode == 0, done.stdout
    assert site.reboots == 0
    assert not [path for method, path in site.double.requests if method not in ("GET", "HEAD")]


def test_check_mode_prints_the_preview_and_touches_nothing(site):
    done = site.play(WAITS, DONE, "--check")
    assert done.returncode == 0, done.stdout
    for line in ("drain: cordon the node and move its pods", f"reboot: nic_mode: {PATH}", "uncordon:"):
        assert line in done.stdout
    assert site.reboots == 0
    assert not [path for method, path in site.double.requests if method not in ("GET", "HEAD")]


def test_a_reboot_that_did_not_help_fails_stays_cordoned_and_is_not_repeated(site):
    done = site.play(WAITS, STUCK)
    assert done.returncode == 2
    assert "power cycle" in done.stdout
    assert (site.reboots, site.node) == (1, (True, True))
    again = site.play(STUCK, STUCK)
    assert site.reboots == 1, again.stdout
    assert site.node == (True, True)


def test_the_run_that_finds_all_in_force_uncordons_what_a_failed_one_left(site):
    site.play(WAITS, STUCK)
    done = site.play(DONE, DONE)
    assert done.returncode == 0, done.stdout
    assert (site.node, site.reboots) == ((False, False), 1)


def test_a_node_that_somebody_else_cordoned_stays_so(site):
    node = site.double.objects("Node")[NODE]
    node["spec"]["unschedulable"] = True
    done = site.play(WAITS, DONE)
    assert done.returncode == 0, done.stdout
    assert (site.node, site.reboots) == ((True, False), 1)
    assert POD not in site.double.objects("Pod"), "it is emptied all the same"


def test_a_host_that_is_no_node_yet_is_rebooted_without_a_drain(site):
    done = site.play(WAITS, DONE, rdma_host_node_name="not-joined")
    assert done.returncode == 0, done.stdout
    assert site.reboots == 1


def test_a_reboot_that_is_not_allowed_is_only_said(site):
    done = site.play(WAITS, DONE, rdma_host_reboot=False)
    assert done.returncode == 0, done.stdout
    assert "although one is needed" in done.stdout
    assert (site.reboots, site.node) == (0, (False, False))

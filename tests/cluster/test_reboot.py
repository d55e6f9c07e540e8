# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one reboot of a node, drained: the real tasks and the real kubernetes.core against the API double.

The host is this machine over a connection plugin that only pretends to reboot; the role that asks for the reboot is
a stub that says before and after it what the test wants. tests/guests has the reboot of a real kernel.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plays import use

from ansible_collections.railops.rdma.tests.site.fake_host import ANSWER

CHECKOUT = Path(__file__).resolve().parents[2]
MARK = "/var/lib/railops-rdma/emptied"
NODE, PATH, POD = "node1", "card 0000:1b:00: waits for a reboot", "trainer"
IDENTITY = (("/etc/machine-id", "/var/lib/dbus/machine-id"), ("/proc/sys/kernel/random/boot_id",))
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
    "cards": [{"card": "0000:1b:00", "status": "power_cycle", "note": "kept its power"}],
}

CONNECTION = """
import os
import shlex
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
WORKERS = os.path.join(os.path.dirname(BOOTS), 'workers')


class Connection(Local):
    transport = 'pretend'

    def exec_command(self, cmd, in_data=None, sudoable=True):
        if 'shutdown' in cmd and ' -r ' in cmd:
            cmd = 'echo boot >> ' + BOOTS
        cmd = cmd.replace('cat /proc/sys/kernel/random/boot_id', 'cat ' + BOOTS)
        if os.path.exists(WORKERS):
            # Who works there is seen by this host alone.
            cmd = shlex.join(['unshare', '--pid', '--fork', '--mount-proc', '/bin/sh', WORKERS, cmd])
        return super().exec_command(cmd, in_data, sudoable)

    def reset(self):
        pass
"""
STUB = """
- name: Say what the test wants
  ansible.builtin.set_fact: {nic_link_type_result: "{{ now }}"}
  vars:
    now: "{{ (stub_after if lookup('file', boots).splitlines() | length > 1 else stub_before) }}"
"""
PLAY = """
- hosts: node1
  gather_facts: false
  # Not every machine has a shutdown command; this one is looked for and not run.
  module_defaults: {ansible.builtin.reboot: {search_paths: ["{{ playbook_dir }}/plugins"]}}
  tasks:
    - ansible.builtin.include_role:
        name: railops.rdma.nic_link_type
    - ansible.builtin.import_role:
        name: railops.rdma.rdma_host
        tasks_from: reboot
"""
# As the role upgrade does it.
UPGRADE = """
- hosts: node1
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: railops.rdma.rdma_host, tasks_from: drain}
      vars: {rdma_host_purpose: upgrade}
    - ansible.builtin.include_role: {name: railops.rdma.rdma_host, tasks_from: uncordon}
      vars: {rdma_host_purpose: upgrade}
"""


@pytest.fixture(scope="module")
def tree(environment, tmp_path_factory):
    """Give a folder of collections in which the role nic_link_type is a stub."""
    made = tmp_path_factory.mktemp("tree")
    home = made / "ansible_collections/railops/rdma"
    (home / "roles/nic_link_type/tasks").mkdir(parents=True)
    (home / "roles/nic_link_type/tasks/main.yml").write_text(STUB)
    kubernetes = Path(environment["ANSIBLE_COLLECTIONS_PATH"]) / "ansible_collections/kubernetes"
    (made / "ansible_collections/kubernetes").symlink_to(kubernetes)
    for entry in CHECKOUT.iterdir():
        if entry.name not in ("roles", ".git"):
            (home / entry.name).symlink_to(entry)
    for role in (CHECKOUT / "roles").iterdir():
        if role.name != "nic_link_type":
            (home / "roles" / role.name).symlink_to(role)
    return made


@pytest.fixture
def site(tmp_path, environment, double, tree):
    return Site(tmp_path, {**environment, "ANSIBLE_COLLECTIONS_PATH": str(tree)}, double)


class Site:
    """A node with a pod, and a play."""

    def __init__(self, root, environment, double):
        self.root = root
        self.double = double
        self.boots = root / "boots"
        self.boots.write_text("boot\n")
        (root / "plugins").mkdir()
        (root / "plugins/shutdown").touch(0o755)
        (root / "plugins/pretend.py").write_text(CONNECTION % str(self.boots))
        (root / "play.yml").write_text(PLAY)
        (root / "hosts").write_text(f"{NODE} ansible_connection=pretend ansible_python_interpreter={sys.executable}\n")
        if os.geteuid() == 0:
            # The host sees no process and no record of another test's.
            (root / "lib/railops-rdma").mkdir(parents=True)
            if (dbus := Path("/var/lib/dbus")).is_dir():
                shutil.copytree(dbus, root / "lib/dbus", symlinks=True)
            (root / "workers").write_text(f'{self.own_records()}/bin/sh -c "$1"\n')
        double.kubeconfig(root / "kubeconfig")
        double.put("v1", "Pod", POD, "default", spec={"nodeName": NODE, "containers": []}, status={"phase": "Running"})
        self.environment = {**environment, "ANSIBLE_CONNECTION_PLUGINS": str(root / "plugins")}

    def play(self, before, after, *options, code=0, **more):
        """Run the play, which ends with this code; return what it said."""
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
        done = subprocess.run(
            ["ansible-playbook", "-i", "hosts", "play.yml", "-e", json.dumps(values), *options],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def start(self, name, title=None):
        """Let a program of that name run on the host; return the file without which it is not there."""
        if os.geteuid():
            pytest.skip("a process namespace needs root")
        program, there = self.root / name, self.root / "there"
        shutil.copy(shutil.which("sleep"), program)
        there.touch()
        run = f"exec -a {shlex.quote(title or name)} {program} 600"
        text = f'[ -e {there} ] && bash -c {shlex.quote(run)} < /dev/null > /dev/null 2>&1 &\n/bin/sh -c "$1"\n'
        (self.root / "workers").write_text(self.own_records() + text)
        return there

    def own_records(self):
        """Return the command that gives the host a /var/lib of its own."""
        return f"mount --bind {self.root}/lib /var/lib\n"

    @property
    def mark(self):
        """The record on the host that a command emptied it."""
        if os.geteuid():
            pytest.skip("a mount namespace needs root")
        return self.root / "lib/railops-rdma/emptied"

    def writes(self):
        """Return what the cluster was asked for beside reading."""
        return [path for method, path in self.double.requests if method not in ("GET", "HEAD")]

    def is_machine(self, machine, boot):
        """Say which machine the cluster takes the node for."""
        info = {"machineID": machine, "bootID": boot}
        self.double.objects("Node")[NODE]["status"]["nodeInfo"] = info

    @property
    def reboots(self):
        return len(self.boots.read_text().splitlines()) - 1

    @property
    def node(self):
        node = self.double.objects("Node")[NODE]
        mark = "railops.io/reboot-drain" in (node["metadata"].get("annotations") or {})
        return bool(node["spec"].get("unschedulable")), mark


def test_previewed_then_drained_rebooted_once_verified_and_uncordoned(site):
    preview = site.play(WAITS, DONE, "--check")
    for line in ("drain: cordon the node and move its pods", f"reboot: nic_link_type: {PATH}", "uncordon:"):
        assert line in preview
    assert "although one is needed" in site.play(WAITS, DONE, rdma_host_reboot=False)
    assert (site.reboots, site.writes()) == (0, [])
    site.play(WAITS, DONE)
    assert (site.reboots, site.node) == (1, (False, False))
    assert POD not in site.double.objects("Pod")


def test_a_failed_reboot_leaves_the_node_cordoned_until_a_run_finds_nothing_pending(site):
    assert "power cycle" in site.play(WAITS, STUCK, code=2)
    assert (site.reboots, site.node) == (1, (True, True))
    again = site.play(STUCK, STUCK)
    assert (site.reboots, site.node) == (1, (True, True)), again
    site.play(DONE, DONE)
    assert (site.reboots, site.node) == (1, (False, False))
    site.double.requests.clear()
    site.play(DONE, DONE)
    assert (site.reboots, site.writes()) == (1, [])


def test_a_node_stays_cordoned_until_its_driver_container_is_ready(site):
    """It builds the driver again after the boot; an inventory may declare it and play other roles only."""
    container = {"rdma_driver_source": "container", "rdma_driver_container_timeout": 0}
    assert "[driver_not_ready]" in " ".join(site.play(WAITS, DONE, code=2, **container).split())
    assert (site.reboots, site.node) == (1, (True, True))
    site.boots.write_text("boot\n")
    site.play(WAITS, DONE, **container, __site_roles=["rdma_host"])
    assert (site.reboots, site.node) == (1, (False, False))


def test_a_node_that_another_user_cordoned_stays_so(site):
    node = site.double.objects("Node")[NODE]
    node["spec"]["unschedulable"] = True
    site.play(WAITS, DONE)
    assert (site.node, site.reboots) == ((True, False), 1)
    assert POD not in site.double.objects("Pod"), "it is emptied all the same"


def test_new_hardware_under_a_name_that_the_cluster_still_has_is_rebooted_without_a_drain(site):
    site.is_machine("not-this-one", "an-old-boot")
    site.play(WAITS, DONE)
    assert (site.reboots, site.node) == (1, (False, False))
    assert POD in site.double.objects("Pod"), "its pods are those of another machine"


def test_a_host_that_is_the_node_of_another_name_is_not_rebooted(site):
    """The inventory calls it otherwise: a drain of that name would empty another node, or none."""
    site.start("kubelet")
    # Where there is no first one, as on a system that never booted, the host says nothing.
    found = [next((path.read_text().strip() for path in map(Path, paths) if path.exists()), "") for paths in IDENTITY]
    site.is_machine(*found)
    text = " ".join(site.play(WAITS, DONE, code=2, rdma_host_node_name="gpu-1").split())
    assert f"node1: The cluster has no node gpu-1, and this host is its node {NODE}." in text
    assert f"Set fabric_node_name: {NODE} for this host." in text
    assert (site.reboots, site.node) == (0, (False, False))
    assert POD in site.double.objects("Pod")


def test_work_that_is_not_kubernetes_is_checked_before_anything(site):
    """A step of a job, as slurmd names it; another scheduler empties the host and gets it back."""
    resumed = site.root / "resumed"
    job = site.start("slurmstepd", "slurmstepd: [4711.batch]")
    assert "node1 has running work: job 4711 of Slurm" in " ".join(site.play(WAITS, DONE, code=2).split())
    assert (site.reboots, site.node) == (0, (False, False))
    site.play(
        WAITS,
        DONE,
        rdma_host_drain_command=["rm", str(job)],
        rdma_host_resume_command=["cp", MARK, str(resumed)],
    )
    assert (site.reboots, site.node) == (1, (False, False))
    assert (resumed.read_text(), site.mark.exists()) == ("reboot\n", False)


@pytest.mark.long
def test_a_host_that_an_upgrade_emptied_is_returned_by_the_upgrade_only(site):
    """A reboot in between empties the host again and does not return it."""
    site.mark.write_text("upgrade\n")
    resumed = site.root / "resumed"
    commands = {"rdma_host_drain_command": ["true"], "rdma_host_resume_command": ["touch", str(resumed)]}
    site.play(WAITS, DONE, **commands)
    assert (site.reboots, site.node) == (1, (False, False))
    assert (site.mark.read_text(), resumed.exists()) == ("upgrade\n", False)
    (site.root / "play.yml").write_text(UPGRADE)
    site.play(DONE, DONE, **commands)
    assert (site.mark.exists(), resumed.exists()) == (False, True)


class Hosts:
    """The playbook `hosts` over hosts that only answer what the test wants; nothing there differs from the plan."""

    def __init__(self, playbook, double, plan):
        self.playbook, self.double = playbook, double
        self.folder = playbook.folder / "hosts"
        self.answers = {}
        use(playbook, plan, "hosts-only")
        self.folder.mkdir()
        text = (CHECKOUT / "tests/site/fake_host.py").read_text(encoding="utf-8")
        (self.folder / "fake_host.py").write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
        (self.folder / "fake_host.py").chmod(0o755)

    def answer(self, host, **facts):
        """Add a host, with these facts of preflight."""
        (self.folder / host).symlink_to("fake_host.py")
        node = {"host": host, "node": host, "machine_id": "m", "boot_id": "b1", "kubelet": ""}
        self.answers[host] = {"*": {**ANSWER, "facts": {"drift": [], "emptied": "", "node": node, **facts}}}

    def play(self, **values):
        """Run the playbook; return what it said, and the modules that each host ran."""
        (self.folder / "answers.json").write_text(json.dumps(self.answers), encoding="utf-8")
        plain = {"ansible_connection": "local", "ansible_pipelining": False}
        rows = {host: {**plain, "ansible_python_interpreter": str(self.folder / host)} for host in self.answers}
        inventory = self.playbook.folder / "hosts.yml"
        inventory.write_text(json.dumps({"all": {"children": {"gpu_nodes": {"hosts": rows}}}}), encoding="utf-8")
        text = self.playbook.shipped("hosts", "-i", str(inventory), **values).text
        sent = self.folder / "sent"
        return " ".join(text.split()), {host: [path.name[4:] for path in (sent / host).iterdir()] for host in rows}


@pytest.fixture
def hosts(playbook, double, plans):
    return Hosts(playbook, double, plans("hosts-only"))


@pytest.mark.long
def test_hosts_ends_what_an_interrupted_reboot_left_and_no_upgrade(hosts):
    """A node without drift is played where a reboot left it, and not where a drain of another purpose did."""
    node = hosts.double.objects("Node")[NODE]
    node["metadata"]["annotations"] = {"railops.io/reboot-drain": "schedulable"}
    node["spec"]["unschedulable"] = True
    other = hosts.double.objects("Node")["node2"]
    other["metadata"]["annotations"] = {"railops.io/sriov-drain": "schedulable"}
    hosts.answer(NODE)
    hosts.answer("node2", emptied="upgrade")
    hosts.answer("node3", emptied="reboot")
    hosts.answer("node4", emptied="upgrade", drift=["rail_network"])
    text, sent = hosts.play(rdma_host_resume_command=["resume"], site_serial=["100%"])
    node = hosts.double.objects("Node")[NODE]
    assert not node["spec"].get("unschedulable"), text
    assert not node["metadata"].get("annotations")
    assert "Already as planned, and not changed: node2." in text
    assert [host for host, modules in sent.items() if "command" in modules] == ["node3"], text

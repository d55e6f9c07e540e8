# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role with ansible-playbook: two namespaces as hosts, reached by a wrapper as their Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pyroute2
import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, run, want_of

RAILS = 2
PLAYBOOK = """
- hosts: all
  gather_facts: false
  connection: local
  roles:
    - role: railops.rdma.rail_network
      vars:
        rail_network_plan_dir: "{{ playbook_dir }}/plan"
        rail_network_persist: false
        rail_network_confirm_timeout: "{{ timeout | default(20) }}"
        rail_network_gateways: "{{ gateways | default('require') }}"
        rail_network_state: "{{ state | default('present') }}"
        rail_network_install: false
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("role")
    with Fabric("role", 2, RAILS) as fabric:
        wants = [want_of(slot, RAILS) for slot in (0, 1)]
        fabric.gateways(wants)
        fabric.inventory(folder, wants)
        (folder / "site.yml").write_text(PLAYBOOK)
        yield folder, fabric


def play(folder, *more, good=True, inventory="inventory", playbook="site.yml", environ=None):
    tool = shutil.which("ansible-playbook", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    assert tool
    tree = next(path for path in sys.path if os.path.isdir(f"{path}/ansible_collections/railops"))
    environ = {**os.environ, **(environ or {}), "ANSIBLE_COLLECTIONS_PATH": tree, "ANSIBLE_NOCOLOR": "1"}
    argv = [tool, "-i", inventory, playbook, *more]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode == 0) is good, done.stdout + done.stderr
    return done.stdout


def test_preview_change_confirm_and_again(site):
    folder, fabric = site
    before = fabric.hosts[0].dump()
    preview = play(folder, "--check", "--diff")
    assert "+route 172.17.0.0/16 via 172.17.0.1 dev ens1np0 src 172.17.0.2 metric 101" in preview
    assert fabric.hosts[0].dump() == before
    first = play(folder)
    assert "changed=1" in first
    after = fabric.hosts[0].dump()
    assert after != before
    second = play(folder)
    assert "changed=0" in second
    assert "changed=1" not in second
    assert fabric.hosts[0].dump() == after


def decisions(fabric) -> list[dict[str, int]]:
    """When each host's newest change was armed and confirmed, by the times of its files."""
    return [host.timer() for host in fabric.hosts]


@pytest.mark.parametrize("gateways", ["report", "require"])
def test_a_host_confirms_before_the_next_one_of_its_batch_changes(site, gateways):
    """Strategy linear with one fork: the timer of the first host does not wait for the others."""
    folder, fabric = site
    play(folder, "-e", "state=absent")
    play(folder, "--forks", "1", "-e", f"gateways={gateways}")
    first, second = decisions(fabric)
    assert {"confirmed", "ready"} <= set(first)
    assert first["confirmed"] < second["ready"]
    assert "fired" not in {*first, *second}


SSH = """#!/bin/sh
case "$*" in *"-O check"*) exit 0 ;; *"-O stop"*) echo closed >> {log}; exit 0 ;; esac
for command; do :; done
case "$command" in *python-node1*) echo module >> {log} ;; esac
exec sh -c "$command"
"""


def test_ansibles_ssh_closes_its_connection_between_change_and_confirmation(site):
    """The real plugin of Ansible, with a program in place of ssh that keeps what it is called for."""
    folder, fabric = site
    play(folder, "-e", "state=absent")
    log, program = folder / "calls", folder / "ssh"
    program.write_text(SSH.format(log=log))
    program.chmod(0o755)
    options = f"ansible_connection=ssh ansible_ssh_executable={program} ansible_pipelining=true"
    (folder / "inventory-ssh").write_text(f"node1 ansible_python_interpreter={folder}/python-node1 {options}\n")
    (folder / "ssh.yml").write_text(PLAYBOOK.replace("  connection: local\n", ""))
    play(folder, inventory="inventory-ssh", playbook="ssh.yml")
    assert log.read_text().split() == ["module", "closed", "module"]
    assert "confirmed" in fabric.hosts[0].timer()


PACKAGE = """#!/usr/bin/python3
import os, sys
os.symlink({library!r}, os.path.dirname({place!r}) + "/installed/pyroute2")
print('{{"changed": true}}')
"""


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="needs a Python without pyroute2")
def test_where_the_library_is_missing_it_is_installed_once_and_the_change_is_made(site, tmp_path):
    folder, fabric = site
    play(folder, "-e", "state=absent")
    (tmp_path / "installed").mkdir()
    package = tmp_path / "library" / "a_package.py"
    package.parent.mkdir()
    package.write_text(PACKAGE.format(library=os.path.dirname(pyroute2.__file__), place=str(package.parent)))
    python = tmp_path / "python"
    enter = f"PYTHONPATH={tmp_path}/installed exec ip netns exec {fabric.hosts[0].name} /usr/bin/python3 -s"
    python.write_text(f'#!/bin/sh\n{enter} "$@"\n')
    python.chmod(0o755)
    (folder / "inventory-bare").write_text(
        f"node1 ansible_python_interpreter={python} ansible_package_use=ansible.legacy.a_package\n"
    )
    text = PLAYBOOK.replace("rail_network_install: false", "rail_network_install: true")
    (folder / "bare.yml").write_text(text)
    options = {
        "inventory": "inventory-bare",
        "playbook": "bare.yml",
        "environ": {"ANSIBLE_LIBRARY": str(package.parent)},
    }
    assert "TASK [railops.rdma.rail_network : Library" not in play(folder, "--check", **options)
    said = play(folder, **options)
    assert said.count("TASK [railops.rdma.rail_network : Library | Install pyroute2]") == 1
    assert "confirmed" in fabric.hosts[0].timer()
    assert "changed=0" in play(folder, **options)


def test_a_host_whose_gateways_do_not_answer_is_taken_back_where_they_are_required(site):
    folder, fabric = site
    play(folder, "-e", "state=absent")
    before = fabric.hosts[0].dump()
    gateway = ("address", "{}", "172.17.0.1/27", "dev", "leaf1")
    run("ip", "-n", fabric.core, *(word.format("del") for word in gateway))
    said = play(folder, "--limit", "node1", "-e", "timeout=5", good=False)
    run("ip", "-n", fabric.core, *(word.format("add") for word in gateway))
    assert "The change is not confirmed" in said
    deadline = time.monotonic() + 30
    while fabric.hosts[0].dump() != before and time.monotonic() < deadline:
        time.sleep(0.2)
    assert fabric.hosts[0].dump() == before
    play(folder)


def test_a_stale_host_plan_is_refused_before_the_host_is_touched(site):
    folder, fabric = site
    path = folder / "plan" / "hosts" / "node1.json"
    text = path.read_text()
    path.write_text(text.replace('"slot": 0', '"slot": 1'))
    before = fabric.hosts[0].dump()
    said = play(folder, "--limit", "node1", good=False)
    path.write_text(text)
    assert "stale" in said
    assert fabric.hosts[0].dump() == before


def test_absent_takes_it_back(site):
    folder, fabric = site
    assert "changed=1" in play(folder, "-e", "state=absent")
    assert not [line for line in fabric.hosts[0].dump()["rules"] if "lookup 10" in line]

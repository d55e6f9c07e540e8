# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role with ansible-playbook: two namespaces as hosts, reached by a wrapper as their Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route.rollback import START
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import OWN_LIB, Fabric, inside, options, run, wait_for

RAILS = 2
PLAYBOOK = """
- hosts: all
  gather_facts: false
  connection: local
  roles:
    - role: railops.rdma.rail_network
      vars:
        rail_network_persist: false
        rail_network_confirm_timeout: "{{ timeout | default(120) }}"
        rail_network_gateways: "{{ gateways | default('require') }}"
        rail_network_state: "{{ state | default('present') }}"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("role")
    with Fabric("role", 2, RAILS) as fabric:
        wants = [options(slot, RAILS) for slot in (0, 1)]
        fabric.gateways(wants)
        fabric.inventory(folder, wants)
        (folder / "site.yml").write_text(PLAYBOOK)
        yield folder, fabric


def play(folder, *more, good=True, inventory="inventory", playbook="site.yml"):
    tool = shutil.which("ansible-playbook", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    assert tool
    tree = next(path for path in sys.path if os.path.isdir(f"{path}/ansible_collections/railops"))
    environ = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": tree, "ANSIBLE_NOCOLOR": "1"}
    argv = [tool, "-i", inventory, playbook, "-e", f"rail_network_plan_dir={folder}/plan", *more]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=900)
    assert (done.returncode == 0) is good, done.stdout + done.stderr
    return done.stdout


def decisions(fabric) -> list[dict[str, int]]:
    """When each host's newest change was armed and confirmed, by the times of its files."""
    return [host.timer() for host in fabric.hosts]


@pytest.mark.parametrize("gateways", ["ignore", "require"])
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


WHEEL = Path(__file__).parents[2] / "roles/rdma_driver/files/pyroute2-0.9.7-py3-none-any.whl"


@pytest.fixture
def bare(site, tmp_path):
    """A host whose Python has no pyroute2; return its /var/lib, and a function that plays on it."""
    folder, fabric = site
    play(folder, "-e", "state=absent")
    (tmp_path / "lib").mkdir()
    (tmp_path / "tmp").mkdir()
    python = tmp_path / "python"
    python.write_text(OWN_LIB.format(host=fabric.hosts[0].name, lib=tmp_path / "lib", python="/usr/bin/python3 -s"))
    python.chmod(0o755)
    options = f"ansible_python_interpreter={python} ansible_remote_tmp={tmp_path}/tmp ansible_pipelining=true"
    (folder / "inventory-bare").write_text(f"node1 {options}\n")

    def task(*more, **options):
        text = play(folder, *more, inventory="inventory-bare", **options)
        assert list((tmp_path / "tmp").iterdir()) == [], "Ansible's temporary folder is gone"
        return text

    return tmp_path / "lib/railops-rdma/library", task


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="needs a Python without pyroute2")
def test_a_host_without_the_library_keeps_it_as_long_as_it_has_rails(site, bare):
    (_folder, fabric), (library, task) = site, bare
    before = fabric.hosts[0].dump()
    assert "+route 172.17.0.0/16 via 172.17.0.1 dev ens1np0 src 172.17.0.2 metric 101" in task("--check", "--diff")
    assert not library.parent.exists()
    # A world-writable folder with other content is repaired.
    library.mkdir(parents=True, mode=0o777)
    (library / "pyroute2.whl").write_text("else")
    text = task("-vvvvv")
    assert "changed=1" in text
    assert text.count("RAILOPS_PYROUTE2_KEEP=") == 1
    assert "confirmed" in fabric.hosts[0].timer()
    assert library.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in library.iterdir()] == ["pyroute2.whl"]
    assert (library / "pyroute2.whl").read_bytes() == WHEEL.read_bytes()
    written = (library / "pyroute2.whl").stat()
    again = task("-vvvvv")
    assert "changed=0" in again
    assert "RAILOPS_PYROUTE2" not in again, "it is sent once"
    assert (library / "pyroute2.whl").stat() == written
    assert "changed=1" in task("-e", "state=absent")
    assert not library.parent.exists()
    assert "changed=0" in task("-e", "state=absent")
    assert not library.parent.exists()
    assert fabric.hosts[0].dump()["rules"] == before["rules"]


LOOK = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - railops.rdma.rail_audit:
        plan_dir: "{{ playbook_dir }}/plan"
        checks: [preflight, network, paths]
        settings:
          preflight: {roles: [rail_network], persist: false}
      register: seen
    - debug:
        msg: "{{ seen.checks | map(attribute='cause') | list + seen.errors }}"
"""


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="needs a Python without pyroute2")
def test_read_only_run_leaves_no_library(site, bare):
    (folder, fabric), (library, task) = site, bare
    (folder / "look.yml").write_text(LOOK)
    foreign = ("203.0.113.0/24", "via", "198.51.100.254", "table", "1002")
    fabric.hosts[0].ip("route", "add", *foreign)
    try:
        text = task(playbook="look.yml")
    finally:
        fabric.hosts[0].ip("route", "del", *foreign)
    assert text.count("the existing route `203.0.113.0/24 via 198.51.100.254 dev eth0 table 1002` uses") == 2, text
    assert "cannot be imported" not in text
    assert not library.parent.exists()


LOST = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - railops.rdma.policy_route:
        plan_dir: "{{ playbook_dir }}/plan"
        state: "{{ state | default('present') }}"
        confirm_timeout: "{{ seconds }}"
"""


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="needs a Python without pyroute2")
@pytest.mark.parametrize("state", ["present", "absent"])
def test_the_timer_fires_where_the_library_is_a_kept_one(site, bare, tmp_path, state):
    """As a process that was forked, and as the one that a unit starts: with nothing but what is on the host."""
    (folder, fabric), (_library, task) = site, bare
    host = fabric.hosts[0]
    if state == "absent":
        task()
    (folder / "lost.yml").write_text(LOST)
    before = host.dump()
    task("-e", f"seconds=3 state={state}", playbook="lost.yml")
    wait_for(host.dump, before)
    task("-e", f"seconds=600 state={state}", playbook="lost.yml")
    assert host.dump() != before
    number = inside(host.name, lambda: os.stat("/proc/self/ns/net").st_ino)
    (armed,) = (path.parent for path in Path(f"/run/railops-rdma/{number}").glob("*/armed"))
    unit = tmp_path / "unit"
    shutil.copytree(armed, unit)
    (unit / "now").touch()
    run(str(tmp_path / "python"), "-c", START, str(unit))
    assert host.dump() == before
    assert json.loads((unit / "fired").read_text()) == {"left": []}
    (armed / "now").touch()
    wait_for((armed / "armed").exists, False)


RETRIES = """
- hosts: node1
  gather_facts: false
  connection: local
  tasks:
    - railops.rdma.policy_route:
        plan_dir: "{{ playbook_dir }}/plan"
        confirm_timeout: 60
        confirm: new_connection
      register: seen
      until: seen.attempts == 3 or lookup('ansible.builtin.pipe', 'ip -n {HOST} rule del priority 10001') != ''
      retries: 2
      delay: 0
    - debug:
        msg: "attempts {{ seen.attempts }} changed {{ seen.changed }} confirmed {{ seen.confirmed | default('no') }}"
"""


def test_each_attempt_of_a_task_compares_with_the_plan_and_confirms(site):
    """A foreign rule stops the first one; a rule of the plan is deleted after the second one, which has confirmed."""
    folder, fabric = site
    host = fabric.hosts[0]
    play(folder)
    planned = host.dump()
    play(folder, "-e", "state=absent")
    host.ip("rule", "add", "from", "203.0.113.9", "lookup", "77", "priority", "10001")
    (folder / "retries.yml").write_text(RETRIES.replace("{HOST}", host.name))
    text = play(folder, playbook="retries.yml")
    assert "attempts 3 changed True confirmed True" in text, text
    assert host.dump() == planned
    assert "confirmed" in host.timer()

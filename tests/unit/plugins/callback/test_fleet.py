# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run prints with the shipped ansible.cfg, by ansible-playbook itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[4] / "inventory/ansible.cfg"
INVENTORY = """
[nodes]
node1 own="address 172.17.0.2/27"
node2 own="address 172.17.0.34/27"
node3 own="mtu 1500"
node4 own="address 172.17.0.66/27"
[nodes:vars]
ansible_connection=local
ansible_python_interpreter="{{ ansible_playbook_python }}"
"""
PLAYBOOK = """
- name: Check the settings
  hosts: nodes
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact: {number: 1}
    - ansible.builtin.include_tasks: more.yml
      run_once: true
- name: Find no host
  hosts: nodes:!nodes
- name: Change the hosts
  hosts: nodes
  gather_facts: false
  tasks:
    - name: Write a file
      ansible.builtin.copy: {content: "{{ own }}\\n", dest: "{{ playbook_dir }}/{{ inventory_hostname }}.txt"}
    - name: Refuse a host
      railops.rdma.message: {heading: "It is broken:", lines: [the card], fail: true}
      when: inventory_hostname == 'node3'
"""
FOLDED = """
PLAY [Change the hosts] ********************************************************

TASK [Write a file] ************************************************************
--- before
+++ after: FOLDER/node1.txt
@@ -0,0 +1 @@
+address 172.17.0.2/27
changed: [node1]
changed: [node[2,4]]: the same 1 change as node1, each with its own addresses
--- before
+++ after: FOLDER/node3.txt
@@ -0,0 +1 @@
+mtu 1500
changed: [node3]

TASK [Refuse a host] ***********************************************************
fatal: [node3]: FAILED! =>\x20
    msg: It is broken, as listed above.

PLAY RECAP *********************************************************************
node1 : ok=4 changed=1 unreachable=0 failed=0 skipped=1 rescued=0 ignored=0
node3 : ok=2 changed=1 unreachable=0 failed=1 skipped=0 rescued=0 ignored=0
node[2,4] : ok=2 changed=1 unreachable=0 failed=0 skipped=1 rescued=0 ignored=0
"""


@pytest.fixture
def play(tmp_path):
    """Return what runs the playbook in a folder with the shipped ansible.cfg."""
    shutil.copy(EXAMPLE, tmp_path)
    for name, text in {"hosts.ini": INVENTORY, "play.yml": PLAYBOOK, "more.yml": "- ansible.builtin.debug:\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def run(*words: str) -> str:
        environ = {**os.environ, "ANSIBLE_NOCOLOR": "true", "ANSIBLE_DEPRECATION_WARNINGS": "false"}
        argv = ["ansible-playbook", "-i", "hosts.ini", "play.yml", "--check", "--diff", *words]
        done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout.replace(str(tmp_path), "FOLDER")

    return run


def test_equal_hosts_share_lines_and_what_shows_nothing_prints_nothing(play):
    output = play().splitlines()
    # The recap is padded to columns.
    assert [" ".join(line.split()) if " : ok=" in line else line for line in output] == [*FOLDED.splitlines(), ""]


def test_equal_failures_share_one_message(play, tmp_path):
    task = "{ansible.builtin.fail: {msg: no rail}}"
    text = f"- {{hosts: nodes, gather_facts: false, tasks: [{task}]}}"
    (tmp_path / "play.yml").write_text(text, encoding="utf-8")
    output = play()
    assert "fatal: the same on node[" in output
    assert output.count("fatal: [node") == 1


def test_verbose_output_is_not_folded(play):
    output = play("-v")
    assert output.count("+++ after") == 4
    assert "included: FOLDER/more.yml for node1" in output
    assert "PLAY [Check the settings]" in output
    assert "skipping: no hosts matched" in output
    assert "node[" not in output

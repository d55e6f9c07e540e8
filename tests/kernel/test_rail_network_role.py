# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role with ansible-playbook: two namespaces as hosts, reached by a wrapper as their Python."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, want_of

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
        rail_network_confirm_timeout: 20
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
        frozen = {"mode": "exclusive"}
        digest = hashlib.sha256(json.dumps(frozen, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        (folder / "plan" / "hosts").mkdir(parents=True)
        nodes = {}
        lines = []
        for number, (host, want) in enumerate(zip(fabric.hosts, wants, strict=True)):
            name = f"node{number + 1}"
            nodes[name] = {"zone": "", "slot": number, "retired": False}
            data = {"schema": 2, "frozen_digest": digest, "fabric": "fabric", "node": name, "slot": number, **want}
            (folder / "plan" / "hosts" / f"{name}.json").write_text(json.dumps(data))
            wrapper = folder / f"python-{name}"
            wrapper.write_text(f'#!/bin/sh\nexec ip netns exec {host.name} {sys.executable} "$@"\n')
            wrapper.chmod(0o755)
            lines.append(f"{name} ansible_python_interpreter={wrapper}\n")
        plan = {"schema": 1, "digest": "x", "frozen": frozen, "nodes": nodes}
        (folder / "plan" / "plan.json").write_text(json.dumps(plan))
        (folder / "inventory").write_text("".join(lines))
        (folder / "site.yml").write_text(PLAYBOOK)
        yield folder, fabric


def play(folder, *more, good=True):
    tool = shutil.which("ansible-playbook", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    assert tool
    tree = next(path for path in sys.path if os.path.isdir(f"{path}/ansible_collections/railops"))
    environ = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": tree, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0"}
    argv = [tool, "-i", "inventory", "site.yml", *more]
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
    assert "Confirm | Keep the change" in first
    assert "changed=1" in first
    after = fabric.hosts[0].dump()
    assert after != before
    second = play(folder)
    assert "changed=0" in second
    assert "changed=1" not in second
    assert "Confirm | Keep the change" not in second
    assert fabric.hosts[0].dump() == after


def test_a_stale_slice_is_refused_before_the_host_is_touched(site):
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

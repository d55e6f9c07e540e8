# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook plan with real inventories: what it reads of them, and what it says."""

from __future__ import annotations

import json

import pytest
from ansible.template import Templar

from ansible_collections.railops.rdma.plugins.action import rail_discover
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.playbook_run import play

INVENTORY = """\
[gpu_nodes]
node1 fabric_node_name=node1.example
node2 fabric_slot="{{ number | int + 3 }}" number=2
node10

[others]
login1
"""
SETTINGS = """\
fabric_mode: exclusive
fabric_supernets: [172.17.0.0/16]
fabric_max_nodes: 8
fabric_rails:
  - interface: ens1np0
  - interface: ens2np0
"""
RESCUED = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - block:
        - ansible.builtin.import_role:
            name: railops.rdma.fabric
      rescue:
        - ansible.builtin.debug:
            msg: CAUGHT {{ ansible_failed_result.msg | regex_search('hosts.node2.*') }}
"""


@pytest.fixture
def fleet(tmp_path):
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "hosts.ini").write_text(INVENTORY)
    (tmp_path / "group_vars/all.yml").write_text(SETTINGS)
    (tmp_path / "host_vars/node10.yml").write_text("fabric_interfaces: {rail1: '{{ nic }}'}\nnic: enp9s0\n")
    return tmp_path


def playbook(folder, *more, book="plan"):
    return play(folder, "-i", "hosts.ini", book if "." in book else f"railops.rdma.{book}", *more)


def slots(folder):
    nodes = json.loads((folder / "plan/fabric/plan.json").read_text())["nodes"]
    return {name: entry["slot"] for name, entry in nodes.items()}


def test_a_plan_its_limited_run_its_preview_and_learned_cables(fleet):
    done = playbook(fleet)

    assert done.returncode == 0, done.stdout + done.stderr
    assert slots(fleet) == {"node1.example": 0, "node2": 5, "node10": 1}
    rail = json.loads((fleet / "plan/fabric/hosts/node10.json").read_text())["rails"][0]
    assert rail["interface"] == "enp9s0"
    assert (fleet / "plan/fabric/hosts/node1.json").exists()

    assert "changed=0" in playbook(fleet, "--limit", "node1,localhost", "--diff").stdout
    assert slots(fleet) == {"node1.example": 0, "node2": 5, "node10": 1}

    before = (fleet / "plan/fabric/plan.json").read_bytes()
    (fleet / "hosts.ini").write_text(INVENTORY.replace("node10\n", "node11\n"))

    done = playbook(fleet, "--check", "--diff", "-e", '{"fabric_retire": ["node10"]}')

    assert done.returncode == 0, done.stdout + done.stderr
    assert "-node10 rail1: enp9s0 mtu 4200 172.17.0.34/27 by 172.17.0.33 pods 172.17.0.35-172.17.0.62" in done.stdout
    assert "+node11 rail2: ens2np0 mtu 4200 172.17.1.66/27 by 172.17.1.65 pods 172.17.1.67-172.17.1.94" in done.stdout
    assert "+node10: slot 1 retired" in done.stdout
    assert "node2 rail1" not in done.stdout
    assert (fleet / "plan/fabric/plan.json").read_bytes() == before
    (fleet / "hosts.ini").write_text(INVENTORY)

    before = (fleet / "plan/fabric/hosts/node2.json").read_text()
    cables = "gpu_nodes: {hosts: {node2: {fabric_cables: {rail1: {leaf: !unsafe 'su1-leaf 1', port: swp5}}}}}\n"
    (fleet / "cables.yml").write_text(cables)

    done = playbook(fleet, "-i", "cables.yml", "--diff")

    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("+node", "-node"))]
    assert [line.partition("pods")[2].partition(" cable")[2] for line in lines] == ["", " su1-leaf 1 swp5"]
    have = json.loads((fleet / "plan/fabric/hosts/node2.json").read_text())
    assert have.pop("cables") == {"rail1": {"leaf": "su1-leaf 1", "port": "swp5"}}
    assert have == json.loads(before)


def test_names_of_other_roles_and_of_single_hosts_are_looked_at_too(fleet):
    (fleet / "group_vars/gpu_nodes.yml").write_text("verify_max_error: 1\nrail_network_owner: me\n")
    (fleet / "group_vars/all.yml").write_text(SETTINGS + "fabric_owner: me\nverify_max_errors: 1\n")

    done = playbook(fleet)

    assert done.returncode == 2
    assert "hosts.node1.verify_max_error: No variable has this name" in done.stdout + done.stderr
    assert not (fleet / "plan").exists()

    (fleet / "group_vars/gpu_nodes.yml").write_text("rail_network_purge: false\n")
    done = playbook(fleet)
    words = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0
    assert "fabric_owner is not a variable of this collection." in words
    assert "hosts.node1.rail_network_purge is not a variable of this collection" in words
    assert "verify_max_errors is not" not in words


def test_refusals_are_lines_shown_once_each_fix_once(fleet):
    (fleet / "host_vars/node10.yml").write_text("fabric_node_name: No_10\n")
    (fleet / "host_vars/node2.yml").write_text("fabric_node_name: No_2\n")

    done = playbook(fleet)

    fix = "Set fabric_node_name to the name in `kubectl get nodes`"
    lines = done.stderr.splitlines()
    at = lines.index("2 problems in the input:")
    assert lines[at + 1].startswith("  - hosts.node2.fabric_node_name: ")
    assert lines[at + 2].startswith("    hosts.node10.fabric_node_name: ")
    assert lines[at + 3].startswith(f"    {fix}")
    for text in ("hosts.node2.", "hosts.node10.", fix, "Fix what is listed"):
        assert (done.stdout + done.stderr).count(text) == 1, text
    assert "2 problems in the input, as listed above." in done.stdout
    # Who looks at the failure gets all of it.
    (fleet / "book.yml").write_text(RESCUED)
    assert "CAUGHT hosts.node2.fabric_node_name: " in playbook(fleet, book="book.yml").stdout


def test_a_variable_that_cannot_be_resolved_is_not_taken_for_an_absent_one(fleet):
    (fleet / "host_vars/node10.yml").write_text("fabric_slot: '{{ missing }}'\n")
    (fleet / "group_vars/all.yml").write_text(
        SETTINGS + "fabric_mtu: '{{ nowhere }}'\nfabric_policy: '{{ elsewhere | default(omit) }}'\nfabric_node_pods:\n"
    )

    done = playbook(fleet)

    output = done.stdout + done.stderr
    assert done.returncode == 2
    assert "1 problem in the input" in output
    assert "fabric_mtu: It cannot be resolved: 'nowhere' is undefined" in output
    assert not (fleet / "plan").exists()
    done = playbook(fleet, "-e", "nowhere=9000")
    output = done.stdout + done.stderr
    assert done.returncode == 2
    assert "hosts.node10.fabric_slot: It cannot be resolved" in output
    assert "fabric_mtu" not in output


def test_site_plans_the_first_time_only(fleet, monkeypatch):
    """The parts behind the plan have tags of their own: no host is asked here."""
    temporary = fleet / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))

    def site(*more, tags="plan"):
        done = playbook(fleet, "--tags", tags, *more, book="site")
        assert not list(temporary.glob("railops-preview-*"))
        return done.returncode, done.stdout + done.stderr

    assert site("--check", tags="preview")[0] == 0
    assert site("--check")[0] == 0
    assert not (fleet / "plan").exists()
    assert site()[0] == 0
    assert site("--check")[0] == 0
    before = (fleet / "plan/fabric/plan.json").read_bytes()
    (fleet / "hosts.ini").write_text(INVENTORY.replace("node10\n", "node10\nnode11\n"))
    for words in ((), ("--check", "--diff")):
        code, output = site(*words)
        assert code == 2, output
        assert "no node is renumbered; nodes: 1 added" in output
        assert "Run railops.rdma.plan, review, commit." in output
        assert "Plan for the dry run" not in output
    assert (fleet / "plan/fabric/plan.json").read_bytes() == before
    # A limited run does not plan at all.
    assert site("--limit", "node11")[0] == 0
    assert site("--check", "-e", "fabric_plan_locked=false")[0] == 0
    assert (fleet / "plan/fabric/plan.json").read_bytes() == before
    assert site("-e", "fabric_plan_locked=false")[0] == 0
    assert slots(fleet)["node11"] == 2


TEMPLATE = "{{ lookup('pipe', 'touch CANARY; echo leaf1') }}"


@pytest.fixture
def evil(fleet):
    return TEMPLATE.replace("CANARY", str(fleet / "CANARY"))


@pytest.mark.parametrize("key", ["leaf", "port"])
def test_switch_name_is_not_executed(fleet, evil, key):
    """C1: a frame of LLDP named its sender by a template, and the next plan --check ran it."""
    neighbor = {"switch": "leaf1", "port": "swp5", "is_switch": True, {"leaf": "switch"}.get(key, key): evil}
    port = {"netdev": "ens1np0", "link_layer": "Ethernet", "state": "ACTIVE"}
    device = {"name": "mlx5_0", "pci": "0000:01:00.0", "vf": False, "nearest_gpus": [], "ports": [port]}
    info = {"gpus": [], "devices": [device], "default_interfaces": [], "lldp": {"ens1np0": neighbor}}
    args = {"register": "__info", "hosts": ["node1"], "dest": str(fleet / "discover")}
    action = action_of(rail_discover, args, templar=Templar(loader=None))
    action.run(task_vars={"hostvars": {"node1": {"__info": {"info": info}}}})
    given = [word for path in sorted((fleet / "discover").glob("*.yml")) for word in ("-i", str(path))]
    playbook(fleet, *given, "--check", "--diff")
    assert not (fleet / "CANARY").exists()


def test_what_is_still_a_template_is_refused_by_host_and_variable(fleet, evil):
    signs = {"node1": evil, "node2": evil, "node3": "leaf{% raw %}", "node4": "leaf{# 1 #}"}
    rows = {host: f"{{rail1: {{leaf: !unsafe {json.dumps(sign)}, port: swp5}}}}" for host, sign in signs.items()}
    (fleet / "host_vars/node1.yml").write_text(f"fabric_cables: '{{{{ given }}}}'\ngiven: {rows.pop('node1')}\n")
    hosts = ", ".join(f"{host}: {{fabric_cables: {given}}}" for host, given in rows.items())
    (fleet / "cables.yml").write_text(f"gpu_nodes: {{hosts: {{{hosts}}}}}\n")

    done = playbook(fleet, "-i", "cables.yml", "--check", "--diff")

    words = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 2
    for host, sign in signs.items():
        assert f"hosts.{host}.fabric_cables: It cannot be resolved: '{sign[:40]}' is still a template" in words
    assert not (fleet / "CANARY").exists()

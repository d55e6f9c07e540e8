# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The complete path on namespace hosts: from untouched to verified, broken, repaired, interrupted, taken back.

The tests of this file share one fleet and run in their order.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
import state as lab_state

CHECKOUT = Path(__file__).resolve().parents[2]
MOST_TASKS = 10
HOSTS = ("node1", "node2", "node3")


@pytest.fixture(scope="module")
def before(fleet):
    return {host: fleet.dump(host) for host in HOSTS}


@pytest.fixture(scope="module")
def site(fleet, before):
    """Bring the fleet to the plan once."""
    fleet.plan()
    return fleet.play("site")


def test_a_preview_of_an_untouched_fleet(fleet, before):
    run = fleet.play("site", "--check", "--diff", ANSIBLE_CONFIG=str(CHECKOUT / "inventory/ansible.cfg"))
    # Equal hosts share their lines: as many hosts as there are, these are what a person reads.
    assert len(run.output.splitlines()) <= 120, run.output
    assert "changed: [node[2-3]]: the same 50 changes as node1, each with its own addresses" in run.output
    for silent in ("included: ", "PLAY [Acquire the run lock]", "skipping: ", "ok: ["):
        assert silent not in run.output
    # What the tutorial shows is what these hosts print; its inventory is that of ansible.cfg.
    blocks = re.findall(r"^```text\n(.*?)^```", (CHECKOUT / "docs/get-started/tutorial.md").read_text(), re.M | re.S)
    printed = re.sub(r" -i \S+", "", run.output)
    assert [text for text in blocks if "DRY RUN" in text and text in printed], run.output
    assert "172.17.0.2/27" in run.output
    assert not (fleet.folder / "plan").exists()
    assert {host: fleet.dump(host) for host in HOSTS} == before
    assert not list(fleet.folder.glob("verify/*"))


def test_site_ends_green(fleet, site):
    verdict = fleet.verdict()
    assert verdict["status"] == "pass"
    assert set(verdict["hosts"]) == set(HOSTS)
    for entry in verdict["hosts"].values():
        assert set(entry["rails"].values()) == {"ok"}
        assert entry["counts"]["ok"] > 40
    names = {path.name for path in (fleet.folder / "verify/fabric").iterdir()}
    assert {"verdict.json", "verdict.md", "verdict.txt", "report.html", "hosts"} <= names


def test_what_was_not_looked_at_is_said(fleet, site):
    left = {check["id"] for check in fleet.verdict()["hosts"]["node1"]["checks"] if check["status"] == "skipped"}
    assert {"traffic_rdma", "rdma_devices", "driver_role", "nic_role", "rdma_role"} <= left
    assert fleet.verdict()["cluster"]["status"] == "skipped"
    assert " checks ran; skipped: " in site.output.replace("\n  ", " ")


def test_few_tasks_reach_a_host(site):
    """At most 10 module tasks a host in the host part; a skipped one would run on a host with all roles."""
    counts = Counter(
        task["host"]
        for task in site.tasks
        if task["module"] and task["play"].startswith(("Check all hosts", "Apply the plan to the hosts"))
    )
    assert set(counts) == set(HOSTS)
    assert max(counts.values()) <= MOST_TASKS


def test_all_roles_together_stay_within_the_tasks(fleet, site):
    """The same on a host that has every role, in check mode; what is only skipped here counts as well."""
    roles = ["rdma_driver", "nic_link_type", "rdma_host", "rail_network", "lossless_roce", "gpudirect"]
    words = ("--check", "--limit", "node1", "--tags", "hosts", "-e", json.dumps({"site_host_roles": roles}))
    run = fleet.play("hosts", *words)
    sent = [f"{task['status']} {task['task']}" for task in run.tasks if task["module"]]
    assert len(roles) <= len(sent) <= MOST_TASKS, sent


def test_conflicts_of_all_hosts_are_reported_at_once_and_nothing_is_changed(fleet, site):
    """Also in check mode."""
    held = {"node1": "172.17.0.1/16", "node3": "172.17.0.1/16"}
    for host, address in held.items():
        fleet.ip(host, "link", "add", "docker0", "type", "bridge")
        fleet.ip(host, "address", "add", address, "dev", "docker0")
    fleet.ip("node2", "route", "add", "192.0.2.0/24", "dev", "mgmt0", "table", "1003")
    fleet.ip("node2", "rule", "add", "fwmark", "7", "lookup", "77", "pref", "10007")
    # A manual second address in a rail's subnet does not conflict.
    fleet.ip("node2", "address", "add", "172.17.1.19/27", "dev", "ens2np0")
    before = {host: fleet.dump(host) for host in HOSTS}
    for playbook, *words in (("hosts",), ("site", "--check")):
        run = fleet.play(playbook, *words, SSH_CONNECTION="172.17.7.99 50000 198.51.100.1 22", code=2)
        reported = run.output.partition("Nothing was changed.")[2]
        assert "Ansible's connection comes from 172.17.7.99, inside of 172.17.0.0/21" in reported
        assert "172.17.1.19" not in reported
        assert "node[1,3]: 172.17.0.0/21" in reported
        assert "docker0 has on this host. Move that network" in reported
        assert "node2: the existing route `192.0.2.0/24 dev mgmt0 table 1003 scope link` uses" in reported
        assert reported.count("node2: the existing rule `10007: from all fwmark 7") == 1
        # A preview goes on, with the hosts without conflicts and with the others.
        went_on = {task["host"] for task in run.tasks if task["play"] == "Apply the plan to the hosts"}
        assert went_on == (set(HOSTS) if words else set())
    assert {host: fleet.dump(host) for host in HOSTS} == before
    fleet.ip("node2", "route", "del", "192.0.2.0/24", "dev", "mgmt0", "table", "1003")
    fleet.ip("node2", "rule", "del", "fwmark", "7", "lookup", "77", "pref", "10007")
    fleet.ip("node2", "address", "del", "172.17.1.19/27", "dev", "ens2np0")
    for host in held:
        fleet.ip(host, "link", "del", "docker0")


def test_a_run_without_a_change_has_few_lines_and_ends_with_what_was_not_done(fleet, site):
    run = fleet.play("site", ANSIBLE_CONFIG=str(CHECKOUT / "inventory/ansible.cfg"))
    assert run.changed() == [], run.output
    # Each host has a row in the verdict; a line names those without drift.
    assert len(run.output.splitlines()) <= 31 + len(HOSTS), run.output
    assert f"  Report: {fleet.folder.resolve()}/verify/fabric/report.html\n" in run.output
    # By its path, too.
    fleet.play(os.path.relpath(CHECKOUT / "playbooks/plan.yml", fleet.folder), "--check")


@pytest.mark.long
def test_a_counter_that_grew_since_the_last_audit_is_named(fleet, site):
    """A link that really flaps; and counters that no virtual port has, played by files over the port's own."""
    here, own = "/root/counters", "/sys/class/net/ens3np0/statistics"

    def on_node1(script):
        fleet.lab("exec", fleet.name, "--host", "node1", "--", "sh", "-ec", script)

    def audit():
        # Without RDMA in the kernel other checks of devices deviate.
        fleet.play("audit", "--limit", "node1,node2", "-e", "verify_devices=true", code=2)
        return {
            (host, check["rail"], check["id"]): (check["status"], check["observed"])
            for host, entry in fleet.verdict()["hosts"].items()
            for check in entry["checks"]
            if check["id"].startswith("port_") and check["status"] in ("deviation", "warning")
        }

    on_node1(f"mkdir -p {here}; cp {own}/* {here}; echo 100 >{here}/out_of_sequence; mount --bind {here} {own}")
    try:
        assert audit() == {}
        on_node1(f"echo 7 >{here}/rx_crc_errors; echo 900 >{here}/out_of_sequence")
        for _time in range(2):
            fleet.lab("cable", fleet.name, "node2", "ens7np0", "pull")
            fleet.lab("cable", fleet.name, "node2", "ens7np0", "plug")
        assert audit() == {
            ("node1", "rail3", "port_errors"): ("deviation", "rx_crc_errors +7"),
            ("node1", "rail3", "port_order"): ("warning", "out_of_sequence +800"),
            ("node2", "rail7", "port_flaps"): ("deviation", "carrier_down_count +2"),
        }
        # What was reported once is what the next audit begins with.
        assert audit() == {}
    finally:
        on_node1(f"umount {own}")


def test_an_unreachable_host_is_left_out_and_listed(fleet, site):
    gone = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    extra = fleet.folder / "zz-gone.yml"
    extra.write_text(json.dumps({"all": {"hosts": {"node3": gone}}}), encoding="utf-8")
    run = fleet.play("site", "-i", str(extra), code=4)
    assert "node3: No SSH server answers." in run.output
    verdict = fleet.verdict()
    assert verdict["status"] == "incomplete"
    assert verdict["hosts"]["node3"]["status"] == "unreachable"
    assert verdict["hosts"]["node1"]["status"] == "pass"


@pytest.mark.long
def test_a_lost_plan_renumbers_no_node(fleet, site):
    """The plan is lost, and a new one gives two nodes each other's addresses."""
    extra = fleet.folder / "swapped.yml"
    slots = {host: {"fabric_slot": slot} for host, slot in (("node1", 2), ("node3", 0))}
    extra.write_text(json.dumps({"all": {"hosts": slots}}), encoding="utf-8")
    before = {host: fleet.dump(host) for host in HOSTS}
    words = ("site", "-i", str(extra), "--tags", "plan,preflight", "-e", "fabric_plan_dir=lost")
    run = fleet.play(*words, code=2)
    assert "has 172.17.0.2, and this plan gives it 172.17.0.66: it would be renumbered" in run.output
    assert "node3: 172.17.0.66 is here, and this plan gives it to node1." in run.output
    assert "node2: " not in run.output.partition("The run stops here")[2]
    assert "fabric_allow_renumber=true" in run.output
    fleet.play(*words, "-e", "fabric_allow_renumber=true")
    assert {host: fleet.dump(host) for host in HOSTS} == before


@pytest.mark.long
def test_one_node_leaves_and_comes_back(fleet, site, before):
    """As in docs/guides/nodes.md; no other node changes."""
    planned = {host: fleet.dump(host) for host in HOSTS}
    fleet.ip("node1", "rule", "del", "pref", "10001")
    fleet.play("teardown", "--limit", "node3")
    assert fleet.dump("node3")["rules"] == before["node3"]["rules"]
    assert fleet.dump("node3")["routes"] == before["node3"]["routes"]
    assert fleet.dump("node2") == planned["node2"]
    fleet.play("site", "--limit", "node3")
    assert set(fleet.verdict()["hosts"]) == {"node3"}
    assert "10001:" not in fleet.ip("node1", "rule"), "a limited run repairs its own hosts"
    fleet.play("hosts", "--limit", "node1")
    assert {host: fleet.dump(host) for host in HOSTS} == planned


def started(fleet):
    """Start site, and return when the first host has its rails."""
    applied = "Apply all rails and confirm over a new connection"
    running = fleet.begin("site", lambda: applied in fleet.tasks.read_text(encoding="utf-8"))
    assert running.poll() is None
    return running


@pytest.mark.long
def test_a_host_that_dies_in_a_batch_is_named(fleet, site):
    """The canary is done; node3 dies before the batch reaches it. The next complete run brings the rest."""
    for host in HOSTS:
        fleet.ip(host, "rule", "del", "pref", "10001")
    interpreter = lab_state.folder(fleet.name) / "node3/python"
    running = started(fleet)
    interpreter.chmod(0)
    try:
        assert running.wait(600) != 0
    finally:
        interpreter.chmod(0o755)
    verdict = fleet.verdict()
    assert verdict["status"] in ("error", "incomplete")
    assert verdict["hosts"]["node3"]["status"] in ("error", "unreachable")
    assert verdict["hosts"]["node3"]["error"]
    assert "lookup 1001" in fleet.ip("node1", "rule")


@pytest.mark.long
def test_an_interrupted_run_is_finished_by_the_next(fleet, site):
    for host in HOSTS:
        fleet.lab("exec", fleet.name, "--host", host, "--", "ip", "rule", "del", "pref", "10001", check=False)
    running = started(fleet)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(30)
    assert fleet.verdict()["status"] == "incomplete"
    # Killed between the change and its confirmation, a host waits for its timer; the next run takes the change over.
    fleet.play("site")
    assert fleet.verdict()["status"] == "pass"


def test_teardown_names_a_users_route_by_our_gateway_before_it_changes_a_host(fleet, site):
    via = fleet.ip("node3", "route", "show", "table", "1001").partition(" via ")[2].split()[0]
    route = ("203.0.113.0/24", "via", via, "dev", "ens1np0", "metric", "300")
    fleet.ip("node3", "route", "add", *route)
    run = fleet.play("teardown", code=2)
    fleet.ip("node3", "route", "delete", *route)
    assert "Nothing was changed." in run.output
    assert f"`ip route delete {' '.join(route)}`" in " ".join(run.output.split())
    assert run.changed() == []


def test_teardown_leaves_the_kernel_as_it_was(fleet, site, before):
    run = fleet.play("teardown")
    assert "What stays on the hosts: packages" in " ".join(run.output.split())
    for host in HOSTS:
        after = fleet.dump(host)
        assert after["rules"] == before[host]["rules"]
        assert after["routes"] == before[host]["routes"]
        assert after["addresses"] == before[host]["addresses"]
    assert fleet.play("teardown").changed() == []

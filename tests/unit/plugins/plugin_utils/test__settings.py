# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and values of variables, over all hosts, before anything is touched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible.errors import AnsibleError

from ansible_collections.railops.rdma.plugins.plugin_utils._settings import (
    PATTERNS,
    PLAYBOOKS,
    closest_name,
    known_variables,
    name_problems,
    problems,
    repeated_hosts,
    tag_problems,
    value_problems,
)
from ansible_collections.railops.rdma.tests.unit.playbook_run import play

INVENTORY = "[gpu_nodes]\nnode1 ansible_connection=local\n"
CHECKOUT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("site_seriel", "site_serial"),
        ("site_sreial", "site_serial"),
        ("Fabric_mtu", "fabric_mtu"),
        ("fabric-mtu", "fabric_mtu"),
        ("fabric_vlna", "fabric_vlan"),
        ("verify_trafic", "verify_traffic"),
        ("audit_podss", "audit_pods"),
        ("teardown_in_us", "teardown_in_use"),
    ],
)
def test_a_slip_is_refused_with_what_was_meant(slip, meant):
    (problem,) = name_problems({slip: f"hosts.node1.{slip}"})
    assert (problem.place, problem.fix) == (f"hosts.node1.{slip}", f"Write {meant}. [variable_unknown]")


@pytest.mark.parametrize(
    "name",
    ["site_name", "audit_mail_to", "verify_owner", "ansible_user", "cluster_name", "ntp_servers", "_site_serial"],
)
def test_any_other_name_is_the_sites_own(name):
    assert name_problems({name: name}) == []


def test_no_two_names_of_ours_are_a_slip_of_each_other():
    known = known_variables()
    assert [closest_name(name, known) for name in known if closest_name(name, known)] == []


def test_near_is_one_edit():
    assert closest_name("abcd", ["abdc"]) == "abdc"
    assert closest_name("abcd", ["abcde", "xbcd"]) == "abcde"
    assert [closest_name("abcd", [other]) for other in ("abcd", "badc", "ab", "dbca")] == ["", "", "", ""]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"verify_traffic": "pings"}, "verify_traffic: value of verify_traffic must be one of"),
        ({"rail_network_gateways": "requires"}, "rail_network_gateways"),
        ({"site_host_roles": ["rail_networks"]}, "site_host_roles"),
        ({"site_serial": ["two"]}, "site_serial is 'two': it is a number of hosts such as 2"),
        ({"site_serial": "0"}, "site_serial is '0'"),
        ({"site_max_excluded": -1}, "site_max_excluded is '-1'"),
        ({"site_max_excluded": ["5%"]}, "it is a number of hosts or a share such as 5%"),
        ({"audit_loss_percent": 101}, "audit_loss_percent is '101'"),
        ({"verify_gate_max_unavailable": "many"}, "verify_gate_max_unavailable is 'many'"),
        ({"audit_gate": True}, "audit_gate: value of audit_gate must be one or more of"),
        ({"teardown_in_use": "perhaps"}, "teardown_in_use"),
        (
            {"verify_gate_ignore": ["roce_trust", "roce_trusst"]},
            "verify_gate_ignore has roce_trusst: no such",
        ),
        ({"verify_gate_ignore": "traffic"}, "verify_gate_ignore has traffic: no such check ID. Write traffic_"),
        ({"verify_gate_ignore": ["port_eror"]}, "verify_gate_ignore has port_eror: no such check ID."),
        ({"verify_require": ["traffic", "trafic"]}, "verify_require has trafic: no such check ID. Write traffic."),
    ],
)
def test_a_value_that_cannot_be_is_named(values, words):
    (found,) = value_problems(values)
    assert words in found


def test_what_can_be_is_not():
    fine = {
        "site_serial": [1, "20%"],
        "site_max_fail_percentage": "12.5",
        "site_max_excluded": "10%",
        "site_host_roles": ["rail_network"],
        "audit_gate": ["kubernetes"],
        "verify_gate_max_unavailable": "10%",
        "verify_gate_ignore": "roce_trust,port_errors",
        "verify_require": ["traffic", "pod_read", "pod_read_lat"],
        "verify_traffic": "ping",
    }
    assert value_problems(fine) == []


def test_equal_values_are_said_once_with_folded_names_and_what_is_not_known_yet_is_left():
    hosts = {
        f"gpu-{number:02}": {"rail_network_gateways": "requires" if number < 4 else "ignore"} for number in range(9)
    }
    hosts["localhost"] = {"verify_traffic": "{{ later }}", "site_seriel": 1}

    def resolved(host, name):
        value = hosts[host][name]
        if "{{" in str(value):
            raise AnsibleError("undefined")
        return value

    found = problems(hosts, resolved)
    assert found[0].startswith("site_seriel: ")
    assert [line.partition(":")[0] for line in found[1:]] == ["gpu-[00-03]"]


def decided(hosts):
    """Return the problems with variables that decide; a template is a name in braces."""
    return problems(hosts, lambda host, name: hosts[host].get(str(hosts[host][name]).strip("{ }")))


def test_a_variable_that_decides_is_compared_once_for_all_hosts_that_have_it_so():
    hosts = {f"gpu-{number}": {"fabric_name": "{{ cluster }}", "cluster": "a", "a": "A"} for number in range(9)}
    assert decided({**hosts, "localhost": hosts["gpu-0"]}) == []
    hosts["gpu-7"] = hosts["gpu-8"] = {**hosts["gpu-0"], "cluster": "b"}
    (text,) = decided({**hosts, "localhost": hosts["gpu-0"]})
    assert text.startswith("gpu-[7-8]: fabric_name is '{{ cluster }}', and localhost has 'a'. Set it in ")


def test_comments_and_tabs_of_an_ini_inventory_repeat_no_host(tmp_path):
    path = tmp_path / "hosts"
    lines = ["[gpu_nodes]", "; rack 1", "node1\tslot=1", ";node2", "; rack 2", "# node1", "[gpu_nodes:vars]", "node1=1"]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [*repeated_hosts("gpu_nodes", [str(path)])] == []
    path.write_text("\n".join([*lines, "[gpu_nodes]", "  node1  slot=2"]), encoding="utf-8")
    (problem,) = repeated_hosts("gpu_nodes", [str(path)])
    assert problem.problem.startswith("node1 is twice in [gpu_nodes], lines 3 and 10: ")


def test_a_fact_of_a_host_does_not_stop_the_others(monkeypatch):
    """The host's own first task is refused."""
    hosts = {"node1": {"fabric_name": "other", "ansible_facts": {"fabric_name": "other"}}, "localhost": {}}
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "true")
    assert decided(hosts) == []
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "false")
    assert len(decided(hosts)) == 1


def test_every_variable_that_a_playbook_reads_is_known():
    paths = [*(CHECKOUT / "playbooks").glob("*.yml"), *CHECKOUT.glob("roles/*/defaults/main.yml")]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    prefixes = "site|audit|teardown|merge|discover"
    read = set(re.findall(rf"(?<!\w)(?<!rdma\.)(?:{prefixes})_[a-z_]+(?=[ |)\]}}]| is )", text))
    assert len(read) > 14
    assert read - {*PLAYBOOKS, *PATTERNS} == set()


def test_the_playbooks_check_before_anything_is_touched(tmp_path):
    (tmp_path / "hosts").write_text(f"{INVENTORY}[all:vars]\nsite_seriel=1\n", encoding="utf-8")
    for book in ("site", "hosts", "cluster", "audit", "teardown"):
        done = play(tmp_path, "-i", "hosts", f"railops.rdma.{book}", "--limit", "node1")
        assert done.returncode == 2, book
        assert "\nNothing was changed. Correct the inventory:\n  - site_seriel: " in done.stderr, book
        assert (done.stdout + done.stderr).count("Write site_serial.") == 1, book
        assert sorted(path.name for path in tmp_path.iterdir()) == ["hosts"], book


def test_a_tag_that_no_task_has_is_named_with_the_nearest():
    known = ["all", "rail_network", "plan", "preflight", "verify_gate", "fabric_plan"]
    assert tag_problems(known, select=True) == tag_problems([*known, "rail_network_persist"]) == []
    for wrong in ("rail_netwrok", "rail_network_persist"):
        (line,) = tag_problems(["hosts", wrong], select=True)
        assert line.startswith(f"{wrong}: the nearest is rail_network.")


def _played(folder, *more):
    (folder / "hosts").write_text(INVENTORY, encoding="utf-8")
    return play(folder, "-i", "hosts", *more)


@pytest.mark.parametrize("book", ["railops.rdma.hosts", "railops.rdma.plan", "mine.yml"])
def test_a_run_of_ours_is_refused_for_a_tag_that_does_nothing(tmp_path, book):
    (tmp_path / "mine.yml").write_text("- import_playbook: railops.rdma.merge\n", encoding="utf-8")
    done = _played(tmp_path, book, "--tags", "rail_netwrk")
    assert done.returncode == (0 if book == "mine.yml" else 2), done.stdout
    assert "rail_netwrk: the nearest is rail_network." in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--skip-tags", "rail_network"), "Preflight was skipped: a host with"),
        (("--start-at-task", "Set lossless RoCE"), "Preflight was skipped by --start-at-task"),
    ],
)
def test_a_run_without_preflight_says_so_once(tmp_path, words, text):
    planned = ("-e", f"fabric_plan_dir={CHECKOUT / 'docs/example-plan'}")
    done = _played(tmp_path, "railops.rdma.hosts", *words, *planned, "-e", '{"site_host_roles": []}')
    assert done.returncode == 0, done.stdout
    assert text in done.stdout
    assert done.stdout.count("Preflight was skipped") == 1

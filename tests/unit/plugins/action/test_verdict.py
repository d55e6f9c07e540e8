# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action verdict before a change: every host must be in the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible.template import Templar

from ansible_collections.railops.rdma.plugins.action import verdict
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts
from ansible_collections.railops.rdma.tests.unit.playbook_run import play
from ansible_collections.railops.rdma.tests.unit.playbooks import LOADER, content

CHECKOUT = Path(__file__).resolve().parents[4]


def begin(tmp_path, names, hostvars=None, **more):
    args = {
        "plan_dir": str(tmp_path / "fabric"),
        "verify_dir": str(tmp_path / "verify"),
        "hosts": names,
        "phase": "begin",
        **more,
    }
    return action_of(verdict, args).run(task_vars={"hostvars": hostvars or {}})


@pytest.fixture
def planned(tmp_path):
    plan({**exclusive(), "plan_dir": str(tmp_path)}, hosts(2), check_mode=False)
    return tmp_path


def test_all_hosts_of_the_plan_may_begin(planned):
    begin(planned, ["node1", "node2"], planned=True)
    assert (planned / "verify/verdict.json").exists()


def test_a_host_without_a_host_plan_is_named_before_anything_is_changed(planned):
    with pytest.raises(AnsibleActionFail, match=r"1 of 2 hosts .*node9.*railops\.rdma\.plan"):
        begin(planned, ["node1", "node9"], planned=True)
    assert not (planned / "verify").exists()


def test_a_host_plan_that_was_edited_is_refused_before_anything_is_changed(planned):
    path = planned / "fabric/hosts/node2.json"
    content = json.loads(path.read_text())
    content["rails"][3]["addresses"][0]["address"] = "172.17.9.2"
    path.write_text(json.dumps(content))
    with pytest.raises(AnsibleActionFail, match=r"hosts files .* are not those .*railops\.rdma\.plan"):
        begin(planned, ["node1", "node2"], planned=True)
    assert not (planned / "verify").exists()


def test_verification_passes_over_a_host_without_a_host_plan(planned):
    begin(planned, ["node1", "node9"])
    assert (planned / "verify/verdict.json").exists()


def test_a_finished_verdict_has_a_time_and_metrics_and_one_that_began_has_none(planned):
    begin(planned, ["node1"])
    assert not (planned / "verify/verdict.prom").exists()
    begin(planned, ["node1"], phase="finish", fail=False, show=False)
    found = json.loads((planned / "verify/verdict.json").read_text())
    assert (
        f'railops_audit_timestamp_seconds{{fabric="fabric"}} {found["time"]:.15g}\n'
        in (planned / "verify/verdict.prom").read_text()
    )


def test_the_last_verdicts_are_kept(planned):
    for _run in range(3):
        begin(planned, ["node1"], phase="finish", fail=False, show=False, history=2)
    found = json.loads((planned / "verify/verdict.json").read_text())
    kept = json.loads((planned / "verify/history.json").read_text())["verdicts"]
    assert [row["time"] for row in kept] == sorted((row["time"] for row in kept), reverse=True)
    assert len(kept) == 2
    assert kept[0]["time"] == found["time"]
    assert kept[0]["causes"] == [{"check": "host_result", "hosts": ["node1"], "rails": [], **sentence(found)}]
    (planned / "verify/history.json").write_text('{"verdicts": [{"time": "x"}]}')
    begin(planned, ["node1"], phase="finish", fail=False, show=False, history=2)
    assert len(json.loads((planned / "verify/history.json").read_text())["verdicts"]) == 1, "a broken file is replaced"


@pytest.mark.parametrize(
    "path", ["roles/verify/tasks/finish.yml", "roles/accept/tasks/main.yml", "playbooks/merge.yml"]
)
def test_every_run_keeps_as_many_verdicts_as_the_option_says(path):
    def tasks(rows):
        for row in rows:
            yield from tasks([*row.get("tasks", ()), *row.get("block", ())])
            yield row

    (task,) = (row["railops.rdma.verdict"] for row in tasks(content(path)) if "railops.rdma.verdict" in row)
    assert int(Templar(loader=LOADER, variables={"verify_keep": 3}).template(task["history"])) == 3


def sentence(verdict):
    return {"sentence": verdict["causes"][0]["sentence"]}


def test_the_report_is_named_by_its_full_path_also_where_the_run_fails(planned, capsys, monkeypatch):
    monkeypatch.chdir(planned)
    begin(planned, ["node1"])
    left = planned / "verify/hosts/node1.json"
    left.parent.mkdir(exist_ok=True)
    left.write_text(json.dumps({"host": "node1", "error": "It is broken.", "checks": [], "facts": {}}))
    with pytest.raises(AnsibleActionFail, match=f"Read {planned}/verify/report.html: "):
        begin(planned, ["node1"], phase="finish", verify_dir="verify")
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert last == f"  Report: {planned}/verify/report.html"


def test_an_error_that_many_hosts_share_is_reported_once(planned):
    begin(planned, ["node1", "node2"])
    (planned / "verify/hosts").mkdir(exist_ok=True)
    for name in ("node1", "node2"):
        left = planned / f"verify/hosts/{name}.json"
        left.write_text(json.dumps({"host": name, "error": "It is broken.", "checks": [], "facts": {}}))
    with pytest.raises(AnsibleActionFail, match=r"deviations\. node\[1-2\]: It is broken\. Read "):
        begin(planned, ["node1", "node2"], phase="finish", show=False)


def test_a_misspelt_requirement_is_refused_when_a_verification_begins(planned):
    tasks = yaml.safe_load((CHECKOUT / "roles/verify/tasks/begin.yml").read_text(encoding="utf-8"))
    (task,) = (task for task in tasks if "railops.rdma.verdict" in task)
    assert task["railops.rdma.verdict"]["require"] == "{{ verify_require }}"
    with pytest.raises(AnsibleActionFail, match="require has rdma_tarffic: no such check ID"):
        begin(planned, ["node1", "node2"], require=["rdma_tarffic"])
    assert not (planned / "verify").exists()


ENDS = """
- hosts: gpu
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        __{0}_verdict: {failure: "One cause.", failed_on: [localhost, node2]}
      run_once: true
      delegate_to: localhost
      delegate_facts: true
"""


@pytest.mark.parametrize("role", ["verify", "accept"])
def test_a_run_fails_on_localhost_and_where_the_deviation_is(tmp_path, role):
    book = yaml.safe_load((CHECKOUT / f"playbooks/{role}.yml").read_text(encoding="utf-8"))
    (last,) = [{**one, "ansible.builtin.import_playbook": "railops.rdma.verdict"} for one in book[-1:]]
    text = ENDS.replace("{0}", role) + yaml.safe_dump([last])
    (tmp_path / "end.yml").write_text(text, encoding="utf-8")
    (tmp_path / "hosts").write_text("[gpu]\nnode[1:3]\n", encoding="utf-8")
    done = play(tmp_path, "-i", "hosts", "end.yml")
    recap = done.stdout.rpartition("PLAY RECAP")[2]
    failed = {line.split()[0]: "failed=1" in line for line in recap.splitlines() if " : " in line}
    assert failed == {"localhost": True, "node1": False, "node2": True}, done.stdout + done.stderr
    assert play(tmp_path, "-i", "hosts", "end.yml", "-e", f"{role}_fail=false").returncode == 0


def test_a_dry_run_with_problems_fails_on_localhost_only(tmp_path):
    (tmp_path / "hosts").write_text("[gpu_nodes]\nnode[1:2] ansible_connection=local\n", encoding="utf-8")
    facts = {"ansible.builtin.set_fact": {"__site_conflicts": ["wrong"]}}
    book = [{"hosts": "gpu_nodes", "gather_facts": False, "tasks": [facts]}]
    book.append({"ansible.builtin.import_playbook": "railops.rdma.preview_end"})
    (tmp_path / "end.yml").write_text(yaml.safe_dump(book), encoding="utf-8")
    done = play(tmp_path, "-i", "hosts", "end.yml", "--check")
    recap = done.stdout.rpartition("PLAY RECAP")[2]
    failed = {line.split()[0]: "failed=1" in line for line in recap.splitlines() if " : " in line}
    assert failed == {"localhost": True, "node1": False, "node2": False}, done.stdout + done.stderr
    assert play(tmp_path, "-i", "hosts", "end.yml", "--check", "--limit", "node1").returncode == 2

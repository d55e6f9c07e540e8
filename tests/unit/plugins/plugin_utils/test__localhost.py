# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What decides on the controller or in the cluster comes from localhost, and no module's answer sets a variable."""

from __future__ import annotations

import json
import sys
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.plugins.action import ActionBase
from jinja2 import Environment, nodes

from ansible_collections.railops.rdma.plugins.plugin_utils._localhost import DECIDING, INJECTED, defaults, differing
from ansible_collections.railops.rdma.tests.unit import playbook_run
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.machines import put
from ansible_collections.railops.rdma.tests.unit.test_variables_as_text import Loader

CHECKOUT = Path(__file__).resolve().parents[4]
Json = dict[str, t.Any]
USUAL = defaults()["verify_plan_dir"]


# --- which values are refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "theirs", "wrong"),
    [
        pytest.param({}, {}, [], id="nothing-is-set"),
        pytest.param({"fabric_name": "a"}, {"fabric_name": "a"}, [], id="group_vars-all"),
        pytest.param({"fabric_name": "a"}, {}, ["fabric_name"], id="only-the-host"),
        pytest.param({}, {"fabric_name": "a"}, ["fabric_name"], id="only-localhost"),
        pytest.param({"fabric_name": "a"}, {"fabric_name": "b"}, ["fabric_name"], id="two-values"),
        pytest.param({"fabric_plan_dir": "{{ here }}/plan"}, {"fabric_plan_dir": "HERE/plan"}, [], id="a-template"),
        pytest.param({"fabric_plan_dir": "{{ me }}"}, {"fabric_plan_dir": "b"}, ["fabric_plan_dir"], id="a-host's-own"),
        pytest.param({"verify_plan_dir": USUAL}, {}, [], id="the-role's-default"),
        pytest.param(
            {"verify_plan_dir": USUAL},
            {"verify_plan_dir": "/x"},
            ["verify_plan_dir"],
            id="not-localhost's",
        ),
        pytest.param({"verify_plan_dir": "/x"}, {}, ["verify_plan_dir"], id="a-caller's-vars"),
        pytest.param({"verify_dir": "{{ upgrade_dir }}"}, {"verify_dir": "/x"}, [], id="what-our-roles-say"),
        pytest.param({}, {"verify_dir": "/x"}, [], id="another-role's"),
        pytest.param({"verify_gate": "{{ audit_gate | default([]) }}"}, {}, [], id="what-our-playbooks-say"),
        pytest.param({"rdma_host_drain_timeout": 5, "rail_network_state": "absent"}, {}, [], id="a-host's-choices"),
        pytest.param(
            {"verify_dir": "/x", "fabric_context": "y"}, {}, ["fabric_context", "verify_dir"], id="all-at-once"
        ),
    ],
)
def test_a_value_that_is_not_localhosts_is_refused(mine: Json, theirs: Json, wrong: list[str]) -> None:
    found = differing(mine, theirs, lambda name: str(mine[name]).replace("{{ here }}", "HERE"))
    assert sorted(line.partition(" is ")[0] for line in found) == wrong


def test_a_refusal_repeats_at_most_forty_printable_characters() -> None:
    (text,) = differing({"verify_dir": "\x1b[2J" + "x" * 1000}, {}, str)
    assert "\x1b" not in text
    assert len(text) < 100


# --- what answers say -------------------------------------------------------------------------------------------------


def test_no_answer_sets_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {
        "fabric_kubeconfig": "/etc/shadow",
        "ansible_mounts": [],
        "discovered_interpreter_python": "/usr/bin/python3",
    }
    answer = {"changed": False, "info": {}, "ansible_facts": facts}
    monkeypatch.setattr(ActionBase, "_execute_module", lambda *_args, **_more: dict(answer))
    result = action_of("rdma_info", {}).run(task_vars={"inventory_hostname": "node1"})
    # The last is core's own, which takes it out of what modules say: without it each task looks for a Python again.
    assert result["ansible_facts"] == {"discovered_interpreter_python": "/usr/bin/python3"}
    assert result["warnings"] == [INJECTED]
    monkeypatch.setattr(ActionBase, "_execute_module", lambda *_args, **_more: {"changed": False, "ansible_facts": {}})
    assert "ansible_facts" not in action_of("rdma_info", {}).run(task_vars={"inventory_hostname": "node1"})


def test_values_of_a_release_are_not_in_what_vvv_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"values": {"imageCredentials": {"password": "hunter2"}}, "release": "manifest hunter2", "context": "blue"}
    answer = {"changed": False, "invocation": {"module_args": given}}
    monkeypatch.setattr(ActionBase, "_execute_module", lambda *_args, **_more: answer)
    result = action_of("cluster_components_info", {}).run(task_vars={"inventory_hostname": "localhost"})
    assert result["invocation"] == {"module_args": {"context": "blue"}}


def test_every_module_has_an_action_that_begins_with_ours() -> None:
    modules = {path.stem for path in (CHECKOUT / "plugins/modules").glob("*.py")}
    actions = {path.stem: path.read_text(encoding="utf-8") for path in (CHECKOUT / "plugins/action").glob("*.py")}
    routing = yaml.safe_load((CHECKOUT / "meta/runtime.yml").read_text(encoding="utf-8"))["plugin_routing"]["modules"]
    routed = {name: row["action_plugin"].rpartition(".")[2] for name, row in routing.items() if "action_plugin" in row}
    assert modules == {*actions, *routed}
    assert set(routed) & set(actions) == set()
    assert set(routed.values()) == {"rdma_info", "cluster_objects"}
    bases = ("(FabricAction)", "(ModuleAction)", "(ProgressAction)")
    assert [name for name, text in actions.items() if not any(base in text for base in bases)] == []


# --- with real runs ---------------------------------------------------------------------------------------------------

PROBE = """\
- ansible.builtin.import_playbook: railops.rdma.settings
- hosts: {hosts}
  gather_facts: false
  vars: {vars}
  tasks:
    {before}
    - name: Look
      railops.rdma.verify_result: {{plan_dir: here, verify_dir: out}}
      {once}
    - name: Say
      ansible.builtin.debug:
        msg: "localhost says {{{{ hostvars['localhost'].fabric_name | default('none') }}}}"
"""


class Runs:
    """Plays over two hosts without a connection: the action works on the controller only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        put(folder, "hosts.yml", "gpu_nodes: {hosts: {node1: , node2: }}\n")
        put(folder, "group_vars/all.yml", "fabric_name: mine\n")

    def play(self, *words: str, hosts: str = "gpu_nodes", vars_: str = "{}", once: str = "", before: str = "") -> str:
        """Run the play; return what it printed."""
        put(self.folder, "play.yml", PROBE.format(hosts=hosts, vars=vars_, once=once, before=before))
        done = playbook_run.play(self.folder, "-i", "hosts.yml", "play.yml", *words, COLUMNS="400")
        return " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.mark.parametrize("words", [(), ("--limit", "node2")])
def test_the_implicit_localhost_has_group_vars_all_and_what_e_gives(runs: Runs, words: tuple[str, ...]) -> None:
    text = runs.play(*words)
    assert "localhost says mine" in text, text
    assert "localhost_differs" not in text, text
    text = runs.play("-e", "fabric_name=given", *words)
    assert "localhost says given" in text, text
    assert "localhost_differs" not in text, text


@pytest.mark.parametrize("words", [(), ("--limit", "node1")])
def test_differing_host_values_are_refused(runs: Runs, words: tuple[str, ...]) -> None:
    put(runs.folder, "host_vars/node2.yml", "fabric_name: other\nverify_dir: /tmp/mine\n")
    text = runs.play(*words)
    assert "node2: fabric_name is 'other', and localhost has 'mine'. Set it in group_vars/all or with -e" in text, text
    assert "node2: verify_dir is '/tmp/mine', and localhost has none. Set it in group_vars/all or with -e" in text, text
    assert text.count("localhost_differs") == 2, text
    assert "TASK [Look]" not in text, text


def test_the_vars_of_a_play_over_hosts_are_refused_and_those_of_one_on_localhost_are_not(runs: Runs) -> None:
    given = "{fabric_plan_dir: elsewhere, verify_dir: there}"
    text = runs.play(vars_=given, once="run_once: true")
    none = "and localhost has none"
    reported = (
        f"node1 differ from localhost's: fabric_plan_dir is 'elsewhere', {none}; verify_dir is 'there', {none}. Set it"
    )
    assert reported in text, text
    assert text.count("localhost_differs") == 1, text
    assert "localhost_differs" not in runs.play(hosts="localhost", vars_=given)


def test_a_fact_of_anybodys_module_is_refused_with_the_line_for_the_configuration(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a user's own tasks gather, or a cache of facts has: ours gather nothing that sets a variable."""
    facts = {"changed": False, "ansible_facts": {"fabric_kubeconfig": "/etc/shadow"}}
    put(
        runs.folder,
        "library/lies.py",
        f"#!/usr/bin/python\n# from ansible.module_utils.basic\nprint({json.dumps(facts)!r})\n",
    )
    python = f"vars: {{ansible_python_interpreter: {sys.executable}}}"
    lies = f"- {{name: Lie, lies: , connection: local, when: inventory_hostname == 'node1', {python}}}"
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "true")
    text = runs.play(before=lies)
    assert text.count("set fabric_kubeconfig by its facts") == 1, text
    assert "node1 set fabric_kubeconfig by its facts. inject_facts_as_vars is on" in text, text
    monkeypatch.setenv("ANSIBLE_INJECT_FACT_VARS", "false")
    assert "by its facts" not in runs.play(before=lies)


# --- what tasks read --------------------------------------------------------------------------------------------------

ON_LOCALHOST = ("fabric", "rail_objects", "spiderpool")
"""Roles that are played on localhost alone, and files of others that are."""
LOCAL_FILES = (
    "verify/tasks/api.yml",
    "verify/tasks/cluster.yml",
    "verify/tasks/controller.yml",
    "verify/tasks/plan.yml",
)
INCLUDES = tuple(f"ansible.builtin.{word}_{kind}" for word in ("import", "include") for kind in ("role", "tasks"))
CHOICES = {
    # Numbers, booleans and choices, which are checked and may be a host's own; and what acceptance and traffic ask for.
    *("accept_collective_timeout", "accept_devices", "accept_fail", "accept_gpu", "accept_image_pull_secrets"),
    *("accept_limits", "accept_max_latency_us", "accept_min_gbits", "accept_min_gbits_loaded", "accept_min_gbytes"),
    *("accept_port", "accept_resume", "accept_seconds", "accept_min_relative_percent", "accept_show", "accept_stages"),
    *("accept_timeout", "accept_tolerations"),
    *("discover_rail_names", "fabric_attachment", "fabric_ipam", "fabric_network"),
    *("lossless_roce_show_switch", "lossless_roce_state"),
    *("rdma_host_drain", "rdma_host_drain_delete_emptydir", "rdma_host_drain_force", "rdma_host_drain_grace_period"),
    *("rdma_host_drain_timeout", "rdma_host_purpose", "rdma_host_reboot"),
    # Compared with the host plan by the action in front of cluster_nodes, which every drain begins with.
    "rdma_host_node_name",
    *("upgrade_delay", "upgrade_max_unavailable"),
    *("verify_fail", "verify_keep", "verify_require", "verify_show"),
}
MAGIC = {"groups", "hostvars", "inventory_hostname", "item", "omit", "role_path", "playbook_dir", "lookup", "dict"}
Task = tuple[str, str, Json]


def read(path: Path) -> t.Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader)


def files() -> t.Iterator[tuple[Path, list[Json], Json]]:
    """Give the tasks of plays over hosts, by file, with the variables of their play or role."""
    for path in sorted(CHECKOUT.glob("playbooks/*.yml")):
        for play in read(path):
            if play.get("hosts", "localhost") != "localhost":
                yield path, play.get("tasks", []), play.get("vars", {})
    for path in sorted(CHECKOUT.glob("roles/*/tasks/*.yml")):
        role = path.parents[1]
        if role.name not in ON_LOCALHOST and str(path.relative_to(CHECKOUT / "roles")) not in LOCAL_FILES:
            own = role / "vars/main.yml"
            yield path, read(path), read(own) if own.exists() else {}


def once(tasks: list[Json], known: Json, inherited: bool) -> t.Iterator[tuple[Json, Json]]:
    """Give the tasks that run once for all hosts, or on another one, with the variables that they see."""
    for task in tasks:
        mine = inherited or bool(task.get("run_once")) or "delegate_to" in task
        seen = {**known, **task.get("vars", {})}
        # What module_defaults give is the task's own.
        nested = [row for key in ("block", "rescue", "always") for row in task.get(key, ())]
        shared = {"module_defaults": task["module_defaults"]} if "module_defaults" in task else {}
        yield from once([{**shared, **row} for row in nested], seen, mine)
        if not nested and mine:
            yield task, seen


def names_of(value: t.Any, known: Json, key: str = "") -> set[str]:
    """Return the variables of others that templates read, private ones followed to what they are made of."""
    if isinstance(value, dict):
        return {name for inner, item in value.items() if inner != "register" for name in names_of(item, known, inner)}
    if isinstance(value, list):
        return {name for item in value for name in names_of(item, known, key)}
    text = str(value)
    if key in ("when", "that", "until", "failed_when", "changed_when") and "{{" not in text:
        text = f"{{{{ {text} }}}}"
    if "{" not in text:
        return set()
    tree = Environment(extensions=["jinja2.ext.do"]).parse(text)
    found = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "load"} - MAGIC
    private = {name for name in found if name.startswith("__")}
    more = {deep for name in private if name in known for deep in names_of(known[name], known)}
    return {name for name in found - private if not name.startswith("ansible_")} | more


def tasks_of_all() -> t.Iterator[tuple[str, str, set[str]]]:
    shared = read(CHECKOUT / "roles/rdma_host/vars/main.yml")
    for path, tasks, known in files():
        whole = path.name == "gate.yml"  # included with run_once
        for task, seen in once(tasks, {**shared, **known}, whole):
            module = next((key for key in task if "." in key), "")
            yield f"{path.relative_to(CHECKOUT)}: {task['name']}", module, names_of(task, seen)


def test_a_task_that_runs_once_or_elsewhere_reads_what_is_known() -> None:
    """A new variable is noticed: put it into DECIDING, or here among the choices if it is no place, name or target."""
    rows = list(tasks_of_all())
    assert len(rows) > 25
    assert {name for _place, _module, names in rows for name in names} - set(DECIDING) - CHOICES == set()
    assert CHOICES - {name for _place, _module, names in rows for name in names} == set()


def test_what_is_not_ours_reads_what_decides_from_localhost_only() -> None:
    """Before a module of core or of kubernetes.core no code compares anything."""
    foreign = [row for row in tasks_of_all() if not row[1].startswith("railops.rdma.") and row[1] not in INCLUDES]
    assert [(place, sorted(names & set(DECIDING))) for place, _module, names in foreign if names & set(DECIDING)] == []

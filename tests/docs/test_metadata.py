# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Ansible and Galaxy read beside the code: the action groups, and the platforms of roles."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import known
import pytest
import yaml
from blocks import CHECKOUT

from ansible_collections.railops.rdma.plugins.plugin_utils._settings import OTHER_OPTIONS, PATTERNS, PLAYBOOKS

RUNTIME = known.load(CHECKOUT / "meta/runtime.yml")
GROUPS = RUNTIME["action_groups"]
# They have plan_dir and work on the controller, or with the fleet as a whole.
REQUIRED = {"rdma_probe": {"end": "server", "token": "a"}}
OF_THE_CONTROLLER = {"acceptance", "ippool_plan", "rail_upgrade_info", "verdict", "verify_result"}


def test_the_group_of_hosts_is_all_that_read_a_hosts_plan():
    with_plan = {name for name, options in known.modules().items() if "plan_dir" in options}
    cluster = {name for name in GROUPS["cluster"] if isinstance(name, str)}
    assert set(GROUPS["hosts"]) == with_plan - cluster - OF_THE_CONTROLLER


def play_tasks(tasks, defaults, folder):
    """Return what each task says in a play with these module defaults."""
    play = {"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}
    (folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    program = Path(sys.executable).parent / "ansible-playbook"
    done = subprocess.run([program, "play.yml"], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout.split("TASK [")[1:]


def test_defaults_for_the_cluster_reach_the_modules_of_kubernetes_core(tmp_path):
    """Roles name our group alone, so that they are parsed without that collection too."""
    tasks = [{f"kubernetes.core.{name}": {"kind": "Pod"}, "ignore_errors": True} for name in ("k8s", "k8s_info")]
    messages = play_tasks(tasks, {"group/railops.rdma.cluster": {"kubeconfig": "/nowhere/at/all"}}, tmp_path)
    assert ["/nowhere/at/all" in text for text in messages] == [True, True]


@pytest.mark.parametrize("by", ["group", "module"])
def test_module_defaults_give_them_the_plan(by, tmp_path):
    """Each of them is called without it, and says that there is none in the folder that the defaults name.

    Most of them go by one action (plugin_routing): their defaults are still those of their own name.
    """
    tasks = [{f"railops.rdma.{name}": REQUIRED.get(name, {}), "ignore_errors": True} for name in GROUPS["hosts"]]
    names = ["group/railops.rdma.hosts"] if by == "group" else [f"railops.rdma.{name}" for name in GROUPS["hosts"]]
    defaults = {name: {"plan_dir": "/nowhere/at/all"} for name in names}
    messages = play_tasks(tasks, defaults, tmp_path)
    assert len(messages) == len(GROUPS["hosts"])
    assert [text for text in messages if "/nowhere/at/all" not in text] == []


def test_roles_name_only_platforms_that_were_seen():
    """The support matrix lists the others as not tested."""
    found = [known.load(path)["galaxy_info"]["platforms"] for path in sorted(CHECKOUT.glob("roles/*/meta/main.yml"))]
    seen = [{"name": "Debian", "versions": ["bookworm"]}]
    of_the_controller = [{"name": "GenericLinux", "versions": ["all"]}]
    assert [platforms for platforms in found if platforms not in (seen, of_the_controller)] == []
    assert seen in found


def test_every_variable_of_a_playbook_is_on_its_page():
    """What playbooks read beside plan and roles is what the settings know, with the default that the playbook has."""
    page = (CHECKOUT / "docs/reference/playbooks.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", page, re.MULTILINE))
    assert {*PLAYBOOKS, *PATTERNS, *OTHER_OPTIONS, "cluster_components"} - {"verify_gate_max_unavailable"} == {
        name for name in rows if "_" in name and name != "test_application"
    }
    texts = [
        path.read_text(encoding="utf-8")
        for path in [*(CHECKOUT / "playbooks").glob("*.yml"), *CHECKOUT.glob("roles/*/defaults/main.yml")]
    ]
    for name, shown in rows.items():
        words = {word for text in texts for word in re.findall(rf"\b{name} \| default\(([\w'%.]+)\)", text)}
        if plain := {yaml.safe_load(word) for word in words if not word.startswith("__") and word != "''"}:
            assert plain == {yaml.safe_load(shown.strip("`"))}, name


def test_every_module_is_on_the_page_or_says_that_it_is_internal():
    page = (CHECKOUT / "docs/reference/playbooks.md").read_text(encoding="utf-8").partition("## Modules")[2]
    promised = set(re.findall(r"`(\w+)`", page)) - {"ansible"}
    files = [*CHECKOUT.glob("plugins/modules/*.py"), *CHECKOUT.glob("plugins/filter/*.yml")]
    internal = {path.stem for path in files if "- Internal to the playbooks" in path.read_text(encoding="utf-8")}
    assert promised | internal == {path.stem for path in files}
    assert promised & internal == set()


def test_the_example_plan_is_what_the_playbook_writes(tmp_path):
    """To write it again: railops.rdma.plan with -i inventory/exclusive and -e fabric_plan_dir=docs/example-plan.

    What holds several documents ends in .txt there: ansible-test takes a .yaml for one document.
    """
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(CHECKOUT / "inventory/exclusive")]
    done = subprocess.run([*argv, "railops.rdma.plan"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout

    def files(root: Path) -> dict[str, str]:
        found = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
        return {name.removesuffix(".txt"): text for name, text in found.items()}

    assert files(CHECKOUT / "docs/example-plan") == files(tmp_path / "plan")

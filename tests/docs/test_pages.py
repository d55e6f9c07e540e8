# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What pages say beside commands: YAML that is accepted, variables and files that exist, links that lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import typing as t
from pathlib import Path

import known
import pytest
import yaml
from blocks import CHECKOUT, Block, documents

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.ids import IDS
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.metrics import HELP
from ansible_collections.railops.rdma.tests.unit.fabric_samples import EXAMPLES

PAGES = documents()
SNIPPETS = [block for page in PAGES for block in page.blocks if block.language == "yaml"]
TASK_KEYWORDS = {"name", "vars", "register", "delegate_to", "run_once", "when", "tags", "become"}
PLAY_KEYWORDS = {"name", "hosts", "gather_facts", "become", "serial", "roles", "tasks", "vars"}
ROLE_INCLUDES = ("ansible.builtin.include_role", "ansible.builtin.import_role")
PREFIXES = "|".join(sorted([*known.roles(), "audit", "discover", "merge", "site", "teardown"]))
VARIABLE = re.compile(rf"(?:{PREFIXES})_[a-z0-9_]+")
FILES = re.compile(r"(?:tests|docs|roles|playbooks|inventory|plugins|molecule|meta|changelogs)/[\w./-]+")
# Begins like the variables of a role.
SYSCTLS = {"accept_ra"}
# Stand for a set of files.
PLACEHOLDERS = ("<", "*", "_host_plan.py")


def wrong_variables(values: t.Mapping[str, t.Any]) -> list[str]:
    """Check variables as an inventory or a role's vars have them."""
    return known.wrong_values(values, known.variables(), "the collection")


def wrong_role(name: str, entry: str, values: t.Mapping[str, t.Any]) -> list[str]:
    """Check a role with its entry point and what it is given."""
    role = name.removeprefix(known.NAMESPACE)
    if role not in known.roles():
        return [f"there is no role {name}"]
    if not (CHECKOUT / f"roles/{role}/tasks/{entry}.yml").is_file():
        return [f"{role} has no entry point {entry}"]
    return wrong_variables(values)


def wrong_task(task: t.Mapping[str, t.Any]) -> list[str]:
    """Check a task: one module of this collection, or a role."""
    names = set(task) - TASK_KEYWORDS
    if len(names) != 1:
        return [f"a task of {sorted(names)}"]
    name = names.pop()
    if name in ROLE_INCLUDES:
        return wrong_role(task[name]["name"], task[name].get("tasks_from", "main"), task.get("vars", {}))
    module = name.removeprefix(known.NAMESPACE)
    if module not in known.modules():
        return [f"there is no module {name}"]
    return known.wrong_values(task[name], known.modules()[module], module)


def wrong_play(play: t.Mapping[str, t.Any]) -> list[str]:
    """Check a play."""
    problems = [f"a play has no {name}" for name in set(play) - PLAY_KEYWORDS]
    for role in play.get("roles", []):
        values = {name: value for name, value in role.items() if name not in ("role", "vars")}
        problems += wrong_role(role["role"], "main", {**role.get("vars", {}), **values})
    return problems + [problem for task in play.get("tasks", []) for problem in wrong_task(task)]


@pytest.mark.parametrize("block", [pytest.param(block, id=block.place) for block in SNIPPETS])
def test_a_yaml_snippet_is_accepted(block: Block):
    data = yaml.safe_load(block.text)
    if isinstance(data, dict) and "apiVersion" in data:
        # An object for a cluster: a test of that subject gives it to a server.
        assert data["kind"] in ("ClusterRole", "MPIJob", "Topology")
    elif isinstance(data, dict) and "groups" in data:
        expressions = [rule["expr"] for group in data["groups"] for rule in group["rules"]]
        assert {name for text in expressions for name in re.findall(r"railops_\w+", text)} <= set(HELP)
    elif isinstance(data, dict) and "driver" in data:
        # The GPU Operator's values, as its chart has them.
        rdma = {"enabled": False}
        driver = {"enabled": False, "kernelModuleType": "open", "rdma": rdma}
        assert data == {"driver": driver}
    elif isinstance(data, dict):
        assert wrong_variables(data) == []
    if isinstance(data, dict):
        return
    check = wrong_play if "hosts" in data[0] else wrong_task
    assert [problem for item in data for problem in check(item)] == []


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=block.place) for block in SNIPPETS if "fabric_mode:" in block.text]
)
def test_a_declaration_can_be_planned(block: Block, tmp_path: Path):
    values = yaml.safe_load(block.text)
    if "fabric_rails" not in values:
        values |= {"fabric_rails": [{"interface": "ens1np0"}, {"interface": "ens2np0"}]}
    raw = {name.removeprefix("fabric_"): value for name, value in values.items()}
    result = plan({**raw, "plan_dir": str(tmp_path)}, [{"host": "node1"}, {"host": "node2"}], check_mode=False)
    assert result["changed"]
    assert (Path(result["plan_dir"]) / "report.html").is_file()


def test_every_variable_that_a_page_names_exists():
    problems = []
    for page in PAGES:
        for line, span in page.spans:
            found = re.fullmatch(rf"({VARIABLE.pattern})(?::\s+(.+)|=(\S+))?", span.replace("-e ", "", 1))
            if not found or found.group(1) in SYSCTLS or found.group(1) in IDS or found.group(1) in known.modules():
                continue
            name, text = found.group(1), found.group(2) or found.group(3)
            if name not in known.variables():
                problems.append(f"{page.path}:{line}: there is no {name}")
            elif text:
                wrong = wrong_variables({name: yaml.safe_load(text)})
                problems += [f"{page.path}:{line}: {span}: {what}" for what in wrong]
    assert problems == []


def test_every_option_is_explained_somewhere():
    """The variables that decide over people's traffic are in the guides, not only in the specification."""
    text = "\n".join((CHECKOUT / page.path).read_text(encoding="utf-8") for page in PAGES)
    options = known.roles()["fabric"]["main"]
    assert [name for name in options if name not in text] == []


def test_every_link_leads_somewhere():
    problems = []
    for page in PAGES:
        folder = (CHECKOUT / page.path).parent
        for line, link in page.links:
            target = link.partition("#")[0]
            if not link.startswith(("http", "mailto", "#")) and not (folder / target).exists():
                problems.append(f"{page.path}:{line}: {link}")
    assert problems == []


def test_every_file_that_a_page_names_exists():
    problems = []
    for page in PAGES:
        for line, span in page.spans:
            for name in FILES.findall(span):
                made = name.startswith("tests/output/")  # by a run of the tests
                if not made and not any(word in span for word in PLACEHOLDERS) and not (CHECKOUT / name).exists():
                    problems.append(f"{page.path}:{line}: {name}")
    assert problems == []


def test_every_example_is_in_the_table_and_held_to_the_rules():
    """The unit tests plan EXAMPLES and check their objects; the demo is run as it is."""
    folders = {path.parent.name for path in CHECKOUT.glob("inventory/*/hosts")}
    assert folders == {*EXAMPLES, "demo", "hosts-only"}
    text = (CHECKOUT / "inventory/README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(folders) if f"| `{name}` |" not in text] == []


def test_every_page_is_in_the_index():
    text = (CHECKOUT / "docs/index.md").read_text(encoding="utf-8")
    pages = {str(path.relative_to(CHECKOUT / "docs")) for path in CHECKOUT.glob("docs/[!e]*/*.md")}
    assert pages - set(re.findall(r"\]\(([^)#]+)\)", text)) == set()


@pytest.mark.parametrize(
    "program", ["site/checks_doc.py", "site/errors_doc.py", "site/fixes_table.py", "docs/evidence_doc.py"]
)
def test_what_a_program_makes_of_the_code_is_as_the_code_has_it(program):
    """Run the program after a message, or tests/site/checks.yml was changed."""
    argv = [sys.executable, str(CHECKOUT / "tests" / program), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

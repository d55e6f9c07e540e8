# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every command of the documentation: what it names is there, and what needs no host is run here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import checks
import pytest
from blocks import CHECKOUT, LANGUAGES, Command, documents

from ansible_collections.railops.rdma.plugins.module_utils._check import ok
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.result import write_result

BIN = Path(sys.executable).parent
PAGES = documents()
COMMANDS = [command for page in PAGES for command in page.commands()]
# A host that does not answer, without asking the network.
SILENT_SSH = "#!/bin/sh\nexit 255\n"
UNREACHABLE = 4
TIMEOUT = 300  # seconds
PLAN = r"ansible-playbook railops\.rdma\.plan"
# What is run in a copy of the example inventories, and what is run in an empty home.
HERE = (
    PLAN + r"( --check)?( --diff)?( -e fabric_plan_locked=true)?",
    r"ansible-playbook railops\.rdma\.audit --limit node\d",
    r"git diff plan/",
    r"cd plan/fabric && sha256sum .*",
    r"python3 -c 'import json; print\(.*",
    r"python3 - > extract\.json <<'END'\n.*",
    r"ansible-doc .*",
    r"python3 tests/tools/(check\.py --list|env\.py (cache|tree))",
    r"python3 tests/lab/matrix\.py --list",
)
QUICK = (
    r"mkdir -p ~/my-fabric/group_vars/all",
    r"cd ~/my-fabric",
    r"git init -q",
    r"cat > \S+ <<'END'\n.*",
    r"ansible-playbook railops\.rdma\.plan",
    r"printf .* > \.gitignore",
    r"git add \.",
    r"git diff --cached --stat",
)


def bare(command: Command) -> str:
    """Return a command without its comment."""
    return re.sub(r"\s+#\s.*$", "", command.text) if "\n" not in command.text else command.text


def run_as_it_stands(patterns: t.Sequence[str]) -> list[str]:
    """Return the commands that patterns fit, in the order of the pages. A pattern that fits none would run nothing."""
    found = [bare(command) for command in COMMANDS]
    for pattern in patterns:
        assert any(re.fullmatch(pattern, text, re.DOTALL) for text in found), pattern
    return [text for text in found if any(re.fullmatch(pattern, text, re.DOTALL) for pattern in patterns)]


def test_every_block_says_what_it_is():
    """A block without a language is neither a command that is tested nor text that is not."""
    wrong = [block.place for page in PAGES for block in page.blocks if block.language not in LANGUAGES]
    assert wrong == []


def test_everything_that_a_command_names_is_there():
    problems = []
    for page in PAGES:
        names = (re.match(r"# (\S+\.yml)\n", block.text) for block in page.blocks if block.language == "yaml")
        context = checks.Context(name.group(1) for name in names if name)
        for command in page.commands():
            problems += [f"{command.place}: {command.text}: {what}" for what in checks.line(command.text, context)]
    assert problems == []


def test_the_libraries_of_the_quick_start_are_those_of_the_collection():
    wanted = (CHECKOUT / "meta/ee-requirements.txt").read_text(encoding="utf-8").split()
    quick = next(
        command.text for command in COMMANDS if command.text.startswith("pip install ansible-core 'kubernetes")
    )
    assert re.findall(r"'([^']+)'", quick) == wanted


class Administrator:
    """A user who works in a separate folder beside copies of the examples, as the quick start says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: dict[str, str] = {}
        self.run("cp -r $CHECKOUT/inventory . && git init -q . && ln -s $CHECKOUT/tests tests")
        self.run("sed 's#^inventory = .*#inventory = inventory/exclusive#' inventory/ansible.cfg > ansible.cfg")
        ssh = folder / "silent-ssh"
        ssh.write_text(SILENT_SSH, encoding="utf-8")
        ssh.chmod(0o755)

    def run(self, text: str, codes: t.Sequence[int] = (0,), **environ: str) -> str:
        """Run a text in a shell, once however many pages have it; return what it prints."""
        if text not in self.done:
            env = {
                **os.environ,
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "CHECKOUT": str(CHECKOUT),
                "ANSIBLE_SSH_EXECUTABLE": str(self.folder / "silent-ssh"),
                "ANSIBLE_NOCOLOR": "true",
                "ANSIBLE_LOCALHOST_WARNING": "false",
                "PAGER": "cat",
                **environ,
            }
            done = subprocess.run(
                ["bash", "-c", text],
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            assert done.returncode in codes, f"{text}\n{done.stdout}\n{done.stderr}"
            self.done[text] = done.stdout
        return self.done[text]


@pytest.fixture(scope="module")
def administrator(tmp_path_factory):
    return Administrator(tmp_path_factory.mktemp("docs"))


def here(*words: str) -> list[str]:
    """Return the different commands that are run here and have these words, in the order of the pages."""
    return list(dict.fromkeys(text for text in run_as_it_stands(HERE) if any(word in text for word in words)))


def test_what_needs_no_host_runs_unchanged(administrator):
    """The plan's commands, in their order; git looks at what they wrote."""
    for text in here("railops.rdma.plan"):
        administrator.run(text)
    for text in here("git "):
        administrator.run(text)
    assert (administrator.folder / "plan/fabric/report.html").is_file()
    for text in here("railops.rdma.audit"):
        administrator.run(text, codes=(UNREACHABLE,))
    one_line = [text for text in here("python3 -c") if "verdict.json" in text]
    assert [administrator.run(text).strip() for text in one_line] == ["incomplete"]


def test_the_extract_for_a_report_has_checks_and_ports_and_no_name(tmp_path):
    private = dict.fromkeys(("planned", "observed", "cause", "fix", "object"), "secret-leaf")
    row = {**private, "id": "network_mtu", "rail": "secret-rail", "status": "deviation", "peers": ["secret-peer"]}
    port = {"interface": "secret0", "pci": "0000:5e:00.0", "pci_id": "15b3:1021:15b3:0041", "driver": "mlx5_core"}
    port |= {"version": "24.10", "firmware": "28.39.1002", "speed": 400000, "counters": {}}
    facts = {
        "macs": {"rail1": "02:52:44:00:01:01"},
        "health": {"boot": "secret", "rails": {"rail1": port, "rail2": port}},
    }
    where = {"plan_dir": f"{CHECKOUT}/docs/example-plan/fabric", "verify_dir": str(tmp_path / "verify/fabric")}
    write_result(where, "node1", [{"checks": [ok("network_link", "up", "up", rail="rail1")], "facts": facts}], None, {})
    host = {"status": "deviation", "node": "secret-node", "counts": {"ok": 7}, "checks": [row, row], "error": "secret"}
    part = {"status": "pass", "counts": {"ok": 2}, "checks": []}
    verdict = {"status": "deviation", "hosts": {"secret-host": host}, "cluster": part, "plan": part}
    (tmp_path / "verify/fabric/verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    administrator = Administrator(tmp_path)
    (text,) = here("extract.json")
    administrator.run(text)
    assert json.loads((tmp_path / "extract.json").read_text(encoding="utf-8")) == {
        "status": "deviation",
        "hosts": {"deviation": 1},
        "ok": 11,
        "checks": {"network_mtu deviation": 2},
        "ports": {"pci_id=15b3:1021:15b3:0041 driver=mlx5_core version=24.10 firmware=28.39.1002 speed=400000": 2},
    }


def test_the_quick_start_runs_unchanged(tmp_path):
    """In a home of its own, with nothing but the collection installed."""
    printed = Administrator(tmp_path).run("set -e; " + "\n".join(run_as_it_stands(QUICK)), HOME=str(tmp_path))
    assert "plan/fabric/plan.json" in printed
    assert (tmp_path / "my-fabric/plan/fabric/hosts/node2.json").is_file()


def test_the_digest_of_a_part_is_computed_by_hand_as_growth_says(administrator):
    administrator.run(next(text for text in here("railops.rdma.plan") if text.endswith("plan")))
    summed = administrator.run(here("sha256sum")[0]).split()[0]
    commands = [text for text in here("python3 -c") if "plan.json" in text]
    assert [administrator.run(f"cd plan/fabric && {text}").strip() for text in commands] == [summed]


@pytest.mark.parametrize("text", here("ansible-doc", "tests/tools", "tests/lab/matrix.py"))
def test_what_only_prints_runs(administrator, text):
    assert administrator.run(text)

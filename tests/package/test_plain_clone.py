# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of docs/project/contributing.md, "Test a change", with nothing of ours in the environment."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import env
import pytest

BIN = Path(sys.executable).parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SECTION = (env.CHECKOUT / "docs/project/contributing.md").read_text(encoding="utf-8").partition("## All checks")[0]
COMMANDS = re.findall(r"^((?:ansible-playbook|ansible-test|pytest|mypy|ruff) .*)$", SECTION, re.MULTILINE)
# No connection is tried: the example's hosts may exist somewhere.
OFFLINE = ["--ssh-common-args", "-o ProxyCommand=false"]


@pytest.fixture(scope="module")
def clones(tmp_path_factory):
    """Return a clone under any name, and one in the folder that ansible-test wants."""
    named = env.copy(tmp_path_factory.mktemp("named"))
    subprocess.run(["git", "init", "-q", str(named)], check=True)
    return env.copy_files(tmp_path_factory.mktemp("plain") / "any-name"), named


@pytest.fixture(scope="module")
def run(clones, tmp_path_factory):
    """Return a function that runs a command in its clone; kubernetes.core is installed."""
    collections = tmp_path_factory.mktemp("collections")
    env.place_dependencies(collections / "ansible_collections")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON", "MYPY"))}
    kept |= {"PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_COLLECTIONS_PATH": str(collections)}

    def run(command, *words):
        argv = [*shlex.split(command.replace("3.11", VERSION)), *words]
        folder = clones[argv[0] == "ansible-test"]
        done = subprocess.run(argv, cwd=folder, env=kept, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_it_ends_with_0(run, command):
    code, output = run(command)
    assert code == 0, output
    if " integration " in command and os.geteuid():
        pytest.skip("ansible-test leaves the target out: it needs root")


def test_each_program_is_played():
    assert {command.split()[0] for command in COMMANDS} == {
        "ansible-playbook",
        "ansible-test",
        "pytest",
        "mypy",
        "ruff",
    }


def test_site_names_the_hosts_it_cannot_reach(run):
    code, output = run("ansible-playbook -i inventory/exclusive playbooks/site.yml --check", *OFFLINE)
    assert code == 4, output
    assert all(f"fatal: [node{number}]: UNREACHABLE!" in output for number in range(1, 9)), output

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A clone under any name, with nothing of ours in the environment: the usual commands of Ansible developers work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import env
import pytest

BIN = Path(sys.executable).parent
ROUTE = "tests/unit/plugins/module_utils/_route/test_plan.py"
# No connection is tried: the example's hosts may exist somewhere.
OFFLINE = ("--ssh-common-args", "-o ProxyCommand=false")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return env.copy_files(tmp_path_factory.mktemp("plain") / "any-name")


@pytest.fixture
def run(tmp_path_factory):
    """Return a function that runs a program of the environment in a folder; kubernetes.core is installed."""
    collections = tmp_path_factory.mktemp("collections")
    env.place_dependencies(collections / "ansible_collections")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON", "MYPY"))}
    kept |= {"PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_COLLECTIONS_PATH": str(collections)}

    def run(folder, *argv):
        done = subprocess.run(argv, cwd=folder, env=kept, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout + done.stderr

    return run


def test_the_example_is_planned(clone, run):
    code, output = run(clone, "ansible-playbook", "-i", "inventory/exclusive", "playbooks/plan.yml", "--check")
    assert code == 0, output


def test_site_names_the_hosts_it_cannot_reach(clone, run):
    code, output = run(
        clone, "ansible-playbook", "-i", "inventory/exclusive", *OFFLINE, "playbooks/site.yml", "--check"
    )
    assert code == 4, output
    assert all(f"fatal: [node{number}]: UNREACHABLE!" in output for number in range(1, 9)), output


def test_pytest(clone, run):
    code, output = run(clone, "pytest", "-q", ROUTE)
    assert code == 0, output


def test_mypy(clone, run):
    code, output = run(clone, "mypy", "plugins/module_utils/_route")
    assert code == 0, output


def test_ansible_test(tmp_path, run):
    home = env.copy(tmp_path)
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    code, output = run(home, "ansible-test", "units", "--python", version, ROUTE)
    assert code == 0, output

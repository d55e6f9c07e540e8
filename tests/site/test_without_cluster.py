# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fabric for hosts only, by a controller that has ansible-core and this collection only."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import env
import pytest

from ansible_collections.railops.rdma.tests.site.conftest import fabric_rails

CHECKOUT = Path(__file__).resolve().parents[2]
LAB = CHECKOUT / "tests/lab/lab.py"
INVENTORY = CHECKOUT / "inventory/hosts-only"
NAME = f"hosts-only-{os.getpid()}"
WORDS = re.compile(r"(?i)\bpods?\b|\bpools?\b|kubernetes|helm")
OWN = {
    # Namespaces share the kernel of this machine: only their networks are their own.
    **{"site_host_roles": ["rail_network"], "verify_traffic": "ping", "verify_devices": False},
    "fabric_rails": fabric_rails(3),
}


@pytest.fixture(scope="module")
def controller():
    """Return the bin folder of an environment with ansible-core only."""
    wanted = next(line for line in env.packages("", env.REQUIREMENTS_RUN) if line.startswith("ansible-core"))
    home = env.cache() / f"ansible-core-{env.digest(env.default_interpreter(), wanted)}"
    env.once(home, lambda: env.furnish(home, env.default_interpreter(), wanted))
    found = subprocess.run([home / "bin/pip", "list"], capture_output=True, text=True, check=True).stdout
    assert "netaddr" not in found
    assert "kubernetes" not in found
    return home / "bin"


@pytest.fixture
def lab(tmp_path):
    """Return a function that runs the lab's tool, and its hosts' inventory."""

    def tool(*words):
        done = subprocess.run([sys.executable, str(LAB), *words], capture_output=True, text=True, check=True)
        return done.stdout

    try:
        yield tool, tool("up", "--name", NAME, "--kind", "netns", "--nodes", "2", "--rails", "3").splitlines()[-1]
    finally:
        tool("down", NAME)


def test_it_plans_previews_applies_verifies_and_audits(controller, lab, tmp_path):
    tool, hosts = lab
    tree = tmp_path / "tree/ansible_collections/railops"
    tree.mkdir(parents=True)
    (tree / "rdma").symlink_to(CHECKOUT)
    shutil.copy(CHECKOUT / "inventory/ansible.cfg", tmp_path)
    inventory = shutil.copytree(INVENTORY, tmp_path / "inventory")
    (inventory / "hosts").write_text("[gpu_nodes]\nnode[1:2]\n", encoding="utf-8")
    environ = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "PYTHONPATH")}
    environ |= {"ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "tree"), "PATH": f"{controller}:{os.environ['PATH']}"}

    def play(name, *words):
        extra = ["-e", json.dumps(OWN)]
        argv = [controller / "ansible-playbook", "-i", inventory, "-i", hosts, f"railops.rdma.{name}", *extra, *words]
        done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert WORDS.findall(done.stdout) == []
        return done.stdout

    play("plan")
    tool("gateways", NAME, "--plan", str(tmp_path / "plan/fabric"))
    assert "addresses" in play("hosts", "--check", "--diff")
    play("hosts")
    for name in ("verify", "audit"):
        text = play(name)
        assert "Verdict pass" in text
        assert "kubeconfig" not in text
    assert not (tmp_path / "plan/fabric/cluster").exists()
    play("teardown")


def test_every_playbook_is_parsed_without_other_collections(controller, tmp_path: Path):
    tree = tmp_path / "ansible_collections/railops"
    tree.mkdir(parents=True)
    (tree / "rdma").symlink_to(CHECKOUT)
    environ = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "ANSIBLE_LOCALHOST_WARNING": "false"}
    environ.pop("PYTHONPATH", None)
    books = sorted(path for path in (CHECKOUT / "playbooks").glob("*.yml"))
    argv = [controller / "ansible-playbook", "-i", INVENTORY, "--syntax-check", *books]
    done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

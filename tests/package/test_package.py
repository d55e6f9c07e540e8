# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tarball: it builds, installs offline, passes galaxy's checks, and plans a fabric where only it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
RUNTIME = ("meta", "plugins", "roles", "playbooks")


def run(argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    """Build from a copy of what git knows, as a release does."""
    work = tmp_path_factory.mktemp("build")
    copy = run([sys.executable, str(CHECKOUT / "tests/tools/env.py"), "copy", str(work)]).strip()
    run([str(BIN / "ansible-galaxy"), "collection", "build", "--output-path", str(work / "dist"), copy])
    return next((work / "dist").glob("railops-rdma-*.tar.gz"))


@pytest.fixture(scope="module")
def installed(tarball, tmp_path_factory):
    """Install it with nothing but what a collection needs at run time."""
    home = tmp_path_factory.mktemp("installed")
    galaxy = str(BIN / "ansible-galaxy")
    install = [galaxy, "collection", "install", str(tarball), "-p", str(home), "--offline", "--no-deps"]
    run(install, env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(home), "PYTHONPATH": ""})  # not the checkout
    root = home / "ansible_collections/railops/rdma"
    for path in root.iterdir():
        if path.is_dir() and path.name not in RUNTIME:
            shutil.rmtree(path)
    tree = run([sys.executable, str(CHECKOUT / "tests/tools/env.py"), "tree"]).strip()
    (home / "ansible_collections/kubernetes").symlink_to(Path(tree) / "ansible_collections/kubernetes")
    return home


def test_the_tarball_holds_no_development_files(tarball):
    with tarfile.open(tarball) as archive:
        names = archive.getnames()
    unwanted = [name for name in names if name.startswith((".git", ".ci", "plan/", "dist/")) or "__pycache__" in name]
    assert unwanted == []
    assert {"README.md", "COPYING", "MANIFEST.json"} <= set(names)


def test_the_installed_collection_plans_the_guides_fabric(installed, tmp_path):
    run(
        [str(BIN / "ansible-playbook"), "-i", str(CHECKOUT / "inventory/exclusive"), "railops.rdma.plan"],
        cwd=tmp_path,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(installed), "PYTHONPATH": ""},
    )
    host_plans = list(tmp_path.glob("plan/*/hosts/node1.json"))
    assert len(host_plans) == 1
    rail1 = json.loads(host_plans[0].read_text(encoding="utf-8"))["rails"][0]
    assert rail1["addresses"][0]["address"] == "172.17.0.2"
    assert rail1["addresses"][0]["subnet"] == "172.17.0.0/27"


def test_galaxy_importer_accepts_it(tarball, tmp_path):
    config = tmp_path / "galaxy-importer.cfg"
    config.write_text("[galaxy-importer]\nRUN_ANSIBLE_TEST=False\nRUN_ANSIBLE_LINT=False\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "galaxy_importer.main", str(tarball)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "GALAXY_IMPORTER_CONFIG": str(config), "PATH": f"{BIN}:{os.environ['PATH']}"},
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "error" not in output.lower().replace("errors", ""), output

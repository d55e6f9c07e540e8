# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tarball: it builds, installs offline, passes galaxy's checks, plans a fabric where only it is installed,
and what its image is built from is whole."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import build
import pytest
import release
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
RUNTIME = ("meta", "plugins", "roles", "playbooks")


def run(argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    """Build from a copy of what git knows, as a release does; galaxy takes none without the repository's address."""
    work = tmp_path_factory.mktemp("build")
    copy = run([sys.executable, str(CHECKOUT / "tests/tools/env.py"), "copy", str(work)]).strip()
    build.prepare(Path(copy), "https://git.example/railops/rdma")
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
        files = {member.name for member in archive.getmembers() if not member.isdir()}
    development = (".", "dist/", "molecule/", "plan/", "playbooks/collections", "tests/", "Makefile", "pyproject.toml")
    assert {name for name in files if name.startswith(development) or "__pycache__" in name} == {
        ".ansible-lint",
        ".yamllint",
        ".yamllint-docs",
        "tests/config.yml",
    }
    assert {"README.md", "COPYING", "MANIFEST.json"} <= files


def test_a_release_has_checksums_and_an_sbom(tarball):
    sbom, sums = release.finish(tarball)
    for line in sums.read_text(encoding="utf-8").splitlines():
        wanted, name = line.split()
        assert hashlib.sha256((tarball.parent / name).read_bytes()).hexdigest() == wanted
    document = json.loads(sbom.read_text(encoding="utf-8"))
    with tarfile.open(tarball) as archive:
        carried = [Path(name).name.split("-")[:2] for name in archive.getnames() if name.endswith(".whl")]
    parts = {part["name"]: part for part in document["components"]}
    assert document["specVersion"] == "1.6"
    assert document["metadata"]["component"]["name"] == "railops.rdma"
    assert carried == [[name, parts[name]["version"]] for name in parts if parts[name].get("licenses")] != []
    assert {"kubernetes.core", "kubernetes", "cryptography"} | {name for name, _ in carried} == parts.keys()


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


@pytest.fixture(scope="module")
def context(tarball, tmp_path_factory):
    """Let ansible-builder create what the image is built from, as a user does after the tarball's build."""
    work = tmp_path_factory.mktemp("image")
    shutil.copy2(CHECKOUT / "execution-environment.yml", work)
    (work / "dist").mkdir()
    shutil.copy2(tarball, work / "dist")
    builder = run([sys.executable, str(CHECKOUT / "tests/tools/env.py"), "image-builder"]).strip()
    create = [sys.executable, "-m", "ansible_builder", "create", "--output-filename", "Containerfile"]
    run(create, cwd=work, env={**os.environ, "PYTHONPATH": builder})
    return work / "context"


def test_the_image_installs_this_tarball(context, tarball):
    [wanted] = yaml.safe_load((context / "_build/requirements.yml").read_text(encoding="utf-8"))["collections"]
    assert wanted == {"name": f"/build/collections/{tarball.name}", "type": "file"}
    assert (context / "_build/collections" / tarball.name).read_bytes() == tarball.read_bytes()


def test_the_image_has_no_upper_bounds(context, installed, tmp_path):
    """An automation platform brings versions of its own."""
    wanted = {name: tmp_path / name for name in ("pip", "bindep")}
    introspect = [sys.executable, str(context / "_build/scripts/introspect.py"), "introspect", str(installed)]
    run([*introspect, *(f"--write-{name}={path}" for name, path in wanted.items())])
    lines = [line for line in wanted["pip"].read_text(encoding="utf-8").splitlines() if "railops.rdma" in line]
    assert [line.split()[0] for line in lines] == ["kubernetes>=31", "cryptography>=41"]
    assert "openssh-clients [platform:rpm]" in wanted["bindep"].read_text(encoding="utf-8")
    containerfile = (context / "Containerfile").read_text(encoding="utf-8")
    assert 'ARG ANSIBLE_INSTALL_REFS="ansible-core>=2.16 ansible-runner>=2.4"' in containerfile


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong-checksum"])
def test_the_image_takes_helm_by_its_checksum(context, tmp_path, right):
    """The step is run with a curl that hands out an archive of ours."""
    lines = (context / "Containerfile").read_text(encoding="utf-8").splitlines()
    defaults = dict(line.removeprefix("ARG ").split("=") for line in lines if line.startswith("ARG HELM_"))
    assert re.fullmatch(r"[34]\.\d+\.\d+", defaults["HELM_VERSION"])
    assert re.fullmatch(r"[0-9a-f]{64}", defaults["HELM_SHA256"])
    bin_folder = tmp_path / "bin"
    (tmp_path / "linux-amd64").mkdir()
    bin_folder.mkdir()
    helm = tmp_path / "linux-amd64/helm"
    helm.write_text("#!/bin/sh\necho v9.9.9\n", encoding="utf-8")
    helm.chmod(0o755)
    archive = tmp_path / "ours.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(helm, "linux-amd64/helm")
    curl = bin_folder / "curl"
    curl.write_text(f'#!/bin/sh\necho "$3" > {tmp_path}/asked\ncp {archive} "$2"\n', encoding="utf-8")
    curl.chmod(0o755)
    target = tmp_path / "installed"
    target.mkdir()
    [step] = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN curl")]
    step = step.replace("/usr/local/bin", str(target)).replace("/tmp/helm.tar.gz", str(tmp_path / "fetched"))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest() if right else defaults["HELM_SHA256"]
    given = {"HELM_VERSION": "9.9.9", "HELM_ARCH": "amd64", "HELM_SHA256": digest}
    path = f"{bin_folder}:{target}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", step], capture_output=True, text=True, check=False, env={**os.environ, **given, "PATH": path}
    )
    url = (tmp_path / "asked").read_text(encoding="utf-8").strip()
    assert url == "https://get.helm.sh/helm-v9.9.9-linux-amd64.tar.gz"
    assert (done.returncode == 0) == right, done.stdout + done.stderr
    assert [path.name for path in target.iterdir()] == (["helm"] if right else [])
    assert ("v9.9.9" in done.stdout) == right


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
    assert "WARNING" not in output, output

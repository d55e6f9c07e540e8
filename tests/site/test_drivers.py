# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role rdma_driver with the real apt, on a namespace host whose only repositories are folders."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess

import pytest

from ansible_collections.railops.rdma.tests.lab import mirror
from ansible_collections.railops.rdma.tests.site.conftest import started

HOST = "node1"
BOOK = """
- hosts: node1
  gather_facts: false
  module_defaults: {DEFAULTS}
  roles: [railops.rdma.rdma_driver]
"""
HEADERS = f"linux-headers-{os.uname().release}"
LISTED = "deb [trusted=yes] file:{} ./\n"
APT = 'Dir::Cache "/etc/lab-apt"; Dir::Cache::archives "archives/"; Dir::Log "/etc/lab-apt"; APT::Sandbox::User "root";'
LOG = "/etc/lab-apt/dpkg.log"


def has_apt() -> bool:
    """Return whether ansible.builtin.apt finds its library: it would install a missing one."""
    found = subprocess.run(["/usr/bin/python3", "-c", "import apt"], capture_output=True, check=False)
    return bool(shutil.which("dpkg-deb")) and found.returncode == 0


pytestmark = pytest.mark.skipif(not has_apt(), reason="needs python3-apt and dpkg-deb")


class Drivers:
    """A host with an empty repository, and the package of a repository with doca-ofed."""

    def __init__(self, fleet, folder):
        self.fleet, self.folder = fleet, folder
        (folder / "doca").mkdir()
        mirror.package(folder / "doca", "doca-ofed", "3.1.0", {"etc/doca-ofed": "here\n"})
        mirror.index(folder / "doca")
        listed = {"etc/apt/sources.list.d/doca.list": LISTED.format(folder / "doca")}
        self.repository = mirror.package(folder, "doca-host", "3.1.0", listed)
        (folder / "unsigned").mkdir()
        (folder / "unsigned/Release").write_text("Suite: lab\n", encoding="utf-8")
        self.empty = folder / "base"
        self.offer()
        self.on(
            "rm -rf /etc/apt/sources.list* && mkdir -p /etc/apt/sources.list.d /etc/lab-apt/archives/partial"
            f" && touch {LOG} && echo 'log {LOG}' >/etc/dpkg/dpkg.cfg && echo '{APT}' >/etc/apt/apt.conf.d/99lab &&"
            f" echo '{LISTED.format(self.empty)}' >/etc/apt/sources.list"
        )

    def offer(self, *names):
        """Make a repository with these packages."""
        shutil.rmtree(self.empty, ignore_errors=True)
        self.empty.mkdir()
        for name in names:
            mirror.package(self.empty, name, "1.0-1", {f"etc/lab-{name}": "here\n"})
        mirror.index(self.empty)

    def on(self, command):
        return self.fleet.lab("exec", self.fleet.name, "--host", HOST, "--", "sh", "-c", command)

    def play(self, *words, defaults="{}", code=0, **more):
        book = self.folder / "book.yml"
        book.write_text(BOOK.replace("{DEFAULTS}", defaults), encoding="utf-8")
        values = {f"rdma_driver_{name}": value for name, value in more.items()}
        return self.fleet.play(str(book), "-e", json.dumps(values), *words, code=code)

    def doca(self, *words, **more):
        checksum = f"sha256:{hashlib.sha256(self.repository.read_bytes()).hexdigest()}"
        wants = {"packages": ["doca-ofed"], "doca_repository": str(self.repository), "doca_checksum": checksum}
        return self.play(*words, source="doca", **{**wants, **more})

    def installed(self):
        """Return the packages in the order of their installation."""
        rows = self.on(f"cat {LOG}").splitlines()
        return [row.split()[3].partition(":")[0] for row in rows if " install " in row]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drivers")
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    with started("drivers", folder, 1, 1) as fleet:
        yield Drivers(fleet, folder)


def test_defaults_of_the_module_apt_hold_in_the_role(host):
    host.offer("lab-tool")
    run = host.play(packages=["lab-tool"], defaults="{ansible.builtin.apt: {default_release: nosuch}}", code=2)
    assert "nosuch" in run.output


def test_a_package_is_installed_once_and_foretold(host):
    assert "lab-tool" in host.play("--check", "--diff", packages=["lab-tool"]).output
    host.play(packages=["lab-tool"])
    assert host.installed() == ["lab-tool"]
    assert host.play(packages=["lab-tool"]).changed() == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("want", "error"),
    [
        ({"packages": ["no-such-package"]}, "package_not_found"),
        ({"versions": {"lab-tool": "9"}, "packages": [], "upgrade": True}, "package_not_found"),
        ({"packages": ["no-such-package"], "refresh": True, "list": "http://127.0.0.1:9/"}, "mirror_unreachable"),
        ({"packages": ["no-such-package"], "refresh": True, "list": "file:{folder}/unsigned"}, "signature_invalid"),
    ],
)
def test_a_failure_has_its_fix(host, want, error):
    listed = want.pop("list", "").format(folder=host.folder)
    host.on(f"echo 'deb {listed} ./' >/etc/apt/sources.list.d/broken.list" if listed else "true")
    run = host.play(**want, defaults="{ansible.builtin.apt: {update_cache_retries: 1}}", code=2)
    host.on("rm -f /etc/apt/sources.list.d/broken.list")
    assert f"[{error}]" in run.output


@pytest.mark.long
def test_doca_needs_its_checksum_and_the_headers_before_its_driver(host):
    run = host.doca(doca_checksum=f"sha256:{'0' * 64}", code=2)
    assert "[checksum_differs]" in run.output
    run = host.doca(code=2)
    assert "[headers_missing]" in run.output, run.output
    assert "doca-ofed" not in host.installed()


@pytest.mark.long
def test_doca_comes_from_its_repository_package_after_the_headers(host):
    host.offer("lab-tool", HEADERS)
    assert "doca-ofed is new" in host.doca("--check").output
    host.doca()
    assert [name for name in host.installed() if name != "lab-tool"] == ["doca-host", HEADERS, "doca-ofed"]
    assert host.doca().changed() == []

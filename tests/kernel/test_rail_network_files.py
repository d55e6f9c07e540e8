# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role with files for the next boot that cannot be written: the running network and the files stay together.

A host is a namespace whose Python sees an /etc of its own; what is mounted there is in a script that it runs before.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, options
from ansible_collections.railops.rdma.tests.kernel.test_rail_network_role import PLAYBOOK, play

PYTHON = """#!/bin/sh
exec ip netns exec {host} sh -c '
mount --bind {etc} /etc; mount --bind {lib} /var/lib; . {mounts}; exec {python} "$@"' sh "$@"
"""
NETWORKS, SETTINGS = "etc/systemd/network", "etc/sysctl.d/90-railops-rails.conf"
READ_ONLY = "mount --bind /etc/systemd/network /etc/systemd/network; mount -o remount,bind,ro /etc/systemd/network\n"
FULL = "mount -t tmpfs -o size=4k tmpfs /etc/systemd/network\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with Fabric("files", 1, 2) as fabric:
        fabric.inventory(folder, [{**options(0, 2), "sysctls": {"net/ipv4/conf/ens1np0/arp_ignore": "1"}}])
        for name in ("systemd/network", "sysctl.d"):
            (folder / "etc" / name).mkdir(parents=True)
        for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache", "localtime", "alternatives", "iproute2"):
            subprocess.run(["cp", "-a", f"/etc/{name}", folder / "etc"], check=False, stderr=subprocess.DEVNULL)
        (folder / "mounts").touch()
        values = {"host": fabric.hosts[0].name, "python": sys.executable, "lib": folder / "lib-node1"}
        (folder / "python-node1").write_text(PYTHON.format(etc=folder / "etc", mounts=folder / "mounts", **values))
        playbook = PLAYBOOK.replace("rail_network_persist: false", "rail_network_manager: networkd")
        (folder / "site.yml").write_text(playbook.replace("'require'", "'ignore'"))
        yield folder, fabric.hosts[0]


def files(folder) -> dict[str, str]:
    """Return the rails' files, temporaries among them; of a folder its name alone."""
    found = [path for path in sorted((folder / "etc").rglob("*")) if "railops" in path.name]
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else "" for path in found}


@pytest.mark.parametrize(("mounts", "why"), [(READ_ONLY, "read-only"), (FULL, "No space left")])
def test_unwritable_files_change_nothing(site, mounts, why):
    folder, host = site
    before = host.dump()
    (folder / "mounts").write_text(mounts)
    output = play(folder, good=False)
    (folder / "mounts").write_text("")
    assert ("/etc/systemd/network" in output, why in output) == (True, True), output
    assert (host.dump(), files(folder)) == (before, {})


def test_a_folder_in_the_place_of_a_managed_file_is_named_before_anything_is_changed(site):
    folder, host = site
    before = host.dump()
    (folder / SETTINGS).mkdir()
    output = play(folder, good=False)
    (folder / SETTINGS).rmdir()
    assert "/etc/sysctl.d/90-railops-rails.conf: is a folder; a managed file needs this path." in output
    assert (host.dump(), files(folder)) == (before, {})


def test_a_name_that_cannot_be_given_takes_files_and_change_back(site):
    """A conflict is found when the file gets its name: after the change was confirmed."""
    folder, host = site
    play(folder)
    (folder / SETTINGS).write_text((folder / SETTINGS).read_text() + "# edited\n")
    rule = next(line for line in host.dump()["rules"] if "lookup 1001" in line)
    host.ip("rule", "del", "pref", rule.partition(":")[0])
    before, kept = host.dump(), files(folder)
    # Nothing can take the name of a place where something is mounted.
    (folder / "mounts").write_text(f"mount --bind /{SETTINGS} /{SETTINGS}\n")
    output = play(folder, good=False)
    (folder / "mounts").write_text("")
    assert "/etc/sysctl.d/90-railops-rails.conf cannot be written" in output
    assert "The running network was rolled back." in output
    assert host.dump() == before
    assert "confirmed" in host.timer()
    # What lies beside its place is taken by the next run, and not what has a name.
    assert {name: text for name, text in files(folder).items() if not name.endswith(".tmp")} == kept
    assert "failed=0" in play(folder)
    assert host.dump() != before
    assert not [name for name in files(folder) if name.endswith(".tmp")]
    assert "changed=0" in play(folder)
    play(folder, "-e", "state=absent")


def test_teardown_keeps_the_network_where_its_files_would_stay(site):
    folder, host = site
    play(folder)
    before, kept = host.dump(), files(folder)
    (folder / "mounts").write_text(READ_ONLY)
    output = play(folder, "-e", "state=absent", good=False)
    (folder / "mounts").write_text("")
    assert "/etc/systemd/network" in output
    assert (host.dump(), files(folder)) == (before, kept)
    # An earlier run wrote them, and the next boot would apply them.
    play(folder, "-e", "state=absent", "-e", "rail_network_persist=false")
    assert files(folder) == {}

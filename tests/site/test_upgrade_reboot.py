# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook upgrade with its reboots, killed before and after one: real apt and dpkg on namespace hosts.

What is played: the command that restarts a host changes the file that its boot id is read from, and nothing else
happens to it; before or after that it may end the playbook by SIGKILL. The API double is the cluster. The tests share
one fleet and run in their order.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.tests.site.test_upgrade import HOSTS, NEEDED, Site, installed

pytestmark = [
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"needs {', '.join(NEEDED)}"),
    pytest.mark.long,
]

BOOT_ID = "/proc/sys/kernel/random/boot_id"
CONNECTION = f'''
import os
import signal
import uuid

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: pretend
short_description: A namespace host, which never really restarts
description: For tests.
author: tests
options:
  boots:
    default: ""
    vars: [{{name: lab_boots}}]
  pipelining:
    default: true
    type: bool
    vars: [{{name: ansible_pipelining}}]
"""


class Connection(Local):
    transport = "pretend"

    def exec_command(self, cmd, in_data=None, sudoable=True):
        boots = self.get_option("boots")
        if "shutdown" in cmd and " -r " in cmd:
            self._end(boots + ".kill-before")
            with open(boots, "w") as stream:
                stream.write(str(uuid.uuid4()) + chr(10))
            with open(boots + ".count", "a") as stream:
                stream.write("restarted" + chr(10))
            self._end(boots + ".kill-after")
            return 0, b"", b""
        return super().exec_command(cmd.replace("cat {BOOT_ID}", "cat " + boots), in_data, sudoable)

    @staticmethod
    def _end(order):
        """End the playbook as a power cut of the controller does, when that was ordered."""
        if os.path.exists(order):
            os.unlink(order)
            os.kill(os.getppid(), signal.SIGKILL)
            os._exit(1)

    def reset(self):
        pass
'''


class Rebooting(Site):
    """The same fleet, with hosts that restart when they are reported to."""

    def __init__(self, fleet, double, mirror):
        super().__init__(fleet, double, mirror)
        self.boots = mirror / "boots"
        self.boots.mkdir()
        (self.boots / "plugins").mkdir()
        (self.boots / "plugins/pretend.py").write_text(CONNECTION)
        for host in HOSTS:
            (self.boots / host).write_text(f"{host}-was-never-restarted\n")
            self.on(host, f"mount --bind {self.boots / host} {BOOT_ID}")

    def upgrade(self, *words, code=0):
        values = {
            "rdma_driver_versions": {"lab-driver": "2.0-1"},
            "site_host_roles": ["rail_network"],
            "rdma_host_reboot": True,
            "ansible_connection": "pretend",
            "lab_boots": f"{self.boots}/{{{{ inventory_hostname }}}}",
        }
        where = str(self.boots / "plugins")
        return self.fleet.play("upgrade", "-e", json.dumps(values), *words, code=code, ANSIBLE_CONNECTION_PLUGINS=where)

    def order(self, host, when):
        """Have the playbook killed at this host's restart."""
        Path(f"{self.boots / host}.kill-{when}").touch()

    def restarts(self):
        counts = [Path(f"{self.boots / host}.count") for host in HOSTS]
        return [len(path.read_text().splitlines()) if path.exists() else 0 for path in counts]


@pytest.fixture(scope="module")
def site(fleet, tmp_path_factory):
    with installed(Rebooting, fleet, tmp_path_factory.mktemp("mirror")) as made:
        yield made


def test_killed_between_install_and_restart(site):
    site.order("node1", "before")
    run = site.upgrade(code=None)
    assert run.code not in (0, 2), run.output
    assert site.versions() == ["2.0-1", "1.0-1", "1.0-1"]
    assert (site.restarts(), site.unfinished()) == ([0, 0, 0], ["node1"])
    assert site.nodes() == ([True, False, False], [{"railops.io/upgrade-drain": "schedulable"}, {}, {}])


def test_the_next_run_restarts_it_and_is_killed_before_it_has_looked(site):
    site.order("node1", "after")
    run = site.upgrade(code=None)
    assert run.code not in (0, 2), run.output
    assert "turn 1: node1: goes on where an earlier run stopped; nothing new to install" in run.output
    assert site.versions() == ["2.0-1", "1.0-1", "1.0-1"], "no other host is changed"
    assert (site.restarts(), site.unfinished()) == ([1, 0, 0], ["node1"])
    assert site.nodes()[0] == [True, False, False]


def test_the_run_after_that_restarts_no_node_twice_and_ends(site):
    site.upgrade()
    assert site.versions() == ["2.0-1"] * 3
    assert (site.restarts(), site.unfinished()) == ([1, 1, 1], [])
    assert site.nodes() == ([False] * 3, [{}] * 3)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Alternative names of interfaces, given and taken by iproute2 on a real kernel."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._rdma.altnames import AltNames
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric


def test_names_are_given_taken_and_refused():
    with Fabric("names", 1, 2) as fabric:

        def run(argv):
            done = subprocess.run(
                ["ip", "netns", "exec", fabric.hosts[0].name, *argv], capture_output=True, text=True, check=False
            )
            return done.returncode, done.stdout, done.stderr

        names = AltNames(run, shutil.which("ip"))
        names.change([("ens1np0", "rail1"), ("ens1np0", "first"), ("ens2np0", "rail2")], [])
        assert names.read()["ens1np0"] == ("rail1", "first")
        with pytest.raises(RdmaError, match=r"name rail2 of ens1np0 cannot be changed: .*File exists"):
            names.change([("ens1np0", "rail2")], [])
        names.change([("ens1np0", "rail2")], [("ens2np0", "rail2"), ("ens1np0", "first")])
        assert names.read() == {**dict.fromkeys(names.read(), ()), "ens1np0": ("rail1", "rail2")}
    assert AltNames(run, None).read() == {}

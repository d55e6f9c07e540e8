# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Alternative names of interfaces, given and taken by iproute2 on a real kernel."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._programs import Machine
from ansible_collections.railops.rdma.plugins.module_utils._rdma.host import RdmaHost
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric
from ansible_collections.railops.rdma.tests.unit.played_host import command


def test_names_are_given_taken_and_refused():
    with Fabric("names", 1, 2) as fabric:

        class There(Machine):
            def run(self, argv, text=None, **_environ):
                return command(["ip", "netns", "exec", fabric.hosts[0].name, *argv])

        there = There()
        change = RdmaHost(there, dict).change_names

        def names():
            return {link["ifname"]: tuple(link.get("altnames", ())) for link in there.links()}

        change([("ens1np0", "rail1"), ("ens1np0", "first"), ("ens2np0", "rail2")], [])
        assert names()["ens1np0"] == ("rail1", "first")
        with pytest.raises(RdmaError, match=r"name rail2 of ens1np0 cannot be changed: .*File exists"):
            change([("ens1np0", "rail2")], [])
        change([("ens1np0", "rail2")], [("ens2np0", "rail2"), ("ens1np0", "first")])
        assert names() == {**dict.fromkeys(names(), ()), "ens1np0": ("rail1", "rail2")}
    assert Machine().links() == []

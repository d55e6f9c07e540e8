# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What carries a host's own network, on a real kernel: each user refuses exactly what must not be touched.

`python tests/kernel/test_management_network.py` records what `ip` says of each host for the unit tests.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._management_network import (
    PROBE_ADDRESSES,
    read_management_network,
)
from ansible_collections.railops.rdma.plugins.modules import policy_route, rail_persist, rdma_info, roce_qos
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import (
    Fabric,
    call_module,
    inside,
    options,
    own_sysfs,
    run,
)
from ansible_collections.railops.rdma.tests.unit.management_network_cases import CASES, RECORDED

# Not a connection, so that the one that runs the tests is not asked for.
NO_SSH = "none"
# Kinds that a kernel may lack, and what `ip` says the same of.
STAND_INS = {"type vlan id 7": "type macvlan", "type bond": "type bridge"}


def make(host, name, *, stand_in=False):
    """Make a host of the table; return whether this kernel can."""
    for line in CASES[name].make:
        for kind, other in STAND_INS.items() if stand_in else ():
            line = line.replace(kind, other)
        try:
            host.ip(*line.split())
        except AssertionError as exc:
            if "Unknown device type" in str(exc) or "Operation not supported" in str(exc):
                return False
            raise
    return True


@pytest.fixture(params=CASES)
def case(request):
    with Fabric("u", hosts=1, rails=2) as fabric:
        if not make(fabric.hosts[0], request.param):
            pytest.skip(f"this kernel cannot make: {CASES[request.param].make[0]}")
        yield CASES[request.param], fabric.hosts[0]


def test_the_table_holds_for_every_user_on_a_real_kernel(case):
    wanted, host = case
    environ = {"SSH_CONNECTION": wanted.ssh or NO_SSH}

    def read():
        own_sysfs()
        os.environ.update(environ)
        found = read_management_network(Sysfs())
        return {"default": sorted(found.default), "connection": sorted(found.connection)}

    assert inside(host.name, read) == {"default": sorted(wanted.default), "connection": sorted(wanted.connection)}
    rails = options(0, 2, six=False)
    plain = [{"name": rail["name"], "interface": rail["interface"]} for rail in rails["rails"]]
    for module, params in (
        (policy_route, rails),
        (rail_persist, {**rails, "manager": "networkd"}),
        (roce_qos, {"rails": plain, "unsupported": "report"}),
    ):
        for interface, guarded in (("ens1np0", wanted.guarded), ("ens2np0", False)):
            one = {**params, "rails": [rail for rail in params["rails"] if rail["interface"] == interface]}

            result = inside(host.name, called, module, one, environ)
            refused = "carries" in result.get("msg", "")
            assert refused is guarded, (module.__name__, interface, result.get("msg"))
    info = inside(host.name, called, rdma_info, {}, environ)["info"]
    assert info["default_interfaces"] == sorted(wanted.default | wanted.connection)


def called(module, params, environ):
    own_sysfs()
    return call_module(module, params, check=True, environ=environ)


def record():
    answers = {}
    for name, case in CASES.items():
        with Fabric("r", hosts=1, rails=2) as fabric:
            (host,) = fabric.hosts
            make(host, name, stand_in=True)
            peer = case.ssh.partition(" ")[0]
            answers[name] = {}
            for family in (4, 6):
                lines = [
                    "link show",
                    "address show",
                    "rule show",
                    f"route show table all match {PROBE_ADDRESSES[family]}",
                ]
                lines += [f"route get fibmatch {peer}"] if peer and (":" in peer) == (family == 6) else []
                argv = ["ip", "-n", host.name, f"-{family}", "-json", "-force", "-batch", "-"]
                answers[name][str(family)] = run(*argv, check=False, stdin="\n".join(lines) + "\n")
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()

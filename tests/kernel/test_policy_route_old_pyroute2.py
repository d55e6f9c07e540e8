# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""policy_route with the oldest pyroute2 that it promises to work with, and with one that is too old.

pip install --target /tmp/pyroute2-old pyroute2==0.7.2
RAILOPS_PYROUTE2_OLD=/tmp/pyroute2-old pytest tests/kernel/test_policy_route_old_pyroute2.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, options

OLD = os.environ.get("RAILOPS_PYROUTE2_OLD", "")
pytestmark = pytest.mark.skipif(not OLD, reason="RAILOPS_PYROUTE2_OLD names no folder with pyroute2 0.7.2")

SCRIPT = """
import json, sys
import pyroute2
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import call_module
from ansible_collections.railops.rdma.plugins.modules import policy_route
out = [call_module(policy_route, params, check=check) for params, check in json.loads(sys.stdin.read())]
print(json.dumps({"path": pyroute2.__file__, "results": out}))
"""


def run_old(host, folder, calls):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    argv = ["ip", "netns", "exec", host.name, sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        argv, input=json.dumps(calls), env=environ, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_oldest_promised_pyroute2_makes_the_same_host():
    from ansible_collections.railops.rdma.plugins.modules import policy_route

    with Fabric("old", 2, 2) as fabric:
        one, two = fabric.hosts
        want = options(0, 2, policy="default_route")
        moved = options(3, 2)
        answer = run_old(one, OLD, [(want, True), (want, False), (want, False), (moved, False), (want, False)])
        assert answer["path"].startswith(OLD)
        assert not [item["msg"] for item in answer["results"] if item.get("failed")]
        predicted, first, second, _moved, _back = answer["results"]
        assert predicted["diff"] == first["diff"]
        assert (first["changed"], second["changed"]) == (True, False)
        two.module(policy_route, want)
        dumps = [json.dumps(host.dump()).replace(f"198.51.100.{host.number}", "MGMT") for host in fabric.hosts]
        assert dumps[0].count("10001") == dumps[1].count("10001")
        assert one.dump()["rules"] == two.dump()["rules"]
        assert run_old(one, OLD, [({**want, "state": "absent"}, False)])["results"][0]["changed"]
        assert not [line for line in one.dump()["routes"] if "table 10" in line]


def test_one_without_what_is_needed_is_refused_with_its_version_and_path(tmp_path):
    """A stand-in for what older distributions have: it lacks the protocol of rules."""
    package = tmp_path / "pyroute2" / "netlink" / "rtnl"
    package.mkdir(parents=True)
    for folder in (tmp_path / "pyroute2", tmp_path / "pyroute2/netlink", package):
        (folder / "__init__.py").write_text("__version__ = '0.5.1'\n")
    for name in ("fibmsg", "ifaddrmsg", "ifinfmsg", "nsidmsg", "rtmsg"):
        (package / f"{name}.py").write_text(f"class {name}:\n    nla_map = ()\n")
    with Fabric("tooold", 1, 1) as fabric:
        host = fabric.hosts[0]
        before = host.dump()
        result = run_old(host, str(tmp_path), [(options(0, 1), False)])["results"][0]
        assert result["failed"]
        assert "0.5.1" in result["msg"]
        assert str(tmp_path) in result["msg"]
        assert "python3-pyroute2" in result["fix"]
        assert host.dump() == before

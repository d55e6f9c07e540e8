# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fault at every message: an error there leaves the host as it was, a kill there is healed by the next run."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route import kernel
from ansible_collections.railops.rdma.plugins.module_utils._route import run as route_run
from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, call_module, inside, options, wait_for

RAILS = 2


class Faults(kernel.Kernel):
    """A kernel that fails at message `at`, counted over the whole change, sysctls included."""

    at = -1
    kind = ""
    seen = 0

    def _fault(self):
        hit = Faults.seen == Faults.at
        Faults.seen += 1
        if hit and self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return hit

    def transact(self, messages):
        # The kernel goes on with a batch after an error in it, so the fault stands in the middle of a sent batch.
        results = []
        for op, data in messages:
            if self._fault():
                results.append((op, errno.ENOBUFS))
            else:
                results.append((op, self._exchange([data])[0][0]))
        for op, error in results:
            if error and error not in kernel.HARMLESS[op.verb]:
                raise self.refusal(op, error, "injected")
        return not any(error for _op, error in results)

    def _write_sysctl(self, op):
        if self._fault():
            raise self.refusal(op, errno.EIO, "injected")
        super()._write_sysctl(op)


def run_with(host, want, at, kind):
    def child():
        Faults.at, Faults.kind, Faults.seen = at, kind, 0
        route_run.Kernel = Faults
        result = call_module(policy_route, want)
        return {"failed": result.get("failed", False), "rolled_back": result.get("rolled_back"), "seen": Faults.seen}

    return inside(host.name, child)


def rules_without_a_table(host):
    """Ask iproute2 for rules of ours whose table is empty."""
    bad = []
    for family in ("-4", "-6"):
        for line in host.ip(family, "rule").splitlines():
            table = line.split("lookup ")[1].split()[0]
            if table.startswith("10") and not host.ip(family, "route", "show", "table", table, check=False).strip():
                bad.append(line)
    return bad


SCENARIOS = {
    "first-apply": ([], options(0, RAILS)),
    "default-route": ([], options(0, RAILS, policy="default_route")),
    "renumber": ([options(0, RAILS)], options(3, RAILS)),
    "policy-changes": ([options(0, RAILS)], options(0, RAILS, policy="default_route")),
    "absent": ([options(0, RAILS)], {**options(0, RAILS), "state": "absent"}),
}
# Beside what is ours, so that side effects show: an address of someone else with routes of its own.
EXISTING = """
link set ens1np0 up
address add 172.17.0.9/27 dev ens1np0
address add fd00:17:1:1::9/64 dev ens1np0 nodad
route add 10.77.0.0/16 via 172.17.0.8 dev ens1np0
route add 2001:db8:88::/48 via fd00:17:1:1::8 dev ens1np0 metric 77
rule add priority 1000 lookup 500
"""


@pytest.fixture(params=SCENARIOS)
def scenario(request):
    """Give a host beside others' state that has what is there earlier, what that is, and what is wanted."""
    earlier, want = SCENARIOS[request.param]
    with Fabric(f"fault-{request.param[:6]}", 1, RAILS) as fabric:
        host = fabric.hosts[0]
        host.batch(EXISTING.lstrip())
        # The kernel marks routes so until it has seen the port's carrier, a moment after the port is up.
        wait_for(lambda: "linkdown" in host.ip("route", "show", "table", "all"), False)
        for one in earlier:
            host.apply(one)
        yield host, earlier, want


def test_an_error_at_every_message_leaves_the_host_as_it_was(scenario):
    host, _earlier, want = scenario
    before = host.dump()
    for at in itertools.count():
        answer = run_with(host, want, at, "error")
        if answer["seen"] <= at:
            break
        assert (bool(answer["failed"]), answer["rolled_back"]) == (True, True), at
        for kind, rows in host.dump().items():
            assert rows == before[kind], (at, kind, sorted({*rows} ^ {*before[kind]}))
    assert at >= 10
    assert not host.module(policy_route, want)["changed"]


def test_a_kill_at_every_message_is_healed_by_the_next_run(scenario):
    host, earlier, want = scenario
    host.apply(want)
    wanted = host.dump()
    for at in itertools.count():
        for one in earlier or [{**options(0, RAILS), "state": "absent"}]:
            host.apply(one)
        answer = run_with(host, want, at, "kill")
        assert rules_without_a_table(host) == [], at
        host.apply(want)
        assert host.dump() == wanted, at
        if answer is not None:
            break
    assert at >= 6


def vlans():
    """Say whether this kernel has VLANs."""
    argv = ["unshare", "--net", "ip", "link", "add", "link", "lo", "name", "v1", "type", "vlan", "id", "1"]
    return os.geteuid() == 0 and subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(
    not vlans(), reason="this kernel has no VLANs (8021q): tests/guests/test_vlan_rails.py asks one that has"
)
@pytest.mark.parametrize("then", ["present", "absent"])
def test_a_kill_while_a_vlan_is_made_leaves_nothing_that_is_nobodys(then):
    want = options(0, RAILS)
    for rail in want["rails"]:
        rail["vlan"] = 101
    want["sysctls"] = {key.replace("np0/", "np0.101/"): value for key, value in want["sysctls"].items()}
    with Fabric("kill-vlan", 1, RAILS) as fabric:
        host = fabric.hosts[0]
        before = host.dump()
        for at in itertools.count():
            done = run_with(host, want, at, "kill") is not None
            if then == "present":
                host.apply(want)
                assert not host.apply(want)["changed"], at
            host.apply({**want, "state": "absent"})
            names = [line.split()[0] for line in host.dump()["links"]]
            assert names == [line.split()[0] for line in before["links"]], at
            if done:
                break
        assert at >= 6


def test_an_interrupted_run_takes_its_change_back():
    """SIGTERM, as a controller that gives up sends it, in the middle of a change."""
    want = options(0, RAILS)
    with Fabric("term", 1, RAILS) as fabric:
        host = fabric.hosts[0]
        before = host.dump()

        def child():
            class Slow(kernel.Kernel):
                def transact(self, messages):
                    if messages[0][0].verb == "add" and "rule" in str(messages[0][0]):
                        os.kill(os.getpid(), signal.SIGTERM)
                    return super().transact(messages)

            route_run.Kernel = Slow
            return call_module(policy_route, want)

        result = inside(host.name, child)
        assert result["failed"]
        assert "SIGTERM" in result["msg"]
        assert host.dump() == before

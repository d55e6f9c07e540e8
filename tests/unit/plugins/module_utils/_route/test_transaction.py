# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._management_network import ManagementNetwork
from ansible_collections.railops.rdma.plugins.module_utils._route import kernel as kernel_of_host
from ansible_collections.railops.rdma.plugins.module_utils._route.change import Op
from ansible_collections.railops.rdma.plugins.module_utils._route.model import Rule
from ansible_collections.railops.rdma.plugins.module_utils._route.plan import decide
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
from ansible_collections.railops.rdma.plugins.module_utils._route.transaction import change
from ansible_collections.railops.rdma.tests.unit.fake_kernel import FakeKernel
from ansible_collections.railops.rdma.tests.unit.one_rail import WANT


class SilentKernel(FakeKernel):
    """A kernel that refuses rules, and gives no answer to the first reads after that."""

    def __init__(self, silent, refuse="rule add"):
        super().__init__("ens1np0")
        self.refuse = refuse
        self.silent = silent

    def apply(self, phases):
        return super().apply(phases) and bool(self.refuse)

    def again(self, host):
        self.silent -= 1
        if self.silent >= 0:
            raise TimeoutError("timed out")
        return super().again(host)


@pytest.mark.parametrize(
    ("silent", "refuse", "error", "left"),
    [
        *((silent, "rule add", "refused `ip rule add", set()) for silent in (0, 1, 4)),
        (99, "rule add", "rule", {"ip address delete 192.0.2.2/27 dev ens1np0", "ip link set ens1np0 mtu 1500 down"}),
        (1, "", r"timed out.*network_unreadable", set()),
    ],
)
def test_a_rollback_goes_on_while_the_host_cannot_be_read(silent, refuse, error, left):
    kernel = SilentKernel(silent, refuse)
    before = kernel.snapshot
    plan = decide(parse_options(WANT), kernel.read(None, ManagementNetwork()))
    with pytest.raises(RdmaError, match=error) as caught:
        change(kernel, plan.host, plan.target, lambda: True)
    assert caught.value.facts["rolled_back"] is not bool(left)
    assert left <= {*caught.value.facts.get("left", ())}
    assert kernel.snapshot == before, "it is undone nevertheless"


def test_a_message_without_an_answer_is_refused_and_its_socket_is_closed():
    class Silent:
        closed = False

        def exchange(self, _messages):
            raise TimeoutError("timed out")

        def close(self):
            self.closed = True

    kernel, silent = kernel_of_host.Kernel(), Silent()
    kernel._sockets[0] = silent
    rule = Op("add", Rule(4, 10001, 1001, source="192.0.2.2/32"))
    with pytest.raises(kernel_of_host.KernelRejected, match=r"rule add .*timed out"):
        kernel.apply(((rule,),))
    assert (silent.closed, kernel._sockets) == (True, {})

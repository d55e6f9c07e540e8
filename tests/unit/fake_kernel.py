# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A kernel in the place of the host's, and gateways in the place of the network's, for policy_route."""

from __future__ import annotations

import dataclasses

from ansible_collections.railops.rdma.plugins.module_utils._route import managed_state, rollback, run
from ansible_collections.railops.rdma.plugins.module_utils._route.icmp import EchoOutcome
from ansible_collections.railops.rdma.plugins.module_utils._route.kernel import KernelRejected
from ansible_collections.railops.rdma.plugins.module_utils._route.model import (
    Address,
    Link,
    Route,
    RouteHost,
    Rule,
    Snapshot,
)


class FakeKernel:
    """A kernel with a few links: it keeps what is written, and refuses the operation that `refuse` is part of."""

    def __init__(self, *names):
        links = {name: Link(name, 1500, False, max_mtu=9978) for name in names}
        self.snapshot = Snapshot(links, *[frozenset()] * 3, {})
        self.writes = []
        self.refuse = ""
        self.group = 4092

    def stand_for_the_hosts(self, monkeypatch, folder):
        """Let policy_route read and write this one, and keep its timers and records in a folder."""
        monkeypatch.setattr(run, "Kernel", lambda: self)
        monkeypatch.setattr(managed_state, "ROOT", str(folder))
        monkeypatch.setattr(rollback, "STATE_FOLDER", str(folder))

    def set_link(self, *values, **more):
        link = Link(*values, **more)
        self.snapshot = dataclasses.replace(self.snapshot, links={link.name: link})

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        pass

    def read(self, want, management_network):
        return RouteHost(
            self.snapshot,
            names={name: name for name in self.snapshot.links},
            addresses=self.snapshot.addresses,
            management_network=management_network,
        )

    def again(self, host):
        return self.snapshot

    def apply(self, phases):
        for op in (op for phase in phases for op in phase):
            if self.refuse and self.refuse in str(op):
                raise KernelRejected(f"The kernel refused `{op}`.", "Try it manually.", errno=16)
            self.writes.append(str(op))
            self._carry_out(op)
        return True

    def _carry_out(self, op):
        if isinstance(op.what, Link) and op.what.kind == "infiniband":
            # ipoib_change_mtu() of the kernel: success, and the smaller of the two.
            op = dataclasses.replace(op, what=dataclasses.replace(op.what, mtu=min(op.what.mtu, self.group)))
        part = {Address: "addresses", Route: "routes", Rule: "rules"}.get(type(op.what))
        if part is None:
            self.snapshot = dataclasses.replace(self.snapshot, links={op.what.name: op.what})
            return
        have = getattr(self.snapshot, part) - {op.what}
        self.snapshot = dataclasses.replace(self.snapshot, **{part: have if op.verb == "delete" else have | {op.what}})


def sweep(received):
    """Return a Sweep of which each target answers so often."""

    class Sweep:
        def __init__(self, targets, **_more):
            self.targets = targets

        def run(self):
            return [EchoOutcome(bool(received), knocks=3, sent=10, received=received) for _target in self.targets]

    return Sweep

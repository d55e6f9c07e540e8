# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import os

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _library
from ansible_collections.railops.rdma.plugins.module_utils._route import rollback
from ansible_collections.railops.rdma.plugins.module_utils._route import run as work
from ansible_collections.railops.rdma.plugins.module_utils._route.echo import Outcome
from ansible_collections.railops.rdma.plugins.module_utils._route.kernel import KernelRefused
from ansible_collections.railops.rdma.plugins.module_utils._route.model import (
    Address,
    Host,
    Link,
    Route,
    Rule,
    Snapshot,
)
from ansible_collections.railops.rdma.tests.unit.one_rail import RAIL, WANT
from ansible_collections.railops.rdma.tests.unit.untouchable_cases import install, plain


class FakeKernel:
    """A kernel with a few links: it keeps what is written, and refuses the operation that `refuse` is part of."""

    def __init__(self, *names):
        links = {name: Link(name, 1500, False, max_mtu=9978) for name in names}
        self.snapshot = Snapshot(links, *[frozenset()] * 3, {})
        self.writes = []
        self.refuse = ""
        self.group = 4092

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        pass

    def read(self, want, untouchable):
        return Host(
            self.snapshot,
            names={name: name for name in self.snapshot.links},
            addresses=self.snapshot.addresses,
            untouchable=untouchable,
        )

    def again(self, host):
        return self.snapshot

    def apply(self, phases):
        for op in (op for phase in phases for op in phase):
            if self.refuse and self.refuse in str(op):
                raise KernelRefused(f"The kernel refused `{op}`.", "Try it by hand.", errno=16)
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


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    fake = FakeKernel("ens1np0")
    monkeypatch.setattr(work, "Kernel", lambda: fake)
    monkeypatch.setattr(work, "pyroute2_problem", lambda: "")
    monkeypatch.setattr(rollback, "STATE_FOLDER", str(tmp_path))
    monkeypatch.setattr(_library, "FOLDER", str(tmp_path / "lib/library"))
    install(tmp_path, plain("eno1"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return fake


@pytest.fixture
def params():
    return WANT


@pytest.mark.parametrize("rails", [None, []])
def test_without_a_rail_nothing_is_taken_away_unless_that_is_said(kernel, run_module, refused, rails):
    run_module()
    before = kernel.snapshot
    refused("rails: There is none, and state is present.", "state: absent", rails=rails)
    assert kernel.snapshot == before


@pytest.mark.parametrize("received", [7, 0])
def test_a_gateway_that_loses_some_answers_all_the_same_and_a_silent_one_is_named(
    kernel, run_module, refused, monkeypatch, received
):
    class Sweep:
        """Each target answers so often."""

        def __init__(self, targets, **_more):
            self.targets = targets

        def run(self):
            return [Outcome(bool(received), knocks=3, sent=10, received=received) for _target in self.targets]

    kept = []
    monkeypatch.setattr(work, "Sweep", Sweep)
    monkeypatch.setattr(work, "confirm", kept.append)
    asked = {"confirm": "token", "gateways": "require"}
    if received:
        assert run_module(**asked)["confirmed"]
    else:
        refused("takes it back. No answer: 192.0.2.1 to 192.0.2.2 on ens1np0.", **asked)
    assert kept == (["token"] if received else [])


@pytest.mark.parametrize("group", [2044, 4092])
def test_the_mtu_of_ipoib_is_read_back_and_what_holds_it_is_named(kernel, run_module, refused, group):
    link = Link("ens1np0", 2044, True, kind="infiniband", mode="datagram", max_mtu=4092)
    kernel.snapshot = before = dataclasses.replace(kernel.snapshot, links={"ens1np0": link})
    kernel.group = group
    wish = {"network": "infiniband", "rails": [{**RAIL, "mtu": 4092}]}
    if group == 2044:
        result = refused("the subnet manager's IPoIB group has 2044", fix="OpenSM", **wish)
        assert (result["taken_back"], kernel.snapshot) == (True, before)
        checks = run_module(**wish, _ansible_check_mode=True)["checks"]
        assert ["OpenSM" in check["fix"] for check in checks if check["id"] == "network_mtu"] == [True]
    else:
        assert run_module(**wish)["changed"] is True
        assert run_module(**wish)["changed"] is False


def test_what_cannot_be_taken_back_is_named(kernel, run_module):
    kernel.refuse = "rule"
    run_module()
    kernel.refuse = "address"
    result = run_module()
    assert result["taken_back"] is True
    # The rule cannot be made, and then its table's routes cannot be removed either.
    original = kernel.apply

    def apply(phases):
        phases = list(phases)
        kernel.refuse = "route delete" if "route delete" in str(phases[0][0]) else "rule add"
        return original(phases)

    kernel.apply = apply
    kernel.refuse = ""
    result = run_module()
    assert result["taken_back"] is False
    assert any("route" in line for line in result["left"])


def test_the_diff_comes_only_when_asked_for(kernel, run_module):
    assert "diff" not in run_module(_ansible_check_mode=True)


@pytest.mark.parametrize("problem", ["pyroute2 cannot be imported.", "pyroute2 0.5.1 in /usr/lib is too old."])
def test_a_library_that_is_missing_or_too_old_is_a_failure_with_its_fix(monkeypatch, kernel, refused, problem):
    monkeypatch.setattr(work, "pyroute2_problem", lambda: problem)
    assert refused(problem, fix="python3-pyroute2")["library_missing"] is True


@pytest.mark.parametrize("case", ["library", "host", "input"])
def test_for_verifying_what_is_in_the_way_is_a_check_and_no_failure(monkeypatch, kernel, run_module, case):
    more = {"on_problem": "report", "_ansible_check_mode": True}
    if case == "library":
        monkeypatch.setattr(work, "pyroute2_problem", lambda: "pyroute2 cannot be imported.")
    elif case == "host":
        more["rails"] = [{**RAIL, "mtu": 99999}]
    else:
        more["rails"] = [{**RAIL, "table": 5}]
    result = run_module(**more)
    assert not result.get("failed")
    assert [check["status"] for check in result["checks"]] == ["deviation"]
    assert result["checks"][0]["fix"]
    assert run_module(**{**more, "_ansible_check_mode": False})["failed"] is True


def test_an_unknown_token_is_a_failure(kernel, refused):
    refused("no change with the token", confirm="0123456789abcdef")
    refused("not a token", confirm="../../etc")

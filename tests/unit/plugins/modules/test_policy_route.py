# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _pyroute2
from ansible_collections.railops.rdma.plugins.module_utils._route import read
from ansible_collections.railops.rdma.plugins.module_utils._route import run as work
from ansible_collections.railops.rdma.plugins.module_utils._route.kernel import Kernel
from ansible_collections.railops.rdma.tests.unit.fake_kernel import FakeKernel, sweep
from ansible_collections.railops.rdma.tests.unit.management_network_cases import install, plain
from ansible_collections.railops.rdma.tests.unit.one_rail import RAIL, WANT


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    fake = FakeKernel("ens1np0")
    fake.stand_for_the_hosts(monkeypatch, tmp_path)
    monkeypatch.setattr(_pyroute2, "FOLDER", str(tmp_path / "lib/library"))
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
    kept = []
    monkeypatch.setattr(work, "EchoRun", sweep(received))
    monkeypatch.setattr(work, "confirm", kept.append)
    options = {"confirm": "token", "gateways": "require"}
    if received:
        assert run_module(**options)["confirmed"]
    else:
        refused("reverts it. No answer: 192.0.2.1 to 192.0.2.2 on ens1np0.", **options)
    assert kept == (["token"] if received else [])


@pytest.mark.parametrize("group", [2044, 4092])
def test_the_mtu_of_ipoib_is_read_back_and_what_holds_it_is_named(kernel, run_module, refused, group):
    kernel.set_link("ens1np0", 2044, True, kind="infiniband", mode="datagram", max_mtu=4092)
    before, kernel.group = kernel.snapshot, group
    links = {"network": "infiniband", "rails": [{**RAIL, "mtu": 4092}]}
    if group == 2044:
        result = refused("the subnet manager's IPoIB group has 2044", fix="OpenSM", **links)
        assert (result["rolled_back"], kernel.snapshot) == (True, before)
        checks = run_module(**links, _ansible_check_mode=True)["checks"]
        assert ["OpenSM" in check["fix"] for check in checks if check["id"] == "network_mtu"] == [True]
    else:
        assert run_module(**links)["changed"] is True
        assert run_module(**links)["changed"] is False


def refuse_rules(kernel, *, complete):
    """Let the kernel refuse new rules, and unless the rollback is `complete` also to remove routes."""
    original = kernel.apply

    def apply(phases):
        phases = list(phases)
        kernel.refuse = "route delete" if "route delete" in str(phases[0][0]) and not complete else "rule add"
        return original(phases)

    kernel.apply = apply


def test_what_cannot_be_taken_back_is_named(kernel, run_module):
    kernel.refuse = "rule"
    run_module()
    kernel.refuse = "address"
    result = run_module()
    assert result["rolled_back"] is True
    # The rule cannot be made, and then its table's routes cannot be removed either.
    refuse_rules(kernel, complete=False)
    kernel.refuse = ""
    result = run_module()
    assert result["rolled_back"] is False
    assert any("route" in line for line in result["left"])


@pytest.mark.parametrize("complete", [True, False])
def test_a_rollback_timer_stays_armed_while_something_is_left_to_undo(kernel, run_module, monkeypatch, complete):
    confirmed = []
    monkeypatch.setattr(work, "arm", lambda *_change: "token")
    monkeypatch.setattr(work, "armed", lambda _token: True)
    monkeypatch.setattr(work, "confirm", confirmed.append)
    refuse_rules(kernel, complete=complete)
    result = run_module(confirm_timeout=60)
    assert result["failed"]
    assert result["rolled_back"] is complete
    assert bool(result.get("left")) is not complete
    assert confirmed == (["token"] if complete else [])


def test_check_mode_with_a_rollback_token_changes_nothing(kernel, run_module, monkeypatch):
    restored = []
    monkeypatch.setattr(work, "undo", lambda token, seconds: restored.append((token, seconds)) or "new")
    predicted = run_module(rollback_token="token", _ansible_check_mode=True)
    assert (predicted["changed"], predicted["token"], restored) == (True, "", [])
    done = run_module(rollback_token="token")
    assert (done["changed"], done["token"], restored) == (True, "new", [("token", work.UNDO_SECONDS)])


def test_the_diff_is_opt_in(kernel, run_module):
    assert "diff" not in run_module(_ansible_check_mode=True)


@pytest.mark.parametrize("problem", ["pyroute2 cannot be imported.", "pyroute2 0.5.1 in /usr/lib is too old."])
def test_a_library_that_is_missing_or_too_old_is_a_failure_with_its_fix(monkeypatch, kernel, refused, problem):
    monkeypatch.setattr(work, "Kernel", Kernel)
    monkeypatch.setattr(read, "pyroute2_problem", lambda: problem)
    assert refused(problem, fix="python3-pyroute2")["library_missing"] is True


@pytest.mark.parametrize("case", ["library", "host", "input"])
def test_for_verifying_what_is_in_the_way_is_a_check_and_no_failure(monkeypatch, kernel, run_module, case):
    more = {"on_conflict": "report", "_ansible_check_mode": True}
    if case == "library":
        monkeypatch.setattr(work, "Kernel", Kernel)
        monkeypatch.setattr(read, "pyroute2_problem", lambda: "pyroute2 cannot be imported.")
    elif case == "host":
        more["rails"] = [{**RAIL, "mtu": 99999}]
    else:
        more["rails"] = [{**RAIL, "table": 254}]
    result = run_module(**more)
    assert not result.get("failed")
    assert [check["status"] for check in result["checks"]] == ["deviation"]
    assert result["checks"][0]["fix"]
    assert run_module(**{**more, "_ansible_check_mode": False})["failed"] is True


def test_an_unknown_token_is_a_failure(kernel, refused):
    refused("no change with the token", confirm="0123456789abcdef")
    refused("no change with the token", confirm="../../etc")

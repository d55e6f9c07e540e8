# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._management_network import ManagementNetwork
from ansible_collections.railops.rdma.plugins.module_utils._programs import NO_ANSWER, ProgramResult
from ansible_collections.railops.rdma.plugins.module_utils._route import rollback, run
from ansible_collections.railops.rdma.plugins.module_utils._route.plan import decide
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
from ansible_collections.railops.rdma.tests.unit.fake_kernel import FakeKernel
from ansible_collections.railops.rdma.tests.unit.one_rail import WANT


@pytest.mark.parametrize(("status", "own"), [(0, 0), (1, 1), (127, 1), (NO_ANSWER, 0)])
def test_a_unit_that_may_still_start_gets_no_second_timer_beside_it(monkeypatch, status, own):
    calls, detached = [], []
    monkeypatch.setattr(rollback, "_systemd_runs_this", lambda: True)
    monkeypatch.setattr(rollback, "run_program", lambda argv, **_: calls.append(argv) or ProgramResult(status, "", ""))
    monkeypatch.setattr(rollback, "detach", detached.append)
    rollback._start("/run/x", "abc")
    assert calls[0][0] == "systemd-run"
    assert len(detached) == own


def test_a_change_whose_timer_never_started_does_not_wait_for_it(monkeypatch, tmp_path):
    """After a kill between writing `armed` and the start of its process, `wait until it is rolled back` was untrue."""
    monkeypatch.setattr(rollback, "STATE_FOLDER", str(tmp_path))
    folder = Path(rollback.timers_folder()) / "abc"
    folder.mkdir(parents=True)
    parts = {"links": [], "addresses": [], "routes": [], "rules": [], "sysctls": {}}
    state = {"before": parts, "deadline": time.monotonic() + 60}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    (folder / "armed").touch()
    assert "its timer does not run" in str(run.pending_error(rollback.pending()))
    (folder / "ready").touch()
    assert "[confirm_pending]" in str(run.pending_error(rollback.pending()))


@pytest.mark.parametrize("complete", [True, False])
def test_the_timer_of_an_incomplete_rollback_is_disarmed(monkeypatch, tmp_path, complete):
    """It would restore the change while the user completes the rollback manually."""
    kernel = FakeKernel("ens1np0")
    kernel.stand_for_the_hosts(monkeypatch, tmp_path)
    monkeypatch.setattr(rollback, "Kernel", lambda: kernel)
    monkeypatch.setattr(rollback, "_start", lambda _folder, _token: None)
    monkeypatch.setattr(rollback, "_await_ready", lambda _folder: None)
    before = kernel.snapshot
    plan = decide(parse_options(WANT), kernel.read(None, ManagementNetwork()))
    token = rollback.arm(plan.host, before, plan.target, 60)
    kernel.apply(plan.phases)
    rollback.confirm(token)
    if complete:
        new = rollback.undo(token, 60)
        assert (kernel.snapshot, rollback.pending().token) == (before, new)
        return
    kernel.refuse = "address delete"
    with pytest.raises(RdmaError) as caught:
        rollback.undo(token, 60)
    assert caught.value.facts["left"] == ["ip address delete 192.0.2.2/27 dev ens1np0"]
    assert rollback.pending() is None

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._programs import NO_ANSWER, ProgramResult
from ansible_collections.railops.rdma.plugins.module_utils._route import rollback, run


@pytest.mark.parametrize(("status", "own"), [(0, 0), (1, 1), (127, 1), (NO_ANSWER, 0)])
def test_a_unit_that_may_still_start_gets_no_second_timer_beside_it(monkeypatch, status, own):
    asked, detached = [], []
    monkeypatch.setattr(rollback, "_systemd_runs_this", lambda: True)
    monkeypatch.setattr(rollback, "ask", lambda argv, **_more: asked.append(argv) or ProgramResult(status, "", ""))
    monkeypatch.setattr(rollback, "detach", detached.append)
    rollback._start("/run/x", "abc")
    assert asked[0][0] == "systemd-run"
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
    assert "its timer does not run" in str(run.still_waiting(rollback.pending()))
    (folder / "ready").touch()
    assert "[confirm_pending]" in str(run.still_waiting(rollback.pending()))

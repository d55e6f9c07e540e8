# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._programs import NO_ANSWER, Ran
from ansible_collections.railops.rdma.plugins.module_utils._route import rollback


@pytest.mark.parametrize(("status", "own"), [(0, 0), (1, 1), (127, 1), (NO_ANSWER, 0)])
def test_a_unit_that_may_still_start_gets_no_second_timer_beside_it(monkeypatch, status, own):
    asked, detached = [], []
    monkeypatch.setattr(rollback, "_systemd_runs_this", lambda: True)
    monkeypatch.setattr(rollback, "ask", lambda argv, **_more: asked.append(argv) or Ran(status, "", ""))
    monkeypatch.setattr(rollback, "detach", detached.append)
    rollback._start("/run/x", "abc")
    assert asked[0][0] == "systemd-run"
    assert len(detached) == own

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.module_utils._cluster import progress as progress_of
from ansible_collections.railops.rdma.plugins.module_utils._cluster.progress import Progress
from ansible_collections.railops.rdma.plugins.module_utils._cluster.run import writes_at_once


def test_progress_is_reported_every_ten_seconds(monkeypatch):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(progress_of.time, "monotonic", lambda: float(next(clock)))
    messages = []
    progress = Progress(messages.append, 6)
    for _number in range(6):
        progress.step("apply SpiderIPPool")
    assert messages == [
        "apply SpiderIPPool: 3 of 6, 0/s, about 0.2 min left",
        "apply SpiderIPPool: 6 of 6, 0/s, about 0.0 min left",
    ]


def test_many_pools_are_written_few_at_once():
    assert [writes_at_once("SpiderIPPool", pools) for pools in (1, 1000, 4000, 80_000)] == [8, 8, 2, 1]
    assert writes_at_once("ConfigMap", 80_000) == 8

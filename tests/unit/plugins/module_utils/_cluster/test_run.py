# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster import run as cluster_run
from ansible_collections.railops.rdma.plugins.module_utils._cluster.model import ApplyStep, ClusterPlan, Ref
from ansible_collections.railops.rdma.plugins.module_utils._cluster.plan import ApplyOptions
from ansible_collections.railops.rdma.plugins.module_utils._cluster.progress import Progress, span
from ansible_collections.railops.rdma.plugins.module_utils._cluster.run import ApplyRun


class Recorder:
    """A cluster that keeps nothing and remembers what was asked."""

    def __init__(self):
        self.deleted = []

    def delete(self, ref, *, uid, version, dry_run):
        self.deleted.append((ref.name, dry_run))

    def get(self, ref):
        return None


def steps(count):
    ref = [Ref("spiderpool.spidernet.io", "SpiderIPPool", "", f"p{number}") for number in range(count)]
    return tuple(ApplyStep("delete", item) for item in ref)


@pytest.mark.parametrize("check_mode", [False, True])
def test_every_step_is_done_and_check_mode_is_a_dry_run(check_mode):
    cluster = Recorder()
    run = ApplyRun(cluster, {}, ApplyOptions(check_mode=check_mode))
    run.execute(ClusterPlan(steps=steps(20)))
    assert sorted(cluster.deleted) == sorted((f"p{number}", check_mode) for number in range(20))
    assert run.outcome.done == 20


def test_progress_is_reported_every_ten_seconds(monkeypatch):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(cluster_run.time, "monotonic", lambda: float(next(clock)))
    said = []
    progress = Progress(said.append, 6)
    for _number in range(6):
        progress.step("apply SpiderIPPool")
    assert said == [
        "apply SpiderIPPool: 3 of 6, 0/s, about 12 s left",
        "apply SpiderIPPool: 6 of 6, 0/s, about 0 s left",
    ]


def test_spans_read_well():
    assert [span(seconds) for seconds in (12.4, 600, 7200)] == ["12 s", "10 min", "2.0 h"]

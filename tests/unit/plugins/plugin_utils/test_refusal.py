# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._refusal import Refusal
from ansible_collections.railops.rdma.tests.unit.actions import action_of

BAD = {"failed": True, "msg": "It is bad. Repair it.", "fix": "Repair it.", "out": ["node1"]}


def run(monkeypatch, result, **task):
    action = action_of("kubernetes_gate", {"plan_dir": "plan"})
    for name, value in task.items():
        setattr(action._task, name, value)
    monkeypatch.setattr(action, "_execute_module", lambda **_module: dict(result))
    return action.run(None, {})


def test_a_refusal_of_a_module_is_raised_with_its_sentence(monkeypatch):
    with pytest.raises(Refusal, match=r"^It is bad\. Repair it\.$") as caught:
        run(monkeypatch, BAD)
    assert caught.value.omit_exception_key
    assert caught.value.result["out"] == ["node1"]


@pytest.mark.parametrize("task", [{"failed_when": [False]}, {"until": ["done"]}, {"retries": 3}])
def test_failure_is_returned_with_failed_when(monkeypatch, task):
    assert run(monkeypatch, BAD, **task) == BAD


def test_what_crashed_and_what_is_good_is_returned(monkeypatch):
    for result in ({"failed": True, "msg": "MODULE FAILURE"}, {"changed": False}):
        assert run(monkeypatch, result) == result

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of a change and its confirmation, with a connection and a module that keep what happened."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from ansible_collections.railops.rdma.plugins.action import policy_route
from ansible_collections.railops.rdma.plugins.plugin_utils._refusal import Refusal
from ansible_collections.railops.rdma.tests.unit.actions import action_of

CHANGE = {"changed": True, "token": "abc123", "checks": [{"id": "network_mtu"}], "diff": {"before": "", "after": "x"}}
KEPT = {"changed": False, "confirmed": True, "checks": [{"id": "ping_gateway"}]}


@pytest.fixture
def play(monkeypatch):
    """Return what a task with these arguments does, and its result."""

    def run(answers, reset=lambda: None, failed_when=(), **args):
        action = action_of(policy_route, args)
        action._task.failed_when = list(failed_when)
        done = []

        def execute(module_name, module_args, task_vars):
            done.append(module_args.get("confirm"))
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return dict(answer)

        def closed():
            done.append("a new connection")
            reset()

        monkeypatch.setattr(action, "_execute_module", execute)
        monkeypatch.setattr(action._connection, "reset", closed, raising=False)
        return done, lambda: action.run(None, {"inventory_hostname": "node1"})

    return run


def test_a_change_is_confirmed_over_a_new_connection_by_the_same_task(play):
    done, task = play([CHANGE, KEPT], confirm="new_connection", confirm_timeout=60)
    result = task()
    assert done == [None, "a new connection", "abc123"]
    assert (result["changed"], result["confirmed"], result["diff"]) == (True, True, CHANGE["diff"])
    assert [check["id"] for check in result["checks"]] == ["network_mtu", "ping_gateway"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"changed": False, "token": "", "checks": []}, id="nothing-changed"),
        pytest.param({"failed": True, "msg": "refused", "token": "abc123"}, id="refused"),
    ],
)
def test_no_confirmation_without_a_pending_change(play, answer):
    done, task = play([answer], confirm="new_connection", confirm_timeout=60)
    assert task() == answer
    assert done == [None]


def test_a_failure_is_raised_but_where_the_task_judges_it(play):
    """What an action raises never comes to failed_when."""
    missing = {"failed": True, "msg": "No ip.", "fix": "Install it."}
    assert play([missing], confirm="new_connection", failed_when=["false"])[1]() == missing
    with pytest.raises(Refusal, match=r"^No ip\.$"):
        play([missing], confirm="new_connection")[1]()


def test_without_the_wish_the_token_is_left_to_the_caller(play):
    done, task = play([CHANGE], confirm_timeout=60)
    assert task()["token"] == "abc123"
    assert done == [None]


def test_a_confirmation_that_fails_is_a_failure_of_the_task(play):
    late = {"failed": True, "msg": "The confirmation came too late", "fix": "Find out why.", "rolled_back": True}
    _done, task = play([CHANGE, late], confirm="new_connection", confirm_timeout=60)
    with pytest.raises(AnsibleActionFail, match=late["msg"]) as caught:
        task()
    assert (caught.value.result["changed"], caught.value.result["rolled_back"]) == (True, True)


@pytest.mark.parametrize("where", ["reset", "module"])
def test_a_host_that_is_lost_is_unreachable_and_the_reason_is_said(play, where):
    def lost():
        if where == "reset":
            raise AnsibleConnectionFailure("timed out")

    answers = [CHANGE, AnsibleConnectionFailure("timed out")]
    _done, task = play(answers, lost, confirm="new_connection", confirm_timeout=60)
    with pytest.raises(AnsibleConnectionFailure, match=r"reverts the change.*timed out"):
        task()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The specs of actions whose modules are documentation alone: they are made of it."""

from __future__ import annotations

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.railops.rdma.plugins.action.acceptance import ARGUMENT_SPEC
from ansible_collections.railops.rdma.plugins.module_utils._fabric.numbers import TEST_PORT
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.stages import STAGES

GIVEN = {"phase": "begin", "plan_dir": "plan/fabric", "verify_dir": "verify/fabric"}


def checked(**given):
    """Return arguments as ansible-core checks them by the spec."""
    return ArgumentSpecValidator(ARGUMENT_SPEC).validate({**GIVEN, **given})


def test_what_is_not_given_is_as_documented():
    made = checked().validated_parameters
    assert made["stages"] == [*STAGES]
    assert made["first_port"] == TEST_PORT
    assert (made["resume"], made["share"], made["hosts"]) == (True, 0.8, [])


def test_what_is_wrong_is_refused():
    assert "phase must be one of" in checked(phase="middle").error_messages[0]
    assert "stages must be one or more of" in checked(stages=["wires"]).error_messages[0]
    assert "seconds" in checked(seconds="long").error_messages[0]
    assert checked(pace=1).error_messages[0].startswith("pace.")


def test_every_stage_can_be_asked_for():
    assert ARGUMENT_SPEC["stages"]["choices"] == [*STAGES]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine that runs the tests is recorded."""

from __future__ import annotations

import os

import pytest
from ansible.module_utils.basic import AnsibleModule


@pytest.fixture
def params():
    return {"key": "key", "names": ["blue-lab"]}


def test_this_machine_is_recorded_alike_with_and_without_check_mode(run_module):
    real, check = run_module(), run_module(_ansible_check_mode=True)
    assert real["changed"] is False
    for result in (real, check):
        # Counters and times of day go on.
        result["record"] = [row[:2] for row in result["record"]["files"]]
        result["summary"].pop("bytes")
    assert [row for row in real["record"] if not row[1].startswith("/proc/")] == [
        row for row in check["record"] if not row[1].startswith("/proc/")
    ]
    assert real["summary"]["host"] == check["summary"]["host"] != os.uname().nodename
    assert real["summary"]["stand_ins"]["name"] > 0


def test_names_do_not_reach_the_hosts_log(run_module, monkeypatch):
    lines = []
    monkeypatch.setattr(AnsibleModule, "log", lambda module, msg, **more: lines.append(f"{msg} {more}"))
    run_module()
    assert "blue-lab" not in "".join(lines)
    assert [line for line in lines if "names" in line] == []

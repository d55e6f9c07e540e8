# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._accept.collect import outcome
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.results import LINE, OUTPUT
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.stages import StepGroup
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.state import note

TEST = {"rail": "rail1", "peer": "node2", "port": 1, "status": "ok", "test": "write_bw", "gbits": 390.0}


@pytest.mark.parametrize(
    ("tests", "value"),
    [
        ([TEST], 390.0),
        ([{**TEST, "gbits": None}], None),
        ([{**TEST, "gbits": "fast"}], None),
        ([{**TEST, "gbits": float("nan")}], None),
        ([{**TEST, "rail": ["rail1"]}], None),
        ([{**TEST, "test": "made_up"}], None),
        ([{**TEST, "status": {}}], None),
        ([{"rail": "rail1"}], None),
        (["x"], None),
        ({"a": 1}, None),
        ([{**TEST, "status": "deviation", "cause": "\x1b[2J", "fix": "x"}], None),
        ([{**TEST, "more": json.loads("[" * 60 + "]" * 60)}], None),
    ],
)
def test_a_hosts_nonsense_is_the_result_of_its_own_run(tmp_path, tests, value):
    for phase in ("serve", "send"):
        note(str(tmp_path), "node1", 1, phase, {"tests": tests})
    (path,) = (path for path in tmp_path.rglob("node1.json"))
    entry = StepGroup(("node1",), (("rail1",),))
    found = outcome("write_bw", entry, ("rail1",), {"node1": json.loads(path.read_text())})
    assert found["value"] == value
    assert value or found["cause"].isprintable()
    assert value or len(found["cause"]) < 200


def test_long_output_line_is_truncated(tmp_path):
    long = "a" * 5_000_000
    for output in (long, f"good\n{long}", "\n" * 40_000_000):
        note(str(tmp_path), "node1", 1, "send", {"tests": [{"rail": "rail1", "peer": "", "output": output}]})
        (path,) = (path for path in tmp_path.rglob("node1.json"))
        (test,) = json.loads(path.read_text())["send"]
        assert max(map(len, test["output"].split("\n"))) <= LINE
        assert len(test["output"]) <= OUTPUT
        assert test["output"].startswith(output[:LINE])


@pytest.mark.parametrize(
    ("mine", "others", "expected"), [(400.0, 200.0, 200.0), (200.0, 400.0, 200.0), (400.0, 0.0, 0.0)]
)
def test_the_slower_end_is_what_a_pair_is_expected_to_carry(tmp_path, mine, others, expected):
    note(str(tmp_path), "node1", 1, "send", {"tests": [{**TEST, "expected_gbits": mine}]})
    note(str(tmp_path), "node2", 1, "serve", {"tests": [{**TEST, "peer": "node1", "expected_gbits": others}]})
    found = {path.stem: json.loads(path.read_text()) for path in tmp_path.rglob("node?.json")}
    entry = StepGroup(("node1",), (("rail1",),))
    assert outcome("write_bw", entry, ("rail1",), found)["expected"] == expected

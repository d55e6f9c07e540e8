# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Verdicts and results that were written before schema 2, as that version wrote them, are still read."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.railops.rdma.plugins.plugin_utils._report.verdict import findings, standings
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import text as verdict_text

FOLDER = Path(__file__).resolve().parents[3] / "fixtures/verdict"


def recorded(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def test_the_page_and_the_texts_show_it_with_its_own_ids():
    old = recorded("schema1.json")
    shown = str(findings(old))
    assert "rdma_host.modules" in shown
    assert "network_link" in shown
    assert [row.good for row in standings(old, ["rail1", "rail2"])] == [2, 0]
    for text in (verdict_text.markdown(old, "fabric"), verdict_text.picture(old, "fabric")):
        assert "deviation" in text
        assert "not loaded: rdma" in text
        assert "2 checks not made" in text


def test_an_early_verdict_without_a_plans_part_is_read():
    old = {key: value for key, value in recorded("schema1.json").items() if key != "plan"}
    assert "3 deviations" in merge.summary(old)
    assert verdict_text.picture(old, "fabric")


def test_a_hosts_result_is_merged():
    result = recorded("schema1-node1.json")
    made = merge.merge("9f2c", [result], {"node1": "node1"}, rails=["rail1", "rail2"])
    assert (made["schema"], made["status"]) == (2, "deviation")
    assert made["hosts"]["node1"]["counts"]["ok"] == 3

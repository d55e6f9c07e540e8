# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import html.parser
import json
import re

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import address_text, range_text
from ansible_collections.railops.rdma.plugins.plugin_utils._report.equal import folded
from ansible_collections.railops.rdma.plugins.plugin_utils._report.html import with_verdict
from ansible_collections.railops.rdma.plugins.plugin_utils._report.markdown import render_report
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, block_of, names, plan_of, raw_of
from ansible_collections.railops.rdma.tests.unit.reports import XSS, evil_plan, page_of, verdict_of

ALL = [pytest.param(sample, id=sample) for sample in SAMPLES]


class Reader(html.parser.HTMLParser):
    """Collect tags, attributes and text, and check that elements nest."""

    VOID = ("meta", "input", "br", "rect", "path", "img")

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in self.VOID or (tag in ("rect", "path") and not self.get_starttag_text().endswith("/>")):
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def data_of(page, name="data"):
    """Return what the page's script reads."""
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', page)[1])


@pytest.mark.parametrize("sample", ALL)
def test_the_page_is_complete_and_leads_nowhere(sample):
    page = render_report(plan_of(*SAMPLES[sample]))["report.html"]
    reader = Reader(page)
    assert {"html", "head", "body", "main", "script"} <= set(reader.tags)
    assert not {"img", "link", "iframe", "object", "form", "a", "base"} & set(reader.tags)
    assert not [value for name, value in reader.attributes if name in ("src", "href", "srcset", "action")]
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_every_name_is_escaped():
    files = render_report(evil_plan())
    reader = Reader(files["report.html"])
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 3
    assert data_of(files["report.html"])["zones"][0]["leaves"] == [XSS] * 8
    assert "<img" not in files["report.md"]
    assert not re.search(r"(?<!\\)\]\(http", files["report.md"])
    columns = 0
    for line in files["report.md"].splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert columns in (0, bars) or bars == 0, f"a name broke a table: {line}"
        columns = bars


def expected(plan, node, rail, pods):
    """Return a node's addresses on a rail, by the planner's own arithmetic."""
    found = []
    for family in plan.fabric.families:
        block = block_of(plan, node.zone, rail, family)
        host, gateway = block.host(node.slot), block.gateway(node.slot)
        texts = ["" if host is None else f"{address_text(family, host)}/{block.subnet_length}"]
        if pods:
            texts.append("" if gateway is None else address_text(family, gateway))
            texts.append(", ".join(range_text(family, span) for span in block.pods(node.slot)))
        found.append("|".join(texts))
    return found


@pytest.mark.parametrize("sample", ALL)
def test_the_page_has_all_addresses_as_text(sample):
    plan = plan_of(*SAMPLES[sample])
    data = data_of(render_report(plan)["report.html"])
    assert "blocks" not in data
    for node, row in zip(plan.nodes, data["nodes"], strict=True):
        rails = range(len(plan.fabric.rails)) if plan.blocks else ()
        assert row[4] == [expected(plan, node, rail, pods=True) for rail in rails], node.name


def test_above_a_thousand_nodes_the_page_has_no_ranges_of_pods():
    raw = raw_of(supernets=["10.0.0.0/8"], max_nodes=2048)
    for count in (1000, 1001):
        plan = plan_of(raw, names(count))
        row = data_of(render_report(plan)["report.html"])["nodes"][-1]
        assert row[4][7] == expected(plan, plan.nodes[-1], 7, pods=count == 1000)


ATTACKS = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "javascript:alert(1)",
    "\"'`",
    "\u2028\u2029",
    "{}[]&amp;\\",
)


@pytest.mark.parametrize("text", ATTACKS)
def test_a_text_of_a_host_stays_data(text):
    plan = plan_of(*SAMPLES["exclusive"])
    page = page_of(plan, verdict_of(plan, bad={("node3", "rail4")}, planned=text, observed=text, cause=text, fix=text))
    empty = page_of(plan, verdict_of(plan))
    assert [Reader(page).tags, page.count("<"), page.count(">")] == [
        Reader(empty).tags,
        empty.count("<"),
        empty.count(">"),
    ]
    assert text.replace("\u2028\u2029", "\\u2028\\u2029") in data_of(page, "verdict")["causes"][0]["sentence"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([f"gpu-{number:05}" for number in range(33, 65)], "gpu-[00033-00064]"),
        (["node10", "node9", "node12", "login"], "node[9-10,12], login"),
        (["a01.example", "a02.example", "b1"], "a[01-02].example, b1"),
        (["n9", "n09", "n010"], "n9, n09, n010"),
        (["one"], "one"),
        ([], ""),
    ],
)
def test_names_are_folded(given, text):
    assert folded(given) == text


@pytest.mark.parametrize("sample", ALL)
def test_a_verdict_can_be_put_in_and_replaced(sample):
    plan = plan_of(*SAMPLES[sample])
    page = render_report(plan)["report.html"]
    bad = verdict_of(plan, bad={(plan.nodes[0].host, plan.fabric.rails[0].name)})
    once = with_verdict(page, bad)
    Reader(once)
    assert once != page
    assert with_verdict(once, bad) == once
    assert with_verdict(with_verdict(once, verdict_of(plan)), bad) == once


def test_other_files_are_no_reports():
    with pytest.raises(RdmaError, match=r"no report\.html"):
        with_verdict("<html></html>", verdict_of(plan_of(*SAMPLES["exclusive"])))

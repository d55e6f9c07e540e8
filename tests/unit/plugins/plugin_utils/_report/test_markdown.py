# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import html
import html.parser
import json
import re

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.plugin_utils._report.equal import folded
from ansible_collections.railops.rdma.plugins.plugin_utils._report.markdown import render_report
from ansible_collections.railops.rdma.plugins.plugin_utils._report.verdict import with_verdict
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, names, plan_of, raw_of
from ansible_collections.railops.rdma.tests.unit.reports import EVIL, evil_plan, page_of, verdict_of

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


@pytest.mark.parametrize("sample", ALL)
def test_the_page_is_whole_and_leads_nowhere(sample):
    page = render_report(plan_of(*SAMPLES[sample]))["report.html"]
    reader = Reader(page)
    assert {"html", "head", "body", "main", "svg", "table"} <= set(reader.tags)
    assert not {"img", "link", "iframe", "object", "form", "a", "base"} & set(reader.tags)
    assert not [value for name, value in reader.attributes if name in ("src", "href", "srcset", "action")]
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("sample", ALL)
def test_reports_say_nothing_that_changes_by_itself(sample):
    plan = plan_of(*SAMPLES[sample])
    assert render_report(plan) == render_report(plan_of(*SAMPLES[sample]))
    for text in render_report(plan).values():
        assert not re.search(r"20[0-9]{2}-[01][0-9]-[0-3]|(?<![0-9.])0\.1\.0(?![0-9.])|/root|/home", text)


def test_what_the_leaves_have_for_lossless_traffic_is_in_the_first_line():
    lossless = {"priority": 3, "dscp": 26}
    for said, raw in ((True, raw_of(lossless=lossless)), (False, raw_of())):
        files = render_report(plan_of(raw, names(2)))
        for text in (files["report.md"].splitlines()[2], " ".join(Reader(files["report.html"]).words)):
            assert ("MTU 4200, RoCE on priority 3 by DSCP 26, CNP 48" in text) is said


def test_what_still_fits_counts_retired_slots():
    plan = plan_of(raw_of(max_nodes=16), names(3))
    files = render_report(plan)
    assert "13 more nodes still fit" in files["report.md"]
    assert "13 more nodes still fit" in " ".join(Reader(files["report.html"]).words).replace("  ", " ")


def test_many_nodes_stay_out_of_the_markdown():
    text = render_report(plan_of(raw_of(max_nodes=512, supernets=["10.0.0.0/8"]), names(300)))["report.md"]
    assert "300 nodes: search them in report.html" in text
    assert "node299" not in text


def test_every_name_is_escaped():
    files = render_report(evil_plan())
    reader = Reader(files["report.html"])
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 3
    assert html.escape(EVIL) in files["report.html"]
    assert "<img" not in files["report.md"]
    assert not re.search(r"(?<!\\)\]\(http", files["report.md"])
    columns = 0
    for line in files["report.md"].splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert columns in (0, bars) or bars == 0, f"a name broke a table: {line}"
        columns = bars


def test_a_verdict_shows_red_and_green_rails():
    plan = plan_of(*SAMPLES["exclusive"])
    verdict = verdict_of(plan, bad={("node3", "rail4")}, planned="a", observed=EVIL, cause="c", fix="Run it.")
    page = page_of(plan, verdict)
    assert '<b class="bad">✗ 7 of 8</b>' in page
    assert page.count('<b class="ok">✓ 8 of 8</b>') == 7
    assert ".link.r3{stroke:var(--bad)" in page
    assert ".link.r0{stroke:var(--ok)" in page
    assert "verification: deviation" in page
    assert html.escape(EVIL) in page
    assert "img" not in Reader(page).tags
    assert json.loads(re.search(r'id="verdict">(.*?)</script>', page)[1])["states"]["node3"] == "ooobooooo"[:8]
    assert "Run it." in page


def test_a_deviation_is_a_card_with_cause_and_fix_before_what_differs():
    plan = plan_of(*SAMPLES["exclusive"])
    bad = {(f"node{number}", "rail4") for number in (1, 2, 3, 5)}
    wanted, found = ["a=1", "b=2", "c=3"], ["a=1", "b=0", "c=3"]
    verdict = verdict_of(
        plan,
        bad=bad,
        planned=wanted,
        observed=found,
        cause="It was changed.",
        fix="Look at cable, transceiver and switch port.",
    )
    verdict["time"] = 1_800_000_000.5
    page = page_of(plan, verdict)
    card = re.search(r'<article class="card deviation">(.*?)</article>', page)[1]
    text = re.sub(r"<[^>]+>", "|", card)
    assert (
        text.index("node[1-3,5] rail4")
        < text.index("It was changed.")
        < text.index("Look at cable, transceiver and switch port.")
    )
    assert (
        text.index("Look at cable, transceiver and switch port.") < text.index("- planned") < text.index("+ observed")
    )
    assert "4 times" in text
    assert "a=1" not in text, "what does not differ is shown"
    assert "Checked 2027-01-15 08:00 UTC." in page
    details = json.loads(re.search(r'id="verdict">(.*?)</script>', page)[1])["findings"]["node5"]
    assert [row[0] for row in details] == ["rail4"]
    assert details[0][2:] == ["It was changed.", "Look at cable, transceiver and switch port."]


def test_one_bad_host_of_a_hundred_makes_no_rail_red_and_those_without_an_answer_are_one_card():
    plan = plan_of(raw_of(supernets=["10.0.0.0/8"], max_nodes=128), names(100))
    page = page_of(plan, verdict_of(plan, bad={("node3", "rail1")}, lost={"node7", "node8", "node90"}))
    assert '<b class="few">▲ 96 of 100</b>' in page
    assert page.count('<article class="card unreachable">') == 1
    assert "node[7-8,90]" in page
    assert '<b class="bad">✗ 95 of 100</b>' in page_of(
        plan, verdict_of(plan, bad={(f"node{n}", "rail1") for n in range(1, 6)})
    )


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


def test_a_host_without_an_answer_leaves_no_rail_green():
    plan = plan_of(*SAMPLES["exclusive"])
    page = page_of(plan, verdict_of(plan, lost={"node8"}))
    assert page.count('<b class="unknown">· 7 of 8</b>') == 8
    assert '<b class="ok">' not in page


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

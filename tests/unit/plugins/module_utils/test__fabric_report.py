# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import html
import html.parser
import json
import re
import shutil
import subprocess
import time

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._fabric_model import address_text, range_text
from ansible_collections.railops.rdma.plugins.module_utils._fabric_report import render_report, with_verdict
from ansible_collections.railops.rdma.plugins.module_utils._report_verdict import DATA
from ansible_collections.railops.rdma.plugins.module_utils._verdict import host_result, merge
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, names, plan_of, raw_of

ALL = [pytest.param(sample, id=sample) for sample in SAMPLES]
EVIL = '<img src=x onerror="alert(1)">'
EVIL_LEAVES = (EVIL, "</script><script>alert(2)</script>", "a|b`*_[x](http://evil.example)", "'\"&amp;", "<!--/v-->é")


def evil_plan():
    zones = [
        {"name": f"su{number}", "group": f"su{number}", "supernets": [f"172.{20 + number}.0.0/16"], "leaves": [leaf]}
        for number, leaf in enumerate(EVIL_LEAVES)
    ]
    nodes = [{"host": f"node{number}", "groups": [f"su{number}"]} for number in range(len(zones))]
    return plan_of(raw_of(supernets=None, zones=zones), nodes)


def check(name, rail, status, **more):
    empty = dict.fromkeys(("planned", "observed", "cause", "fix"))
    return {**empty, "id": name, "rail": rail, "status": status, **more}


def verdict_of(plan, bad=(), lost=(), **more):
    """Return a verdict made by the collection's own code: `bad` are (host, rail), `lost` hosts without an answer."""
    rails = [rail.name for rail in plan.fabric.rails]
    results = []
    for node in plan.nodes:
        if node.host not in lost:
            checks = [
                check("address", rail, "deviation" if (node.host, rail) in bad else "ok", **more) for rail in rails
            ]
            results.append(host_result(node.host, node.name, "d", checks))
    expected = {node.host: node.name for node in plan.nodes}
    return merge("d", results, expected, rails=rails, cluster={"status": "pass", "checks": []})


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


def test_the_numbers_of_the_guides_fabric():
    files = render_report(plan_of(*SAMPLES["exclusive"]))
    for text in (
        "**0 more nodes still fit** (8 slots",
        "64 pools, 28 pod addresses per node and rail",
        "172.17.0.0/21",
    ):
        assert text in files["report.md"]
    assert "| node8 | 7 | 172.17.0.226 | 172.17.1.226 |" in files["report.md"]
    assert "room for 248 more rails" in files["report.html"]


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
    files = render_report(plan, verdict)
    page = files["report.html"]
    assert '<b class="bad">✗ 7 of 8</b>' in page
    assert page.count('<b class="ok">✓ 8 of 8</b>') == 7
    assert ".link.r3{stroke:var(--bad)" in page
    assert ".link.r0{stroke:var(--ok)" in page
    assert "verification: deviation" in page
    assert html.escape(EVIL) in page
    assert "img" not in Reader(page).tags
    assert json.loads(re.search(r'id="verdict">(.*?)</script>', page)[1])["node3"] == "ooobooooo"[:8]
    assert "| rail4 | ✗ 7 of 8 |" in files["report.md"]
    assert "Run it." in files["report.md"]


def test_a_host_without_an_answer_leaves_no_rail_green():
    plan = plan_of(*SAMPLES["exclusive"])
    page = render_report(plan, verdict_of(plan, lost={"node8"}))["report.html"]
    assert page.count('<b class="unknown">· 7 of 8</b>') == 8
    assert '<b class="ok">' not in page


def test_a_pass_says_so():
    plan = plan_of(*SAMPLES["exclusive"])
    files = render_report(plan, verdict_of(plan))
    assert "Everything that was looked at is as planned." in files["report.md"]
    assert "Everything that was looked at is as planned." in files["report.html"]


@pytest.mark.parametrize("sample", ALL)
def test_a_verdict_can_be_put_in_replaced_and_taken_out(sample):
    plan = plan_of(*SAMPLES[sample])
    page = render_report(plan)["report.html"]
    bad = verdict_of(plan, bad={(plan.nodes[0].host, plan.fabric.rails[0].name)})
    once = with_verdict(page, bad)
    Reader(once)
    assert once != page
    assert with_verdict(once, bad) == once
    assert with_verdict(with_verdict(once, verdict_of(plan)), bad) == once
    assert with_verdict(once, None) == page
    assert once == render_report(plan, bad)["report.html"]


def test_other_files_are_no_reports():
    with pytest.raises(RdmaError, match=r"no report\.html"):
        with_verdict("<html></html>", None)


# --- in a browser -----------------------------------------------------------------------------------------------------

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=4000",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a function: page text, fragment and script to add -> (the DOM as it is then, console messages)."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on PATH: apt-get install chromium")

    def run(page, fragment="", script=""):
        folder = tmp_path_factory.mktemp("page")
        path = folder / "report.html"
        path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        argv = [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"{path.as_uri()}#{fragment}"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, console

    return run


REPORT = """
const out = document.createElement("pre"); out.id = "told";
try { out.textContent = JSON.stringify((() => { %s })()); } catch (error) { out.textContent = "ERROR " + error; }
document.body.append(out);
"""


def told(dom):
    text = html.unescape(re.search(r'<pre id="told">(.*?)</pre>', dom, re.DOTALL)[1])
    assert not text.startswith("ERROR"), text
    return json.loads(text)


ADDRESSES = """
const { nodes, data, index, text, span, hostOf, gatewayOf, podsOf, subnetOf } = globalThis.railops, rows = [];
for (const node of nodes) for (let rail = 0; rail < data.rails.length; rail++) for (const family of data.families) {
  const block = index.get(node.zone + "/" + rail + "/" + family);
  if (!block) continue;
  const host = hostOf(block, node.slot), gateway = gatewayOf(block, node.slot);
  rows.push([node.name, rail, family, subnetOf(block, node.slot), host === null ? null : text(family, host),
    gateway === null ? null : text(family, gateway), podsOf(block, node.slot).map((pair) => span(family, pair))]);
}
return rows;
"""


def expected(plan):
    rows = []
    for node in plan.nodes:
        for rail in range(len(plan.fabric.rails)):
            for family in plan.fabric.families:
                block = plan.block(node.zone, rail, family)
                host, gateway = block.host(node.slot), block.gateway(node.slot)
                rows.append(
                    [
                        node.name,
                        rail,
                        family,
                        str(block.subnet(node.slot)),
                        None if host is None else address_text(family, host),
                        None if gateway is None else address_text(family, gateway),
                        [range_text(family, span) for span in block.pods(node.slot)],
                    ]
                )
    return rows


def test_the_browser_does_the_planners_arithmetic(browser):
    """All samples in one page load: their data are swapped into the same script."""
    plans = {name: plan_of(*SAMPLES[name]) for name in SAMPLES}
    pages = {name: render_report(plan)["report.html"] for name, plan in plans.items()}
    script = re.search(r"<script>(.*?)</script>", pages["exclusive"], re.DOTALL)[1]
    data = {name: json.loads(DATA.search(page)[1]) for name, page in pages.items()}
    collect = f"""
    const all = {json.dumps(data)}, found = {{}}, source = {json.dumps(script)};
    for (const name of Object.keys(all)) {{
      document.getElementById("data").textContent = JSON.stringify(all[name]);
      document.getElementById("head").replaceChildren();
      (0, eval)(source);
      found[name] = (() => {{ {ADDRESSES} }})();
    }}
    return found;"""
    page = pages["exclusive"].replace("script-src 'unsafe-inline'", "script-src 'unsafe-inline' 'unsafe-eval'")
    dom, console = browser(page, script=REPORT % collect.replace("</", "<\\/"))
    found = told(dom)
    for name, plan in plans.items():
        assert found[name] == expected(plan), name
    assert console == []


def test_a_fragment_searches(browser):
    page = render_report(plan_of(*SAMPLES["exclusive"]))["report.html"]
    dom, console = browser(page, "q=172.17.3.77")
    assert "172.17.3.77: pod address of node3 on rail4, in 172.17.3.64/27." in dom
    assert re.findall(r'class="row"[^>]*data-node="([^"]+)"', dom) == ["node3"]
    assert "1 of 8 nodes" in dom
    assert "172.17.7.67-172.17.7.94" in dom, "the details of the node are not open"
    assert console == []


QUERIES = """
const answers = {};
const box = document.getElementById("search");
for (const query of %s) {
  box.value = query;
  box.dispatchEvent(new Event("input"));
  answers[query] = [document.getElementById("answer").textContent, document.getElementById("count").textContent,
    [...document.querySelectorAll(".row")].map((row) => row.dataset.node)];
}
return answers;
"""


def ask(browser, plan, queries, verdict=None):
    page = render_report(plan, verdict)["report.html"]
    dom, console = browser(page, script=REPORT % (QUERIES % json.dumps(queries)))
    assert console == []
    return told(dom)


def test_searching(browser):
    queries = ["node1", "NODE16", "su2", "172.20.", "fd00:20:0:60::3", "172.20.3.225", "172.31.0.1", "172.20.31.255"]
    queries += ["<b>", "nothing", "172.20.0.999", ":::", "fd00:20:0:40:0:0:0:1", ""]
    got = ask(browser, plan_of(*SAMPLES["two-zones-dual-stack"]), queries)
    assert got["node1"][2] == [f"node{number}" for number in (1, 10, 11, 12, 13, 14, 15, 16)]
    assert got["NODE16"][2] == ["node16"]
    assert got["su2"][2] == [f"node{number}" for number in range(9, 17)]
    assert got["172.20."][2] == names(8)
    assert got["fd00:20:0:60::3"][0] == (
        "fd00:20:0:60::3: pod address of node1 on rail4, zone su1, in fd00:20:0:60::/64."
    )
    assert got["172.20.3.225"][0].endswith("gateway of the free slot 31 on rail1, zone su1, in 172.20.3.224/27.")
    assert got["172.31.0.1"] == ["172.31.0.1: no address of this fabric.", "0 of 16 nodes", []]
    assert "nobody gets" in got["172.20.31.255"][0]
    assert got["<b>"][2] == got["nothing"][2] == got["172.20.0.999"][2] == got[":::"][2] == []
    assert "gateway of node1 on rail3" in got["fd00:20:0:40:0:0:0:1"][0]
    assert got[""] == ["", "16 nodes", names(16)]


def test_searching_shared_addresses(browser):
    got = ask(
        browser, plan_of(*SAMPLES["guides shared"]), ["172.16.11.203", "172.16.11.9", "172.16.11.254", "172.16.11.230"]
    )
    assert got["172.16.11.203"][0].endswith("address of node3 on rail1, in 172.16.11.0/24.")
    assert got["172.16.11.9"][0].endswith("pod address on rail1, in 172.16.11.0/24.")
    assert "gateway on rail1" in got["172.16.11.254"][0]
    assert "the free slot 29" in got["172.16.11.230"][0]


def test_names_stay_text_in_the_browser(browser):
    script = "window.alert = (what) => { document.title = 'ATTACKED ' + what; };"
    plan = evil_plan()
    verdict = verdict_of(plan, bad={("node1", "rail1")}, cause=EVIL, fix="</td><script>alert(3)</script>")
    dom, console = browser(render_report(plan, verdict)["report.html"], "q=" + EVIL, script)
    assert "<title>Fabric fabric</title>" in dom
    assert "<img" not in dom
    assert console == []


def test_deviating_nodes_can_be_shown_alone(browser):
    plan = plan_of(*SAMPLES["exclusive"])
    verdict = verdict_of(plan, bad={("node3", "rail4"), ("node5", "rail1")}, lost={"node7"})
    dom, console = browser(render_report(plan, verdict)["report.html"], "bad=1")
    assert re.findall(r'class="row"[^>]*data-node="([^"]+)"', dom) == ["node3", "node5"]
    assert '<span class="mono bad">✗ 172.17.3.66</span>' in dom
    assert console == []


SCROLL = """
const grid = document.getElementById("grid"), seen = [];
const rows = () => [...document.querySelectorAll(".row")];
seen.push(rows().length);
const began = performance.now();
const box = document.getElementById("search");
for (const query of ["node9", "node99", "10.3.", "10.1.2.77", ""]) {
  box.value = query;
  box.dispatchEvent(new Event("input"));
}
seen.push(performance.now() - began, rows().length, document.getElementById("rows").style.height);
return seen;
"""


def test_ten_thousand_nodes_stay_usable(browser):
    plan = plan_of(raw_of(supernets=["10.0.0.0/8"], max_nodes=10_000), names(10_000))
    started = time.process_time()
    page = render_report(plan)["report.html"]
    assert time.process_time() - started < 5
    assert len(page) < 1_000_000
    dom, console = browser(page, script=REPORT % SCROLL)
    first, milliseconds, rows, height = told(dom)
    assert first == rows < 100, "only what is seen is drawn"
    assert height == "320000px"
    assert milliseconds < 5_000
    assert console == []


def test_it_prints(browser, tmp_path):
    """On paper: every node of a small fabric, a hint for a large one, and no controls."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext on PATH: apt-get install poppler-utils")
    large = plan_of(raw_of(supernets=["10.0.0.0/8"], max_nodes=512), names(400))
    for plan, shown in ((plan_of(*SAMPLES["exclusive"]), True), (large, False)):
        path = tmp_path / "report.html"
        path.write_text(render_report(plan)["report.html"], encoding="utf-8")
        target = f"--print-to-pdf={tmp_path / 'report.pdf'}"
        argv = [
            program,
            *FLAGS,
            f"--user-data-dir={tmp_path / 'profile'}",
            target,
            "--no-pdf-header-footer",
            path.as_uri(),
        ]
        subprocess.run(argv, capture_output=True, timeout=240, check=True)
        text = subprocess.run(
            ["pdftotext", "-layout", tmp_path / "report.pdf", "-"], capture_output=True, text=True, check=True
        ).stdout
        assert ("172.17.7.226" in text) is shown
        assert ("More than 300 are not printed" in text) is not shown
        assert "Type a part of a name" not in text

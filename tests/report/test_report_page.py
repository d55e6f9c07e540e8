# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report's page in a real browser: what its script computes, finds, shows and prints."""

from __future__ import annotations

import html
import json
import re
import subprocess
import time

import pytest
from browser import MISSING, PROGRAM, QUIET

from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import address_text, range_text
from ansible_collections.railops.rdma.plugins.plugin_utils._report.markdown import render_report
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, block_of, names, plan_of, raw_of
from ansible_collections.railops.rdma.tests.unit.reports import EVIL, evil_plan, page_of, verdict_of

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
FLAGS = [*QUIET, "--enable-logging=stderr", "--v=0", "--virtual-time-budget=4000"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a function: page text, fragment and script to add -> (the DOM as it is then, console messages)."""

    def run(page, fragment="", script=""):
        folder = tmp_path_factory.mktemp("page")
        path = folder / "report.html"
        path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        argv = [PROGRAM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"{path.as_uri()}#{fragment}"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
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
                block = block_of(plan, node.zone, rail, family)
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
    page = page_of(plan, verdict)
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
    dom, console = browser(page_of(plan, verdict), "q=" + EVIL, script)
    assert "<title>Fabric fabric</title>" in dom
    assert "<img" not in dom
    assert console == []


def test_deviating_nodes_can_be_shown_alone(browser):
    plan = plan_of(*SAMPLES["exclusive"])
    verdict = verdict_of(plan, bad={("node3", "rail4"), ("node5", "rail1")}, lost={"node7"})
    dom, console = browser(page_of(plan, verdict), "bad=1")
    assert re.findall(r'class="row"[^>]*data-node="([^"]+)"', dom) == ["node3", "node5", "node7"]
    assert '<span class="mono bad">✗ 172.17.3.66</span>' in dom
    assert console == []


SCROLL = """
const grid = document.getElementById("grid"), seen = [];
const rows = () => [...document.querySelectorAll(".row")];
seen.push(rows().length);
const box = document.getElementById("search");
for (const query of ["node9", "node99", "10.3.", "10.1.2.77", ""]) {
  box.value = query;
  box.dispatchEvent(new Event("input"));
}
seen.push(rows().length, document.getElementById("rows").style.height);
return seen;
"""


def test_ten_thousand_nodes_stay_usable(browser):
    plan = plan_of(raw_of(supernets=["10.0.0.0/8"], max_nodes=10_000), names(10_000))
    started = time.process_time()
    page = render_report(plan)["report.html"]
    assert time.process_time() - started < 5
    assert len(page) < 1_000_000
    dom, console = browser(page, script=REPORT % SCROLL)
    first, rows, height = told(dom)
    assert first == rows < 100, "only what is seen is drawn"
    assert height == "320000px"
    assert console == []

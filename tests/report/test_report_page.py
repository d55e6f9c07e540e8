# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report's page in a real browser: what its script finds, shows and copies."""

from __future__ import annotations

import html
import json
import re
import subprocess
import urllib.parse

import pytest
from browser import HEADLESS, MISSING, PROGRAM

from ansible_collections.railops.rdma.plugins.module_utils._check import by_role
from ansible_collections.railops.rdma.plugins.plugin_utils._report.html import with_verdict
from ansible_collections.railops.rdma.plugins.plugin_utils._report.markdown import render_report
from ansible_collections.railops.rdma.plugins.plugin_utils._report.verdict import record
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, names, plan_of, raw_of
from ansible_collections.railops.rdma.tests.unit.reports import XSS, check, evil_plan, page_of, verdict_of

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)
FLAGS = [*HEADLESS, "--enable-logging=stderr", "--v=0", "--virtual-time-budget=4000"]


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
const out = document.createElement("pre"); out.id = "reported";
try { out.textContent = JSON.stringify((() => { %s })()); } catch (error) { out.textContent = "ERROR " + error; }
document.body.append(out);
"""


def reported(dom):
    text = html.unescape(re.search(r'<pre id="reported">(.*?)</pre>', dom, re.DOTALL)[1])
    assert not text.startswith("ERROR"), text
    return json.loads(text)


def test_a_fragment_searches(browser):
    page = render_report(plan_of(*SAMPLES["exclusive"]))["report.html"]
    dom, console = browser(page, "q=172.17.3.77")
    assert "172.17.3.77: pod address of node3 on rail4." in dom
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


def search_for(browser, plan, queries, verdict=None):
    page = page_of(plan, verdict)
    dom, console = browser(page, script=REPORT % (QUERIES % json.dumps(queries)))
    assert console == []
    return reported(dom)


def test_searching(browser):
    queries = [
        "node1",
        "NODE16",
        "su2",
        "172.20.",
        "fd00:20:0:60::3",
        "fd00:20:0:60:0:0:0:3",
        "172.31.0.1",
        "node1 su2",
    ]
    queries += ["<b>", "nothing", "172.20.0.999", ":::", "fd00:20:0:40::1", ""]
    got = search_for(browser, plan_of(*SAMPLES["two-zones-dual-stack"]), queries)
    assert got["node1"][2] == [f"node{number}" for number in (1, 10, 11, 12, 13, 14, 15, 16)]
    assert got["NODE16"][2] == ["node16"]
    assert got["su2"][2] == [f"node{number}" for number in range(9, 17)]
    assert got["node1 su2"][2] == [f"node{number}" for number in range(10, 17)]
    assert got["172.20."][2] == names(8)
    for address in ("fd00:20:0:60::3", "fd00:20:0:60:0:0:0:3"):
        assert got[address][0] == f"{address}: pod address of node1 on rail4."
    assert got["172.31.0.1"] == ["172.31.0.1: no address of this fabric.", "0 of 16 nodes", []]
    assert got["<b>"][2] == got["nothing"][2] == got["172.20.0.999"][2] == got[":::"][2] == []
    assert got["fd00:20:0:40::1"][0] == "fd00:20:0:40::1: gateway of node1 on rail3."
    assert got[""] == ["", "16 nodes", names(16)]


def test_searching_shared_addresses(browser):
    got = search_for(browser, plan_of(*SAMPLES["guides shared"]), ["172.16.11.203", "172.16.11.9", "172.16.11.254"])
    assert got["172.16.11.203"][0] == "172.16.11.203: address of node3 on rail1."
    assert re.fullmatch(r"172.16.11.9: pod address of \d+ nodes on rail1.", got["172.16.11.9"][0])
    assert re.fullmatch(r"172.16.11.254: gateway of \d+ nodes on rail1.", got["172.16.11.254"][0])


ACTIVE = (
    'return document.querySelectorAll(["img", "script", "a", "[onclick]", "[onerror]"].map((a) => "main " + a)).length;'
)


def test_names_stay_text_in_the_browser(browser):
    script = "window.alert = (what) => { document.title = 'ATTACKED ' + what; };" + REPORT % ACTIVE
    plan = evil_plan()
    for text in (XSS, "</td><script>alert(3)</script>", "javascript:alert(4)", "\"'><b onclick=alert(5)>"):
        verdict = verdict_of(plan, bad={("node1", "rail1")}, planned=text, observed=text, cause=text)
        verdict["hosts"]["node2"].update(status="error", error=text)
        fragment = urllib.parse.quote(text)
        dom, console = browser(page_of(plan, verdict), f"q={fragment}&view={fragment}", script)
        assert "<title>Fabric fabric</title>" in dom
        assert reported(dom) == 0
        assert text in html.unescape(dom.partition("<main")[2].partition("</main>")[0])
        assert console == []


def broken(**more):
    plan = plan_of(*SAMPLES["exclusive"])
    bad = {("node3", "rail4"), ("node5", "rail1")}
    return plan, verdict_of(plan, bad=bad, lost={"node7"}, **more)


def test_broken_nodes_come_first_and_can_be_filtered(browser):
    page = page_of(*broken())
    dom, console = browser(page)
    rows = re.findall(r'class="row"[^>]*data-node="([^"]+)"', dom)
    assert rows == ["node3", "node5", "node7", *(name for name in names(8) if name not in ("node3", "node5", "node7"))]
    assert 'title="rail4: 172.17.3.66, deviates"' in dom
    assert "2 of 8 nodes, 2 of 64 rails, 1 node without an answer" in html.unescape(dom)
    dom, more = browser(page, "bad=1")
    assert re.findall(r'class="row"[^>]*data-node="([^"]+)"', dom) == ["node3", "node5", "node7"]
    assert console == more == []


@pytest.mark.parametrize(
    ("query", "rows"),
    [("rail4", ["node3", "node7"]), ("network_addresses", ["node3", "node5"]), ("it was changed", ["node3", "node5"])],
)
def test_a_verdict_is_searched_by_rail_check_and_cause(browser, query, rows):
    assert (
        search_for(browser, *broken(cause="It was changed.")[:1], [query], broken(cause="It was changed.")[1])[query][2]
        == rows
    )


CLICKS = """
const button = (text) => [...document.querySelectorAll("button")].find((item) => item.textContent.startsWith(text));
const shown = () => [...document.querySelectorAll(".row")].map((row) => row.dataset.node || row.textContent);
const found = { copies: [...document.querySelectorAll(".copy")].map((item) => item.dataset.copy) };
button("Show ").click();
found.only = shown();
button("Show all").click();
found.all = shown().length;
const view = document.getElementById("view");
if (!view) return found;
view.value = "leaf";
view.dispatchEvent(new Event("change"));
found.leaves = shown();
document.querySelector(".row").click();
found.of_leaf = shown();
document.getElementById("search").value = "node3";
document.getElementById("search").dispatchEvent(new Event("input"));
found.csv = globalThis.railops.csv().split("\\r\\n");
return found;
"""


def test_cards_views_and_the_csv(browser):
    leaves = [f"leaf{number}" for number in range(1, 8)] + ["=leaf8"]
    plan = plan_of({**SAMPLES["exclusive"][0], "leaves": leaves}, SAMPLES["exclusive"][1])
    verdict = verdict_of(plan, bad={("node3", "rail4")}, cause="It was changed.")
    dom, console = browser(page_of(plan, verdict), script=REPORT % CLICKS)
    found = reported(dom)
    assert found["only"] == ["node3"]
    assert found["all"] == 8
    assert found["leaves"][0] == "leaf4✗1 of 8"
    assert len(found["leaves"]) == 8
    assert found["of_leaf"] == ["node3", *(name for name in names(8) if name != "node3")]
    assert len(found["csv"]) == 10
    assert found["csv"][4] == (
        '"node3","","rail4","leaf4","","ens4np0","172.17.3.66/27","deviates","network_addresses"'
    )
    assert '"\'=leaf8"' in found["csv"][8]
    assert console == []


def test_a_card_has_the_command_and_other_hosts_are_not_red(browser):
    plan = plan_of(*SAMPLES["exclusive"])
    found = {
        "node2": [
            check("network_addresses", "rail3", "deviation", planned=["a"], observed=[], fix=by_role("rail_network"))
        ],
        "node1": [
            check("ping_neighbor", "rail3", "deviation", planned="answer", observed="no answer", peers=["node2"])
        ],
    }
    page = page_of(plan, verdict_of(plan, found=found))
    dom, console = browser(page, script=REPORT % CLICKS)
    command = "ansible-playbook railops.rdma.hosts --tags rail_network --limit node2"
    assert reported(dom)["copies"] == [command, "--limit node2"]
    assert console == []
    dom, _console = browser(page)
    assert 'class="cell affected bare" title="rail3: 172.17.2.2, affected by another host"' in dom
    assert dom.count('class="cell bad bare"') == 1
    text = html.unescape(re.sub(r"<[^>]+>", "", dom))
    assert "1 of 8 nodes, 1 of 64 rails" in text
    assert "1 more check follows from this. Affected: node1." in text


def test_what_is_new_is_marked(browser):
    plan, verdict = broken(cause="It was changed.")
    before = verdict_of(plan, bad={("node3", "rail4"), ("node6", "rail2")}, lost={"node7"}, cause="c", planned=1)
    page = with_verdict(render_report(plan)["report.html"], verdict, [{**record(before), "time": 1}])
    dom, console = browser(page)
    text = html.unescape(re.sub(r"<[^>]+>", "", dom))
    assert "Since the last verdict (1970-01-01 00:00 UTC): " in text
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
    page = render_report(plan)["report.html"]
    assert len(page) < 2_500_000
    dom, console = browser(page, script=REPORT % SCROLL)
    first, rows, height = reported(dom)
    assert first == rows < 100, "only what is seen is drawn"
    assert height == "300000px"
    assert console == []

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pictures of the report's page and of README's picture, for people to look at: wide, narrow, light, dark, printed.

They are kept with the logs, in tests/output/logs/report. What a program can see is asserted: nothing sticks out of the
page, and cause and fix of every card are in it.
"""

from __future__ import annotations

import random
import subprocess

import pytest
import runner
from browser import MISSING, Browser

from ansible_collections.railops.rdma.plugins.module_utils._check import by_role
from ansible_collections.railops.rdma.tests.unit.fabric_samples import CHECKOUT, example, names, plan_of, raw_of
from ansible_collections.railops.rdma.tests.unit.reports import check, page_of, verdict_of

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)
FOLDER = runner.LOGS / "report"
FORMS = [
    (f"{size}-{scheme}", width, scheme)
    for size, width in (("wide", 1280), ("narrow", 375), ("desk", 1920))
    for scheme in ("light", "dark")
]
WHEN = 1_795_447_833
MANY = 10_000
COMMAND = "ansible-playbook railops.rdma.hosts --tags rail_network --limit node2"
REPAIR = by_role("rail_network")
# What the demo's audit says of the rule that it deleted.
RULE = "10003: from 172.17.2.34 lookup 1003"
REMOTE = [f"172.17.{rail}.66" for rail in range(8)]
DELETED = [
    check("network_rules", "rail3", "deviation", planned=[RULE], observed=[], cause=f"missing: {RULE}", fix=REPAIR),
    check(
        "route_path",
        "rail3",
        "deviation",
        planned=[f"{to} via 172.17.2.33 dev ens3np0 src 172.17.2.34 table 1003" for to in (*REMOTE, "172.17.2.2")],
        observed=[],
        cause=f"to {', '.join(f'{to} (node3 rail{number})' for number, to in enumerate(REMOTE[:6], 1))} and 3 more: it "
        "leaves by ens1np0 via 172.17.0.33 instead of ens3np0; route `172.17.0.0/21 via 172.17.0.33 dev ens1np0 src "
        "172.17.0.34 metric 101` of the table main (made by railops); the rail's own rule 10003 is missing (a packet "
        "that is not bound to the interface)",
        fix=REPAIR,
    ),
]
LEFT_OUT = [
    {"reason": "The plan names no leaf.", "checks": ["cable_leaf"], "hosts": 3},
    {"reason": "verify_devices is false for this host", "checks": ["port_errors", "rdma_devices"], "hosts": 3},
]
# Of a day in a fleet.
KINDS = [
    {"planned": ["10003: rule"], "observed": [], "cause": "the rule of the rail's address is missing", "fix": REPAIR},
    {"planned": 4200, "observed": 1500, "cause": "the interface has another MTU", "fix": REPAIR},
    {
        "planned": "up",
        "observed": "no carrier",
        "cause": "the port sees no light",
        "fix": "Look at cable, transceiver and switch port.",
    },
    {
        "planned": "leaf5",
        "observed": "leaf6",
        "cause": "the cable ends in another leaf",
        "fix": "Check the cable, the transceiver and the switch port.",
    },
]
NAMES = ("network_rules", "network_mtu", "network_link", "cable_leaf")


def demo():
    plan = plan_of(example("demo")[0], names(3))
    return plan, {**verdict_of(plan, found={"node2": DELETED}), "skipped": LEFT_OUT}


def fleet():
    plan = plan_of(raw_of(supernets=["10.0.0.0/8"], max_nodes=10_240, mtu=4200), names(MANY))
    draw = random.Random(46)
    kinds = [*zip(NAMES, KINDS, strict=True)] * 8
    found = {
        f"node{number}": [check(name, f"rail{draw.randint(1, 8)}", "deviation", **more)]
        for number, (name, more) in zip(draw.sample(range(1, MANY), 30), kinds, strict=False)
    }
    return plan, verdict_of(plan, lost=set(names(2, first=4711)) - set(found), found=found)


SHOWN = """<!DOCTYPE html><meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root { color-scheme: light dark; } body { margin: 16px; } img { max-width: 100%%; }</style>
<img src="%s" alt="">"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return what is checked: name -> address."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, (plan, verdict) in (("demo", demo()), ("fleet", fleet())):
        found[f"{name}-plan"], found[f"{name}-verdict"] = page_of(plan), page_of(plan, {**verdict, "time": WHEN})
    found["picture"] = SHOWN % (CHECKOUT / "docs/images/rails.svg").as_uri()
    for name, text in found.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    addresses = {name: (folder / f"{name}.html").as_uri() for name in found}
    return {**addresses, "fleet-filtered": addresses["fleet-verdict"] + "#bad=1"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    shown = Browser(tmp_path_factory.mktemp("profile"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    yield shown
    shown.close()


# What does not scroll sideways sticks out.
STICKS_OUT = """document.documentElement.scrollWidth > innerWidth ? ["the page"]
: [...document.querySelectorAll("h1, h2, h3, p, li, pre, summary")]
.filter((item) => item.scrollWidth > item.clientWidth + 1)
.map((item) => item.textContent)"""
CARDS = """[...document.querySelectorAll(".card.bad")].map((card) => [card.querySelector("h3").innerText,
(card.querySelector("pre, .fix") || card).innerText, card.getBoundingClientRect().bottom])"""
BANNER = """(() => { const found = document.querySelector(".banner");
return [found.innerText, found.getBoundingClientRect().bottom]; })()"""


def printed(browser, name):
    """Return the text of what is printed, and keep pictures of its pages."""
    path = FOLDER / f"{name}.pdf"
    browser.printed(path)
    subprocess.run(["pdftoppm", "-r", "70", "-png", path, FOLDER / f"{name}-printed"], check=True)
    done = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True)
    path.unlink()
    return done.stdout


@pytest.mark.parametrize(
    "name", ["demo-plan", "demo-verdict", "fleet-plan", "fleet-verdict", "fleet-filtered", "picture"]
)
def test_nothing_sticks_out(browser, pages, name):
    browser.load(pages[name])
    for form, width, scheme in FORMS:
        browser.view(width, scheme)
        browser.picture(FOLDER / f"{name}-{form}.png")
        assert browser.value(STICKS_OUT) == [], form
    text = printed(browser, name)
    assert ("More than 300 are not printed" in text) is (name in ("fleet-plan", "fleet-verdict"))
    assert ("172.17.1.34" in text) is (name == "demo-plan"), "the table of nodes"
    assert ("node4711" in text) is (name == "fleet-filtered")


def test_cause_and_command_are_at_the_top(browser, pages):
    """The demo's are in the first window; with four kinds of deviations they are not far below it."""
    for name, end in (("demo-verdict", 900), ("fleet-verdict", 1400)):
        browser.view(1280, "light")
        browser.load(pages[name])
        cards = browser.value(CARDS)
        text, bottom = browser.value(BANNER)
        assert f"Cause: {cards[0][0]}" in text
        assert bottom < 320
        assert max(bottom for _cause, _repair, bottom in cards) < end
        assert len(cards) == 1 or len(cards) == len(KINDS) + 1
        if name == "demo-verdict":
            assert cards[0][:2] == ["node2 rail3: policy rule 10003 is missing.", COMMAND]

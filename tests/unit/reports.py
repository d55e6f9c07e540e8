# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans and verdicts to make report pages of, also with names that try to be more than text."""

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.plugin_utils._report.html import with_verdict
from ansible_collections.railops.rdma.plugins.plugin_utils._report.markdown import render_report
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result, merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.text import repair_commands
from ansible_collections.railops.rdma.tests.unit.fabric_samples import plan_of, raw_of

XSS = '<img src=x onerror="alert(1)">'
EVIL_LEAVES = (XSS, "</script><script>alert(2)</script>", "a|b`*_[x](http://evil.example)", "'\"&amp;", "<!--/v-->é")


def evil_plan():
    zones = [
        {"name": f"su{number}", "group": f"su{number}", "supernets": [f"172.{20 + number}.0.0/16"], "leaves": [leaf]}
        for number, leaf in enumerate(EVIL_LEAVES)
    ]
    nodes = [{"host": f"node{number}", "groups": [f"su{number}"]} for number in range(len(zones))]
    return plan_of(raw_of(supernets=None, zones=zones), nodes)


def page_of(plan, verdict=None):
    """Return report.html of a plan, with a verdict in it."""
    page = render_report(plan)["report.html"]
    return with_verdict(page, verdict, (), repair_commands(verdict)) if verdict else page


def check(name, rail, status, **more):
    empty = dict.fromkeys(("planned", "observed", "cause", "fix"))
    return {**empty, "id": name, "rail": rail, "status": status, **more}


def verdict_of(plan, bad=(), lost=(), found=None, **more):
    """Return a verdict made by the collection's own code.

    `bad` are (host, rail), `lost` hosts without an answer, `found` has further checks by host.
    """
    rails = [rail.name for rail in plan.fabric.rails]
    results = []
    for node in plan.nodes:
        if node.host not in lost:
            checks = [
                check("network_addresses", rail, "deviation" if (node.host, rail) in bad else "ok", **more)
                for rail in rails
            ]
            checks += (found or {}).get(node.host, ())
            results.append(host_result(node.host, node.name, "d", checks))
    expected = {node.host: node.name for node in plan.nodes}
    merged = merge("d", results, expected, rails=rails, cluster={"status": "pass", "checks": []})
    return with_causes(merged, {})

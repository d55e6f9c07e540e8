# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""verdict.prom, its alerts and its dashboard; held to promtool where apt offers it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import packages
import pytest
import yaml

from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result, merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.metrics import HELP, metrics
from ansible_collections.railops.rdma.tests.unit.fabric_samples import CHECKOUT


def check(name, rail, status):
    return {"id": name, "rail": rail, "status": status, "planned": 1, "observed": 2, "cause": "c", "fix": "f"}


def verdict():
    rows = [
        check("network_addresses", "rail1", "ok"),
        check("network_addresses", "rail2", "deviation"),
        check("network_mtu", "rail2", "deviation"),
    ]
    results = [
        host_result("node1", 'n"1\\', "d", rows),
        host_result("node2", "n2", "d", [check("network_addresses", "rail1", "skipped")]),
    ]
    made = merge("d", results, {"node1": 'n"1\\', "node2": "n2", "node3": "n3"}, rails=["rail1", "rail2"])
    made["hosts"]["node1"]["checks"].append(check("rail_out_of_service", "rail3", "warning"))
    return made


def samples(text):
    assert text.endswith("\n")
    return {line for line in text.splitlines() if not line.startswith("#")}


def test_what_is_counted():
    rail = 'railops_rail_ok{fabric="f",node="n\\"1\\\\",rail="%s"} %s'
    assert samples(metrics(verdict(), "f", 1795320000.5)) == {
        rail % ("rail1", 1),
        rail % ("rail2", 0),
        'railops_rail_out_of_service{fabric="f",node="n\\"1\\\\",rail="rail3"} 1',
        *(f'railops_hosts{{fabric="f",status="{status}"}} 1' for status in ("deviation", "pass", "unreachable")),
        *(f'railops_deviations{{fabric="f",check="network_{name}"}} 1' for name in ("addresses", "mtu")),
        'railops_audit_timestamp_seconds{fabric="f"} 1795320000.5',
    }


def test_a_verdict_without_hosts_still_has_its_time():
    assert samples(metrics(merge("d", [], {}), "f", 5)) == {'railops_audit_timestamp_seconds{fabric="f"} 5'}


def unpacked_promtool():
    try:
        return packages.unpacked("promtool") / "usr/bin/promtool"
    except packages.NotOfferedError:
        # Before Debian 13 it is in the server's package.
        return packages.unpacked("prometheus") / "usr/bin/promtool"


@pytest.fixture(scope="module")
def promtool():
    """Return a function that runs promtool and returns its output; it has to succeed."""
    try:
        program = shutil.which("promtool") or str(unpacked_promtool())
    except packages.NotOfferedError as exc:
        pytest.skip(str(exc))

    def run(*words, text=None):
        done = subprocess.run([program, *map(str, words)], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_promtool_accepts_the_metrics(promtool):
    assert promtool("check", "metrics", text=metrics(verdict(), "f", 1)) == ""


RAIL = '{fabric="f",node="n1",rail="rail%s"}'
# Rail 2 is down from the first sample on, and rail 3 out of service; the last audit ended at 0.
SERIES = [
    *(("railops_rail_ok" + RAIL % n, f"{n != 2:d}x30") for n in range(1, 31)),
    ("railops_rail_out_of_service" + RAIL % 3, "1x30000"),
    ('railops_audit_timestamp_seconds{fabric="f"}', "0x30000"),
]
RULES = {
    "RdmaRailDown": ("4m", "5m", "n1 rail2 deviates"),
    "RdmaManyRailsDown": (None, None, None),
    "RdmaAuditOld": ("120m", "121m", "No audit of f ended within the last 2 hours."),
    "RdmaRailOutOfService": ("335h", "336h", "n1 rail3 is out of service"),
}
MONITORING = CHECKOUT / "docs/monitoring"


def fired(alert, at, text):
    """Return promtool's test of a rule: nothing fires, or one alert with the annotations of the file."""
    rule = next(rule for rule in rules() if rule["alert"] == alert)
    if text is None:
        return {"alertname": alert, "eval_time": at, "exp_alerts": []}
    labels = {"fabric": "f", **({"node": "n1", "rail": text.split()[1]} if text.startswith("n1") else {})}
    summary = rule["annotations"]["summary"].replace("{{ or $labels.fabric `any fabric` }}", "f")
    for key, value in labels.items():
        summary = summary.replace(f"{{{{ $labels.{key} }}}}", value)
    assert summary.startswith(text)
    annotations = {**rule["annotations"], "summary": summary}
    row = {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": annotations}
    return {"alertname": alert, "eval_time": at, "exp_alerts": [row]}


def rules():
    return yaml.safe_load((MONITORING / "rules.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]


def test_each_alert_fires_after_its_time(promtool, tmp_path):
    assert {rule["alert"] for rule in rules()} == set(RULES)
    promtool("check", "rules", MONITORING / "rules.yml")
    cases = [
        fired(alert, at, text)
        for alert, (before, after, text) in RULES.items()
        for at, text in ((before, None), (after, text))
        if at
    ]
    # One of thirty rails is below the share of RdmaManyRailsDown.
    cases.append(fired("RdmaManyRailsDown", "20m", None))
    series = [{"series": name, "values": values} for name, values in SERIES]
    tests = [{"interval": "1m", "input_series": series, "alert_rule_test": cases}]
    path = tmp_path / "test.yml"
    path.write_text(json.dumps({"rule_files": [str(MONITORING / "rules.yml")], "tests": tests}), encoding="utf-8")
    promtool("test", "rules", path)


def test_the_dashboard_shows_metrics_that_exist(promtool, tmp_path):
    panels = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert set(re.findall(r"railops_\w+", " ".join(queries))) == set(HELP)
    shown = [{"record": f"r{number}", "expr": expr.replace("$fabric", "f")} for number, expr in enumerate(queries)]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": shown}]}), encoding="utf-8")
    promtool("check", "rules", path)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""verdict.prom: what it counts, and that Prometheus' own parser takes it where one is at hand."""

from __future__ import annotations

import shutil
import subprocess

import packages
import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result, merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.metrics import metrics


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
    return merge("d", results, {"node1": 'n"1\\', "node2": "n2", "node3": "n3"}, rails=["rail1", "rail2"])


def samples(text):
    assert text.endswith("\n")
    return {line for line in text.splitlines() if not line.startswith("#")}


def test_what_is_counted():
    rail = 'railops_rail_ok{fabric="f",node="n\\"1\\\\",rail="%s"} %s'
    assert samples(metrics(verdict(), "f", 1795320000.5)) == {
        rail % ("rail1", 1),
        rail % ("rail2", 0),
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


def test_promtool_has_nothing_to_say():
    try:
        promtool = shutil.which("promtool") or str(unpacked_promtool())
    except packages.NotOfferedError as exc:
        pytest.skip(str(exc))
    done = subprocess.run(
        [promtool, "check", "metrics"], input=metrics(verdict(), "f", 1), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")

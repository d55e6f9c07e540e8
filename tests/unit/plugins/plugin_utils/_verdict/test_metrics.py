# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""verdict.prom: what it counts, and that Prometheus' own parser takes it where one is at hand."""

from __future__ import annotations

import re
import shutil
import subprocess

import packages
import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result, merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.metrics import metrics

SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} ([0-9.e+-]+)')


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


def read(text):
    """Read the text by its grammar; what it does not have fails."""
    assert text.endswith("\n")
    found, typed = {}, []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            typed.append(line.split()[2])
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            # All samples of a metric stand together, behind its type.
            assert match[1] == typed[-1]
            labels = tuple(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', match[2]))
            found[match[1], labels] = float(match[3])
    assert len(set(typed)) == len(typed)
    return found


def test_what_is_counted():
    one = ("fabric", "f"), ("node", 'n\\"1\\\\')
    assert read(metrics(verdict(), "f", 1795320000.5)) == {
        ("railops_rail_ok", (*one, ("rail", "rail1"))): 1,
        ("railops_rail_ok", (*one, ("rail", "rail2"))): 0,
        ("railops_hosts", (("fabric", "f"), ("status", "deviation"))): 1,
        ("railops_hosts", (("fabric", "f"), ("status", "pass"))): 1,
        ("railops_hosts", (("fabric", "f"), ("status", "unreachable"))): 1,
        ("railops_deviations", (("fabric", "f"), ("check", "network_addresses"))): 1,
        ("railops_deviations", (("fabric", "f"), ("check", "network_mtu"))): 1,
        ("railops_audit_timestamp_seconds", (("fabric", "f"),)): 1795320000.5,
    }


def test_a_verdict_without_hosts_still_has_its_time():
    assert list(read(metrics(merge("d", [], {}), "f", 5))) == [("railops_audit_timestamp_seconds", (("fabric", "f"),))]


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

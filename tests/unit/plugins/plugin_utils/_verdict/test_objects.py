# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.objects import object_checks

POOL = {"kind": "SpiderIPPool", "namespace": "", "name": "fabric-rail1-v4-node1"}


@pytest.mark.parametrize(
    ("change", "observed"),
    [
        pytest.param({"action": "create", **POOL}, "not there", id="missing"),
        pytest.param({"action": "delete", **POOL}, "not planned", id="stray"),
        pytest.param({"action": "apply", **POOL, "fields": ["spec.ips"]}, "different: spec.ips", id="edited"),
        pytest.param({"action": "replace", **POOL, "fields": ["spec.subnet"]}, "another one", id="replaced"),
    ],
)
def test_each_difference_is_named(change, observed):
    (check,) = object_checks({"changes": [change], "summary": {"unchanged": 0}})
    assert check["status"] == "deviation"
    assert "SpiderIPPool fabric-rail1-v4-node1" in check["planned"]
    assert observed in check["observed"]
    assert check["cause"]
    assert check["fix"]


def test_what_stays_and_what_belongs_to_others():
    kept = {"action": "delete", **POOL, "reason": "2 addresses are in use"}
    conflict = {
        "kind": "SpiderMultusConfig",
        "namespace": "spiderpool",
        "name": "x",
        "field": "spec.mtu",
        "owner": "argocd",
    }
    checks = object_checks({"kept": [kept], "conflicts": [conflict], "summary": {"unchanged": 5}})
    assert [check["id"] for check in checks] == ["object_in_use", "object_owner", "object_state"]
    assert "argocd" in checks[1]["cause"]
    assert checks[2]["status"] == "ok"

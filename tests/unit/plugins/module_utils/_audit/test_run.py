# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one call: what each part is given, and that one part's failure leaves the others their answers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._audit import groups, run
from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError, RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.modules import rail_audit
from ansible_collections.railops.rdma.tests.unit import machines

RAIL = {
    "name": "rail1",
    "interface": "ens1np0",
    "pci": None,
    "mtu": 4200,
    "index": None,
    "table": None,
    "addresses": [],
}
SPEC = {
    "rails": {"type": "list", "elements": "dict", "options": {"name": {"type": "str"}, "interface": {"type": "str"}}},
    "network": {"type": "str", "default": "roce"},
    "depth": {"type": "int", "default": 1},
}


def request_of(**params):
    module = SimpleNamespace(params={"checks": [], "rails": [RAIL], "network": None, **params}, check_mode=False)
    return groups.Request(module, module.params)


def test_a_part_gets_the_host_plan_its_settings_and_its_own_defaults():
    request = request_of(settings={"other": {"depth": "3"}})
    assert groups.options_of("other", SPEC, request) == {
        "rails": [{"name": "rail1", "interface": "ens1np0"}],
        "network": "roce",
        "depth": 3,
    }


def test_settings_that_do_not_fit_name_the_module():
    with pytest.raises(InputError, match=r"settings\.other.*depht"):
        groups.options_of("other", SPEC, request_of(settings={"other": {"depht": 3}}))


def test_a_part_runs_in_check_mode_whatever_the_task_does():
    seen = {}

    def work(_module, options, *, check_mode):
        seen.update(check=check_mode, depth=options["depth"])
        return {"changed": True, "checks": [{"id": "x_y"}], "warnings": ["careful"]}

    request, door = request_of(), SimpleNamespace(run=work, SPEC=SPEC)
    assert groups.role_check("other", door)(request) == ([{"id": "x_y"}], {})
    assert seen == {"check": True, "depth": 1}
    assert request.warnings == ["careful"]


def test_a_part_that_fails_leaves_the_others_their_answers(monkeypatch):
    def refuse(_request):
        raise RdmaError("No.", "Repair it.")

    def broken(_request):
        raise KeyError("gone")

    groups = {"one": (refuse,), "two": (broken,), "three": (lambda _request: ([{"id": "x_y"}], {"macs": {}}),)}
    monkeypatch.setattr(run, "GROUPS", groups)
    result = run.run(request_of(checks=["one", "two", "three", "three"]).module)
    assert (result["checks"], result["facts"]) == ([{"id": "x_y"}], {"macs": {}})
    assert result["errors"][0] == "one: No. Repair it."
    assert result["errors"][1].startswith("two: KeyError: 'gone' (test_run.py:")


def test_the_planned_tos_is_checked_where_a_role_sets_one():
    assert groups.tos_of(request_of(checks=["paths"])) == 0
    declared = {"roce_qos": {"priority": 3, "dscp": 26}}
    assert groups.tos_of(request_of(checks=["paths", "qos"], settings=declared)) == 0x68
    assert groups.tos_of(request_of(checks=["paths", "qos"])) == 0, "nothing is declared, and nothing was set before"


def test_the_module_documents_every_group():
    options = yaml.safe_load(rail_audit.DOCUMENTATION)["options"]["checks"]
    assert options["choices"] == list(run.GROUPS)
    assert options["default"] == run.SPEC["checks"]["default"]


@pytest.mark.parametrize(
    ("count", "limit", "status"), [(512, "512", None), (4096, "512", "warning"), (4096, "8192", "ok")]
)
def test_neighbor_tables_are_compared_with_the_hosts_on_all_rails(monkeypatch, tmp_path, count, limit, status):
    for step, value in enumerate(("128", limit, "1024"), 1):
        machines.put(tmp_path, f"proc/sys/net/ipv4/neigh/default/gc_thresh{step}", value)
    monkeypatch.setattr(groups, "Sysfs", lambda: Sysfs(str(tmp_path)))
    rails = [{"name": "rail1", "addresses": [{"address": "192.0.2.2"}]}]

    checks, _facts = groups.check_neighbors(request_of(rails=rails, settings={"neighbors": {"count": count}}))

    assert [(check["id"], check["family"], check["status"]) for check in checks] == (
        [("network_neighbors", 4, status)] if status else []
    )
    assert status != "warning" or "net.ipv4.neigh.default.gc_thresh2=8192" in checks[0]["fix"]

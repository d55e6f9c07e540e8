# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts do for pods' virtual functions follows the plan, also where the inventory names no attachment."""

from __future__ import annotations

import ansible.template
import pytest
from ansible.template import Templar

if not hasattr(ansible.template, "trust_as_template"):
    pytest.skip("playbooks' expressions are played with ansible-core 2.19 or newer", allow_module_level=True)
from ansible.template import trust_as_template

from ansible_collections.railops.rdma.plugins.filter.filters import own_device
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, plan
from ansible_collections.railops.rdma.tests.unit.playbooks import LOADER, content

KINDS = [
    pytest.param({"network": "infiniband"}, "ib-sriov", id="infiniband by default"),
    pytest.param({"network": "infiniband", "attachment": "ipoib"}, "", id="ipoib"),
    pytest.param({}, "", id="roce by default"),
    pytest.param({"attachment": "sriov"}, "sriov", id="sriov"),
]


@pytest.fixture
def planned(tmp_path, request):
    """Write the plan of a kind of fabric; return the variables of a host whose inventory says no attachment."""
    for name, text in plan(exclusive(**request.param)).files.items():
        path = tmp_path / "plan/fabric" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    network = {"fabric_network": request.param["network"]} if "network" in request.param else {}
    return {"fabric_plan_dir": str(tmp_path / "plan"), "inventory_hostname": "node1", **network}


def value(text, variables):
    return Templar(loader=LOADER, variables=variables).template(trust_as_template(text))


@pytest.mark.parametrize(("planned", "attachment"), KINDS, indirect=["planned"])
def test_firmware_gets_the_virtual_functions_that_the_plan_needs(planned, attachment):
    cards = value("{{ nic_link_type_cards }}", {**content("roles/nic_link_type/defaults/main.yml"), **planned})
    link = "ib" if "fabric_network" in planned else "eth"
    # Without the key: older cores refuse a placeholder of omit where the role's options are checked.
    assert cards == [{"select": "rails", "link_type": link, **({"vfs": 8} if attachment else {})}]


@pytest.mark.parametrize(("planned", "attachment"), KINDS, indirect=["planned"])
def test_preflight_refuses_guests_where_pods_need_virtual_functions(planned, attachment):
    play = content("playbooks/preflight.yml")[0]
    tasks = {task["name"]: task for task in play["tasks"]}
    guest = {"virtualization_role": "guest", "virtualization_type": "kvm"}
    managed = {"default_ipv4": {"interface": "eth0", "address": "192.0.2.1", "type": "ether"}}
    given = {"localhost": planned, "node1": {"__site_preflight": {"facts": {"gathered": {**guest, **managed}}}}}
    host = {**planned, **play.get("vars", {}), "ansible_play_hosts": ["node1"], "hostvars": given}
    gather = value("{{ __site_gather }}", {**host, **tasks["Check each host for conflicts"]["vars"]})
    assert ("virtual" in gather) is bool(attachment)
    task = tasks["Sort the problems of all hosts"]
    given["node1"]["__site_preflight"]["checks"] = []
    host |= {
        **task["vars"],
        "ansible_play_hosts_all": ["node1"],
        "groups": {},
        "__site_played": True,
    }
    found = value("{{ __site_sorted }}", host)
    assert (f"attachment {attachment} is for bare metal" in " ".join(found["stop"])) is bool(attachment)


def test_without_a_plan_there_is_none(tmp_path):
    assert own_device(str(tmp_path), "node1") == ""

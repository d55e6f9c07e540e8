# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.filter.filters import host_problems

METAL = {"virtualization_role": "host", "virtualization_type": "kvm"}
GUEST = {"virtualization_role": "guest", "virtualization_type": "kvm"}
MANAGED = {"default_ipv4": {"interface": "eth0", "address": "192.0.2.1", "type": "ether"}}


@pytest.mark.parametrize("attachment", ["sriov", "ib-sriov"])
def test_sriov_on_virtual_machines_is_refused(attachment):
    (problem,) = host_problems({"node1": METAL | MANAGED, "node2": GUEST | MANAGED}, attachment, "roce")
    assert problem.startswith("1 of 2 hosts are virtual machines or containers (kvm): node2.")
    assert "site_sriov_guests" in problem


def test_other_attachments_go_with_virtual_machines():
    assert host_problems({"node1": GUEST}, "macvlan", "roce") == []


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"default_ipv4": {}},
        {"default_ipv4": {"interface": "ibs1", "address": "172.17.0.1", "type": "infiniband"}},
    ],
)
def test_an_infiniband_node_without_a_management_address_is_refused(facts):
    (problem,) = host_problems({"node1": facts, "node2": MANAGED}, "ipoib", "infiniband")
    assert "1 of 2 hosts have no Ethernet interface with a default route" in problem
    assert "node1" in problem


def test_a_management_address_of_ipv6_is_one():
    facts = {"default_ipv4": {}, "default_ipv6": {"interface": "eth0", "address": "2001:db8::1", "type": "ether"}}
    assert host_problems({"node1": facts}, "ib-sriov", "infiniband") == []

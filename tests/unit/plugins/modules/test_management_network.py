# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One table of hosts against every module that must leave a host's own network alone."""

from __future__ import annotations

import functools
import os
from types import SimpleNamespace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles, Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._qos import run as qos_run
from ansible_collections.railops.rdma.plugins.module_utils._rdma import info_run
from ansible_collections.railops.rdma.plugins.module_utils._route import run as route_run
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.fixtures.mlx.cards import ETH, Cards, card
from ansible_collections.railops.rdma.tests.unit.management_network_cases import CASES, install, recorded
from ansible_collections.railops.rdma.tests.unit.plugins.modules.test_policy_route import FakeKernel

ADDRESSES = [{"address": "172.17.0.2", "subnet": "172.17.0.0/27", "gateway": "172.17.0.1"}]


@pytest.fixture(params=CASES)
def case(request, monkeypatch, tmp_path):
    root = machines.lay_out("one-switch-each", tmp_path)
    cards = {
        os.path.realpath(root / f"sys/class/net/ens{number}np0/device").rpartition("/")[2].rpartition(".")[0]: card(ETH)
        for number in (1, 2)
    }
    Cards(root, cards).install("mstconfig")
    machines.program(root / "bin/rdma", "echo '[]'")
    install(root / "bin", recorded(request.param))
    monkeypatch.setenv("PATH", f"{root}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_CONNECTION", CASES[request.param].ssh or "none")
    machines.stand_for_the_host(monkeypatch, root)
    for work in (qos_run, info_run):
        monkeypatch.setattr(work, "Sysfs", lambda: Sysfs(str(root)))
    # A NIC that has not come yet: whether it may be touched is asked first.
    monkeypatch.setattr(qos_run, "Nic", lambda *_dummy: SimpleNamespace(exists=lambda _path: False))
    monkeypatch.setattr(route_run, "Kernel", lambda: FakeKernel("ens1np0", "ens2np0"))
    return CASES[request.param]


def pci_of(interface):
    return os.path.realpath(f"{HostFiles().root}/sys/class/net/{interface}/device").rpartition("/")[2]


def test_every_module_protects_the_same_interfaces(case, call):
    call = functools.partial(call, _ansible_check_mode=True)
    carried = case.default | case.connection
    assert call("rdma_info")["info"]["default_interfaces"] == sorted(carried)
    for interface in ("ens1np0", "ens2np0"):
        plain = {"name": "rail1", "interface": interface}
        whole = {"rails": [{**plain, "addresses": ADDRESSES}], "rdma_prefixes": ["172.17.0.0/16"]}
        results = {
            "policy_route": call("policy_route", **whole),
            "rail_persist": call("rail_persist", manager="networkd", **whole),
            "roce_qos": call("roce_qos", rails=[plain]),
        }
        refused = {name for name, result in results.items() if f"{interface} carries" in result.get("msg", "")}
        assert refused == (set(results) if interface in carried else set())
        cards = call("nic_link_type", cards=[{"select": "rails", "link_type": "ib"}], rails=[plain])["cards"]
        assert ["carries" in item["note"] for item in cards] == [interface in carried]
        # It would give the interface another name.
        renamed = {"name": "rail1", "interface": "rail1", "pci": pci_of(interface)}
        checks = call("rdma_host", rails=[renamed], modules=[])["checks"]
        named = [
            f"{interface} carries" in check["cause"] for check in checks if check["id"] in ("rdma_name", "rdma_rename")
        ]
        assert named == [interface in carried]

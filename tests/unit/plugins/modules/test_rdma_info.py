# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._rdma import info_run as work
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.management_network_cases import install, plain

RAIL = {"name": "rail1", "interface": "ens1np0", "mtu": 1500}


def said():
    return {"mlx5_0": {"ports": {1: {"active_mtu": 512}}}}, ["pyverbs could not ask device mlx5_1: EIO"]


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    install(folder, plain("eno1"))
    return lambda text: machines.program(folder / "lldpcli", text)


@pytest.fixture
def params(tmp_path, monkeypatch, tools):
    machines.lay_out("one-switch-each", tmp_path / "root")
    monkeypatch.setattr(work, "Sysfs", lambda: Sysfs(str(tmp_path / "root")))
    return {}


def test_without_pyverbs_and_lldpd_it_works_and_says_what_is_missing(run_module):
    result = run_module()
    assert result["changed"] is False
    assert len(result["info"]["devices"]) == 18
    assert result["info"]["lldp"] is None
    assert [text.split()[0] for text in result["info"]["missing"]] == ["pyverbs", "lldpd"]
    assert result["checks"] == []


def test_with_pyverbs_the_devices_say_their_mtu(run_module, monkeypatch):
    monkeypatch.setattr(work.verbs, "read", said)
    result = run_module(rails=[RAIL], network="roce")
    assert result["info"]["devices"][0]["ports"][0]["active_mtu"] == 512
    assert "pyverbs could not ask device mlx5_1: EIO" in result["info"]["missing"]
    bad = [check["id"] for check in result["checks"] if check["status"] == "deviation"]
    assert bad == ["rdma_active_mtu"]


@pytest.mark.parametrize(
    ("script", "word"),
    [("echo unable to connect to socket >&2; exit 1", "unable to connect"), ("echo nonsense", "not understood")],
)
def test_an_lldpd_that_does_not_answer_is_named(run_module, tools, script, word):
    tools(script)
    assert any(word in text and "start its service" in text for text in run_module()["info"]["missing"])


def test_rails_need_their_network(run_module):
    result = run_module(rails=[RAIL])
    assert result["failed"] is True
    assert "network" in result["msg"]

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


DEVINFO = """cat <<'END'
hca_id:	mlx5_0
	transport:			InfiniBand (0)
	phys_port_cnt:			1
		port:	1
			state:			PORT_ACTIVE (4)
			max_mtu:		4096 (5)
			active_mtu:		512 (2)
			port_lid:		0

hca_id:	mlx5_1
	phys_port_cnt:			1
		port:	1
			active_mtu:		invalid MTU (0)
END
echo 'Failed to query port 1 props' >&2; exit 1
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    install(folder, plain("eno1"))
    return lambda text, name="lldpcli": machines.program(folder / name, text)


@pytest.fixture
def params(tmp_path, monkeypatch, tools):
    machines.lay_out("one-switch-each", tmp_path / "root")
    monkeypatch.setattr(work, "Sysfs", lambda: Sysfs(str(tmp_path / "root")))
    return {}


def test_without_ibv_devinfo_and_lldpd_it_works_and_says_what_is_missing(run_module):
    result = run_module()
    assert result["changed"] is False
    assert len(result["info"]["devices"]) == 18
    assert result["info"]["lldp"] is None
    assert [text.split()[0] for text in result["info"]["missing"]] == ["ibv_devinfo", "lldpd"]
    assert result["checks"] == []


def test_the_devices_report_their_mtu(run_module, tools):
    tools(DEVINFO.replace("cat", "/bin/cat"), "ibv_devinfo")
    result = run_module(rails=[RAIL], network="roce")
    first, second = (device["ports"][0] for device in result["info"]["devices"][:2])
    assert (first["active_mtu"], first["max_mtu"], first["active_mtu_source"]) == (512, 4096, "verbs")
    assert second["active_mtu_source"] == "netdev"
    problem = "ibv_devinfo does not answer for each device: Failed to query port 1 props"
    assert problem in result["info"]["missing"]
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

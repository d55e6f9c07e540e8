# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._qos import backends
from ansible_collections.railops.rdma.plugins.module_utils._qos import run as work
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.dcb_double import FRESH_ETS, DcbDouble
from ansible_collections.railops.rdma.tests.unit.machines import put
from ansible_collections.railops.rdma.tests.unit.management_network_cases import install, plain

RAILS = [{"name": f"rail{number}", "interface": f"ens{number}np0"} for number in range(1, 9)]
RENAMED = [*RAILS[:7], {"name": "rail8", "interface": "an-alternative-name-of-ens8np0"}]
STORAGE = "ens20f0np0"
SETTINGS = "etc/railops-rdma/roce-qos.json"
UNIT = "etc/systemd/system/railops-roce-qos@{0}.service"
LINK = "etc/systemd/system/sys-subsystem-net-devices-{0}.device.wants/railops-roce-qos@{0}.service"


FRESH = [*range(8), *[0] * 8, *FRESH_ETS[16:]]


def numbered(found):
    return {int(key) if key.isdigit() else key: value for key, value in found.items()}


MLNX_QOS = (Path(__file__).parents[2] / "fixtures/programs/mlnx_qos").read_text(encoding="utf-8")


@pytest.fixture
def root(tmp_path):
    return machines.lay_out("one-switch-each", tmp_path / "root")


@pytest.fixture
def rdma_cm(root):
    """Give rdma_cm its configfs: a folder for each device, as if another tool had made it."""
    for number in range(8):
        put(root, f"/sys/kernel/config/rdma_cm/mlx5_{number}/ports/1/default_roce_tos", "0\n")


@pytest.fixture
def dcb(tmp_path):
    double = DcbDouble()
    end = double.install(tmp_path / "bin")
    yield double
    end()


@pytest.fixture
def params(root, rdma_cm, dcb, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    install(tmp_path / "bin", plain("eno1"))
    monkeypatch.setattr(work, "Sysfs", lambda: Sysfs(str(root)))
    machines.stand_for_the_host(monkeypatch, root)
    nic = work.Nic
    monkeypatch.setattr(work, "Nic", lambda name: nic(name, str(root)))
    netlink = SimpleNamespace(socket=dcb.connect, AF_UNSPEC=0, AF_NETLINK=16, SOCK_RAW=3)
    monkeypatch.setattr(backends, "socket", netlink)
    return {"rails": RAILS, "priority": 5, "dscp": 40}


def test_the_first_run_changes_and_the_second_does_not(run_module, dcb, root):
    assert run_module()["changed"] is True
    assert dcb.port("ens8np0") == {"pfc": 32, "dscp": {40: 5, 48: 6}, "dcbx": 9}
    assert (root / "sys/kernel/config/rdma_cm/mlx5_7/ports/1/default_roce_tos").read_text() == "162\n"
    assert {write[0] for write in dcb.writes} == {rail["interface"] for rail in RAILS}
    assert STORAGE not in dcb.ports
    writes = list(dcb.writes)
    second = run_module()
    assert second["changed"] is False
    assert dcb.writes == writes
    assert {check["status"] for check in second["checks"]} == {"ok", "skipped"}


def test_check_mode_predicts_and_writes_nothing(run_module, dcb, root):
    predicted = run_module(_ansible_check_mode=True, _ansible_diff=True)
    assert dcb.writes == []
    assert not (root / "etc").exists()
    real = run_module(_ansible_diff=True)
    assert predicted["diff"] == real["diff"]
    assert predicted["changes"] == real["changes"]
    before = {"trust": "pcp", "pfc": [], "dscp_map": {}, "dcbx": "firmware", "traffic_class": 0, "ets": FRESH}
    assert predicted["interfaces"]["ens1np0"]["before"] == before
    assert predicted["disruptions"]["ens1np0"] == ["the link goes down for a moment when flow control changes"]


def test_absent_undoes_present(run_module, dcb, root):
    run_module()
    assert run_module(state="absent")["changed"] is True
    assert dcb.port("ens1np0") == {"pfc": 0, "dscp": {}, "dcbx": 0}
    for path in (SETTINGS, UNIT.format("ens1np0"), LINK.format("ens1np0")):
        assert not os.path.lexists(root / path)
    assert run_module(state="absent")["changed"] is False


def test_an_acknowledgement_of_the_second_before_is_no_failure(params, dcb, monkeypatch):
    ieee, delays = dcb.ieee, iter([1.1])

    def late(interface):
        time.sleep(next(delays, 0))
        return ieee(interface)

    monkeypatch.setattr(dcb, "ieee", late)
    backends.run(backends.dcb_argv("ens1np0", "pfc", [3]))
    assert dcb.port("ens1np0")["pfc"] == 8


def test_guides_defect_there_was_no_way_back(run_module, dcb):
    dcb.ports["ens1np0"] = {"pfc": 8, "dscp": {26: 3, 40: 1}, "dcbx": 9}
    run_module(replace=True)
    run_module(priority=3, dscp=26)
    assert dcb.port("ens1np0")["dscp"] == {26: 3, 40: 1, 48: 6}
    run_module(state="absent")
    assert dcb.port("ens1np0") == {"pfc": 8, "dscp": {26: 3, 40: 1}, "dcbx": 9}


def test_guides_defect_the_users_notification_values_were_ignored(run_module, dcb, root):
    debugfs = root / "sys/kernel/debug/mlx5/0000:19:00.0/cc_params"
    for name in ("np_cnp_dscp", "np_cnp_prio"):
        put(debugfs, name, "0\n")
    run_module(cnp_priority=7, cnp_dscp=56)
    assert {path.name: path.read_text() for path in debugfs.iterdir()} == {"np_cnp_dscp": "56\n", "np_cnp_prio": "7\n"}
    assert dcb.port("ens1np0")["dscp"] == {40: 5, 56: 7}


def test_guides_defect_inbox_drivers_were_skipped_silently(run_module):
    result = run_module()
    assert result["interfaces"]["ens1np0"]["backend"] == "kernel"
    assert all("ROCE_CC_PRIO_MASK" in check["cause"] for check in of(result, "roce_ecn"))


def test_guides_defect_a_missing_traffic_class_file_was_fatal(run_module, root):
    for number in range(8):
        (root / f"sys/kernel/config/rdma_cm/mlx5_{number}/ports/1/default_roce_tos").unlink()
    assert run_module()["changed"] is True
    assert run_module()["changed"] is False


@pytest.fixture
def no_dcb(dcb):
    """Give the interfaces a driver without flow control."""
    dcb.absent = True


def test_soft_roce_gets_its_traffic_class(run_module, root, no_dcb):
    put(root, "/sys/class/net/veth0/mtu", "4200\n")
    put(root, "/sys/class/infiniband/rxe0/parent", "veth0\n")
    put(root, "/sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_tos", "0\n")
    traffic_class = root / "sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_tos"
    wanted = {"rails": [{"name": "rail1", "interface": "veth0"}], "unsupported": "report"}
    assert (run_module(**wanted)["changed"], traffic_class.read_text()) == (True, "162\n")
    assert run_module(**wanted)["changed"] is False
    run_module(**wanted, state="absent")
    assert traffic_class.read_text() == "0\n"


def test_a_traffic_class_of_a_removed_device_writes_nothing(root, dcb):
    put(root, "/sys/class/net/veth0/mtu", "4200\n")
    work.Nic("veth0").write(("traffic_class", 162))
    assert not dcb.writes


def test_ofeds_congestion_files(run_module, root):
    home = root / "sys/class/net/ens1np0"
    for side in ("roce_np", "roce_rp"):
        for priority in range(8):
            put(home.resolve(), f"ecn/{side}/enable/{priority}", "0\n")
    put(home.resolve(), "ecn/roce_np/cnp_dscp", "0\n")
    put(home.resolve(), "ecn/roce_np/cnp_802p_prio", "0\n")
    put(root, "/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "\n")
    result = run_module()
    written = {name: (home / "ecn/roce_np" / name).read_text() for name in ("enable/5", "enable/3", "cnp_dscp")}
    assert written == {"enable/5": "1\n", "enable/3": "0\n", "cnp_dscp": "48\n"}
    assert (root / "sys/class/infiniband/mlx5_0/tc/1/traffic_class").read_text() == "162\n"
    assert {check["status"] for check in of(result, "roce_ecn")} == {"deviation", "skipped"}
    assert run_module()["changed"] is False
    run_module(priority=3, dscp=24)
    assert [(home / f"ecn/roce_np/enable/{priority}").read_text() for priority in (3, 5)] == ["1\n", "0\n"]


@pytest.fixture
def mlnx_qos(tmp_path, run_module):
    state = tmp_path / "qos.json"
    machines.program(tmp_path / "bin/mlnx_qos", f"#!{sys.executable}\n{MLNX_QOS}".replace("@STATE@", str(state)))
    return state


def test_the_vendors_tool_where_the_kernel_offers_nothing(run_module, no_dcb, mlnx_qos):
    predicted = run_module(_ansible_check_mode=True)
    assert run_module(rails=RAILS[:1])["interfaces"]["ens1np0"]["backend"] == "vendor"
    port = json.loads(mlnx_qos.read_text())["ens1np0"]
    assert (port["trust"], port["pfc"], port["map"]["40"]) == ("dscp", "0,0,0,0,0,1,0,0", 5)
    assert run_module(rails=RAILS[:1])["changed"] is False
    assert predicted["interfaces"]["ens1np0"]["after"] is not None
    run_module(rails=RAILS[:1], state="absent")
    port = json.loads(mlnx_qos.read_text())["ens1np0"]
    assert (port["trust"], port["pfc"]) == ("pcp", "0,0,0,0,0,0,0,0")


def test_the_vendors_tool_for_drivers_that_keep_trust_in_their_own_files(run_module, mlnx_qos, root, dcb):
    put((root / "sys/class/net/ens1np0").resolve(), "qos/trust", "pcp\n")
    assert run_module(rails=RAILS[:1])["interfaces"]["ens1np0"]["backend"] == "vendor"
    assert dcb.writes == []


def test_an_interface_with_no_flow_control_at_all(run_module, refused, no_dcb):
    refused(fix="rdma_driver")
    preview = run_module(_ansible_check_mode=True)
    assert preview.get("failed") is None
    assert {check["status"] for check in of(preview, "roce_pfc")} == {"deviation"}
    assert {check["status"] for check in of(run_module(unsupported="report"), "roce_pfc")} == {"skipped"}
    assert run_module(unsupported="report")["changed"] is False


def test_guides_defect_nothing_was_read_back(refused, dcb):
    dcb.overridden = True
    assert refused("did not keep", fix="DCBX")["differences"]["pfc"]["wanted"] == [5]


def test_a_device_that_keeps_dcbx_is_no_error(run_module, dcb, root):
    dcb.keeps_dcbx = True
    dcb.ports["ens1np0"] = {"pfc": 32, "dscp": {40: 5, 48: 6}, "dcbx": 0}
    put(root, "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "162\n")
    assert [line for line in run_module()["changes"] if "ens1np0:" in line] == ["ens1np0: dcbx host"]
    assert run_module(_ansible_check_mode=True)["changed"] is run_module()["changed"] is False


def test_without_rails_nothing_is_silently_fine(run_module):
    assert "plan_dir" in run_module(rails=[])["fix"]


def test_an_interface_with_a_default_route_is_refused(run_module, refused, tmp_path, dcb):
    install(tmp_path / "bin", plain("ens1np0"))
    refused("ens1np0 carries a default route or Ansible's connection")
    assert dcb.writes == []
    assert run_module(force=True)["changed"] is True


def test_a_missing_interface(run_module, dcb):
    rails = [*RAILS, {"name": "rail9", "interface": "ens9np0"}]
    assert run_module(rails=rails)["missing"] == ["ens9np0"]
    assert dcb.writes == []
    preview = run_module(rails=rails, _ansible_check_mode=True)
    assert preview["changed"] is True
    assert [check["status"] for check in preview["checks"] if check["rail"] == "rail9"] == ["deviation"]


def test_a_rail_that_left_the_fabric_gets_its_settings_back(run_module, dcb, root):
    run_module()
    run_module(rails=RAILS[:7])
    assert (dcb.port("ens8np0")["pfc"], dcb.port("ens7np0")["pfc"]) == (0, 32)
    assert not os.path.lexists(root / LINK.format("ens8np0"))


def test_a_rail_out_of_service_keeps_its_settings(run_module, dcb, root):
    run_module()
    before, writes = dcb.port("ens8np0"), list(dcb.writes)
    out = {"rails": RAILS[:7], "out_of_service": RAILS[7:]}
    assert run_module(**out)["changed"] is False
    assert run_module(**out, priority=4)["changed"] is True
    assert (dcb.port("ens8np0"), os.path.lexists(root / LINK.format("ens8np0"))) == (before, True)
    assert "ens8np0" not in {write[0] for write in dcb.writes[len(writes) :]}
    run_module(**out, state="absent")
    assert dcb.port("ens8np0")["pfc"] == 0


@pytest.mark.parametrize("change", [{}, {"priority": 4}, {"priority": None, "dscp": None}, {"rails": RENAMED}])
def test_a_rail_whose_card_is_lost_keeps_its_settings(run_module, dcb, root, monkeypatch, change):
    dcb.ports["ens8np0"] = {"pfc": 8, "dscp": {26: 3}, "dcbx": 9}
    run_module(replace=True)
    monkeypatch.setattr(work, "ports_of", lambda: {"rail8": ("ens8np0", "02:00:00:00:00:08")})
    card = root / "sys/class/net/ens8np0"
    card.rename(root / "lost")
    out = run_module(rails=RENAMED[:7], out_of_service=RENAMED[7:])
    result = run_module(**change)
    assert [line for line in out["changes"] + result["changes"] if "ens8np0" in line] == []
    assert [check["status"] for check in result["checks"] if check["rail"] == "rail8"] == ["deviation"]
    (root / "lost").rename(card)
    assert start(root, "ens8np0") == 0, "the card is back: its unit is there"
    assert os.path.lexists(root / LINK.format("ens8np0"))
    run_module(state="absent")
    assert dcb.port("ens8np0") == {"pfc": 8, "dscp": {26: 3}, "dcbx": 9}


def test_infiniband_needs_none_of_it(run_module, dcb):
    result = run_module(network="infiniband")
    assert (result["changed"], result["switch"], dcb.writes) == (False, [], [])


def test_a_run_that_fails_half_way_remembers_what_was_before_it(run_module, refused, root, dcb):
    port = dcb.port("ens1np0")
    port.update(pfc=0b1000, dscp={26: 3})
    dcb.overridden, dcb.broken = True, ("ens1np0", "del")
    refused("did not keep", "ens1np0 could not be restored", fix="[qos_not_kept]", replace=True)
    assert port["dscp"] != {26: 3}
    dcb.overridden = False
    assert run_module()["changed"] is True
    dcb.broken = None
    run_module(state="absent")
    assert (port["pfc"], port["dscp"]) == (0b1000, {26: 3})
    assert not (root / SETTINGS).exists()


@pytest.mark.parametrize("before", [{"pfc": 0, "dscp": {}, "dcbx": 0x0A}, {"pfc": 8, "dscp": {26: 3}, "dcbx": 9}])
def test_when_a_later_interface_fails_those_before_it_are_as_they_were(run_module, refused, root, dcb, before):
    for number in range(1, 9):
        dcb.ports[f"ens{number}np0"] = json.loads(json.dumps(before), object_hook=numbered)
    dcb.broken = ("ens8np0", "set")
    failed = refused("ens8np0", "rolled back, on all interfaces", fix="[qos_refused]", replace=True)
    assert "Input/output error" in failed["msg"]
    for number in range(1, 8):
        assert (port := dcb.port(f"ens{number}np0"))["pfc"] == before["pfc"], port
        assert (port["dscp"], port["dcbx"] & 1) == (before["dscp"], before["dcbx"] & 1)
    assert not (root / SETTINGS).exists()
    dcb.broken = None
    assert run_module(replace=True)["changed"] is True
    dcb.broken = ("ens8np0", "pfc")
    refused("ens8np0", priority=3, dscp=26)
    assert dcb.port("ens1np0")["pfc"] == 32, "what an earlier run set stays set"


def test_settings_that_cannot_be_read_are_not_forgotten(run_module, refused, root, dcb):
    run_module()
    dcb.absent = True
    answer = refused(state="absent")
    assert "ens1np0: flow control cannot be read" in answer["msg"]
    assert (root / SETTINGS).exists()
    dcb.absent = False
    run_module(state="absent")
    assert dcb.port("ens1np0")["pfc"] == 0


def test_what_we_never_set_is_not_taken_back(run_module, dcb):
    dcb.ports["ens1np0"] = {"pfc": 8, "dscp": {26: 3}, "dcbx": 9}
    assert run_module(state="absent")["changed"] is False
    assert dcb.port("ens1np0")["pfc"] == 8


def start(root, interface):
    """Run the lines of a unit as systemd does, up to the first that fails; return its exit status."""
    text = (root / UNIT.format(interface)).read_text().replace("/sys/", f"{root}/sys/").replace("out 60", "out 1")
    for line in text.splitlines():
        if line.startswith("ExecStart="):
            may_fail, command = line[10:11] == "-", line[10:].lstrip("-")
            done = subprocess.run(
                shlex.split(command.replace("%%", "%").replace("$$", "$")), check=False, env={"PATH": "/usr/bin:/bin"}
            )
            if done.returncode and not may_fail:
                return done.returncode
    return 0


def test_the_unit_sets_a_nic_that_comes_up_with_defaults(run_module, dcb, root):
    traffic_class = root / "sys/kernel/config/rdma_cm/mlx5_2/ports/1/default_roce_tos"
    run_module(ets_bandwidth=60)
    traffic_class.write_text("0\n")
    for dcb.late in range(9):
        dcb.ports.clear()
        assert start(root, "ens3np0") == 0
    port = dcb.port("ens3np0")
    assert (port["pfc"], port["dscp"], port["dcbx"]) == (32, {40: 5, 48: 6}, 9)
    assert port["ets"][8:16] == [40, 0, 0, 0, 0, 60, 0, 0]
    assert traffic_class.read_text() == "162\n"
    assert start(root, "ens3np0") == 0
    assert not [line for line in run_module(ets_bandwidth=60)["changes"] if line.startswith("ens3np0")]


def test_the_unit_fails_where_a_setting_fails(run_module, dcb, root):
    run_module()
    dcb.keeps_dcbx = True
    assert start(root, "ens3np0") == 0, "the firmware may keep DCBX"
    dcb.ports.clear()
    dcb.broken = ("ens3np0", "pfc")
    assert start(root, "ens3np0") != 0
    dcb.broken = None
    device = next((root / "sys/class/net/ens3np0/device/infiniband").iterdir())
    device.rename(device.with_name("mlx5_9"))
    assert start(root, "ens3np0") == 124, "the RDMA device of the record is not there"


# Lossless RoCE asks first


UNDECLARED = {"priority": None, "dscp": None}


def of(result, name):
    return [check for check in result["checks"] if check["id"] == name]


def test_nothing_is_set_until_the_site_says_what_its_switches_have(run_module, dcb, root):
    dcb.ports["ens1np0"] = {"pfc": 8, "dscp": {26: 3}, "dcbx": 9}
    result = run_module(**UNDECLARED)
    assert (result["changed"], dcb.writes) == (False, [])
    assert not (root / SETTINGS).exists()
    (check,) = of(result, "roce_declared")
    assert check["status"] == "skipped"
    assert "Unchanged: ens1np0 has flow control on priority 3 (DSCP 26)" in check["cause"]
    assert "fabric_lossless" in check["fix"]
    assert result["notes"] == [f"{check['cause']} {check['fix']}"]
    assert result["switch"] == []


def test_one_of_the_two_is_no_declaration(run_module, dcb):
    assert [problem["place"] for problem in run_module(dscp=None)["problems"]] == ["dscp"]
    assert dcb.writes == []


def test_what_a_fleet_has_from_us_stays_without_a_declaration(run_module, dcb, root):
    run_module(priority=3, dscp=26, cnp_priority=7)
    files = {path: path.read_text() for path in (root / "etc").rglob("*") if path.is_file()}
    writes = list(dcb.writes)
    result = run_module(**UNDECLARED)
    assert (result["changed"], dcb.writes) == (False, writes)
    assert {path: path.read_text() for path in files} == files
    (check,) = of(result, "roce_declared")
    assert (check["status"], "ens2np0 has flow control on priority 3 (DSCP 26)" in check["cause"]) == ("skipped", True)
    dcb.ports["ens2np0"]["pfc"] = 0
    assert of(run_module(priority=3, dscp=26, cnp_priority=7), "roce_declared") == []
    assert dcb.port("ens2np0")["pfc"] == 8


def test_a_fleet_on_other_priorities_is_not_taken_off_its_queue(run_module, refused, dcb):
    dcb.ports["ens1np0"] = {"pfc": 8, "dscp": {26: 3}, "dcbx": 9}
    refused("ens1np0 has flow control on priority 3 (DSCP 26), and not by this collection")
    assert dcb.writes == []
    assert run_module(_ansible_check_mode=True).get("failed") is None
    assert run_module(replace=True)["changed"] is True


def test_the_same_priority_set_by_others_is_taken_over(run_module, dcb):
    dcb.ports["ens1np0"] = {"pfc": 32, "dscp": {40: 5}, "dcbx": 9}
    assert run_module()["changed"] is True


@pytest.mark.parametrize("gone", [{}, {"state": "absent"}])
def test_a_share_of_the_bandwidth(run_module, dcb, gone):
    predicted = run_module(ets_bandwidth=60, _ansible_check_mode=True, _ansible_diff=True)
    real = run_module(ets_bandwidth=60, _ansible_diff=True)
    assert predicted["diff"] == real["diff"]
    algorithms = ["ets", "strict", "strict", "strict", "strict", "ets", "strict", "strict"]
    wanted = [0, 0, 0, 0, 0, 5, 6, 0, 40, 0, 0, 0, 0, 60, 0, 0, *algorithms]
    assert ("ens1np0", "ets", wanted) in dcb.writes
    assert {check["status"] for check in of(run_module(ets_bandwidth=60), "roce_ets")} == {"ok"}
    assert "60 percent of the bandwidth for priority 5 (ETS)" in real["switch"]
    assert of(run_module(**gone), "roce_ets") == []
    assert (dcb.port("ens1np0")["ets"], run_module(**gone)["changed"]) == (FRESH, False)


def test_a_share_is_taken_back_by_the_run_after_a_killed_one(run_module, dcb, monkeypatch):
    run_module(ets_bandwidth=60)
    ours = dcb.port("ens1np0")["ets"]
    with monkeypatch.context() as patch:
        patch.setattr(work.QosRun, "_read_back", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_module(priority=3, dscp=26)
    run_module()
    assert [dcb.port(rail["interface"])["ets"] for rail in RAILS] == [FRESH] * len(RAILS)
    assert dcb.port("ens1np0")["dscp"] == {40: 5, 48: 6}
    # A share and an entry like ours that another tool sets.
    dcb.port("ens1np0").update(ets=ours, dscp={26: 3, 40: 5, 48: 6})
    assert run_module()["changed"] is False


def test_without_dcb_ets_stays_unchanged_and_the_package_is_named(run_module, refused, mlnx_qos, tmp_path):
    machines.program(tmp_path / "bin/dcb", "exit 127")
    result = run_module(rails=RAILS[:1], ets_bandwidth=60)
    assert not [line for line in result["changes"] if " ets " in line]
    (check,) = of(result, "roce_ets")
    assert (check["status"], "install iproute2 (RHEL: iproute) 5.12 or later" in check["cause"]) == ("skipped", True)
    (tmp_path / "bin/mlnx_qos").unlink()
    refused("dcb is not installed: install iproute2 (RHEL: iproute) 5.12 or later", rails=RAILS[:1])


def test_a_share_that_cannot_be_is_refused(run_module):
    result = run_module(priority=0, dscp=0, ets_bandwidth=100)
    assert {problem["place"] for problem in result["problems"]} == {"ets_bandwidth"}


def lldpd(tmp_path, pfc="08,20", app="65,00,1A"):
    """Answer as lldpcli 1.0.16 does (json0), for a leaf at ens1np0; unknown TLVs are bytes."""
    tlvs = [{"oui": "00,80,C2", "subtype": "11", "len": "2", "value": pfc}]
    tlvs += [{"oui": "00,80,C2", "subtype": "12", "len": "4", "value": f"00,{app}"}] if app else []
    row = {
        "name": "ens1np0",
        "chassis": [{"id": [{"type": "mac", "value": "00:00:5e:00:53:01"}], "name": [{"value": "leaf1"}]}],
        "port": [{"id": [{"type": "ifname", "value": "swp1"}]}],
        "unknown-tlvs": [{"unknown-tlv": tlvs}],
    }
    machines.program(tmp_path / "bin/lldpcli", f"echo '{json.dumps({'lldp': [{'interface': [row]}]})}'")


@pytest.mark.parametrize(
    ("pfc", "app", "status"),
    [
        pytest.param("08,20", "A5,00,28", "ok", id="priority 5, DSCP 40"),
        pytest.param("08,20", "", "ok", id="no application TLV"),
        pytest.param("08,08", "65,00,1A", "deviation", id="priority 3, DSCP 26"),
        pytest.param("08,20", "65,00,28", "deviation", id="DSCP 40 on priority 3"),
    ],
)
def test_leaf_announcement_is_compared(run_module, tmp_path, pfc, app, status):
    result = run_module(_ansible_check_mode=True)
    assert {check["status"] for check in of(result, "roce_switch")} == {"skipped"}
    lldpd(tmp_path, pfc, app)
    result = run_module(_ansible_check_mode=True)
    found = {check["rail"]: check["status"] for check in of(result, "roce_switch")}
    assert found == {"rail1": status} | {f"rail{number}": "skipped" for number in range(2, 9)}

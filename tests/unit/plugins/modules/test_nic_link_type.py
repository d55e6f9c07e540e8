# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module against executables that speak the vendor's formats and keep state over reboots; no real card.

Machine: eight GPUs, each with its card (rail1 is 0000:19:00); a dual-port storage card 0000:5a:00 with four VFs a port.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._card import run as card_run
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.fixtures.mlx import fake_mlx
from ansible_collections.railops.rdma.tests.unit.fixtures.mlx.cards import ETH, IB, SWITCH_VPD, Cards, card, row
from ansible_collections.railops.rdma.tests.unit.management_network_cases import install, plain

RAILS = [f"0000:{bus + 4:02x}:00" for bus in (0x15, 0x26, 0x37, 0x48, 0x97, 0xA7, 0xB7, 0xC7)]
STORAGE = "0000:5a:00"
RAIL1 = RAILS[0]
BOOT = "proc/sys/kernel/random/boot_id"
PLANNED = [{"name": f"rail{n}", "interface": f"ens{n}np0", "pci": f"{card}.0"} for n, card in enumerate(RAILS, 1)]
RAILS_ETH = [{"select": "rails", "link_type": "eth"}]
ON_STORAGE = {"name": "rail9", "interface": "ens20f0np0", "pci": "0000:5a:00.0"}
RAIL1_ETH = [{"select": "pci", "pci": ["19:00.0"], "link_type": "eth"}]
RAILS_IB = [{"select": "rails", "link_type": "ib"}]
STORAGE_IB = {"select": "pci", "pci": [STORAGE], "link_type": "ib"}


class Machine:
    def __init__(self, root, monkeypatch):
        machines.lay_out("one-switch-each-ib", root)
        self.root = root
        self.boots = 0
        self.cards = Cards(root, {name: card(IB) for name in RAILS} | {STORAGE: card(ETH, ports=2, vfs=8)})
        self.cards.install("mstconfig")
        # The network of the machine that runs the tests is none of this host's.
        self.answer("rdma", [])
        install(root / "bin", plain("eno1"))
        monkeypatch.setenv("PATH", f"{root}/bin:{os.environ['PATH']}")
        self.boot()

    def answer(self, tool, answer):
        machines.program(self.root / "bin" / tool, f"echo '{json.dumps(answer)}'")

    def boot(self, power=False):
        self.boots += 1
        machines.put(self.root, BOOT, f"boot-{self.boots}\n")
        self.cards.restart(power=power)

    def value(self, name, parameter="LINK_TYPE_P1"):
        values = self.cards.card(name)["parameters"][parameter]
        return values["current"], values["next"]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose cards' tools run inside of the test: a process for each of their calls took most of the time."""
    run = card_run.AnsibleModule.run_command

    def run_command(module, args, **more):
        name = os.path.basename(args[0])
        if not name.startswith(("mst", "mlx")):
            return run(module, args, **more)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = fake_mlx.main(made.cards.state, name, *args[1:])
        return code, output.getvalue(), ""

    monkeypatch.setattr(card_run.AnsibleModule, "run_command", run_command)
    machines.stand_for_the_host(monkeypatch, tmp_path)
    made = Machine(tmp_path, monkeypatch)
    return made


def function(machine, address):
    """Return where a PCI function really lies."""
    return (machine.root / "sys/bus/pci/devices" / address).resolve()


def device(machine, card):
    """Return the RDMA device of a card's first function."""
    return next((function(machine, f"{card}.0") / "infiniband").iterdir())


@pytest.fixture
def params():
    return {"rails": PLANNED}


def statuses(result):
    return {item["card"]: item["status"] for item in result["cards"]}


# The life of a change


def test_set_reboot_done(machine, run_module):
    """Defects 1 and 6: a change that waits is not reported as done."""
    first = run_module(cards=RAILS_ETH)
    assert (first["changed"], first["reboot_required"], first["reset_required"]) == (True, True, True)
    assert statuses(first) == dict.fromkeys(RAILS, "pending")
    assert len(first["reboot_reasons"]) == 8
    second = run_module(cards=RAILS_ETH)
    assert (second["changed"], second["reboot_required"], second["reset_required"]) == (False, True, True)
    assert statuses(second) == statuses(first), "a change that waits is not done"
    assert machine.value(RAIL1) == (IB, ETH)
    machine.boot()
    third = run_module(cards=RAILS_ETH)
    assert (third["changed"], third["reboot_required"]) == (False, False)
    assert {item["status"] for item in third["checks"]} == {"ok"}
    assert not (machine.root / "var/lib/railops-rdma/nic_link_type.json").exists()


def test_check_mode_predicts_the_same_diff_and_writes_nothing(machine, run_module):
    wanted = [{"select": "rails", "link_type": "eth", "vfs": 8}]
    predicted = run_module(cards=wanted, _ansible_check_mode=True, _ansible_diff=True)
    assert machine.cards.calls("set") == []
    assert {item["status"] for item in predicted["checks"]} == {"deviation"}
    real = run_module(cards=wanted, _ansible_diff=True)
    assert predicted["diff"] == real["diff"]
    assert predicted["reboot_required"] is real["reboot_required"] is True
    waiting = run_module(cards=wanted, _ansible_check_mode=True, _ansible_diff=True)
    assert waiting["changed"] is False
    assert waiting["diff"]["before"] == waiting["diff"]["after"] == real["diff"]["after"]


def test_the_opposite_wish_undoes_a_change(machine, run_module):
    run_module(cards=RAILS_ETH)
    undone = run_module(cards=RAILS_IB)
    assert (undone["changed"], undone["reboot_required"]) == (True, False)
    assert machine.value(RAIL1) == (IB, IB)


def test_a_reboot_that_did_not_help_needs_a_power_cycle_and_no_second_reboot(machine, run_module, refused):
    machine.cards.change(RAIL1, keeps_power=True)
    run_module(cards=RAILS_ETH)
    machine.boot()
    looked = run_module(cards=RAILS_ETH, _ansible_check_mode=True)
    assert (looked["power_cycle_required"], looked["reboot_required"]) == (True, False)
    for _again in range(2):
        failed = refused(RAIL1, fix="power cycle", cards=RAILS_ETH)
        assert (failed["power_cycle_required"], failed["reboot_required"]) == (True, False)
    machine.boot(power=True)
    assert run_module(cards=RAILS_ETH)["power_cycle_required"] is False


def test_a_call_for_other_cards_does_not_forget_what_waits(machine, run_module):
    machine.cards.change(RAIL1, keeps_power=True)
    wanted = [{"select": "pci", "pci": ["0000:19:00.0"], "link_type": "eth"}]
    run_module(cards=wanted)
    run_module(cards=[{"select": "pci", "pci": [f"{STORAGE}.0"], "link_type": "eth"}])
    machine.boot()
    failed = run_module(cards=wanted)
    assert (failed["power_cycle_required"], failed["reboot_required"]) == (True, False)


def test_a_set_that_needs_a_power_cycle_says_so_at_once(machine, run_module):
    machine.cards.change(RAIL1, wants_power_cycle=True)
    for _again in range(2):
        result = run_module(cards=RAIL1_ETH)
        assert (result["power_cycle_required"], result["reboot_required"]) == (True, False)


def test_a_change_pending_from_before_is_given_one_reboot(machine, run_module, refused):
    parameters = card(IB)["parameters"]
    parameters["LINK_TYPE_P1"]["next"] = ETH
    machine.cards.change(RAIL1, parameters=parameters, keeps_power=True)
    assert run_module(cards=RAIL1_ETH)["reboot_required"] is True
    machine.boot()
    refused(cards=RAIL1_ETH)


# The eight defects of the guides' script (setNicRdmaMode.sh)


def test_defect_2_an_ethernet_only_card_does_not_end_the_run(machine, run_module):
    machine.cards.change(STORAGE, parameters=card(None)["parameters"])
    result = run_module(cards=[*RAILS_ETH, {"select": "pci", "pci": [STORAGE], "link_type": "eth"}])
    assert statuses(result)[STORAGE] == "done"
    assert statuses(result)[RAILS[7]] == "pending"


def test_defect_2_an_ethernet_only_card_that_shall_be_infiniband_is_a_clear_failure_of_that_card(machine, refused):
    machine.cards.change(STORAGE, parameters=card(None)["parameters"])
    machine.cards.change(RAIL1, parameters=card(ETH)["parameters"])
    refused("no link type to choose and its link layer is eth, not ib", cards=[*RAILS_IB, STORAGE_IB])
    assert machine.value(RAIL1) == (ETH, IB)


def test_defect_3_a_card_that_fails_does_not_stop_the_others(machine, refused):
    machine.cards.change(RAILS[2], set_fault="Device doesn't support any configuration changes")
    machine.cards.change(RAILS[4], fault="Device in Livefish mode is not supported")
    result = refused("2 of 8", "livefish", cards=RAILS_ETH)
    assert statuses(result) == {name: "failed" if name in (RAILS[2], RAILS[4]) else "pending" for name in RAILS}
    assert (result["changed"], bool(result["fix"])) == (True, True)


@pytest.mark.parametrize(
    ("cards", "rails", "sets"),
    [
        pytest.param(
            [{"select": "pci", "pci": [f"{STORAGE}.0", f"{STORAGE}.1"], "link_type": "ib", "vfs": 16}],
            PLANNED,
            "LINK_TYPE_P1=1 LINK_TYPE_P2=1 NUM_OF_VFS=16",
            id="defect-7-both-ports-and-sriov",
        ),
        pytest.param(
            [
                {"select": "pci", "pci": [f"{STORAGE}.0"], "link_type": "eth"},
                {"select": "pci", "pci": [f"{STORAGE}.1"], "link_type": "ib"},
            ],
            PLANNED,
            "LINK_TYPE_P2=1",
            id="two-ports-wanted-differently",
        ),
        pytest.param(
            [{"select": "pci", "pci": [f"{STORAGE}.0"], "vfs": 0}],
            PLANNED,
            "SRIOV_EN=0",
            id="no-virtual-functions-switches-sriov-off",
        ),
        pytest.param(
            RAILS_IB,
            [{"name": "rail9", "interface": "ens20f1np1"}],
            "LINK_TYPE_P2=1",
            id="a-rail-found-by-its-interface-as-the-plan-has-no-address",
        ),
    ],
)
def test_what_is_set_in_the_one_call_for_a_card(machine, run_module, cards, rails, sets):
    run_module(cards=cards, rails=rails)
    assert machine.cards.calls("set") == [f"mstconfig -d {STORAGE}.0 -y set {sets}"]


def test_defect_7_a_bluefield_in_dpu_mode_stays_unchanged(machine, run_module):
    parameters = card(IB)["parameters"] | {
        "INTERNAL_CPU_MODEL": row("EMBEDDED_CPU(1)"),
        "INTERNAL_CPU_OFFLOAD_ENGINE": row("ENABLED(0)"),
    }
    machine.cards.change(RAIL1, parameters=parameters)
    result = run_module(cards=RAILS_ETH)
    assert statuses(result)[RAIL1] == "skipped"
    assert "DPU" in result["cards"][0]["note"]
    assert not any(RAIL1 in call for call in machine.cards.calls("set"))


def test_defect_7_mlxconfig_does_as_well(machine, run_module):
    (machine.root / "bin/mstconfig").unlink()
    machine.cards.install("mlxconfig")
    assert run_module(cards=RAILS_ETH)["changed"] is True
    assert machine.cards.calls("set")[0].startswith("mlxconfig")


def test_defect_8_values_are_compared_as_numbers_and_addresses_as_addresses(machine, run_module):
    # "IB" is a part of many a value's name; 1A:00.0 and 0000:1a:00.0 are one function.
    parameters = card(IB)["parameters"] | {"LINK_TYPE_P1": row(1), "MEMIC_BAR_SIZE": row("_IB_256KB(1)")}
    machine.cards.change(RAIL1, parameters=parameters)
    result = run_module(cards=[{"select": "pci", "pci": ["19:00.0"], "link_type": "ib"}])
    assert (result["changed"], statuses(result)) == (False, {RAIL1: "done"})


# What tools and firmware differ in


def test_firmware_that_reports_no_current_value_is_decided_by_what_the_kernel_shows(machine, run_module):
    machine.cards.change(RAIL1, columns=["next"])
    assert run_module(cards=RAIL1_ETH)["reboot_required"] is True
    (device(machine, RAIL1) / "ports/1/link_layer").write_text("Ethernet\n")
    assert run_module(cards=RAIL1_ETH)["reboot_required"] is False


@pytest.mark.parametrize(
    ("change", "wish", "says", "sets"),
    [
        pytest.param({"parameters": card(ETH, vfs=None)["parameters"]}, {"vfs": 8}, "no SR-IOV", 0, id="no-sriov"),
        pytest.param(
            {"parameters": card(IB)["parameters"] | {"LINK_TYPE_P1": row(IB, ro=True)}},
            {"link_type": "eth"},
            "read-only",
            0,
            id="read-only",
        ),
        pytest.param({"forgets": True}, {"link_type": "eth"}, "the card does not have what", 1, id="read-back"),
    ],
)
def test_what_a_card_does_not_do_is_a_clear_failure(machine, refused, change, wish, says, sets):
    machine.cards.change(RAIL1, **change)
    refused(says, cards=[{"select": "pci", "pci": ["19:00.0"], **wish}])
    assert len(machine.cards.calls("set")) == sets


def test_without_ip_nothing_is_touched(machine, run_module, monkeypatch):
    """Which card carries the host's network could not be found."""
    (machine.root / "bin/ip").unlink()
    monkeypatch.setattr(shutil, "which", lambda *_dummy, **_more: None)
    result = run_module(cards=RAILS_ETH)
    assert result["msg"].startswith("This host has no program `ip`")
    assert result["fix"] == "Install iproute2. [iproute2_missing]"
    assert not machine.cards.calls("set")


def test_without_a_tool_a_host_that_is_as_wanted_is_fine(machine, run_module, refused):
    (machine.root / "bin/mstconfig").unlink()
    assert run_module(cards=RAILS_IB)["changed"] is False
    refused("Neither mstconfig nor mlxconfig", fix="mstflint", cards=RAILS_ETH)
    looked = run_module(cards=RAILS_ETH, _ansible_check_mode=True)
    assert {item["status"] for item in looked["checks"]} == {"deviation"}


@pytest.mark.parametrize("output", ["Failed to open the device", "Unsupported device"])
def test_a_card_that_cannot_be_read_and_needs_nothing_stays_unchanged(machine, run_module, refused, output):
    """Kernel lockdown, or a card that is newer than the tool: no reason to stop where the kernel shows the wish."""
    machine.cards.change(RAIL1, fault=output)
    result = run_module(cards=RAILS_IB)
    assert (result.get("failed"), result["changed"], statuses(result)[RAIL1]) == (None, False, "done")
    (row,) = [item for item in result["checks"] if item["object"] == RAIL1]
    assert (row["status"], row["fix"] != "") == ("warning", True)
    assert "the settings of the next boot cannot be queried" in row["cause"]
    assert f"Card {RAIL1}: as the kernel shows it" in str(result["warnings"])
    refused(RAIL1, cards=RAILS_ETH)


# Selections


def test_a_card_of_a_rail_out_of_service_stays_unchanged(machine, run_module):
    kinds = [{"select": "others", "link_type": "ib"}, {"select": "rails", "link_type": "eth"}]
    result = run_module(rails=PLANNED[1:], out_of_service=PLANNED[:1], cards=kinds)
    assert RAIL1 not in statuses(result)
    assert machine.value(RAIL1) == (IB, IB)


def test_others_are_all_ports_of_cards_without_a_rail(machine, run_module):
    """A card with another role, here that of the default route, is left alone and named."""
    result = run_module(cards=[{"select": "others", "link_type": "ib"}])
    assert statuses(result) == {STORAGE: "pending"}
    assert (machine.value(STORAGE), machine.value(STORAGE, "LINK_TYPE_P2")) == ((2, 1),) * 2
    assert machine.value(RAIL1) == (1, 1)
    install(machine.root / "bin", plain("ens20f0np0"))
    again = run_module(cards=[{"select": "others", "link_type": "eth"}])
    assert statuses(again) == {}
    assert any("default route" in row["why"] for row in again["skipped_cards"] if row["card"] == STORAGE)


def test_the_more_exact_selection_counts(machine, run_module):
    wanted = [
        {"select": "pci", "pci": ["19:00.0"], "link_type": "ib"},
        {"select": "rails", "link_type": "eth", "vfs": 0},
    ]
    result = run_module(cards=wanted)
    assert statuses(result)[RAIL1] == "done"
    assert statuses(result)[RAILS[1]] == "pending"


def test_all_errors_of_the_input_come_at_once(machine, run_module):
    wanted = [
        {"select": "pci", "pci": ["19:00.0", "ff:00.0"], "link_type": "ib"},
        {"select": "pci", "pci": ["19:00.0"], "link_type": "eth"},
    ]
    assert {item["place"] for item in run_module(cards=wanted)["problems"]} == {"cards[0].pci[1]", "cards[1]"}
    assert not machine.cards.calls()


def test_a_host_without_such_cards_needs_no_tool(tmp_path, monkeypatch, run_module):
    machines.lay_out("virtual-machine", tmp_path)
    for nic in (tmp_path / "sys/bus/pci/devices").iterdir():
        if (nic / "vendor").read_text().strip() == "0x15b3":
            nic.unlink()
    machines.stand_for_the_host(monkeypatch, tmp_path)
    result = run_module(cards=RAILS_ETH)
    assert (result["changed"], result["cards"]) == (False, [])
    assert "nothing to do" in result["notes"][-1]


# What the rails of the plan decide, and what is never touched (the points of the review on real cards)


def test_nic_link_type_picks_cards_by_the_plans_rails_and_not_by_their_gpus(machine, run_module):
    """A card next to a GPU that carries no rail stays as it is, and is named."""
    result = run_module(cards=RAILS_ETH, rails=PLANNED[:7])
    assert set(statuses(result)) == set(RAILS[:7])
    assert not any(RAILS[7] in call for call in machine.cards.calls())
    alone = {item["card"]: item["why"] for item in result["skipped_cards"]}
    assert alone == {STORAGE: "carries no rail of the plan", RAILS[7]: "carries no rail of the plan"}


def test_a_rail_whose_card_is_unknown_stops_the_run_before_anything(machine, run_module, refused):
    rails = [*PLANNED[:7], {"name": "rail8", "interface": "ens8f0np0"}]
    refused("rail rail8: this host has no interface ens8f0np0", cards=RAILS_ETH, rails=rails)
    assert not machine.cards.calls()
    looked = run_module(cards=RAILS_ETH, rails=rails, _ansible_check_mode=True)
    assert [item["rail"] for item in looked["checks"] if item["id"] == "card_present"] == ["rail8"]


def test_the_other_port_of_a_rails_card_keeps_its_link_type(machine, run_module):
    run_module(cards=RAILS_IB, rails=[ON_STORAGE])
    assert machine.cards.calls("set") == [f"mstconfig -d {STORAGE}.0 -y set LINK_TYPE_P1=1"]
    assert machine.value(STORAGE, "LINK_TYPE_P2") == (ETH, ETH)


def recorded_vpd(machine, address):
    """Give a function the vital product data of an NVSwitch's management function, and return its place."""
    place = function(machine, address) / "vpd"
    place.unlink(missing_ok=True)
    place.write_bytes(SWITCH_VPD)
    return place


def test_a_card_that_serves_nvswitches_is_never_touched(machine, run_module, refused):
    recorded_vpd(machine, f"{STORAGE}.1")
    result = run_module(cards=RAILS_ETH)
    assert [item["why"] for item in result["skipped_cards"]] == ["serves the NVSwitches (VPD SMDL=SW_MNG)"]
    assert not any(STORAGE in call for call in machine.cards.calls())
    for wanted, rails in ((RAILS_ETH, [ON_STORAGE]), ([STORAGE_IB], [])):
        assert refused("serves the NVSwitches", cards=wanted, rails=rails)["problems"]
    assert not any(STORAGE in call for call in machine.cards.calls())


def test_all_functions_of_a_board_that_serves_nvswitches_are_kept(machine, run_module):
    """The board's functions lie at addresses of their own; its serial number and UUID are the same."""
    recorded_vpd(machine, f"{RAILS[6]}.0")
    place = recorded_vpd(machine, f"{RAILS[7]}.0")
    place.write_bytes(place.read_bytes().replace(b"SMDL=SW_MNG", b"SMDX=SW_MNG"))
    result = run_module(cards=RAILS_ETH, rails=PLANNED[:6])
    assert {item["card"] for item in result["skipped_cards"] if "NVSwitches" in item["why"]} == set(RAILS[6:])


def test_a_board_of_a_known_psid_serves_nvswitches_also_when_its_vpd_cannot_be_read(machine, run_module):
    (device(machine, RAILS[7]) / "board_id").write_text("NVD0000000079\n")
    (function(machine, f"{RAILS[7]}.0") / "vpd").unlink()
    result = run_module(cards=RAILS_ETH, rails=PLANNED[:7])
    assert "serves the NVSwitches (board NVD0000000079)" in [item["why"] for item in result["skipped_cards"]]


def test_a_card_that_carries_storage_by_rdma_is_never_touched(machine, refused):
    queue_pair = {"ifindex": 8, "ifname": "mlx5_0", "port": 1, "lqpn": 5, "type": "RC", "comm": "[nvme_rdma]"}
    own = {"ifindex": 9, "ifname": "mlx5_1", "port": 1, "lqpn": 1, "type": "GSI", "comm": "[ib_core]"}
    theirs = {"ifindex": 9, "ifname": "mlx5_1", "port": 1, "lqpn": 9, "type": "RC", "pid": 7, "comm": "nvme_rdma"}
    machine.answer("rdma", [queue_pair, own, theirs])
    result = refused("carries storage (nvme_rdma on mlx5_0)", cards=RAILS_ETH)
    assert [name for name, status in statuses(result).items() if status == "failed"] == [RAIL1]
    assert not any(RAIL1 in call for call in machine.cards.calls("set"))


@pytest.mark.parametrize("kind", ["nvme", "nfs", "iscsi"])
def test_a_card_that_carries_storage_by_tcp_is_never_touched(machine, refused, kind):
    if kind == "nvme":
        machines.put(machine.root, "sys/class/nvme/nvme0/transport", "tcp\n")
        machines.put(machine.root, "sys/class/nvme/nvme0/address", "traddr=192.0.2.7,trsvcid=4420,src_addr=192.0.2.1\n")
        machines.put(machine.root, "sys/class/nvme/nvme1/transport", "pcie\n")
        machines.put(machine.root, "sys/class/nvme/nvme1/address", "0000:01:00.0\n")
    elif kind == "nfs":
        machines.put(
            machine.root, "proc/mounts", "filer:/home /home nfs4 rw,vers=4.2,clientaddr=192.0.2.1,addr=192.0.2.7 0 0\n"
        )
    else:
        machines.put(machine.root, "sys/class/iscsi_connection/connection1:0/address", "192.0.2.7\n")
    over = next((function(machine, f"{RAIL1}.0") / "net").iterdir()).name
    way = json.dumps([{"dst": "192.0.2.7", "dev": over, "prefsrc": "192.0.2.1"}])
    install(machine.root / "bin", plain("eno1", {over: {}}), way)
    assert statuses(refused(f"192.0.2.7 over {over}", cards=RAILS_ETH))[RAIL1] == "failed"
    assert not any(RAIL1 in call for call in machine.cards.calls("set"))


def test_a_port_that_carries_a_vlan_keeps_its_link_type_and_gets_virtual_functions(machine, run_module, refused):
    over = next((function(machine, f"{RAIL1}.0") / "net").iterdir()).name
    install(machine.root / "bin", plain("eno1", {over: {}, "storage": {"link": over}}))
    assert statuses(refused(f"carries storage ({over}), so it is not changed", cards=RAILS_ETH))[RAIL1] == "failed"
    assert not any(RAIL1 in call for call in machine.cards.calls("set"))
    assert statuses(run_module(cards=[{"select": "rails", "vfs": 4}]))[RAIL1] == "pending"


@pytest.mark.parametrize("use", ["machine", "pod"])
def test_a_card_with_a_virtual_function_in_use_is_never_touched(machine, run_module, refused, use):
    virtual = next(
        path
        for path in (machine.root / "sys/bus/pci/devices").iterdir()
        if (path / "physfn").exists() and os.path.realpath(path / "physfn").endswith(f"{STORAGE}.0")
    )
    (machine.root / "sys/bus/pci/drivers/vfio-pci").mkdir(parents=True)
    driver = "vfio-pci" if use == "machine" else "mlx5_core"
    (virtual / "driver").unlink(missing_ok=True)
    (virtual / "driver").symlink_to(machine.root / "sys/bus/pci/drivers" / driver)
    if use == "pod":
        shutil.rmtree(virtual / "net")
    refused("has a virtual function in use", cards=RAILS_IB, rails=[ON_STORAGE])
    assert not machine.cards.calls("set")
    fine = run_module(cards=[{"select": "rails", "link_type": "eth"}], rails=[ON_STORAGE])
    assert statuses(fine) == {STORAGE: "done"}


def test_a_bluefield_that_does_not_report_its_mode_stays_unchanged(machine, run_module):
    (function(machine, f"{RAIL1}.0") / "device").write_text("0xa2dc\n")
    assert statuses(run_module(cards=RAILS_ETH))[RAIL1] == "skipped"
    nic_link_type = {"INTERNAL_CPU_MODEL": row("EMBEDDED_CPU(1)"), "INTERNAL_CPU_OFFLOAD_ENGINE": row("DISABLED(1)")}
    machine.cards.change(RAIL1, parameters=card(IB)["parameters"] | nic_link_type)
    assert statuses(run_module(cards=RAILS_ETH))[RAIL1] == "pending"


def test_num_of_vfs_is_exactly_what_the_sriov_operator_will_want(machine, run_module):
    """The operator writes and reboots for every other number, also for a greater one."""
    machine.cards.change(RAIL1, parameters=card(IB, vfs=16)["parameters"])
    machine.cards.change(RAILS[1], parameters=card(IB, vfs=8)["parameters"])
    result = run_module(cards=[{"select": "rails", "vfs": 8}], rails=PLANNED[:2])
    assert machine.cards.calls("set") == [f"mstconfig -d {RAIL1}.0 -y set NUM_OF_VFS=8"]
    assert "NUM_OF_VFS is 16, wanted 8" in result["reboot_reasons"][0]


def test_a_card_with_a_number_of_vfs_for_each_function_is_refused(machine, refused):
    machine.cards.change(RAIL1, parameters=card(IB, vfs=16)["parameters"] | {"PF_NUM_OF_VF_VALID": row("True(1)")})
    refused("PF_NUM_OF_VF_VALID is True(1)", cards=[{"select": "rails", "vfs": 8}], rails=PLANNED[:1])
    assert not machine.cards.calls("set")


def test_more_virtual_functions_than_the_card_can_is_said_in_plain_words(machine, refused):
    machine.cards.change(RAIL1, set_fault="Required capability exceeds device limits")
    wanted = [{"select": "rails", "vfs": 120}]
    refused("The card cannot do that much", fix="127", cards=wanted, rails=PLANNED[:1])


def test_without_rails_nothing_can_be_selected_by_them(machine, run_module):
    assert run_module(cards=RAILS_ETH, rails=None)["fix"] == "Set plan_dir (or rails). [cards_missing]"

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._probe.checks import counter_checks
from ansible_collections.railops.rdma.plugins.module_utils._probe.counters import kind_of
from ansible_collections.railops.rdma.plugins.module_utils._probe.health import check_health, read_rail
from ansible_collections.railops.rdma.plugins.module_utils._probe.health_plan import health_checks
from ansible_collections.railops.rdma.tests.unit.machines import put

NOW = {
    "interface": "ens1np0",
    "ifindex": 4,
    "counters": {
        "carrier_down_count": 3,
        "out_of_sequence": 500,
        "rx_crc_errors_phy": 7,
        "rx_prio3_discards": 40,
        "symbol_error": 0,
    },
    "pci": "0000:1a:00.0",
    "pcie": {"width": 16, "speed": 32.0, "card_width": 16, "card_speed": 32.0, "slot_width": 16, "slot_speed": 64.0},
    "speed": 400000,
}
GROWTH = ("port_errors", "port_discards", "port_flaps", "port_order")


def changed(now=None, **counters):
    found = copy.deepcopy(now or NOW)
    found["counters"].update(counters)
    return found


def judged(now, since="the same", *, boot="b1", last="b1", limits=None, speed=0):
    since = NOW if since == "the same" else since
    before = {"boot": last, "rails": {"rail1": since}} if since else None
    checks = health_checks({"rail1": now}, boot, before, limits or {}, speed)
    assert [check["id"] for check in checks] == [
        *GROWTH,
        "pcie_link",
        *(["port_speed"] if speed or now.get("offered") else []),
    ]
    return {check["id"]: check for check in checks}


def statuses(found):
    return [found[name]["status"] for name in GROWTH]


def test_nothing_grew():
    assert statuses(judged(NOW)) == ["ok"] * 4


@pytest.mark.parametrize(
    ("counter", "growth", "check", "status"),
    [
        ("rx_crc_errors_phy", 1, "port_errors", "deviation"),
        ("symbol_error", 5, "port_errors", "deviation"),
        ("rx_prio3_discards", 1000, "port_discards", "ok"),
        ("rx_prio3_discards", 1001, "port_discards", "deviation"),
        ("carrier_down_count", 1, "port_flaps", "ok"),
        ("carrier_down_count", 2, "port_flaps", "deviation"),
        ("out_of_sequence", 100000, "port_order", "warning"),
    ],
)
def test_what_grew_decides(counter, growth, check, status):
    found = judged(changed(**{counter: NOW["counters"][counter] + growth}))
    assert found[check]["status"] == status
    assert found[check]["observed"] == f"{counter} +{growth}"
    assert [item["status"] for name, item in found.items() if name in GROWTH and name != check] == ["ok"] * 3


def test_limits_are_the_sites():
    assert judged(changed(out_of_sequence=501), limits={"port_order": 0})["port_order"]["status"] == "deviation"
    assert judged(changed(rx_crc_errors_phy=9), limits={"port_errors": 2})["port_errors"]["status"] == "ok"
    assert judged(changed(rx_crc_errors_phy=9), limits={"port_errors": -1})["port_errors"]["status"] == "warning"


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"since": None}, "first audit"),
        ({"last": "b0"}, "booted"),
        ({"since": {**NOW, "ifindex": 3}}, "driver was reloaded"),
    ],
)
def test_what_cannot_be_compared_is_skipped(more, word):
    found = judged(changed(rx_crc_errors_phy=99), **more)
    assert statuses(found) == ["skipped"] * 4
    assert word in found["port_errors"]["cause"]


def test_a_smaller_counter_restarted_and_a_new_one_has_no_past():
    assert judged(changed(rx_crc_errors_phy=2, rx_symbol_err_phy=50))["port_errors"]["status"] == "ok"


def test_a_rail_without_such_counters_is_skipped():
    bare = {**NOW, "counters": {"symbol_error": 0}}
    assert statuses(judged(bare, bare)) == ["ok", "skipped", "skipped", "skipped"]


@pytest.mark.parametrize(
    ("link", "status"),
    [
        ({}, "ok"),
        ({"width": 8}, "deviation"),
        ({"speed": 16.0}, "deviation"),
        ({"width": 8, "slot_width": 8}, "ok"),
        ({"speed": 16.0, "slot_speed": 16.0}, "ok"),
        ({"slot_width": None, "slot_speed": None}, "ok"),
        ({"width": None}, "skipped"),
    ],
)
def test_the_pcie_link_is_what_card_and_slot_offer(link, status):
    found = judged({**NOW, "pcie": {**NOW["pcie"], **link}})["pcie_link"]
    assert found["status"] == status
    if status == "deviation":
        assert found["planned"] == "x16 32 GT/s"


def test_a_planned_speed():
    assert judged(NOW, speed=400000)["port_speed"]["status"] == "ok"
    slow = judged({**NOW, "speed": 200000}, speed=400000)["port_speed"]
    assert (slow["status"], slow["planned"], slow["observed"]) == ("deviation", "400 Gb/s", "200 Gb/s")
    assert judged({**NOW, "speed": None}, speed=400000)["port_speed"]["status"] == "skipped"


@pytest.mark.parametrize(
    ("now", "speed", "status"),
    [
        ({"offered": 400000}, 0, "ok"),
        ({"offered": 400000, "speed": 200000}, 0, "warning"),
        ({"offered": 400000, "speed": 200000}, 200000, "ok"),
        ({"offered": 400000, "speed": None}, 0, "skipped"),
        ({"offered": 100000, "speed": 400000}, 0, "ok"),
    ],
)
def test_a_link_slower_than_both_of_its_ends_offer(now, speed, status):
    assert judged({**NOW, **now}, speed=speed)["port_speed"]["status"] == status


def test_sound_counters_do_not_fail_a_traffic_test():
    before = {"rail1": {"out_of_sequence": 1, "symbol_error": 0}}
    (order,) = counter_checks(before, {"rail1": {"out_of_sequence": 9, "symbol_error": 0}}, 0)
    assert (order["status"], order["observed"]) == ("warning", "out_of_sequence +8")
    (lost,) = counter_checks(before, {"rail1": {"out_of_sequence": 9, "symbol_error": 1}}, 0)
    assert lost["status"] == "deviation"
    (never,) = counter_checks(before, {"rail1": {"out_of_sequence": 9, "symbol_error": 1}}, -1)
    assert never["status"] == "ok"


def test_counters_of_traffic_say_nothing_of_health():
    assert [kind_of(name) for name in ("rx_packets", "port_xmit_wait", "rx_dropped", "rx_corrected_bits_phy")] == [
        None
    ] * 4


def test_a_limit_with_a_wrong_name_is_refused():
    with pytest.raises(RdmaError, match="no limits for errors"):
        check_health([], {"limits": {"errors": 0}})


def lay(root, files):
    for path, text in files.items():
        put(root, path, f"{text}\n")


def test_a_host_is_read_from_its_files(tmp_path):
    card = "/sys/devices/pci0000:17/0000:17:01.0/0000:1a:00.0"
    lay(
        tmp_path,
        {
            "/proc/sys/kernel/random/boot_id": "b1",
            f"{card}/current_link_width": 8,
            f"{card}/current_link_speed": "32.0 GT/s PCIe",
            f"{card}/max_link_width": 16,
            f"{card}/max_link_speed": "32.0 GT/s PCIe",
            "/sys/devices/pci0000:17/0000:17:01.0/max_link_width": 16,
            "/sys/devices/pci0000:17/0000:17:01.0/max_link_speed": "64.0 GT/s PCIe",
            **{f"{card}/{key}": value for key, value in {"vendor": "0x15b3", "device": "0x1021"}.items()},
            **{f"{card}/subsystem_{key}": value for key, value in {"vendor": "0x15b3", "device": "0x0041"}.items()},
            f"{card}/infiniband/mlx5_0/x": "",
            "/sys/class/infiniband/mlx5_0/fw_ver": "28.40.1000",
            "/sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
            "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": 2,
            "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": 99,
            "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence": 5,
            "/sys/class/net/railops-t1/ifindex": 4,
            "/sys/class/net/railops-t1/speed": 400000,
            "/sys/class/net/railops-t1/carrier_down_count": 1,
            "/sys/class/net/railops-t1/statistics/rx_crc_errors": 0,
            "/sys/class/net/railops-t1/statistics/rx_packets": 1000,
        },
    )
    (tmp_path / "sys/class/net/railops-t1/device").symlink_to(tmp_path / card.lstrip("/"))
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:1a:00.0").symlink_to(tmp_path / card.lstrip("/"))
    rails = [{"name": "rail1", "interface": "railops-t1"}, {"name": "rail2", "interface": "railops-t2"}]
    checks, facts = check_health(rails, {"sysfs": Sysfs(str(tmp_path))})
    found = facts["health"]["rails"]["rail1"]
    assert found["counters"] == {"carrier_down_count": 1, "out_of_sequence": 5, "rx_crc_errors": 0, "symbol_error": 2}
    assert (found["pci_id"], found["firmware"], found["speed"]) == ("15b3:1021:15b3:0041", "28.40.1000", 400000)
    by_rail = {(check["rail"], check["id"]): check for check in checks}
    assert by_rail[("rail1", "pcie_link")]["observed"] == "x8 32 GT/s"
    assert {check["status"] for (rail, _id), check in by_rail.items() if rail == "rail2"} == {"skipped"}
    again, _facts = check_health(rails, {"sysfs": Sysfs(str(tmp_path)), "since": facts["health"]})
    assert [check["status"] for check in again if check["rail"] == "rail1"][:4] == ["ok", "skipped", "ok", "ok"]


def test_a_virtio_port_is_known_by_the_card_above_it(tmp_path):
    card = "/sys/devices/pci0000:00/0000:00:04.0"
    lay(tmp_path, {f"{card}/vendor": "0x1af4", f"{card}/device": "0x1041", f"{card}/virtio1/x": ""})
    lay(tmp_path, {f"{card}/subsystem_{key}": "0x1af4" for key in ("vendor", "device")})
    lay(tmp_path, {"/sys/class/net/railops-t3/ifindex": 5})
    (tmp_path / "sys/class/net/railops-t3/device").symlink_to(tmp_path / card.lstrip("/") / "virtio1")
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:00:04.0").symlink_to(tmp_path / card.lstrip("/"))
    found = read_rail(Sysfs(str(tmp_path)), "railops-t3", [])
    assert (found["pci"], found["pci_id"]) == ("0000:00:04.0", "1af4:1041:1af4:1af4")

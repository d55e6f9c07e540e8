# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._rdma.host_model import (
    Netdev,
    RdmaOptions,
    RdmaRail,
    RdmaState,
)
from ansible_collections.railops.rdma.plugins.module_utils._rdma.host_plan import (
    HEADER,
    LINK_FOLDER,
    MODULES_FILE,
    ipoib_mtu_limit,
    link_text,
    plan_host,
)

PCI = "0000:1b:00.0"
RAIL = RdmaRail("rail1", "ens1np0", PCI, 4200)
LINK = f"{LINK_FOLDER}/05-railops-rail1.link"
ROCE = ("ib_uverbs", "rdma_ucm")
NAMED = {MODULES_FILE: HEADER + "".join(f"{name}\n" for name in ROCE)}


def have(*netdevs, **changes):
    values = {
        "kernel": "6.1",
        "loaded": frozenset(ROCE),
        "available": frozenset({*ROCE, "ib_umad", "ib_ipoib"}),
        "netdevs": netdevs,
    }
    changes["files"] = {**NAMED, **changes.get("files", {})} if changes.get("files") != {} else {}
    return RdmaState(**{**values, **changes})


def statuses(plan):
    return {(check["id"], check["rail"]): check["status"] for check in plan.checks}


def test_infiniband_needs_ipoib_and_umad():
    assert plan_host(RdmaOptions(network="infiniband"), have()).load == ["ib_umad", "ib_ipoib"]


@pytest.mark.parametrize(("rdma_mode", "load"), [("shared", ("ib_umad",)), ("exclusive", ()), ("", ())])
def test_pods_that_share_a_device_need_umad(rdma_mode, load):
    assert plan_host(RdmaOptions(rdma_mode=rdma_mode), have()).load == list(load)


def test_a_module_built_into_the_kernel_is_there():
    plan = plan_host(RdmaOptions(modules=("ib-core",)), have(builtin=frozenset({"ib_core"}), files={MODULES_FILE: "x"}))
    assert plan.load == []
    assert plan.files == {MODULES_FILE: HEADER + "ib_core\n"}


def test_a_name_that_another_card_has_is_refused():
    plan = plan_host(RdmaOptions(rails=(RAIL,)), have(Netdev("ens27np0", PCI), Netdev("ens1np0", "0000:03:00.0")))
    assert "belongs to the interface at 0000:03:00.0" in plan.problems[0].problem


def test_a_card_that_is_not_there_is_a_deviation_and_keeps_its_file():
    plan = plan_host(RdmaOptions(rails=(RAIL,)), have())
    assert LINK in plan.files
    assert plan.problems == []
    assert statuses(plan)["rdma_name", "rail1"] == "deviation"


def test_rails_without_an_address_stay_unchanged():
    rail = RdmaRail("rail1", "ens1np0")
    assert plan_host(RdmaOptions(rails=(rail,)), have(Netdev("ens1np0", PCI))).files == {}


def test_the_file_of_a_removed_rail_is_removed():
    files = {f"{LINK_FOLDER}/05-railops-rail9.link": link_text("rail9", "0000:99:00.0", "ens9np0")}
    plan = plan_host(RdmaOptions(), have(Netdev("enp9", "0000:99:00.0"), files=files))
    assert plan.files == {f"{LINK_FOLDER}/05-railops-rail9.link": None}


@pytest.mark.parametrize(
    ("mode", "port_mtu", "limit"),
    [
        pytest.param("datagram", None, 4092, id="not set: the port's MTU"),
        pytest.param("datagram", 4096, 4092, id="4K"),
        pytest.param("datagram", 2048, 2044, id="2K"),
        pytest.param(None, 2048, 2044, id="enhanced IPoIB has no mode file"),
        pytest.param("connected", 2048, 65520, id="connected"),
    ],
)
def test_ipoib_mtu(mode, port_mtu, limit):
    assert ipoib_mtu_limit(mode, port_mtu) == limit


def test_roces_mtu_on_ipoib_is_refused_with_the_right_one():
    device = Netdev("ens1np0", PCI, infiniband=True, ipoib_mode="datagram", port_mtu=4096)
    plan = plan_host(RdmaOptions(network="infiniband", rails=(RAIL,)), have(device))
    assert "4200 is more than ens1np0 can carry: 4092" in plan.problems[0].problem
    assert "fabric_mtu to 4092" in plan.problems[0].fix
    good = plan_host(RdmaOptions(network="infiniband", rails=(RdmaRail("rail1", "ens1np0", PCI, 4092),)), have(device))
    assert good.problems == []
    assert statuses(good)["rdma_ipoib_mtu", "rail1"] == "ok"


def test_the_mtu_of_ethernet_is_not_ipoibs_business():
    plan = plan_host(RdmaOptions(network="infiniband", rails=(RAIL,)), have(Netdev("ens1np0", PCI)))
    assert ("rdma_ipoib_mtu", "rail1") not in statuses(plan)


RULED = [
    ('SUBSYSTEM=="net", ACTION=="add", ATTR{address}=="00:00:5e:00:53:01", KERNEL=="eth*", NAME="lan0"', True),
    ('KERNELS=="0000:1b:00.0", \\\n  NAME:="lan0"', True),
    ('SUBSYSTEM=="net", ATTRS{address}=="00:00:5E:00:53:01", NAME="ens1np0"', False),
    ('SUBSYSTEM=="net", ATTR{address}=="00:00:5e:00:53:99", NAME="lan0"', False),
    ('SUBSYSTEM=="net", DRIVERS=="?*", ATTR{address}!="00:00:5e:00:53:01", NAME="lan0"', False),
    ('SUBSYSTEM=="net", KERNEL=="eth0", NAME="lan0"', False),
    ('SUBSYSTEM=="net", KERNELS=="0000:1b:00.0", NAME="$env{ID_NET_NAME}"', False),
    ('SUBSYSTEM=="net", KERNELS=="0000:1b:00.0", ENV{NAME}="lan0", RUN+="/bin/true"', False),
    ('# KERNELS=="0000:1b:00.0", NAME="lan0"', False),
]


@pytest.mark.parametrize(("rule", "refused"), RULED)
def test_a_rule_of_udev_that_names_the_card_is_refused_by_its_file(rule, refused):
    path = "/etc/udev/rules.d/70-persistent-net.rules"
    card = Netdev("ens1", PCI, mac="00:00:5e:00:53:01", driver="mlx5_core")
    plan = plan_host(RdmaOptions(rails=(RAIL,), naming="name"), have(card, rules={path: f"# mine\n{rule}\n"}))
    assert [(path in trouble.problem, 'NAME="lan0"' in trouble.problem) for trouble in plan.problems] == [
        (True, True)
    ] * refused
    assert statuses(plan)["rdma_rename" if refused else "rdma_name", "rail1"] == "deviation"

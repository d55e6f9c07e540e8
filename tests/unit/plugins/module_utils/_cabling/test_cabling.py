# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cabling import host as cabling_host
from ansible_collections.railops.rdma.plugins.module_utils._cabling.host import check_cables
from ansible_collections.railops.rdma.plugins.module_utils._cabling.lldp import parse_lldp
from ansible_collections.railops.rdma.plugins.module_utils._cabling.plan import Cable, cable_checks, named
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.tests.unit.machines import put

RECORDED = (Path(__file__).parents[3] / "data/lldpcli-1.0.16-json0.json").read_text(encoding="utf-8")
LEAVES = [
    {"zone": zone, "rail": f"rail{number}", "leaf": f"{zone}-leaf{number}"}
    for zone in ("su1", "su2")
    for number in (1, 2, 3)
]


def neighbor(switch, port=None, *, is_switch=True):
    return {"switch": switch, "port": port, "is_switch": is_switch}


def cable(number, switch=None, port="swp7", *, planned=None, is_switch=True):
    return Cable(
        rail=f"rail{number}",
        interface=f"ens{number}np0",
        leaf=f"su1-leaf{number}",
        port=planned or "",
        seen=neighbor(switch, port, is_switch=is_switch) if switch else None,
        unseen="the leaf sends no LLDP.",
    )


def judged(*cables, leaves=LEAVES):
    checks = cable_checks(cables, leaves, "su1")
    assert [(check["rail"], check["id"]) for check in checks if check["id"] == "cable_leaf"] == [
        (item.rail, "cable_leaf") for item in cables
    ]
    return [[check for check in checks if check["id"] == name] for name in ("cable_leaf", "cable_port")]


def test_cables_as_planned():
    leaf, port = judged(cable(1, "su1-leaf1"), cable(2, "su1-leaf2.dc.example", planned="swp*"))
    assert [check["status"] for check in (*leaf, *port)] == ["ok", "ok", "ok"]
    assert leaf[1]["observed"] == "su1-leaf2.dc.example swp7"


def test_two_rails_that_are_swapped():
    (one, two, three), _ports = judged(
        cable(1, "su1-leaf2", "swp1"), cable(2, "su1-leaf1", "swp2"), cable(3, "su1-leaf3")
    )
    assert (one["status"], two["status"], three["status"]) == ("deviation", "deviation", "ok")
    assert one["cause"] == "rail1 and rail2 are swapped: ens1np0 is on su1-leaf2 swp1, ens2np0 on su1-leaf1 swp2."
    assert two["cause"].startswith("rail2 and rail1 are swapped")
    assert one["fix"] == "Swap the two cables, at the node or at the leaves."


def test_one_leaf_for_two_rails():
    (one, two), _ports = judged(cable(1, "su1-leaf2"), cable(2, "su1-leaf2"))
    assert two["status"] == "ok"
    assert "one leaf for two rails" in one["cause"]
    assert one["fix"] == "Move the cable of ens1np0 to su1-leaf1."


def test_a_node_on_another_zones_leaf():
    (one, two), _ports = judged(cable(1, "su2-leaf1"), cable(2, "su2-leaf2"))
    for check in (one, two):
        assert "in zone su2: the node is planned in su1." in check["cause"]


def test_other_wrong_leaves():
    assert judged(cable(1, "su1-leaf3"))[0][0]["cause"] == "ens1np0 is on su1-leaf3 swp7, the leaf of rail3."
    assert "the plan has for no rail" in judged(cable(1, "tor9"))[0][0]["cause"]


def test_nothing_is_green_by_silence():
    leaf, port = judged(cable(1, planned="swp1"), cable(2, "nic", is_switch=False))
    assert [check["status"] for check in (*leaf, *port)] == ["skipped"] * 3
    assert leaf[0]["cause"] == "Not seen: the leaf sends no LLDP."
    assert leaf[1]["cause"] == "Not seen: nic swp7 does not announce a switch (the NIC's own firmware?)."
    (unplanned,) = cable_checks([Cable("rail1", "ens1np0", seen=neighbor("tor9"))], [], "su1")
    assert (unplanned["status"], unplanned["cause"]) == ("skipped", "The plan names no leaf.")


def test_a_planned_name_counts_even_if_it_does_not_call_itself_a_switch():
    assert judged(cable(1, "su1-leaf1", is_switch=False))[0][0]["status"] == "ok"


def test_ports():
    wrong = judged(cable(1, "su1-leaf1", "swp2", planned="swp1"))[1][0]
    assert (wrong["status"], wrong["planned"], wrong["observed"]) == ("deviation", "swp1", "swp2")
    shared = [
        Cable("rail1", "ens1np0", "tor", "swp1", neighbor("tor", "swp2")),
        Cable("rail2", "ens2np0", "tor", "swp2", neighbor("tor", "swp1")),
    ]
    _leaf, port = judged(*shared, leaves=[])
    assert port[0]["cause"] == "rail1 and rail2 are swapped at the leaf: tor swp2 and tor swp1."
    assert judged(cable(1, "su1-leaf2", planned="swp7"))[1][0]["status"] == "skipped"


def hearing(*heard, port=""):
    """Return the checks of one cable whose port hears several neighbors, planned on leaf1."""
    text = json.dumps({"lldp": [{"interface": [lldpd_row(*item) for item in heard]}]})
    return cable_checks([Cable("rail1", "ens1np0", "leaf1", port, parse_lldp(text).get("ens1np0"))], [], "su1")


def lldpd_row(name, port, *, switch=True):
    chassis = {"id": [{"value": "02:00:00:00:00:01"}], "name": [{"value": name}]}
    chassis["capability"] = [{"type": "Bridge", "enabled": switch}]
    return {"name": "ens1np0", "chassis": [chassis], "port": [{"id": [{"value": port}]}]}


DPU, LEAF = ("dpu-17", "p0hpf"), ("leaf1", "swp5")


@pytest.mark.parametrize("heard", [(DPU, LEAF), (LEAF, DPU)])
def test_the_planned_leaf_counts_wherever_it_is_among_several_neighbors(heard):
    leaf, port = hearing(*heard, port="swp5")
    assert (leaf["status"], leaf["observed"]) == ("ok", "leaf1 swp5")
    assert port["status"] == "ok"
    assert hearing(*heard, port="swp6")[1]["status"] == "deviation"


def test_several_switches_none_of_them_planned():
    (leaf,) = hearing(("leaf7", "swp1"), ("dpu-17", "p0hpf"))
    assert (leaf["status"], leaf["observed"]) == ("deviation", "leaf7 swp1, dpu-17 p0hpf")
    assert leaf["cause"].startswith("ens1np0 receives LLDP of 2 switches, none of them leaf1")
    assert "Move" not in leaf["fix"]


def test_a_neighbor_that_names_its_port_by_a_mac_address_moves_no_cable():
    (leaf,) = hearing(("node2", "02:00:00:00:00:02"))
    assert leaf["status"] == "skipped"
    assert "names its port by a MAC address" in leaf["cause"]


def test_a_leaf_just_after_its_lldp_restarted():
    transient, named_port = ("leaf1", "02:00:00:00:00:ab"), ("leaf1", "Ethernet32")
    assert [check["status"] for check in hearing(transient, named_port, port="ethernet32")] == ["ok", "ok"]
    assert [check["status"] for check in hearing(transient, port="Ethernet32")] == ["ok", "skipped"]


@pytest.mark.parametrize(
    ("pattern", "name", "good"),
    [
        ("leaf1", "leaf1", True),
        ("leaf1", "leaf1.dc.example", True),
        ("leaf1", "leaf10", False),
        ("su?-leaf*", "su1-leaf12", True),
        ("leaf [1]", "leaf [1]", True),
        ("Leaf1", "leaf1", True),
        ("leaf1", "LEAF1.dc.example", True),
    ],
)
def test_names_may_be_patterns(pattern, name, good):
    assert named(pattern, name) is good


@pytest.fixture
def sysfs(tmp_path):
    for name, more in {
        "ens1np0": {},
        "ens1np0.7": {"lower_ens1np0": ""},
        "ib0": {"type": "32"},
        "ens3": {"carrier": "0"},
    }.items():
        for key, text in {"type": "1", "carrier": "1", **more}.items():
            put(tmp_path, f"sys/class/net/{name}/{key}", text)
    return Sysfs(str(tmp_path))


def looked(sysfs, *interfaces, run=lambda _argv: (0, RECORDED, "")):
    rails = [{"name": f"rail{number}", "interface": name} for number, name in enumerate(interfaces, 1)]
    cables = {rail["name"]: {"leaf": "leaf1", "port": None} for rail in rails}
    with pytest.MonkeyPatch.context() as host:
        host.setattr(cabling_host, "run_program", run)
        checks, _facts = check_cables(rails, {"sysfs": sysfs, "cables": cables})
    return [check for check in checks if check["id"] == "cable_leaf"]


def test_a_vlan_rails_cable_is_its_ports(sysfs):
    assert looked(sysfs, "ens1np0.7")[0]["status"] == "ok"


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ((127, "", ""), "lldpd is not installed."),
        ((1, "", "x [WARN] unable to connect to socket /run/lldpd.socket"), "unable to connect"),
        ((0, "nonsense", ""), "not understood"),
        ((0, '{"lldp": [{}]}', ""), "firmware keeps the frames"),
    ],
)
def test_not_seen_says_why(sysfs, answer, word):
    checks = looked(sysfs, "ens1np0", run=lambda _argv: answer)
    assert checks[0]["status"] == "skipped"
    assert word in checks[0]["cause"]
    assert ("apt install lldpd" in checks[0]["fix"]) == (answer[1:] != ('{"lldp": [{}]}', ""))


def test_rails_that_cannot_be_seen(sysfs):
    checks = looked(sysfs, "ib0", "ens3", "ens9")
    assert {check["status"] for check in checks} == {"skipped"}
    for index, word in enumerate(("InfiniBand has no LLDP", "no carrier", "no such interface")):
        assert word in checks[index]["cause"]

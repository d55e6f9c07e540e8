# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorded machines of fixtures/sysfs go through the door of records: recorded, replayed, and the same."""

from __future__ import annotations

import os
import struct

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._card.pci import read_pci
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._gpudirect.run import read_acs
from ansible_collections.railops.rdma.plugins.module_utils._rdma import verbs
from ansible_collections.railops.rdma.plugins.module_utils._rdma.checks import check_rails
from ansible_collections.railops.rdma.plugins.module_utils._rdma.info import read_info
from ansible_collections.railops.rdma.plugins.module_utils._record import run as record
from ansible_collections.railops.rdma.plugins.module_utils._record.links import DUMPS, scrubbed
from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub
from ansible_collections.railops.rdma.plugins.module_utils._route import netlink as nl
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.played_host import PlayedHost
from ansible_collections.railops.rdma.tests.unit.replay import Replay, names_of, stood_in

RAIL = {"name": "rail1", "interface": "ens1np0", "mtu": 1500}


def facts(sysfs, bits_of):
    """Return what rdma_info and gpudirect read of a machine, and the verdict on a rail."""
    info = read_info(sysfs, gids=True, part_numbers=True)
    tree = read_pci(sysfs)
    acs = {item.address: bits_of(item.address) for item in tree.functions.values() if item.class_code == 0x0604}
    gpus = [[gpu.address, gpu.vendor, gpu.numa_node, list(gpu.path)] for gpu in tree.gpus]
    return stood_in({"info": info, "acs": acs, "gpus": gpus, "checks": check_rails(info, [RAIL], "roce", {})}, str)


@pytest.mark.parametrize(
    ("name", "fault"), [*((name, "") for name in machines.MACHINES), ("one-switch-each", "state"), ("cascaded", "acs")]
)
def test_recorded_and_replayed_a_machine_is_the_same(name, fault, tmp_path, monkeypatch):
    root = machines.lay_out(name, tmp_path / "box")
    bits = {name: number % 2 * 0x1D for number, name in enumerate(sorted(os.listdir(root / "sys/bus/pci/devices")))}

    def execute(argv, text):
        if argv[0] != "setpci":
            return None
        has = fault == "acs" and bits[argv[2]]
        said = (
            {"rc": 0, "out": "001d\n", "err": ""} if has else {"rc": 1, "out": "", "err": "Capability 000d not found"}
        )
        return {"argv": argv, "stdin": text, **said}

    if fault == "state":
        device = sorted((root / "sys/class/infiniband").iterdir())[0]
        (device / "ports/1/state").write_text("1: DOWN\n", encoding="utf-8")
    recorder = record.Recorder(Sysfs(str(root)), execute, "key")
    live = facts(Sysfs(str(root)), lambda address: (bits[address] or None) if fault == "acs" else None)
    (tmp_path / "replay").mkdir()
    replay = Replay(recorder.record(), tmp_path / "replay")
    replay.play(monkeypatch)
    played = facts(Sysfs(), lambda address: read_acs(PlayedHost(), address) if fault == "acs" else None)
    assert played == stood_in(live, recorder.scrub.text)
    assert replay.lacks == []
    assert any(live["acs"].values()) is (fault == "acs" and bool(live["acs"]))


@pytest.mark.parametrize("there", [True, False])
def test_what_devices_say_of_themselves_is_replayed(there, tmp_path, monkeypatch):
    said = {"acme-roce": {"ports": {1: {"active_mtu": 2048, "max_mtu": 4096}}}}
    machines.put(tmp_path / "box", "sys/class/infiniband/acme-roce/fw_ver", "28.39.1002\n")
    with monkeypatch.context() as host:
        host.setattr(verbs, "PYVERBS_ERROR", None if there else "ImportError")
        host.setattr(verbs, "read", lambda: (said if there else {}, []))
        recorder = record.Recorder(Sysfs(str(tmp_path / "box")), lambda _argv, _text: None, "key")
        archive = recorder.record()
    assert "acme" not in str(archive)
    (tmp_path / "replay").mkdir()
    Replay(archive, tmp_path / "replay").play(monkeypatch)
    expected = stood_in(said, recorder.scrub.text) if there else {}
    assert (verbs.read(), bool(verbs.PYVERBS_ERROR)) == ((expected, [] if there else [verbs.MISSING]), not there)


def test_a_links_message_keeps_names_and_loses_hardware_addresses():
    mac, name, other = bytes.fromhex("946daeaabbcc"), b"ens1np0\0", b"rail1-node1\0"
    rows = [(nl.IFLA_IFNAME, name), (1, mac), (nl.IFLA_MTU, struct.pack("=I", 9000)), (54, mac)]
    rows.append((0x8000 | 52, nl.attribute(nl.IFLA_ALT_IFNAME, other) + nl.attribute(nl.IFLA_ALT_IFNAME, b"x\0")))
    tunnel = nl.attribute(nl.IFLA_INFO_KIND, b"vxlan\0") + nl.attribute(2, b"\x0a\x01\x02\x03" * 9)
    rows.append((nl.IFLA_LINKINFO, tunnel))
    body = bytes(nl.LINK_HEAD.size) + b"".join(nl.attribute(number, value) for number, value in rows)
    scrub = Scrub("key", ["node1"])
    done = scrubbed("link", body, scrub)
    assert names_of(done) == ["ens1np0", f"rail1-{scrub.name('node1')}", scrub.name("x")]
    assert [left for left in (mac, b"\x0a\x01\x02\x03", b"node1") if left in done] == []
    assert struct.pack("=I", 9000) in done


def test_next_hops_and_a_gateway_of_the_other_family_have_stand_ins():
    hop = nl.attribute(5, bytes([10, 1, 2, 3]))
    hops = struct.pack("=HBBi", 8 + len(hop), 0, 0, 4) + hop
    via = struct.pack("=H", 10) + bytes.fromhex("20010db8000000000000000000000001")
    rows = [(1, bytes([10, 1, 0, 0])), (9, hops), (18, via), (15, struct.pack("=I", 1001))]
    body = bytes([2, 16]) + bytes(10) + b"".join(nl.attribute(number, value) for number, value in rows)
    done = scrubbed("route", body, Scrub("key"))
    have = nl.attributes(done, 12)
    assert (have[1][0], have[1][2:], len(have[9]), have[15]) == (10, bytes(2), len(hops), struct.pack("=I", 1001))
    assert [left for left in (bytes([10, 1, 2, 3]), via[2:]) if left in done] == []
    assert have[9][:8] == hops[:8]


def test_the_ends_of_a_tunnel_and_a_persons_words_do_not_get_in():
    end = bytes([203, 0, 113, 7])
    rows = [(nl.IFLA_IFNAME, b"gre9\0"), (1, end), (2, end), (54, end), (20, b"to Acme Munich\0")]
    body = bytes(nl.LINK_HEAD.size) + b"".join(nl.attribute(number, value) for number, value in rows)
    done = scrubbed("link", body, Scrub("key"))
    assert names_of(done) == ["gre9"]
    assert [left for left in (end, b"Acme", b"Munich") if left in done] == []


@pytest.mark.parametrize("kind", ["link", "address", "route", "rule"])
@pytest.mark.parametrize("size", [0, 1, 3, 5, 7, 15, 17])
def test_attributes_of_odd_lengths_are_left_out(kind, size):
    numbers = [1, 2, 4, 5, 7, 9, 18, 20, 52, 53, 54]
    body = bytes(DUMPS[kind][1]) + b"".join(nl.attribute(number, bytes(range(65, 65 + size))) for number in numbers)
    assert isinstance(scrubbed(kind, body, Scrub("key")), bytes)

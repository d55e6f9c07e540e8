# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import socket
import struct

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._probe.duplicates import check_duplicates
from ansible_collections.railops.rdma.plugins.module_utils._probe.duplicates_plan import (
    AddressQuery,
    AddressReply,
    arp_probe,
    duplicate_checks,
    read_frame,
    solicitation,
)
from ansible_collections.railops.rdma.tests.unit.machines import put

OWN, GATE, OTHER, THIRD = (f"00:00:5e:00:53:0{number}" for number in range(1, 5))


def advertisement(mac, target, flags, *, option=True):
    body = struct.pack(">BBHB3x", 136, 0, 0, flags) + socket.inet_pton(socket.AF_INET6, target)
    body += b"\2\1" + bytes.fromhex(mac.replace(":", "")) if option else b""
    head = bytes.fromhex(OWN.replace(":", "") + mac.replace(":", "")) + b"\x86\xdd"
    return head + struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + bytes(32) + body


def judged(heard, *, six=False, gateway=True, **more):
    address, gate = ("fd00::2", "fd00::1") if six else ("192.0.2.2", "192.0.2.1")
    question = AddressQuery("rail1", "ens1np0", address, OWN, gate if gateway else "", **more)
    answers = [AddressReply(gate if at == "gate" else address, mac, override) for at, mac, override in heard]
    (check,) = duplicate_checks([question], {"rail1": answers}, {OWN, THIRD})
    return check


def test_a_probe_announces_no_address():
    frame = arp_probe(OWN, "192.0.2.2")
    assert len(frame) == 60
    assert frame[:6] == b"\xff" * 6
    assert frame[20:22] == b"\0\1"  # a request
    assert frame[28:32] == bytes(4)
    assert frame[38:42] == socket.inet_aton("192.0.2.2")


def test_a_solicitation_is_no_duplicate_address_detection():
    frame = solicitation(OWN, "fe80::1", "fd00::1:2:3")
    assert frame[:6].hex(":") == "33:33:ff:02:00:03"
    assert frame[22:38] == socket.inet_pton(socket.AF_INET6, "fe80::1")
    assert frame[21] == 255
    # The pseudo header and the message with its checksum sum up to all ones (RFC 1071).
    data = frame[22:54] + struct.pack(">II", len(frame) - 54, 58) + frame[54:]
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF


def test_answers_are_read_and_other_frames_are_not():
    assert read_frame(advertisement(OTHER, "fd00::2", 0x60)) == AddressReply("fd00::2", OTHER, True)
    assert read_frame(advertisement(GATE, "fd00::2", 0xC0)) == AddressReply("fd00::2", GATE, False)
    assert read_frame(advertisement(OTHER, "fd00::2", 0x60, option=False)) == AddressReply("fd00::2", OTHER, True)
    assert read_frame(solicitation(OTHER, "fe80::1", "fd00::2")) is None
    assert read_frame(b"") is None
    assert read_frame(bytes(12) + b"\x08\x06" + bytes(8)) is None
    # A request of the holder is as good as its reply.
    request = arp_probe(OTHER, "192.0.2.9")
    claimed = request[:28] + socket.inet_aton("192.0.2.2") + request[32:]
    assert read_frame(claimed) == AddressReply("192.0.2.2", OTHER)


def test_answering_mac_addresses():
    assert judged([])["status"] == "ok"
    assert judged([("own", OWN, True), ("own", THIRD, True), ("gate", GATE, True)])["status"] == "ok"
    found = judged([("own", OTHER, True), ("gate", GATE, True)])
    assert (found["status"], found["observed"]) == ("deviation", OTHER)
    assert judged([("own", OTHER, True)], gateway=False)["status"] == "deviation"
    both = judged([("own", GATE, True), ("gate", GATE, True), ("own", OTHER, True)])
    assert (both["status"], both["observed"]) == ("deviation", OTHER)


def test_two_who_answer_for_the_gateway_are_named():
    for six in (False, True):
        found = judged([("gate", GATE, True), ("gate", OTHER, True)], six=six)
        assert (found["status"], found["observed"]) == ("deviation", " and ".join(sorted((GATE, OTHER))))
        assert "both answer for the gateway" in found["cause"]
    # An anycast gateway does not claim to be the only one; this host's own ports are reported elsewhere.
    assert judged([("gate", GATE, False), ("gate", OTHER, False)], six=True)["status"] == "ok"
    assert judged([("gate", GATE, True), ("gate", OWN, True)])["status"] == "ok"


def test_the_gateway_is_named_as_gateway_or_proxy():
    four = judged([("own", GATE, True), ("gate", GATE, True)])
    assert four["status"] == "warning"
    assert "EVPN leaf" in four["cause"]
    six = judged([("own", GATE, True), ("gate", GATE, True)], six=True)
    assert six["status"] == "deviation"
    proxy = judged([("own", GATE, False), ("gate", GATE, True)], six=True)
    assert (proxy["status"], "a proxy." in proxy["cause"]) == ("warning", True)


def test_a_pod_of_this_host_and_the_kernels_verdict_come_first():
    assert "of this host too" in judged([], inside=("ens1np0.7",))["cause"]
    assert judged([], six=True, refused=True)["status"] == "deviation"
    assert judged([], silent="no carrier")["status"] == "skipped"


def test_a_pods_gid_with_the_address_is_found_without_a_socket(tmp_path):
    port = "sys/class/infiniband/mlx5_0/ports/1"
    for name, text in {"address": OWN, "type": "1", "carrier": "0"}.items():
        put(tmp_path, f"sys/class/net/ens1np0/{name}", f"{text}\n")
    for index, owner in (("0", "ens1np0"), ("1", "net1")):
        put(tmp_path, f"{port}/gids/{index}", "0000:0000:0000:0000:0000:ffff:c000:0202\n")
        put(tmp_path, f"{port}/gid_attrs/types/{index}", "RoCE v2\n")
        put(tmp_path, f"{port}/gid_attrs/ndevs/{index}", f"{owner}\n")
    rail = {"name": "rail1", "interface": "ens1np0", "addresses": [{"address": "192.0.2.2", "gateway": None}]}
    (check,), facts = check_duplicates([rail], {"sysfs": Sysfs(str(tmp_path))})
    assert (check["status"], check["observed"]) == ("deviation", "an RDMA GID on net1")
    assert facts == {"macs": {"rail1": OWN}}
    (tmp_path / port / "gids/1").unlink()
    (check,), _facts = check_duplicates([rail], {"sysfs": Sysfs(str(tmp_path))})
    assert (check["status"], check["cause"]) == ("skipped", "Not queried: the interface has no carrier.")

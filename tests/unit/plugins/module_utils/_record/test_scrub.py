# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins are the same everywhere, keep what modules compare, and the search for real values knows no patterns."""

from __future__ import annotations

import ipaddress
import json
import random

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub, leaks, real_of

MAC, GUID, LINK_LOCAL = "94:6d:ae:aa:bb:cc", "946d:ae03:00aa:bbcc", "fe80::966d:aeff:feaa:bbcc"


def scrubbed(*texts, **more):
    scrub = Scrub("key", **more)
    return [scrub.text(text) for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        *("0000:15:00.0", "12:30:45", "28.39.1002", "MLNX_OFED-24.10-0.7.0.0", "::", "::1", "ff02::1", "127.0.0.1/8"),
        *("240.0.0.1", "3fff:ffff::1", "0.0.0.0/1", "128.0.0.0/1", "255.255.255.0", "123456789012"),
        *("01:80:c2:00:00:0e", "00:00:00:00:00:00", "10.0.0.0/8", "fe80::/10", "6.8.0-45-generic"),
        # Versions, masks and PCI addresses, also where somebody is called like a part of one.
        *("MLNX_OFED-23.10-1.1.9.0", "0xffffffffffff0000", "0x00000000ffffffff", "0x0000000000000000"),
        *("0000:c1:00.0", "pci-0000:c1:00.0"),
    ],
)
def test_what_tells_nobody_stays(text):
    assert scrubbed(text, names=["node1", "c1"]) == [text]


def test_one_card_has_one_stand_in_in_every_spelling():
    spelled = [MAC, MAC.upper().replace(":", "-"), "946d.aeaa.bbcc", "946daeaabbcc", "enx946daeaabbcc"]
    mac, *others = scrubbed(*spelled)
    digits = mac.replace(":", "")
    assert mac != MAC
    dotted = f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"
    assert others == [mac.upper().replace(":", "-"), dotted, digits, f"enx{digits}"]


def test_guids_and_link_local_addresses_follow_the_mac_address():
    mac, guid, number, link_local, gid, ipoib = scrubbed(
        *(MAC, GUID, "0x946dae0300aabbcc", LINK_LOCAL, f"fe80:0000:0000:0000:{GUID}"),
        "00:00:10:49:fe:80:00:00:00:00:00:00:94:6d:ae:03:00:aa:bb:cc",
    )
    data = bytes.fromhex(mac.replace(":", ""))
    assert bytes.fromhex(guid.replace(":", "")) == data[:3] + b"\x03\x00" + data[3:]
    assert number == "0x" + guid.replace(":", "")
    eui = bytes([data[0] ^ 2]) + data[1:3] + b"\xff\xfe" + data[3:]
    assert ipaddress.ip_address(link_local).packed == bytes.fromhex("fe80000000000000") + eui
    assert gid == f"fe80:0000:0000:0000:{guid}"
    assert ipoib.replace(":", "").endswith(guid.replace(":", ""))


def test_common_prefixes_stay_common_and_networks_stay_networks():
    random.seed(30)
    scrub = Scrub("key")
    pool = [ipaddress.ip_address(random.getrandbits(32)) for _number in range(60)]
    pool += [ipaddress.ip_address(0x0A000000 | random.getrandbits(12)) for _number in range(60)]
    pool += [ipaddress.ip_address((0x20010DB8 << 96) | random.getrandbits(16) << 64 | 5) for _number in range(60)]
    pool = [item for item in pool if scrub.address(str(item)) != str(item)]
    done = {item: ipaddress.ip_address(scrub.address(str(item))) for item in pool}

    def common(one, other):
        return one.max_prefixlen - (int(one) ^ int(other)).bit_length()

    for one in pool:
        for other in pool:
            if one.version == other.version:
                assert common(one, other) == common(done[one], done[other]), (one, other)
    host, net, wide, rule = scrubbed("10.1.2.3/24", "10.1.2.0/24", "10.1.0.0/16", '"src":"10.1.0.0","srclen":16')
    assert ipaddress.ip_interface(host).network == ipaddress.ip_network(net)
    assert ipaddress.ip_network(net).subnet_of(ipaddress.ip_network(wide))
    assert rule == f'"src":"{wide[:-3]}","srclen":16'
    assert scrubbed("::ffff:0a01:0203")[0] == str(ipaddress.ip_address(f"::ffff:{host[:-3]}"))


def test_names_and_serials_and_ids():
    names = {"names": ["node1", "alice"], "serials": ["MT2345X00012"]}
    line = "alice@node1-ib: SN MT2345X00012, Serial Number: AB12-77, 12345678-1234-4678-9234-123456789abc, node10"
    (text,) = scrubbed(line, **names)
    assert "node10" in text
    assert [word for word in ("alice", "node1-", "MT2345", "AB12", "1234-4678") if word in text] == []
    assert text.count("-ib") == 1


def test_another_key_draws_others():
    assert Scrub("one").text(MAC) != Scrub("two").text(MAC)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("mac", text) for text in ("946DAEAABBCC", "mac=94-6d-ae-aa-bb-cc.", "946d.aeaa.bbcc", "enx946daeaabbcc")),
        ("mac", "0x946daeaabbcc,"),
        # The ends of a tunnel, as its hardware address.
        *(("address", text) for text in ("0a:01:02:03", "20:01:0d:b8:00:00:00:00:00:00:00:00:00:00:00:01")),
    ],
)
def test_a_real_value_is_found_however_it_is_written(kind, text):
    real = {"mac": {MAC}, "address": {"10.1.2.3", "2001:db8::1"}}
    assert leaks(real_of(real, Scrub("key")), [("a file", text)]) == [f"{kind} in a file"]


def test_places_are_named_and_values_are_not():
    scrub = Scrub("key", ["node1"])
    scrub.text(f"{MAC} node1 10.1.2.3")
    found = leaks(real_of({}, scrub), [("/etc/hosts", "10.1.2.3 node1"), ("/sys/a", "nothing")])
    assert sorted(found) == ["address in /etc/hosts", "name in /etc/hosts"]


@pytest.mark.parametrize(
    "text",
    [
        "wlx946daeaabbcc",
        "ibx946daeaabbcc",
        "rocex946daeaabbcc",
        "94:6d:ae:aa:bb:cc: seen",
        "946DAEAABBCC",
        "0x946daeaabbcc",
        "946dae0300aabbcc",
        "v203.0.113.77",
        "c1",
        "jo@n1",
    ],
)
def test_spellings_that_passed(text):
    """Those that the review of 2026-11-24 wrote."""
    names = ["c1", "jo", "n1"]
    (done,) = scrubbed(text, names=names)
    assert [word for word in ("946dae", "aabbcc", "203.0.113", "jo@", "@n1") if word in done.lower()] == []
    assert done != text


@pytest.mark.parametrize("name", ["debian", "max", "dev", "metric", "link", "host", "azure", "state", "address"])
def test_people_who_are_called_like_our_own_words_destroy_nothing(name):
    """Neither is such a name replaced, nor is a record refused for it."""
    text = f'ID={name} /sys/class/net/{name} {{"{name}": 9000}} 6.8.0-1012-{name}'
    scrub = Scrub("key", [name])
    assert scrub.text(text) == text
    assert leaks(real_of({"name": {name}}, scrub), [("a file", text)]) == []


def test_a_kernels_release_has_stand_ins_like_its_folder():
    scrub = Scrub("key", ["acme"])
    release = scrub.label("6.8.0-45-acme")
    assert "acme" not in release
    assert scrub.label("/lib/modules/6.8.0-45-acme/modules.dep") == f"/lib/modules/{release}/modules.dep"
    assert scrub.label("6.8.0-1012-azure") == "6.8.0-1012-azure"


def test_broadcasts_and_ranges_fit():
    scrub = Scrub("key")
    (link,) = json.loads("[{" + scrub.text('"local":"10.1.2.3","prefixlen":16,"broadcast":"10.1.255.255"') + "}]")
    net = ipaddress.ip_interface(f"{link['local']}/16").network
    assert str(net.broadcast_address) == link["broadcast"] != "10.1.255.255"
    assert scrub.address("10.1.255.255", 16) == link["broadcast"]
    for seed in range(20):
        first, last = map(ipaddress.ip_address, Scrub(str(seed)).text("10.1.2.3-10.1.7.200").split("-"))
        assert first < last


def test_an_id_has_one_stand_in_with_and_without_dashes():
    dashes, none = scrubbed("12345678-1234-4678-9234-123456789abc", "12345678123446789234123456789abc")
    assert dashes.replace("-", "") == none


@pytest.mark.parametrize("text", ["999.1.1.1-10.1.2.3", "10.1.2.3-10.1.2.999", "1.2.3.400-5.6.7.800"])
def test_what_only_looks_like_a_range_ends_nothing(text):
    (done,) = scrubbed(text)
    assert "10.1.2.3" not in done.split("-")
    assert [word for word in text.split("-") if "99" in word or "00" in word] == [
        w for w in done.split("-") if w in text
    ]


def test_what_only_looks_like_a_broadcast_ends_nothing():
    (done,) = scrubbed('"local":"10.1.2.3","prefixlen":24,"broadcast":"10.1.2.999"')
    assert "10.1.2." not in done

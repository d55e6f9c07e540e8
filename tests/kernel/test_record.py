# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host in a namespace is recorded and replayed: modules read the same of both, and an audit judges both alike."""

from __future__ import annotations

import ipaddress
import json
import re

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._record import run as record
from ansible_collections.railops.rdma.plugins.modules import gpudirect, rail_audit, rdma_info, roce_qos
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, call_module, inside, own_sysfs, want_of
from ansible_collections.railops.rdma.tests.unit.replay import Replay, stood_in

KEY, NAMES = "key", ["node1", "leaf1"]
GROUPS = ["mode", "network", "persist", "cabling", "qos", "gpudirect", "devices", "counters"]
# What goes on between two looks, and what only a run adds.
MOVING = ("invocation", "health", "diff", "warnings")


def audit_of(want):
    settings = {"rdma_host": {"naming": "none"}, "cabling": {}}
    return {**want, "checks": GROUPS, "settings": settings}


def looks(want):
    """Return what modules and an audit return here, by name."""
    answers = {
        "rdma_info": call_module(rdma_info, {"rails": [], "network": "roce"}),
        "gpudirect": call_module(gpudirect, {}, check=True),
        "roce_qos": call_module(roce_qos, {"interfaces": ["ens1np0"]}, check=True),
        "audit": call_module(rail_audit, audit_of(want), diff=False),
    }
    return {name: settled(answer) for name, answer in answers.items()}


def settled(answer):
    if isinstance(answer, dict):
        return {key: settled(item) for key, item in answer.items() if key not in MOVING}
    return [settled(item) for item in answer] if isinstance(answer, list) else answer


def recorded(want):
    """Record this namespace; return the record, and by its stand-ins what modules return here and what is wanted."""
    own_sysfs()
    recorder = record.Recorder(Sysfs(), record.execute, KEY, NAMES)
    archive, text = recorder.record(), recorder.scrub.text
    return archive, stood_in(looks(want), text), stood_in(want, text)


def fault(host, kind):
    if kind == "address":
        host.ip("address", "flush", "dev", "ens1np0", "scope", "global")
    elif kind == "rule":
        host.ip("rule", "del", "priority", host.ip("rule").split("\n")[1].split(":")[0])
    elif kind == "mtu":
        host.ip("link", "set", "ens2np0", "mtu", "1400")


@pytest.fixture(scope="module")
def fabric():
    with Fabric("record", 4, 2) as made:
        yield made


FOUND = {
    "": set(),
    "address": {"network_addresses", "network_routes", "network_stale"},
    "rule": {"network_rules"},
    "mtu": {"network_mtu"},
}


@pytest.mark.parametrize(("number", "kind"), list(enumerate(FOUND)))
def test_a_replayed_host_gives_the_same_facts_and_the_same_verdict(fabric, tmp_path, monkeypatch, number, kind):
    host, want = fabric.hosts[number], want_of(number, 2)
    host.apply(want)
    fault(host, kind)
    archive, expected, wanted = inside(host.name, lambda: recorded(want))
    replay = Replay(archive, tmp_path)
    with monkeypatch.context() as patched:
        replay.play(patched)
        played = looks(wanted)
    assert replay.lacks == []
    for name, answer in expected.items():
        assert played[name] == answer, name
    bad = {check["id"] for check in played["audit"]["checks"] if check["status"] == "deviation"}
    # The rest is what no role has set here.
    assert {name for name in bad if name.startswith("network_")} == FOUND[kind]


def test_no_address_of_the_host_is_in_its_record_in_any_form(fabric):
    host, want = fabric.hosts[0], want_of(0, 2)
    host.apply(want)
    archive, *_more = inside(host.name, lambda: recorded(want))
    text = json.dumps(archive)
    plain = {item["address"] for rail in want["rails"] for item in rail["addresses"]} | {"198.51.100.1"}
    macs = {link["address"] for link in json.loads(host.ip("-j", "link", "show")) if link["link_type"] == "ether"}
    for value in (*plain, *macs):
        assert not re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", text), value
    raw = [bytes.fromhex(row) for rows in archive["netlink"].values() for row in rows]
    packed = [ipaddress.ip_address(value).packed for value in plain]
    packed += [bytes.fromhex(value.replace(":", "")) for value in macs]
    assert [value for value in packed for row in raw if value in row] == []


def test_what_a_record_lacks_is_said(fabric, tmp_path, monkeypatch):
    host, want = fabric.hosts[0], want_of(0, 2)
    archive, *_more = inside(host.name, lambda: recorded(want))
    archive["commands"] = [ran for ran in archive["commands"] if "-6" not in ran["argv"]]
    replay = Replay(archive, tmp_path)
    with monkeypatch.context() as patched:
        replay.play(patched)
        result = call_module(rdma_info, {"rails": [], "network": "roce"})
        Sysfs().text("/proc/sys/net/core/somaxconn")
        Sysfs().text("/sys/class/net/ens1np0/threaded")
    assert "what carries this host's own network" in str(result["info"]["missing"])
    command, *files = replay.lacks[::-1]
    assert '"-6"' in command
    assert sorted(files) == ["/proc/sys/net/core/somaxconn", "/sys/class/net/ens1np0/threaded"]

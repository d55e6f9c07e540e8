# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest with systemd and soft-RoCE is recorded and replayed, sound and at fault: facts and verdict stay the same.

    lab.py up --name try --kind guests --nodes 1 --rails 2
    RAILOPS_LAB=try pytest tests/guests/test_record.py

Uses two rails of the lab's first host, which must have no addresses, and takes what it set away again.
"""

from __future__ import annotations

import functools
import json

import pytest
from guest import LAB, marks, module, shell

from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub
from ansible_collections.railops.rdma.plugins.modules import rail_audit, rdma_info
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import call_module, want_of
from ansible_collections.railops.rdma.tests.unit.replay import Replay, stood_in

HOST = "node1"
KEY, NAMES = "key", [HOST, "leaf1", "leaf2"]
WANT = want_of(5, 2)
ROUTES = {key: WANT[key] for key in ("rails", "rdma_prefixes", "sysctls", "policy", "network")}
GROUPS = ["mode", "network", "persist", "cabling", "qos", "gpudirect", "devices", "counters"]
AUDIT = {**WANT, "checks": GROUPS, "settings": {"rdma_host": {"naming": "none"}, "cabling": {}}}
FACTS = {"rails": [], "network": "roce"}
guest = functools.partial(shell, HOST)
on_host = functools.partial(module, HOST)
pytestmark = marks(LAB)


@pytest.fixture(scope="module", autouse=True)
def rails():
    mtu = guest("cat /sys/class/net/ens2np0/mtu")
    made = on_host("policy_route", **ROUTES)
    assert not made["failed"], made["msg"]
    yield
    guest(f"ip link set ens2np0 mtu {mtu}")
    on_host("policy_route", **ROUTES, state="absent")


FAULTS = {
    "": ("true", set()),
    "rule and mtu": (
        "ip rule del priority $(ip rule | sed -n 2s/:.*//p) && ip link set ens2np0 mtu 1400",
        {"network_rules", "network_mtu"},
    ),
}


def facts_of(answer, text=str):
    """Return what rdma_info tells; of what keeps lldpd from answering a record has no words."""
    info = answer["info"]
    return stood_in({**info, "missing": [why.partition(" (")[0] for why in info["missing"]]}, text)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_replayed_guest_gives_the_same_facts_and_the_same_verdict(tmp_path, monkeypatch, kind):
    command, expected = FAULTS[kind]
    guest(command)
    live, facts = on_host("rail_audit", **AUDIT), on_host("rdma_info", **FACTS)
    record = on_host("host_record_info", key=KEY, names=NAMES)["record"]
    text = Scrub(KEY, NAMES).text
    replay = Replay(record, tmp_path)
    with monkeypatch.context() as patched:
        replay.play(patched)
        played = call_module(rail_audit, stood_in(AUDIT, text), diff=False)
        told_of_it = call_module(rdma_info, FACTS)
    assert replay.lacks == []
    assert played["checks"] == stood_in(live["checks"], text)
    assert facts_of(told_of_it) == facts_of(facts, text)
    bad = {check["id"] for check in played["checks"] if check["status"] == "deviation"}
    assert {name for name in bad if name.startswith("network_")} == expected
    # Of what the guest says of itself nothing is in its record.
    said = json.dumps(record)
    real = guest("cat /sys/class/net/*/address; cat /etc/machine-id").split()
    assert [value for value in real if value.strip("0:") and value in said] == []

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is promised of plan.json: all of 1.x reads it, and refuses a lock with unknown parameters.

tests/unit/data/locks has a lock of each feature, and the addresses that each gives. They are read by every later
version: never replace one, and add one with each new key.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import lock_digest
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import address_text, range_text
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import lock as locks
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.blocks import build_blocks

LOCKS = Path(__file__).parents[3] / "data/locks"
ADDRESSES = json.loads((LOCKS / "addresses.json").read_text())
NEWER = "A newer version of railops.rdma wrote this; install that or newer. [plan_newer]"


def golden(name):
    return (LOCKS / f"{name}.json").read_text()


def addresses(lock):
    """What each node of a lock gets."""
    found = {name: [] for name, entry in lock.nodes.items() if not entry.retired}
    for block in build_blocks(lock.fabric):
        zone, rail = lock.fabric.zones[block.zone].name, lock.fabric.rails[block.rail].name
        for name, rows in found.items():
            slot = lock.nodes[name].slot
            if lock.nodes[name].zone != zone:
                continue
            gateway = block.gateway(slot)
            by = address_text(block.family, gateway) if gateway is not None else "none"
            pods = ",".join(range_text(block.family, span) for span in block.pods(slot)) or "none"
            host = address_text(block.family, block.host(slot))
            rows.append(f"{rail} {host} in {block.subnet(slot)} by {by} pods {pods}")
    return found


# --- what was written stays readable ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_lock_of_each_feature_gives_the_addresses_that_it_always_gave(name):
    assert addresses(locks.parse_lock(golden(name), "plan.json")) == ADDRESSES[name]


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_lock_is_written_as_it_was_read(name):
    text = golden(name)
    lock, data = locks.parse_lock(text, "plan.json"), json.loads(text)
    if name == "unfinished":
        assert locks.unfinished_lock(lock) == text
        return
    assert locks.write_lock(locks.freeze(lock.fabric), lock.nodes, data["files"]) == (text, data["digest"])


def test_there_is_a_lock_of_each_frozen_key():
    frozen = [json.loads(golden(name))["frozen"] for name in ADDRESSES]
    assert {key for one in frozen for key in one} == {
        *sum(locks.BY_MODE.values(), ()),
        *locks.USUAL,
        "attachment",
        "unfinished",
    }


# --- who does not know it whole refuses it ----------------------------------------------------------------------------


def frozen_with(change):
    """A lock that is whole, with its digest, of which one frozen thing is another."""
    data = json.loads(golden("zones"))
    change(data["frozen"])
    data["digest"] = lock_digest(data)
    return json.dumps(data)


UNKNOWN = [
    pytest.param(lambda frozen: frozen.update(planes=[{"name": "a"}]), id="planes"),
    pytest.param(lambda frozen: frozen["zones"][0].update(subnets={}), id="subnets-of-a-zone"),
    pytest.param(lambda frozen: frozen.update(switches=[]), id="switches"),
    pytest.param(lambda frozen: frozen.update(ipam="another"), id="ipam"),
    pytest.param(lambda frozen: frozen["rails"][1].update(members=[]), id="key-of-a-rail"),
    pytest.param(lambda frozen: frozen.update(mode="torus"), id="mode"),
    pytest.param(lambda frozen: frozen["gateway"].update(ipv4="middle"), id="gateway"),
    pytest.param(lambda frozen: frozen["gateway"].update(ipv8=1), id="family"),
    pytest.param(lambda frozen: frozen["gateway"].pop("ipv6"), id="no-gateway-of-a-family"),
    pytest.param(lambda frozen: frozen.update(gateway={"ipv4": [1], "ipv6": 1}), id="gateway-a-list"),
    pytest.param(lambda frozen: frozen["node_prefix"].update(ipv4=12.5), id="prefix"),
    pytest.param(lambda frozen: frozen.update(rail_prefix={"ipv4": 24}), id="key-of-another-mode"),
    pytest.param(lambda frozen: frozen.update(reserved=["172.16.0.0/33"]), id="reserved"),
    pytest.param(lambda frozen: frozen.update(pods_per_node={"ipv4": 3}), id="pods"),
    pytest.param(lambda frozen: frozen.update(zones=[]), id="no-zones"),
    pytest.param(lambda frozen: frozen.update(zones={"su1": {}}), id="zones-by-name"),
    pytest.param(lambda frozen: frozen.update(rails=["rail1"]), id="rails-by-name"),
    pytest.param(lambda frozen: frozen.pop("subnet_offset"), id="missing"),
]


@pytest.mark.parametrize("change", UNKNOWN)
def test_a_frozen_key_or_value_that_is_not_known_is_refused(change):
    text = frozen_with(change)
    with pytest.raises(InputError) as caught:
        locks.parse_lock(text, "plan.json")
    assert caught.value.problems[0].place.startswith("plan.json: frozen")
    assert {problem.fix for problem in caught.value.problems} == {NEWER}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts with a random life before us: what is not ours is there after a run, a boot and teardown, or was refused.

By the modules. Sometimes an earlier plan of ours is there too, with its files. What a run refuses by name, and that
check mode says the same, is known beforehand.
"""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route, rail_audit, rail_persist
from ansible_collections.railops.rdma.tests.kernel.existing_settings import RAILS, Life, Lived
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, want_of

PUSH, LONG = 20, 300
SEEDS = [seed if seed < PUSH else pytest.param(seed, marks=pytest.mark.long) for seed in range(LONG)]


def alike(host, module, params):
    """Return what a module did; check mode has said the same, and what is refused has changed nothing."""
    before = host.dump()
    said = host.module(module, params, check=True)
    assert host.dump() == before
    done = host.module(module, params)
    assert done.get("msg") == said.get("msg")
    assert done.get("diff") == said.get("diff")
    if done.get("failed"):
        assert host.dump() == before
    return done


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_not_ours_outlives_us_or_is_refused_by_name(own_files, seed):
    life = Life(seed, [f"172.17.{rail}.2/27" for rail in range(RAILS)], "eth0", "198.51.100.254")
    want = want_of(0, RAILS, policy=life.policy)
    keep = {"root": str(own_files), "manager": life.manager}
    with Fabric("lives", 1, RAILS) as fabric:
        host = fabric.hosts[0]
        lived = Lived(host, own_files, life)
        if life.earlier:
            old = want_of(4, RAILS, policy=life.draw.choice(["prefixes", "default_route"]))
            host.apply(old)
            assert not host.module(rail_persist, {**old, **keep}).get("failed")
            if life.draw.random() < 0.5:
                host.reboot()
        lived.live()
        settings = {"preflight": {"roles": ["rail_network"], "persist": False}}
        asked = host.module(rail_audit, {**want, "checks": ["preflight"], "settings": settings}, diff=False)
        # An earlier plan's addresses are a reason to ask, which policy_route does not.
        stops = any(check["status"] == "deviation" for check in asked["checks"])
        assert life.earlier or (stops, asked["errors"]) == (bool(life.named), []), (
            life.lines,
            life.named,
            asked,
        )
        done = alike(host, policy_route, want)
        assert bool(done.get("failed")) == bool(life.named), (life.lines, life.named, done)
        assert [what for what in life.named if what not in done["msg"]] == []
        if not life.named:
            lived.keeps()
            assert not host.apply(want)["changed"]
            kept = alike(host, rail_persist, {**want, **keep})
            assert bool(kept.get("failed")) == bool(life.lost), (life.files, life.lost, kept)
            assert [what for what in life.lost if what not in kept["msg"]] == []
            if not life.lost:
                host.reboot()
                assert not host.apply(want)["changed"]
            lived.keeps()
        absent = {**want, "state": "absent"}
        assert not alike(host, policy_route, absent).get("failed")
        assert not alike(host, rail_persist, {**absent, **keep}).get("failed")
        lived.keeps_afterwards(refused=life.named)

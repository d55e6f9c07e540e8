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
from ansible_collections.railops.rdma.tests.kernel.existing_settings import RAILS, ExistingSettings, HostWithSettings
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, options

PUSH, LONG = 20, 300
SEEDS = [seed if seed < PUSH else pytest.param(seed, marks=pytest.mark.long) for seed in range(LONG)]


def alike(host, module, params):
    """Return what a module did; check mode has said the same, and what is refused has changed nothing."""
    before = host.dump()
    predicted = host.module(module, params, check=True)
    assert host.dump() == before
    done = host.module(module, params)
    assert done.get("msg") == predicted.get("msg")
    assert done.get("diff") == predicted.get("diff")
    if done.get("failed"):
        assert host.dump() == before
    return done


@pytest.mark.parametrize("seed", SEEDS)
def test_existing_settings_survive_or_are_refused(own_files, seed):
    existing = ExistingSettings(seed, [f"172.17.{rail}.2/27" for rail in range(RAILS)], "eth0", "198.51.100.254")
    want = options(0, RAILS, policy=existing.policy)
    keep = {"root": str(own_files), "manager": existing.manager}
    with Fabric("lives", 1, RAILS) as fabric:
        host = fabric.hosts[0]
        lived = HostWithSettings(host, own_files, existing)
        if existing.earlier:
            old = options(4, RAILS, policy=existing.draw.choice(["prefixes", "default_route"]))
            host.apply(old)
            assert not host.module(rail_persist, {**old, **keep}).get("failed")
            if existing.draw.random() < 0.5:
                host.reboot()
        lived.live()
        settings = {"preflight": {"roles": ["rail_network"], "persist": False}}
        audit = host.module(rail_audit, {**want, "checks": ["preflight"], "settings": settings}, diff=False)
        # An earlier plan's addresses are a reason to ask, which policy_route does not.
        stops = any(check["status"] == "deviation" for check in audit["checks"])
        assert existing.earlier or (stops, audit["errors"]) == (bool(existing.named), []), (
            existing.lines,
            existing.named,
            audit,
        )
        done = alike(host, policy_route, want)
        assert bool(done.get("failed")) == bool(existing.named), (existing.lines, existing.named, done)
        assert [what for what in existing.named if what not in done["msg"]] == []
        if not existing.named:
            lived.keeps()
            assert not host.apply(want)["changed"]
            kept = alike(host, rail_persist, {**want, **keep})
            assert bool(kept.get("failed")) == bool(existing.lost), (existing.files, existing.lost, kept)
            assert [what for what in existing.lost if what not in kept["msg"]] == []
            if not existing.lost:
                host.reboot()
                assert not host.apply(want)["changed"]
            lived.keeps()
        absent = {**want, "state": "absent"}
        assert not alike(host, policy_route, absent).get("failed")
        assert not alike(host, rail_persist, {**absent, **keep}).get("failed")
        lived.keeps_afterwards(refused=existing.named)

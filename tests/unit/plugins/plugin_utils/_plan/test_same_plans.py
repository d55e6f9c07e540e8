# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans that are in use stay as they are: digests of what version 0.1.0 made, byte for byte.

tests/unit/data/plans.yml has, for each sample, the sha256 of the paths and texts of FILES in their order. A digest
that changes here is a fleet whose hosts, pools or switches change: never replace one without a reason in the changelog.
"""

from __future__ import annotations

import hashlib

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import KEEP_POOL
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import HOST_PLAN_SCHEMA, digest_of
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.lock import freeze
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import render
from ansible_collections.railops.rdma.tests.unit.fabric_samples import CHECKOUT, SAMPLES, plan_of

KNOWN = yaml.safe_load((CHECKOUT / "tests/unit/data/plans.yml").read_text(encoding="utf-8"))
FILES = (
    "cluster/ippools.yaml",
    "cluster/multusconfigs.yaml",
    "cluster/reservedips.yaml",
    "cluster/sriovpolicies.yaml",
    "hosts/",
    "switch/gateways.csv",
    "switch/prefixes.csv",
)


@pytest.mark.parametrize("name", KNOWN)
def test_a_plan_in_use_stays_the_same(name):
    raw, nodes = SAMPLES[name]
    made = plan_of(raw, nodes)
    attachment, mode = made.fabric.attachment, made.fabric.attached.rdma_mode
    files = render(made)
    text = "".join(f"{path}\n{files[path]}" for path in sorted(files) if path.startswith(FILES))
    # Schema 1 of host plans named the attachment, not the mode that follows from it: nothing else is different.
    text = text.replace(f'"schema": {HOST_PLAN_SCHEMA},', '"schema": 1,')
    # Pools got annotations for those who prune; their specs are the same.
    kept = "".join(f"    {key}: {value}\n" for key, value in KEEP_POOL.items())
    text = text.replace(f"  annotations:\n{kept}", "")
    # Before `format` plan.json had one gateway for all families.
    frozen = freeze(made.fabric)
    digest = digest_of({**frozen, "gateway": made.fabric.gateway[4]})
    text = text.replace(digest_of(frozen), digest)
    text = text.replace(f'"rdma_mode": "{mode}",', f'"attachment": "{attachment}",')
    assert hashlib.sha256(text.encode()).hexdigest() == KNOWN[name]

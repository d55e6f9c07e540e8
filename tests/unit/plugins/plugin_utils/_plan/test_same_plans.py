# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans that are in use stay as they are: digests of each file, byte for byte.

tests/unit/data/plans.yml has, for each sample, the sha256 of the paths and texts of FILES in their order. A digest
that changes here is a fleet whose hosts, pools or switches change: never replace one without a reason in the changelog.
"""

from __future__ import annotations

import hashlib

import pytest
import yaml

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
    files = render(made)
    text = "".join(f"{path}\n{files[path]}" for path in sorted(files) if path.startswith(FILES))
    assert hashlib.sha256(text.encode()).hexdigest() == KNOWN[name]

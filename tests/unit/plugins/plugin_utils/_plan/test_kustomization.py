# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `kubectl apply -k`, Argo CD and Flux take: the folder `cluster/` by its kustomization.yaml."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import CIDR_POOL, POOL
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import KUSTOMIZATION
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.objects import render_cluster
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, plan_of

# The playbook `site` applies SR-IOV policies one node at a time.
NO_OBJECTS = {"values.yaml", "sriovpolicies.yaml", KUSTOMIZATION}
PRUNE = {"argocd.argoproj.io/sync-options": "Prune=false", "kustomize.toolkit.fluxcd.io/prune": "disabled"}


def planned(files):
    """Return the objects of all manifests, by file."""
    manifests = {name: text for name, text in files.items() if name.endswith(".yaml") and name not in NO_OBJECTS}
    return {name: [obj for obj in yaml.safe_load_all(text) if obj] for name, text in manifests.items()}


@pytest.mark.parametrize("sample", SAMPLES)
def test_it_names_the_manifests_and_nothing_else(sample):
    files = render_cluster(plan_of(*SAMPLES[sample]))
    document = yaml.safe_load(files[KUSTOMIZATION])
    assert document.keys() == {"apiVersion", "kind", "resources"}
    objects = planned(files)
    assert sorted(document["resources"]) == sorted(name for name, found in objects.items() if found)


@pytest.mark.parametrize("sample", SAMPLES)
def test_pruning_keeps_the_pools(sample):
    """Neither Argo CD nor Flux knows a pool in use; what holds no address may go with them."""
    objects = [obj for found in planned(render_cluster(plan_of(*SAMPLES[sample]))).values() for obj in found]
    kept = {obj["kind"] for obj in objects if PRUNE.items() <= obj["metadata"].get("annotations", {}).items()}
    pools = {obj["kind"] for obj in objects} & {POOL, CIDR_POOL}
    assert kept == pools
    assert all(obj["metadata"]["annotations"] == PRUNE for obj in objects if obj["kind"] in pools)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CRDs go with a release, and which the chart's own hook must not take along."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.components import (
    DEVICE_PLUGIN,
    SPIDERPOOL,
    SRIOV_OPERATOR,
    FoundPart,
    Release,
)
from ansible_collections.railops.rdma.plugins.module_utils._cluster.components_run import (
    PROOFS,
    ComponentDiscovery,
    removable,
)
from ansible_collections.railops.rdma.plugins.module_utils._cluster.model import FIELD_MANAGER

PROOF = PROOFS[SRIOV_OPERATOR]
MANAGED = [{"manager": FIELD_MANAGER, "operation": "Apply"}]


class Api:
    """An API with these CRDs and no object of them."""

    def __init__(self, *crds):
        self.crds = {crd["metadata"]["name"]: crd for crd in crds}

    def one(self, _version, _kind, name, _namespace=""):
        return self.crds.get(name)

    def listed(self, *_kind):
        return []


def crd(name, fields):
    names = {"kind": "SriovNetworkNodePolicy"}
    spec = {"group": name.partition(".")[2], "names": names, "versions": [{"name": "v1"}]}
    return {"metadata": {"name": name, "managedFields": fields}, "spec": spec}


@pytest.mark.parametrize(
    ("there", "existing", "goes"),
    [
        pytest.param([], [], [], id="not-there"),
        pytest.param([crd(PROOF, MANAGED)], [], [PROOF], id="ours"),
        pytest.param([crd(PROOF, [{"manager": "helm"}])], [PROOF], [], id="of-another"),
    ],
)
def test_the_crd_of_an_operator_of_others_is_named(there, existing, goes):
    found = removable(Api(*there), [crd(PROOF, [])], Release("spiderpool", "spiderpool"))
    assert (found["existing_crds"], found["crds"]) == (existing, goes)


MOUNTS = {"metadata": {"namespace": "a"}, "spec": {"template": {"spec": {"volumes": [{"configMap": {"name": "c"}}]}}}}


@pytest.mark.parametrize(
    ("part", "text"),
    [(part, text) for part in (SPIDERPOOL, DEVICE_PLUGIN) for text in ("[" * 100_000, "{", "[1]")]
    + [(DEVICE_PLUGIN, '{"configList": [1]}')],
)
def test_a_damaged_configuration_of_an_adopted_component_counts_as_unknown(part, text):
    discovery = object.__new__(ComponentDiscovery)
    discovery.cluster = Api({"metadata": {"name": "c"}, "data": {"conf.yml": text, "config.json": text}})
    found = discovery.seen(part, [FoundPart(part, "here", body=MOUNTS)])
    assert (found.config, found.plugin) == ({}, None)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.compare import keep_pool
from ansible_collections.railops.rdma.plugins.module_utils._cluster.model import Ref
from ansible_collections.railops.rdma.plugins.module_utils._cluster.pools import attached
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import CIDR_POOL, CONFIG, POD_STATUS, POOL

MANAGED = {"172.17.0.3": {"interface": "net1", "pod": "default/fabric-test-x7k2p", "podUid": "1"}}
ALLOCATED = {"172.17.0.4": {"interface": "net1", "pod": "ml/train-0", "podUid": "2"}}


def pool(text, count):
    return {"metadata": {"name": "p"}, "status": {"allocatedIPCount": count, "allocatedIPs": text}}


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        pytest.param({"metadata": {"name": "p"}}, None, id="never-used"),
        pytest.param(pool(None, 0), None, id="given-back"),
        pytest.param(pool(json.dumps(MANAGED), 1), None, id="the-test-application"),
        pytest.param(pool(json.dumps(ALLOCATED), 1), " (172.17.0.4 by ml/train-0)", id="another"),
        pytest.param(pool("{", 1), "", id="unreadable-is-somebodys"),
        pytest.param(pool("[" * 100_000, 1), "", id="deep"),
        pytest.param(pool('{"172.17.0.4": "x"}', 1), " (172.17.0.4 by a pod)", id="no-object"),
        pytest.param(
            pool('{"172.17.0.5": {"pod": "default/fabric-test-2-x7k2p"}}', 1),
            " (172.17.0.5 by default/fabric-test-2-x7k2p)",
            id="another-application-of-a-name-that-begins-so",
        ),
    ],
)
def test_address_holders(given, reported):
    retained = keep_pool("delete", Ref("", POOL, "", "p"), given, None, dict, "default/fabric-test")
    assert (retained and retained.users) == reported
    assert retained is None or "in use" in retained.reason


def test_the_test_application_goes_with_pools_of_nv_ipam_too():
    """A pool of theirs says nothing: its pods do."""
    spec = {"staticAllocations": [{"nodeName": "node1", "prefix": "172.17.0.0/27"}]}
    live, ref = {"metadata": {"name": "p"}, "spec": spec}, Ref("", CIDR_POOL, "", "p")
    pods = {address: row["pod"] for address, row in MANAGED.items()}
    assert keep_pool("delete", ref, live, None, lambda: pods, "default/fabric-test") is None
    assert keep_pool("delete", ref, live, None, lambda: pods).users == " (172.17.0.3 by default/fabric-test-x7k2p)"
    both = {**pods, "172.17.0.4": "ml/train-0", "what a tenant wrote": "ml/evil"}
    assert (
        keep_pool("delete", ref, live, None, lambda: both, "default/fabric-test").users == " (172.17.0.4 by ml/train-0)"
    )


def test_a_config_without_addresses_is_kept_while_pods_use_its_network():
    live, ref = {"metadata": {}, "spec": {"disableIPAM": True}}, Ref("", CONFIG, "spiderpool", "fabric-rail1")
    note = {POD_STATUS: json.dumps([{"name": "spiderpool/fabric-rail1", "interface": "net1"}])}
    names = ("fabric-test-x7k2p", "train-0")
    pods = attached({"metadata": {"name": name, "namespace": "default", "annotations": note}} for name in names)
    retained = keep_pool("delete", ref, live, None, lambda: pods, "default/fabric-test")
    assert retained.users == " (spiderpool/fabric-rail1 by default/train-0)"
    assert keep_pool("delete", replace(ref, name="fabric-rail"), live, None, lambda: pods) is None
    assert keep_pool("delete", ref, {"metadata": {}, "spec": {}}, None, lambda: pods) is None

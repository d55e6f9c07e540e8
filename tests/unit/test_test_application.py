# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test application's template: which networks its pods are attached to."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.template import Templar, trust_as_template

from ansible_collections.railops.rdma.tests.unit.playbooks import LOADER, content

ROLE = "roles/rail_objects"
TEMPLATE = Path(__file__).parents[2] / ROLE / "templates/test_application.yml.j2"


def notes(rails: int, **given: t.Any) -> dict[str, str]:
    """Return the annotations of the pods of a fabric with so many rails, for a user who set `given`."""
    names = [f"spiderpool/fabric-rail{number}" for number in range(1, rails + 1)]
    networks = {name: [{"name": name, "resource": f"spidernet.io/{name[-5:]}", "ask": False}] for name in names}
    known = {
        **content(f"{ROLE}/defaults/main.yml"),
        **content(f"{ROLE}/vars/main.yml"),
        "rail_objects_test_attach": "networks",
        "rail_objects_test_name": "fabric-test",
        "rail_objects_test_image": "registry.example/tools@sha256:0",
        "__rail_objects_networks": {"networks": networks},
        "__rail_objects_labels": {},
        "__rail_objects_planned_nodes": ["node1"],
        "__rail_objects_gate": {},
        **given,
    }
    text = Templar(loader=LOADER, variables=known).template(trust_as_template(TEMPLATE.read_text(encoding="utf-8")))
    made = yaml.safe_load(text) if isinstance(text, str) else text
    return t.cast("dict[str, str]", made["spec"]["template"]["metadata"]["annotations"])


@pytest.mark.parametrize("rails", [1, 2])
def test_a_rail_in_place_of_the_clusters_network_is_attached_once(rails: int) -> None:
    """As a pod whose only NIC is the default network: eth0 is the rail, and `networks` is without it."""
    given = notes(rails, rail_objects_test_default_network="spiderpool/fabric-rail1")
    beside = {"k8s.v1.cni.cncf.io/networks": "spiderpool/fabric-rail2"} if rails == 2 else {}
    assert given == {"v1.multus-cni.io/default-network": "spiderpool/fabric-rail1", **beside}


def test_injection_has_the_annotation_of_the_plan() -> None:
    """Key and value of fabric_inject have defaults."""
    template = {"template": {"metadata": {"annotations": {"railops.io/rails": "fabric"}}}}
    known = {"networks": {}, "pod_templates": [template]}
    given = notes(2, rail_objects_test_attach="inject", fabric_inject={}, __rail_objects_networks=known)
    assert given == {"railops.io/rails": "fabric"}


def test_beside_the_clusters_network_every_rail_is_attached() -> None:
    given = notes(2, rail_objects_test_default_network="kube-system/calico")
    assert given["k8s.v1.cni.cncf.io/networks"] == "spiderpool/fabric-rail1,spiderpool/fabric-rail2"

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

from ansible_collections.railops.rdma.plugins.plugin_utils._release import (
    ANNOTATION,
    COMPONENT,
    checksums,
    custom_kinds,
    workloads,
)


def workload(kind, name, *volumes, component=""):
    template = {
        "metadata": {"labels": {COMPONENT: component}},
        "spec": {"volumes": list(volumes)},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "s"},
        "spec": {"template": template},
    }


def config(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def mounts(name):
    return {"name": "v", "configMap": {"name": name}}


PARTS = [
    config("conf", a="1"),
    config("entry", b="1"),
    config("nobody", c="1"),
    workload("DaemonSet", "agent", mounts("conf"), mounts("entry"), mounts("missing"), component="spiderpool-agent"),
    workload("Deployment", "controller", mounts("conf"), component="spiderpool-controller"),
    workload("Deployment", "other", mounts("conf"), component="somebody-else"),
]


def digest(values, *place):
    for key in place:
        values = values[key]
    return values["podAnnotations"][ANNOTATION]


def changed(name, **data):
    parts = copy.deepcopy(PARTS)
    next(row for row in parts if row["metadata"]["name"] == name)["data"].update(data)
    return checksums(parts)


def test_a_part_is_annotated_with_what_it_mounts_and_nothing_else():
    before = checksums(PARTS)
    assert set(before) == {"spiderpoolAgent", "spiderpoolController"}
    both = changed("conf", a="2")
    for place in ("spiderpoolAgent", "spiderpoolController"):
        assert digest(both, place) != digest(before, place)
    one = changed("entry", b="2")
    assert digest(one, "spiderpoolAgent") != digest(before, "spiderpoolAgent")
    assert digest(one, "spiderpoolController") == digest(before, "spiderpoolController")
    assert changed("nobody", c="2") == before


def test_workloads_get_the_controller_first():
    assert workloads(PARTS) == [
        {"kind": "Deployment", "name": "controller", "namespace": "s"},
        {"kind": "Deployment", "name": "other", "namespace": "s"},
        {"kind": "DaemonSet", "name": "agent", "namespace": "s"},
    ]


def test_kinds_that_no_cluster_has_by_itself():
    made = [
        {"apiVersion": api, "kind": kind}
        for api, kind in (
            ("v1", "Secret"),
            ("apps/v1", "Deployment"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            ("grafana.integreatly.org/v1beta1", "GrafanaDashboard"),
        )
    ]
    assert custom_kinds(made) == ["GrafanaDashboard.grafana.integreatly.org"]

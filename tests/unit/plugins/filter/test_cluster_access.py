# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.filter import filters as module

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("named", "environment", "token", "there", "kubeconfig"),
    [
        pytest.param("", {}, False, False, "", id="none"),
        pytest.param(None, {}, False, False, "", id="null"),
        pytest.param("/a", {"KUBECONFIG": "/b"}, True, True, "/a", id="the-inventory-first"),
        pytest.param(
            "", {"KUBECONFIG": "/b:/c", "KUBERNETES_SERVICE_HOST": "1"}, True, True, "/b:/c", id="environment"
        ),
        pytest.param("", {"KUBERNETES_SERVICE_HOST": "1"}, True, True, "", id="in-a-pod"),
        pytest.param("", {"KUBERNETES_SERVICE_HOST": "1"}, False, False, "", id="a-pod-without-a-service-account"),
        pytest.param("", {}, True, False, "", id="a-token-that-is-none-of-ours"),
    ],
)
def test_there_is_a_cluster(named, environment, token, there, kubeconfig, monkeypatch, tmp_path):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(module, "SERVICE_ACCOUNT", str(tmp_path / "token"))
    if token:
        (tmp_path / "token").touch()
    made = {"there": there, "kubeconfig": kubeconfig, "missing": bool(kubeconfig), "collection": True}
    assert module.cluster_access(named) == made


@pytest.mark.parametrize("error", [None, ModuleNotFoundError])
def test_the_collection_of_the_clusters_api_may_be_missing(error, monkeypatch):
    def find(name):
        assert name == "ansible_collections.kubernetes.core"
        if error:
            raise error(name)

    monkeypatch.setattr(module, "find_spec", find)
    assert module.cluster_access("/a")["collection"] is False

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an API serves is asked group by group, once, and by several threads at a time."""

from __future__ import annotations

import importlib.util
import threading
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor

import pytest

if importlib.util.find_spec("kubernetes") is None:
    pytest.skip("the Python package kubernetes is not there", allow_module_level=True)

from ansible_collections.railops.rdma.plugins.module_utils._cluster import requirements


class Answers:
    """A dynamic client that knows one version of one group."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.served = [
            {"name": "rows", "kind": "Row", "namespaced": True, "verbs": ["get"]},
            {"name": "rows/status", "kind": "Row", "namespaced": True, "verbs": ["get"]},
        ]

    def request(self, _method: str, path: str, **_options: t.Any) -> t.Any:
        self.requests.append(path)
        if path != "/apis/example.org/v1":
            raise requirements.client.ApiException(status=404)
        return {"resources": list(self.served)}


def test_only_the_group_in_question_is_queried_and_once() -> None:
    client = Answers()
    kinds = requirements.Kinds(client)
    found = kinds.get(api_version="example.org/v1", kind="Row")
    assert kinds.get(api_version="example.org/v1", kind="Row") is found
    assert (found.name, found.group_version, found.path(name="a", namespace="b")) == (
        "rows",
        "example.org/v1",
        "/apis/example.org/v1/namespaces/b/rows/a",
    )
    assert client.requests == ["/apis/example.org/v1"]


def test_concurrent_queries_find_their_kind() -> None:
    client = Answers()
    client.served = [{"name": f"rows{number}", "kind": f"Row{number}", "namespaced": True} for number in range(8)]
    ask = client.request

    def slow(method: str, path: str, **options: t.Any) -> t.Any:
        time.sleep(0.05)
        return ask(method, path, **options)

    client.request = slow  # type: ignore[method-assign]
    kinds = requirements.Kinds(client)
    start = threading.Barrier(8)

    def find(number: int) -> t.Any:
        start.wait(5)
        return kinds.get(api_version="example.org/v1", kind=f"Row{number}")

    with ThreadPoolExecutor(8) as pool:
        assert [found.name for found in pool.map(find, range(8))] == [f"rows{number}" for number in range(8)]
    assert len(client.requests) == 1


def test_a_kind_that_comes_later_is_found() -> None:
    client = Answers()
    kinds = requirements.Kinds(client)
    assert kinds.get(api_version="example.org/v1", kind="Late") is None
    client.served.append({"name": "lates", "kind": "Late", "namespaced": False})
    assert kinds.get(api_version="example.org/v1", kind="Late").name == "lates"

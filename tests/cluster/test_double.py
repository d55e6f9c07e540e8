# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the double refuses beside the recorded answers, which test_recorded.py holds it to."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import played
import pytest
from kubernetes.client.exceptions import ApiException

if t.TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, t.Any]

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def api(kubeconfig: Path) -> played.Api:
    return played.Api(kubeconfig)


def refused(call: Callable[[], object]) -> tuple[int, Json]:
    """Return code and Status of a call that must fail."""
    with pytest.raises(ApiException) as caught:
        call()
    return caught.value.status, json.loads(caught.value.body)


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        pytest.param(
            "GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", "GET of deployments/scale", id="scale"
        ),
        pytest.param("POST", "/api/v1/namespaces/default/pods/x/binding", "POST of pods/binding", id="binding"),
        pytest.param("PUT", "/api/v1/nodes/x/finalize", "PUT of nodes/finalize", id="another kind's"),
        pytest.param("GET", "/api/v1/namespaces/default/pods/x/log", "GET of pods/log", id="pods that are not played"),
        pytest.param("GET", "/api/v1/persistentvolumes", "persistentvolumes of the core/v1", id="a kind"),
        pytest.param("GET", "/apis/networking.k8s.io/v1/ingresses", "ingresses of networking.k8s.io/v1", id="a group"),
    ],
)
def test_what_the_double_has_no_rule_for_is_refused_by_name(
    api: played.Api, double: t.Any, method: str, path: str, what: str
) -> None:
    """A real server may answer it: a test that asks for it stands on nothing."""
    code, status = refused(lambda: api.raw(method, path, {} if method != "GET" else None))
    assert (code, status["message"]) == (501, f"the API double has no rule for {what}")
    assert double.store.writes == double.writes()

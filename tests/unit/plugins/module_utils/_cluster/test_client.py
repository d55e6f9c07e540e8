# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the client of the Kubernetes API says of its own permissions."""

from __future__ import annotations

import types

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster import api_errors
from ansible_collections.railops.rdma.plugins.module_utils._cluster.client import Cluster

POOLS = types.SimpleNamespace(group="spiderpool.spidernet.io", resource="", name="spiderippools", namespaced=False)


class Api(Cluster):
    """An API that gives this answer to a SelfSubjectAccessReview; None does not know the kind."""

    def __init__(self, answer):
        self.answer = answer

    def resource(self, _version, _kind):
        return self.answer and types.SimpleNamespace(path=lambda: "/reviews")

    def _send(self, _method, _path, _body):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        pytest.param({"status": {"allowed": True}}, True, id="allowed"),
        pytest.param({"status": {"allowed": False}}, False, id="denied"),
        pytest.param(None, True, id="not-known"),
        pytest.param(api_errors.Forbidden("No.", "Ask."), True, id="must-not-ask"),
    ],
)
def test_a_denied_permission_review_does_not_report_all_as_forbidden(answer, allowed):
    api = Api(answer)
    api._retry_seconds = 0
    assert api.may(POOLS, "patch", "") is allowed

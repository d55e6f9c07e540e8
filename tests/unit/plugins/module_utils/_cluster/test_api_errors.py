# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.api_errors import (
    conflict_fields,
    refused,
    status_of,
)


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        "<html>",
        "[]",
        '{"details": "text"}',
        '{"details": {"causes": 7}}',
        '{"details": {"causes": [7]}}',
    ],
)
def test_an_error_of_any_shape_is_a_refusal(body):
    status = status_of(SimpleNamespace(body=body, reason="Bad Gateway"))
    assert conflict_fields(status) == []
    assert "[api_busy]" in str(refused("list SpiderIPPool", 502, status))

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster import tls

pytest.importorskip("cryptography")


@pytest.fixture(scope="module")
def made():
    return tls.make("spiderpool-controller", "spiderpool")


def test_what_was_made_is_good(made):
    assert tls.fault(made, "spiderpool-controller", "spiderpool") == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"tls.key": ""}, "tls.key missing", id="missing"),
        pytest.param({"tls.crt": "no"}, "not readable", id="garbage"),
    ],
)
def test_invalid_values_are_reported(made, change, reason):
    assert reason in tls.fault({**made, **change}, "spiderpool-controller", "spiderpool")


def test_another_namespace_or_key_or_authority_is_no_good(made):
    other = tls.make("spiderpool-controller", "spiderpool")
    assert "not for" in tls.fault(made, "spiderpool-controller", "elsewhere")
    assert "belong" in tls.fault({**made, "tls.key": other["tls.key"]}, "spiderpool-controller", "spiderpool")
    assert "not readable" in tls.fault({**made, "ca.crt": other["ca.crt"]}, "spiderpool-controller", "spiderpool")


def test_one_that_ends_soon_is_made_again(made, monkeypatch):
    monkeypatch.setattr(tls, "RENEW_DAYS", tls.DAYS + 1)
    assert "valid only until" in tls.fault(made, "spiderpool-controller", "spiderpool")

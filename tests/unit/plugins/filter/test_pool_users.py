# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.filter.pool_users import pool_users

OURS = {"172.17.0.3": {"interface": "net1", "pod": "default/fabric-test-x7k2p", "podUid": "1"}}
OTHERS = {"172.17.0.4": {"interface": "net1", "pod": "ml/train-0", "podUid": "2"}}


def pool(text, count):
    return {"metadata": {"name": "p"}, "status": {"allocatedIPCount": count, "allocatedIPs": text}}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param({"metadata": {"name": "p"}}, [], id="never-used"),
        pytest.param(pool(None, 0), [], id="given-back"),
        pytest.param(pool(json.dumps(OURS), 1), [], id="the-test-application"),
        pytest.param(pool(json.dumps(OTHERS), 1), ["p (172.17.0.4 by ml/train-0)"], id="another"),
        pytest.param(
            pool(json.dumps(OURS | OTHERS), 2),
            ["p (172.17.0.3 by default/fabric-test-x7k2p, 172.17.0.4 by ml/train-0)"],
            id="both",
        ),
        pytest.param(pool("{", 1), ["p"], id="unreadable-is-somebodys"),
        pytest.param(
            pool('{"172.17.0.5": {"pod": "default/fabric-test-2-x7k2p"}}', 1),
            ["p (172.17.0.5 by default/fabric-test-2-x7k2p)"],
            id="another-application-of-a-name-that-begins-so",
        ),
    ],
)
def test_who_holds_addresses(given, told):
    assert pool_users([given], "default/fabric-test") == told

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of two thousand hosts with secrets wherever their files' formats allow a text, no record holds one."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._record import run as work
from ansible_collections.railops.rdma.tests.conftest import LONG
from ansible_collections.railops.rdma.tests.unit.plugins.module_utils._record.grammar import Grammar

PARTS, HOSTS = 10, 200 if LONG else 10


def held(archive, secrets):
    """Return the secrets that are anywhere in an archive."""
    text = json.dumps(archive, ensure_ascii=False)
    text += "".join(base64.b64decode(row[2]).decode("latin-1") for row in archive["files"] if row[0] == "b")
    text += "".join(bytes.fromhex(row).decode("latin-1") for rows in archive["netlink"].values() for row in rows)
    return [secret for secret in secrets if secret in text.lower()]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_record_holds_a_secret(tmp_path, monkeypatch, part):
    monkeypatch.setattr(work, "connection_ends", lambda sysfs: None)
    kept = 0
    for number in range(HOSTS):
        host = Grammar(part * HOSTS + number)
        root = tmp_path / str(number)
        root.mkdir()
        host.lay_out(root)
        monkeypatch.setattr(work, "dumped", host.dumped)
        archive = work.Recorder(Sysfs(str(root)), host.said, f"key{number}", host.names()).record()
        assert held(archive, host.secrets) == [], f"host {part * HOSTS + number}"
        kept += sum(len(row[2]) for row in archive["files"])
    # An empty record holds none either.
    assert kept > 100 * HOSTS

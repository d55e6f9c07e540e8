# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook record shows what it has and keeps it only when it is told to."""

from __future__ import annotations

import json
import os
import sys

import pytest

from ansible_collections.railops.rdma.tests.unit.book import play
from ansible_collections.railops.rdma.tests.unit.machines import put


@pytest.mark.parametrize("keep", ["", "true"])
def test_the_playbook(tmp_path, keep):
    """It shows a summary and writes nothing, until it is told to keep the record."""
    put(tmp_path, "plan/fabric/plan.json", '{"node1": "10.1.2.3"}')
    put(tmp_path, "elsewhere/fabric/verdict.json", '{"status": "pass"}')
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    put(tmp_path, "hosts.json", json.dumps({"gpu_nodes": {"hosts": {"node1": here}}}))
    more = ["-e", "fabric_verify_dir=elsewhere", *(["-e", f"record_keep={keep}"] if keep else [])]
    done = play(tmp_path, "-i", "hosts.json", "railops.rdma.record", *more)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stand_ins" in done.stdout
    path = tmp_path / "record/fabric/record.json"
    assert path.exists() is bool(keep)
    if keep:
        assert path.stat().st_mode & 0o777 == 0o600
        text = path.read_text(encoding="utf-8")
        record = json.loads(text)
        assert (record["format"], len(record["hosts"])) == (1, 1)
        assert [path for path, _text in record["bundle"]] == ["plan/plan.json", "verify/verdict.json"]
        assert record["collection"].count(".") == 2
        assert [word for word in ("node1", "10.1.2.3", os.uname().nodename) if f'"{word}"' in text] == []

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The oldest Python client of Kubernetes that the collection promises to work with; all other tests have the newest.

pip install --target /tmp/kubernetes-old kubernetes==31.0.0
RAILOPS_KUBERNETES_OLD=/tmp/kubernetes-old pytest tests/cluster/test_clients.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

OLD = os.environ.get("RAILOPS_KUBERNETES_OLD", "")
ROOT = Path(__file__).resolve().parents[2]
# Lists, objects, Jobs, a log and a command inside of a pod, also where each of them is refused.
ASKED = (
    "test_pods.py::test_everything_is_looked_at",
    "test_pods.py::test_what_is_not_allowed_is_skipped_and_said",
    "test_pods.py::test_an_image_without_tools_is_skipped_and_said",
    "test_pods.py::test_a_pair_that_fails_is_named_and_the_others_count",
)


@pytest.mark.skipif(not OLD, reason="RAILOPS_KUBERNETES_OLD names no folder with the client 31")
def test_the_oldest_client_does_what_the_newest_does() -> None:
    environ = {key: text for key, text in os.environ.items() if not key.startswith(("PYTEST_", "RAILOPS_TEST_"))}
    tests = [f"tests/cluster/{name}" for name in ASKED]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        env={**environ, "PYTHONPATH": os.pathsep.join([OLD, *filter(None, sys.path)])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        # Who runs this ends what hangs; a busy machine is slow, and that is no failure.
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "the client 31.0" in done.stdout


def test_only_public_calls_of_the_client_are_made() -> None:
    """What is generated for it changes its arguments without a word, as release 37 did."""
    private = r"\.client\.(call_api|request|param_serialize|update_params_for_auth|select_header)|websocket_call"
    found = [path.name for path in (ROOT / "plugins").rglob("*.py") if re.search(private, path.read_text("utf-8"))]
    assert found == []

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""tests/cluster/tools.py runs as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "cluster/tools.py"


@pytest.mark.parametrize("word", ["helm", "chart"])
def test_it_runs_without_the_collection_and_without_a_program(word, tmp_path):
    path = {"helm": "/opt/helm", "chart": str(tmp_path / "spiderpool")}[word]
    argv = [sys.executable, str(SCRIPT), word, *([path] if word == "chart" else [])]
    environment = {"PATH": "/usr/bin:/bin", "RAILOPS_CACHE": str(tmp_path), "RAILOPS_TEST_HELM": "/opt/helm"}
    done = subprocess.run(argv, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (path, "", 0)

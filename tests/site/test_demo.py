# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The README's first command: the demo, from nothing to a green verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def test_the_demo_of_the_readme_ends_green():
    """It breaks a rail on purpose, names it, mends it, and ends with the verdict's picture and the report's place."""
    if os.geteuid() != 0:
        pytest.skip("the demo's hosts are network namespaces, which need root")
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "tests/demo/demo.py")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "✗ node2 rail3 network_rules" in done.stdout
    assert "Verdict pass" in done.stdout
    assert (CHECKOUT / "tests/output/demo/verify/fabric/report.html").is_file()

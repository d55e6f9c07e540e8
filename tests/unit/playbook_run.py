# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ansible-playbook in a folder, as a person does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def play(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Return what came of the run, whatever it ended with."""
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), *words]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0", **environ}
    return subprocess.run(
        argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600
    )

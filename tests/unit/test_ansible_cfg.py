# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ansible.cfg that people copy beside their inventory counts there, as Ansible itself says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "inventory/ansible.cfg"


def test_every_setting_of_the_example_counts_where_it_is_copied_to(tmp_path):
    shutil.copy(EXAMPLE, tmp_path)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    found = ""
    for kind in ("base", "callback"):
        argv = ["ansible-config", "dump", "--only-changed", "-t", kind]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        found += done.stdout
    of = f"({tmp_path}/ansible.cfg) = "
    assert f"CONFIG_FILE() = {tmp_path}/ansible.cfg" in found
    for name, value in {
        "DEFAULT_FORKS": "50",
        "INJECT_FACTS_AS_VARS": "False",
        "DEFAULT_STDOUT_CALLBACK": "railops.rdma.fleet",
        "ANSIBLE_PIPELINING": "True",
    }.items():
        assert f"{name}{of}{value}" in found
    assert f"{of}yaml" in found
    assert f"DEFAULT_HOST_LIST{of}['{tmp_path}/hosts']" in found
    assert [path for path in EXAMPLE.parent.iterdir() if path.is_dir() and not (path / "hosts").is_file()] == []

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every test of this folder makes network namespaces, or enters a system of its own: root's, but for Slurm's trees."""

from __future__ import annotations

import os
import time

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route import decode, managed_state, rollback
from ansible_collections.railops.rdma.tests.kernel import managers


def pytest_itemcollected(item):
    """Mark what needs root."""
    if item.path.stem != "test_slurm_topology":
        item.add_marker(pytest.mark.root)


def pytest_runtest_setup(item):
    """Skip it without root."""
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root and network namespaces")


@pytest.fixture(scope="session", autouse=True)
def shared_files(tmp_path_factory):
    """The same for what is made once for several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(managed_state, "ROOT", str(tmp_path_factory.mktemp("shared")))
        yield


@pytest.fixture(autouse=True)
def own_files(monkeypatch, tmp_path_factory):
    """A folder that hosts of namespaces keep their own files in: /etc, /var and /run are the machine's."""
    if os.geteuid() == 0:
        root = tmp_path_factory.mktemp("own")
        monkeypatch.setattr(managed_state, "ROOT", str(root))
        monkeypatch.setattr(rollback, "STATE_FOLDER", str(root / "run/timers"))
        return root
    return None


@pytest.fixture
def slow_start(monkeypatch):
    """Let rollback timers start late."""
    watch = rollback.watch

    def late(folder):
        time.sleep(5.5)
        watch(folder)

    monkeypatch.setattr(rollback, "watch", late)


@pytest.fixture
def without_pyroute2(monkeypatch):
    """Let hosts of namespaces be without pyroute2."""
    monkeypatch.setattr(decode, "PYROUTE2_ERROR", "No module named 'pyroute2'")


@pytest.fixture
def run_steps(tmp_path):
    """Return the function that runs steps on a host with the real network managers (persist_steps.py)."""
    with managers.stepped_host(tmp_path) as run_steps:
        yield run_steps

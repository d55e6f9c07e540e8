# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures of the cluster tests: the API double, or the real cluster that RAILOPS_TEST_KUBECONFIG names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.railops.rdma.plugins.modules import cluster_objects

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from admission import Webhooks
from api_double import ApiDouble
from api_kinds import REAL_CRDS

Json = dict[str, t.Any]

ENV = HERE.parent / "tools/env.py"
REAL = os.environ.get("RAILOPS_TEST_KUBECONFIG")


def pytest_report_header() -> str:
    """Say what the tests stand on."""
    crds = "upstream's CRDs" if REAL_CRDS.is_dir() else "STUB CRDs (../shared/crds is not there)"
    chart = (
        os.environ.get("RAILOPS_TEST_CHART")
        or "the STUB chart tests/cluster/chart (RAILOPS_TEST_CHART names a real one)"
    )
    api = f"the cluster of {REAL}" if REAL else f"the API double with {crds}"
    return f"cluster: {api}; {chart}"


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Return the variables with which ansible runs this checkout."""

    def ask(question: str) -> str:
        done = subprocess.run([sys.executable, str(ENV), question], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    path = f"{ask('bin')}:{os.environ['PATH']}"
    tree = ask("tree")
    return {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": tree,
        "ANSIBLE_COLLECTIONS_PATH": tree,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
    }


@pytest.fixture
def scripted() -> None:
    """Skip, visibly, what needs scripted faults or the double's inside on a real cluster."""
    if REAL:
        pytest.skip("needs scripted faults: only on the API double")


@pytest.fixture
def double(scripted: None) -> t.Iterator[ApiDouble]:
    """Give a running double with two nodes."""
    hooks = Webhooks()
    with ApiDouble(nodes=["node1", "node2"], admit=hooks) as made:
        hooks.watch(made.store)
        made.put("v1", "Namespace", "spiderpool")
        yield made


@pytest.fixture
def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give the kubeconfig of the API under test."""
    if REAL:
        return Path(REAL)
    made: ApiDouble = request.getfixturevalue("double")
    return made.kubeconfig(tmp_path / "kubeconfig")


class Outcome(dict[str, t.Any]):
    """The result of a module."""


@pytest.fixture
def objects(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> t.Callable[..., Outcome]:
    """Give a function that runs cluster_objects; a failure is a result with `failed`."""

    def run(definitions: list[Json] | None = None, check: bool = False, **params: t.Any) -> Outcome:
        given = {"definitions": definitions or [], "kubeconfig": str(kubeconfig), "retry_seconds": 5, **params}
        given |= {"_ansible_check_mode": check, "_ansible_diff": True}
        with patch_module_args(given), pytest.raises(SystemExit):
            cluster_objects.main()
        return Outcome(json.loads(capsys.readouterr().out.splitlines()[-1]))

    return run

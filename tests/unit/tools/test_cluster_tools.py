# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""tests/cluster/tools.py runs as a process of its own; the tests' stub of a chart has the real chart's values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ansible_collections.railops.rdma.tests.cluster import programs

SCRIPT = Path(__file__).resolve().parents[2] / "cluster/tools.py"


@pytest.mark.parametrize("word", ["helm", "chart"])
def test_it_runs_without_the_collection_and_without_a_program(word, tmp_path):
    path = {"helm": "/opt/helm", "chart": str(tmp_path / "spiderpool")}[word]
    argv = [sys.executable, str(SCRIPT), word, *([path] if word == "chart" else [])]
    environment = {"PATH": "/usr/bin:/bin", "RAILOPS_CACHE": str(tmp_path), "RAILOPS_TEST_HELM": "/opt/helm"}
    done = subprocess.run(argv, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (path, "", 0)


def values_in(value, at=()):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from values_in(item, (*at, key))
    else:
        yield ".".join(at), value


def test_the_stub_chart_has_values_of_the_real_one():
    try:
        chart = programs.chart()
    except programs.MissingError as exc:
        pytest.skip(f"{exc}: set RAILOPS_TEST_CHART to its folder")
    shown = (
        ["tar", "-xzOf", str(chart), "spiderpool/values.yaml"] if chart.is_file() else ["cat", f"{chart}/values.yaml"]
    )
    real = dict(values_in(yaml.safe_load(subprocess.run(shown, capture_output=True, text=True, check=True).stdout)))
    stub = dict(
        values_in(yaml.safe_load(SCRIPT.with_name("chart").joinpath("values.yaml").read_text(encoding="utf-8")))
    )
    # Only the stub has it: a release that fails.
    assert {key: real.get(key) for key in stub} == {**stub, "fail": None}

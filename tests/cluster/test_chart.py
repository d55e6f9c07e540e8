# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stub chart, which stands where the real one is not at hand, has all objects and labels of the real one."""

from __future__ import annotations

import json
import subprocess
import typing as t
from pathlib import Path

import programs
import pytest
import tools
import yaml

Json = dict[str, t.Any]
TLS: Json = {"method": "provided", "provided": {"tlsCa": "LQ==", "tlsCert": "LQ==", "tlsKey": "LQ=="}}
NOTES: Json = {"railops.io/config-checksum": "x"}
PLUGIN: Json = {"install": True, "podAnnotations": NOTES}
PARTS: Json = {"spiderpoolController": {"podAnnotations": NOTES}, "spiderpoolAgent": {"podAnnotations": NOTES}}


def of_version(stub: Path, real: Path) -> Path:
    """Return the stub chart under the version of the real one: which one is at hand is the site's choice."""
    argv = [str(tools.helm()), "show", "chart", str(real)]
    said = yaml.safe_load(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    ours = yaml.safe_load((stub / "Chart.yaml").read_text())
    versions = {key: said[key] for key in ("version", "appVersion")}
    (stub / "Chart.yaml").write_text(yaml.safe_dump({**ours, **versions}))
    return stub


def rendered(chart: Path, values: Json) -> list[Json]:
    whole = {**values, "spiderpoolController": {"tls": TLS, **values.get("spiderpoolController", {})}}
    argv = [str(tools.helm()), "template", "release", str(chart), "--namespace", "somewhere", "--values", "-"]
    done = subprocess.run(argv, input=json.dumps(whole), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [row for row in yaml.safe_load_all(done.stdout) if row]


def shape(row: Json) -> Json:
    """Return what anybody may look for in an object."""
    meta, spec = row["metadata"], row.get("spec") or {}
    pod = spec.get("template") or {}
    read = [
        volume["configMap"]["name"] for volume in (pod.get("spec") or {}).get("volumes") or () if "configMap" in volume
    ]
    return {
        "object": f"{row['apiVersion']} {row['kind']} {meta.get('namespace')} {meta['name']}",
        "labels": meta.get("labels") or {},
        "annotations": meta.get("annotations") or {},
        "selector": spec.get("selector") if pod else None,
        "pod": {key: (pod.get("metadata") or {}).get(key) or {} for key in ("labels", "annotations")},
        # This one is in the real chart's volumes, and nothing mounts it.
        "reads": sorted(set(read) - {"spiderpool-multus"}),
    }


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="plain"),
        pytest.param({**PARTS, "rdma": {"rdmaSharedDevicePlugin": PLUGIN}}, id="shared"),
        pytest.param({"sriov": {"install": True}}, id="sriov"),
        pytest.param({"spiderpoolAgent": {"prometheus": {"enabled": True}}}, id="metrics"),
        pytest.param({"grafanaDashboard": {"install": True}}, id="grafana"),
        pytest.param({"spiderpoolController": {"podResourceInject": {"enabled": True}}}, id="inject"),
    ],
)
def test_the_stub_has_the_objects_of_the_real_chart(values: Json, tmp_path: Path) -> None:
    try:
        real = programs.chart()
    except programs.MissingError as exc:
        pytest.skip(f"{exc} to compare with")
    stub = of_version(tools.stub_chart(tmp_path / "stub"), real)
    wanted = sorted((shape(row) for row in rendered(real, values)), key=lambda row: row["object"])
    found = sorted((shape(row) for row in rendered(stub, values)), key=lambda row: row["object"])
    assert [row["object"] for row in found] == [row["object"] for row in wanted]
    assert found == wanted

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs of a cluster are found where somebody has them, and what is missing is said in one line."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from pathlib import Path

import programs
import pytest

SCRIPT = "#!/bin/sh\necho Kubernetes v{}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Give a folder of programs: the only one there is."""
    for name in ("KUBEBUILDER_ASSETS", "RAILOPS_PARTS", "RAILOPS_TEST_CHART", "RAILOPS_TEST_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAILOPS_CACHE", str(tmp_path))
    for known in (programs.program, programs.lacking):
        known.cache_clear()
    yield tmp_path / "cluster-programs"
    for known in (programs.program, programs.lacking):
        known.cache_clear()


def put(folder: Path, name: str, version: str = "1.36.2", mode: int = 0o755) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    text = SCRIPT.format(version).encode()
    path.write_bytes(lzma.compress(text) if name.endswith(".xz") else text)
    path.chmod(mode)
    return path


def checks() -> str:
    argv = [sys.executable, programs.__file__, "--checks"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def test_nothing_is_required(folder, monkeypatch):
    monkeypatch.setattr(programs.packages, "unpacked", lambda *_names: folder)
    assert checks() == ""
    why = programs.lacking("webhooks")
    assert why.startswith("no kube-apiserver, no kube-controller-manager, ")
    assert "no spiderpool-controller, no spiderpool-init, no chart of Spiderpool here; the check api would show" in why
    assert f"put it into {folder} or name its folder in RAILOPS_PARTS, envtest's in KUBEBUILDER_ASSETS" in why


def test_plain_programs_are_started_as_they_are_and_say_their_version(folder):
    path = put(folder, "kube-apiserver")
    assert programs.program("kube-apiserver") == path
    assert programs.version("kube-apiserver") == "1.36.2"
    assert checks() == "api"


@pytest.mark.parametrize(("name", "mode"), [("kube-apiserver.xz", 0o644), ("kube-apiserver", 0o644)])
def test_what_cannot_be_started_as_it_lies_there_is_unpacked_once(folder, name, mode):
    put(folder, name, mode=mode)
    first = programs.program("kube-apiserver")
    assert (first.name, programs.version("kube-apiserver")) == ("kube-apiserver", "1.36.2")
    programs.program.cache_clear()
    assert programs.program("kube-apiserver") == first
    programs.program.cache_clear()
    put(folder, name, "1.37.0", mode)
    assert programs.version("kube-apiserver") == "1.37.0"


def test_a_damaged_one_is_named(folder):
    path = put(folder, "kube-apiserver.xz")
    path.write_bytes(path.read_bytes()[:-9])
    put(folder, "etcd")
    assert programs.lacking("server").startswith(f"no kube-apiserver ({path}: ")


def test_envtest_comes_first_and_kubernetes_is_of_one_release(folder, tmp_path, monkeypatch):
    for name in ("kube-apiserver", "kube-scheduler", "multus"):
        put(folder, name)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assets = put(tmp_path / "assets", "kube-apiserver", "1.33.0")
    assert programs.program("kube-apiserver") == assets
    assert programs.program("multus") == folder / "multus"
    with pytest.raises(programs.MissingError, match="no kube-scheduler"):
        programs.program("kube-scheduler")
    monkeypatch.setenv("RAILOPS_PARTS", os.devnull)
    programs.program.cache_clear()
    with pytest.raises(programs.MissingError, match="no multus"):
        programs.program("multus")


def test_a_chart_is_a_folder_or_packed_and_other_charts_are_not_it(folder):
    put(folder, "spiderpool")
    for name in ("another", "spiderpool-chart"):
        (folder / name).mkdir()
        text = f"apiVersion: v2\nname: {name.removesuffix('-chart')}\nversion: 1.2.1\n"
        (folder / name / "Chart.yaml").write_text(text, encoding="utf-8")
    assert programs.chart() == folder / "spiderpool-chart"
    assert programs.version(programs.CHART) == "1.2.1"
    before = programs.digest(programs.chart())
    (folder / "spiderpool-chart/values.yaml").write_text("a: 1\n", encoding="utf-8")
    assert programs.digest(programs.chart()) != before
    (folder / "spiderpool-chart/Chart.yaml").unlink()
    packed = put(folder, "spiderpool-1.2.1.tgz")
    programs.program.cache_clear()
    assert (programs.chart(), programs.version(programs.CHART)) == (packed, "spiderpool-1.2.1")

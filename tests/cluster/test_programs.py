# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs of a cluster are found where somebody has them, and what is missing is said in one line."""

from __future__ import annotations

import subprocess
import sys

import programs
import pytest

SCRIPT = "#!/bin/sh\necho Kubernetes v1.36.2\n"


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
    folder.mkdir()
    path = folder / "kube-apiserver"
    path.write_text(SCRIPT, encoding="utf-8")
    path.chmod(0o755)
    assert programs.program("kube-apiserver") == path
    assert programs.version("kube-apiserver") == "1.36.2"
    assert checks() == "api"


@pytest.mark.parametrize(
    ("installer", "lacks"),
    [("copies /usr/src/multus-cni/bin/multus", False), ("copies /usr/src/multus-cni/bin/passthru, too", True)],
)
def test_what_the_release_of_multus_does_not_have_is_not_asked_for(folder, monkeypatch, installer, lacks):
    monkeypatch.setattr(programs.packages, "unpacked", lambda *_names: folder)
    assert "no install_multus" in programs.lacking("pods")
    assert "passthru" not in programs.lacking("pods")
    programs.program.cache_clear()
    programs.lacking.cache_clear()
    folder.mkdir()
    (folder / "install_multus").write_text(installer, encoding="utf-8")
    (folder / "install_multus").chmod(0o755)
    assert "no install_multus" not in programs.lacking("pods")
    assert ("no passthru" in programs.lacking("pods")) is lacks

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a guest a node, without a guest: container images, and what cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

import container_images
import development

CONTAINERFILE = HERE.parents[1] / "roles/rail_objects/files/rdma-tools/Containerfile"


def test_the_image_that_people_build_has_what_the_lab_runs():
    wanted = (
        CONTAINERFILE.read_text(encoding="utf-8").partition("--no-install-recommends ")[2].partition("\\")[0].split()
    )
    # bash is in every Debian; jq is for Multus' script.
    assert {*wanted, "bash", "jq"} == set(container_images.BASE)


class TestImages:
    def test_an_image_that_the_lab_cannot_make_is_named(self, monkeypatch):
        monkeypatch.setattr(container_images, "names", lambda: ["ghcr.io/x/spiderpool-agent:v1", "ghcr.io/x/new:v2"])
        with pytest.raises(container_images.LabError, match=r"runs ghcr\.io/x/new:v2,"):
            container_images.contents()


class TestNotHere:
    def test_without_the_programs_the_reason_is_told_and_the_end_is_one_that_skips(self, tmp_path):
        env = {**os.environ, "RAILOPS_PARTS": str(tmp_path)}
        argv = [sys.executable, str(HERE / "lab.py"), "image", "--cluster"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300, env=env)
        assert done.returncode == 77
        assert "There are no programs of a real cluster.\n  no kube-apiserver, no kube-contr" in done.stderr
        assert f"put it into {tmp_path} or name its folder in RAILOPS_PARTS" in done.stderr

    def test_the_release_of_a_kernel_is_in_its_packages_name(self):
        found = [development.Package(f"linux-{part}-7.2.13+deb14-amd64", "x", "y") for part in ("base", "modules")]
        assert development.kernel_release(found) == "7.2.13+deb14-amd64"

    def test_packages_that_a_kernel_no_longer_comes_in_are_named(self, monkeypatch, tmp_path):
        said = {
            "linux-image-amd64": "  Depends: linux-image-9-amd64\n",
            "linux-image-9-amd64": "  Depends: linux-all-9\n",
        }
        monkeypatch.setattr(development, "home", lambda: tmp_path)
        monkeypatch.setattr(development, "KEYS", "/dev/null")
        monkeypatch.setattr(development, "_apt", lambda _program, *words: said.get(words[-1], ""))
        with pytest.raises(development.UnavailableError, match="linux-all-9"):
            development.packages("http://mirror.invalid")
        assert development.known() == ()

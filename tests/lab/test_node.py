# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a guest a node, without a guest: container images, and what cannot be had."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

import container_images
import development

PLUGIN = HERE / "node/rail-plugin"


CONTAINERFILE = HERE.parents[1] / "roles/rail_objects/files/rdma-tools/Containerfile"


def test_the_image_that_people_build_has_what_the_lab_runs():
    wanted = (
        CONTAINERFILE.read_text(encoding="utf-8").partition("--no-install-recommends ")[2].partition("\\")[0].split()
    )
    # bash is in every Debian; jq is for Multus' script.
    assert {*wanted, "bash", "jq"} == set(container_images.BASE)


class TestImages:
    def layout(self, *images):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            made = container_images.Layout(tar)
            digests = [made.image(name, layers, command) for name, layers, command in images]
            made.finish()
        buffer.seek(0)
        with tarfile.open(fileobj=buffer) as tar:
            return digests, {member.name: tar.extractfile(member).read() for member in tar.getmembers()}, tar.getnames()

    def test_every_descriptor_is_of_what_it_names_and_a_shared_layer_is_there_once(self):
        images = [("a.example/one:1", [b"base", b"more"], ()), ("localhost/two:1", [b"base"], ("/bin/sleep", "1"))]
        digests, files, names = self.layout(*images)
        assert len(names) == len(set(names))
        rows = json.loads(files["index.json"])["manifests"]
        assert [row["annotations"]["io.containerd.image.name"] for row in rows] == [
            "a.example/one:1",
            f"a.example/one@{digests[0]}",
            "localhost/two:1",
            f"localhost/two@{digests[1]}",
        ]
        for row in rows:
            manifest = json.loads(files[f"blobs/sha256/{row['digest'].partition(':')[2]}"])
            for blob in (row, manifest["config"], *manifest["layers"]):
                content = files[f"blobs/sha256/{blob['digest'].partition(':')[2]}"]
                assert (len(content), hashlib.sha256(content).hexdigest()) == (blob["size"], blob["digest"][7:])
            config = json.loads(files[f"blobs/sha256/{manifest['config']['digest'][7:]}"])
            assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]]

    def test_plugins_of_rails_stand_behind_the_labs_own(self, tmp_path):
        for name in ("bridge", "ipvlan", "macvlan"):
            (tmp_path / name).write_bytes(name.encode())
        files = dict(container_images.plugin_files(tmp_path))
        assert "usr/plugins/cni/bridge" not in files
        assert files["usr/plugins/cni/macvlan"] == PLUGIN
        assert files["usr/plugins/cni/lab-macvlan"] == tmp_path / "macvlan"

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

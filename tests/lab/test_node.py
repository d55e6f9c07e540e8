# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a guest a node, without a guest: container images, the rails' CNI plugin, and what cannot be had."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

import container_images
import development
import names
import ready

PLUGIN = HERE / "node/rail-plugin"


CONTAINERFILE = HERE.parents[1] / "roles/rail_objects/files/rdma-tools/Containerfile"


def test_the_image_that_people_build_has_what_the_lab_runs():
    wanted = (
        CONTAINERFILE.read_text(encoding="utf-8").partition("--no-install-recommends ")[2].partition("\\")[0].split()
    )
    # bash is in every Debian; jq is for Multus' script.
    assert {*wanted, "bash", "jq"} == set(container_images.BASE)


class TestNames:
    # `dig +noedns job-1.job.default.svc.cluster.local`, as it goes over the wire (RFC 1035, 4.1).
    LABELS = b"\x05job-1\x03job\x07default\x03svc\x07cluster\x05local\x00"
    ASKED = b"\xab\xcd\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + LABELS

    def found(self, hostname, service, namespace):
        return ["10.244.2.5"] if (hostname, service, namespace) == ("job-1", "job", "default") else []

    def test_a_pods_name_gets_its_address(self):
        said = names.answer(self.ASKED + b"\x00\x01\x00\x01", self.found)
        head = b"\xab\xcd\x85\x00\x00\x01\x00\x01\x00\x00\x00\x00"
        row = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x0a\xf4\x02\x05"
        assert said == head + self.LABELS + b"\x00\x01\x00\x01" + row

    def test_a_pod_without_ipv6_has_a_name_all_the_same(self):
        said = names.answer(self.ASKED + b"\x00\x1c\x00\x01", self.found)
        assert said[2:8] == b"\x85\x00\x00\x01\x00\x00"

    @pytest.mark.parametrize("labels", [b"\x05job-2\x03job\x07default\x03svc\x07cluster\x05local\x00", b"\x03org\x00"])
    def test_nobody_else_has_one(self, labels):
        said = names.answer(self.ASKED[:12] + labels + b"\x00\x01\x00\x01", self.found)
        assert said[2:8] == b"\x85\x03\x00\x01\x00\x00"

    def test_who_is_not_ready_counts_where_the_service_says_so(self):
        pods = [
            {"hostname": "job-0", "addresses": ["10.244.1.4"], "conditions": {"ready": True, "serving": False}},
            {"hostname": "job-1", "addresses": ["10.244.2.5"], "conditions": {"ready": False}},
        ]
        slices = [{"addressType": "IPv4", "endpoints": pods}, {"addressType": "IPv6", "endpoints": pods}]
        assert names.addresses_of(slices, "job-0") == ["10.244.1.4"]
        assert names.addresses_of(slices, "job-1") == []


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


@pytest.mark.skipif(not shutil.which("jq"), reason="no jq here; run: apt-get install jq")
class TestRailPlugin:
    """The plugin with a real one, an `rdma` and a namespace that are played: which calls it makes, and what it says."""

    CONFIG = json.dumps({"cniVersion": "0.4.0", "type": "macvlan", "master": "ens1np0"})

    @pytest.fixture
    def call(self, tmp_path):
        shutil.copy2(PLUGIN, tmp_path / "macvlan")
        log = tmp_path / "log"
        played = {
            "lab-macvlan": f'read -r config; echo "real $CNI_COMMAND $config" >>{log}; echo "$SAYS"; exit "$ENDS"',
            "rdma": f'[ "$2" = link ] && {{ echo "$LINKS"; exit; }}; echo "rdma $*" >>{log}; echo said; exit "$RDMA"',
            "nsenter": f'echo "$1" >>{log}; shift 2; exec "$@"',
        }
        for name, text in played.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (tmp_path / name).chmod(0o755)

        def run(command, **played):
            settings = {
                "SAYS": '{"interfaces": []}',
                "ENDS": "0",
                "RDMA": "0",
                "LINKS": '[{"netdev": "ens1np0"}]',
                **played,
            }
            log.write_text("", encoding="utf-8")
            named = {"CNI_COMMAND": command, "CNI_CONTAINERID": "abc", "CNI_IFNAME": "net1", "CNI_NETNS": "/dev/null"}
            env = {**os.environ, **named, **settings, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
            argv = [str(tmp_path / "macvlan")]
            done = subprocess.run(argv, input=self.CONFIG, capture_output=True, text=True, check=False, env=env)
            return done, log.read_text(encoding="utf-8").splitlines()

        return run

    def test_an_interface_on_a_rail_with_rdma_gets_a_device_in_the_pods_namespace(self, call):
        done, calls = call("ADD")
        assert (done.returncode, json.loads(done.stdout)) == (0, {"interfaces": []})
        assert calls[0] == f"real ADD {self.CONFIG}"
        assert calls[1] == "--net=/dev/null"
        words = calls[2].split()
        assert [words[:3], words[4:]] == [["rdma", "link", "add"], ["type", "rxe", "netdev", "net1"]]
        # Before the node's own devices, rxe1 ..., in the order of names; at most 63 characters.
        assert words[3] < "rxe1"
        assert len(words[3]) < 64

    def test_a_rail_without_rdma_gets_none(self, call):
        done, calls = call("ADD", LINKS='[{"netdev": "ens2np0"}]')
        assert (done.returncode, calls) == (0, [f"real ADD {self.CONFIG}"])

    def test_what_the_real_one_refuses_is_said_as_it_said_it(self, call):
        done, calls = call("ADD", SAYS='{"code": 7, "msg": "no master"}', ENDS="3")
        assert (done.returncode, json.loads(done.stdout)["msg"]) == (3, "no master")
        assert len(calls) == 1

    def test_without_a_device_the_interface_is_taken_back_and_the_reason_is_told(self, call):
        done, calls = call("ADD", RDMA="2")
        assert done.returncode == 1
        assert json.loads(done.stdout)["msg"] == "no soft-RoCE device on net1: said"
        assert calls[-1] == f"real DEL {self.CONFIG}"

    def test_a_pod_takes_its_device_with_it(self, call):
        made = call("ADD")[1][2].split()[3]
        done, calls = call("DEL")
        assert (done.returncode, calls[1]) == (0, f"rdma link delete {made}")
        assert calls[2] == f"real DEL {self.CONFIG}"

    def test_other_questions_go_to_the_real_one(self, call):
        assert call("VERSION")[1] == [f"real VERSION {self.CONFIG}"]


class TestReady:
    def pod(self, name, start="2026-11-22T10:00:00Z", *, ready="True", node="node1", state=None, phase="Running"):
        return {
            "metadata": {"namespace": "default", "name": name},
            "spec": {"nodeName": node},
            "status": {
                "phase": phase,
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"state": state or {"running": {"startedAt": start}}}],
            },
        }

    def test_pods_that_do_not_run_are_told_with_their_reason(self):
        pods = [
            self.pod("fine"),
            self.pod("done", ready="False", phase="Succeeded"),
            self.pod("wrong", ready="False", state={"waiting": {"reason": "CrashLoopBackOff"}}),
            self.pod("young", ready="False", state={}, phase="Pending"),
        ]
        told = {"default/wrong": "CrashLoopBackOff", "default/young": "Pending"}
        assert ready.waiting(pods, {"node1": 0.0}) == told

    def test_what_was_said_before_the_node_started_does_not_count(self):
        booted = {"node1": 1795341600.0}  # 2026-11-22T10:00:00Z
        pods = [self.pod("old", "2026-11-22T09:59:59Z"), self.pod("new"), self.pod("there", node="node2")]
        assert list(ready.waiting(pods, booted)) == ["default/old"]


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

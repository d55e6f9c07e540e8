# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab itself: what it plans, that it starts and ends, and that it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

import env
import topology
from shell import LabError

NAME = f"t{os.getpid()}"
root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None,
    reason="network namespaces need root and iproute2; run as root after: apt-get install iproute2",
)


def lab(*words, check=True, **options):
    done = subprocess.run(
        [sys.executable, str(HERE / "lab.py"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        **options,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def left():
    """Everything that a lab could leave behind."""
    namespaces = sorted(path.name for path in Path("/run/netns").glob("*") if NAME in path.name)
    cache = env.cache()
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text(encoding="utf-8").split("\0")
        except OSError:
            continue
        if any(f"/labs/{NAME}" in word or word.startswith(f"rlab-{NAME}") for word in command):
            processes.append(command)
    mounts = [line for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if NAME in line]
    return {
        "namespaces": namespaces,
        "folders": sorted(path.name for path in (cache / "labs").glob(f"{NAME}*")),
        "processes": processes,
        "mounts": [line for line in mounts if "/run/netns" not in line],
    }


NOTHING = {"namespaces": [], "folders": [], "processes": [], "mounts": []}


def a_lab(**changes):
    return topology.Lab(**{"name": "x", "kind": "netns", "nodes": 2, "interfaces": ("ens1np0", "ens2np0"), **changes})


class TestTopology:
    @pytest.mark.parametrize(
        ("changes", "word"),
        [
            pytest.param({"name": "With.Dots"}, "dashes", id="name"),
            pytest.param({"nodes": 0}, "1 to 200", id="no-nodes"),
            pytest.param({"interfaces": ()}, "1 to 14", id="no-rails"),
            pytest.param({"interfaces": ("mgmt0",)}, "letters", id="taken-name"),
            pytest.param({"interfaces": ("a", "a")}, "its own", id="twice"),
            pytest.param({"cluster": True}, "--kind guests", id="namespaces-as-nodes"),
            pytest.param({"nodes": 2, "names": ("gpu-a01",)}, "--names", id="a-name-too-few"),
            pytest.param({"nodes": 2, "names": ("gpu-a01", "gpu-a01")}, "as DNS has them", id="a-name-twice"),
        ],
    )
    def test_refuses_what_cannot_be_with_the_way_out(self, changes, word):
        with pytest.raises(LabError) as caught:
            a_lab(**changes)
        assert word in caught.value.fix

    def test_hosts_have_the_names_of_an_inventory_of_the_users(self):
        address = {"family": 4, "gateway": "172.17.1.33", "subnet": "172.17.1.32/27"}
        host_plans = {"gpu-a02.example": {"rails": [{"index": 1, "addresses": [address]}]}}
        with pytest.raises(LabError) as caught:
            topology.gateways_of(a_lab(nodes=2), host_plans)
        assert "start the lab with --names" in caught.value.fix
        named = a_lab(nodes=2, names=("gpu-a01.example", "gpu-a02.example"))
        assert [host.name for host in named.hosts] == ["gpu-a01.example", "gpu-a02.example"]
        assert topology.gateways_of(named, host_plans) == (topology.Gateway(1, "172.17.1.33/27", "gpu-a02.example"),)


@pytest.fixture
def two_hosts():
    try:
        lab("up", "--name", NAME, "--nodes", "2", "--rails", "2")
        yield NAME
    finally:
        lab("down", NAME, check=False)


@root
class TestNamespaces:
    def test_up_list_and_down_leave_nothing_behind(self, two_hosts):
        listed = [line.split() for line in lab("list").stdout.splitlines()]
        assert [NAME, "netns", "2", "2", "2", "up"] in listed
        assert left()["namespaces"] == [f"rlab-{NAME}", f"rlab-{NAME}.node1", f"rlab-{NAME}.node2"]
        lab("down", NAME)
        assert left() == NOTHING

    def test_hosts_keep_their_files_settings_and_processes_to_themselves(self, two_hosts):
        script = f"echo mine > /etc/{NAME}; echo 1 > /proc/sys/net/ipv4/ip_forward; ls -A /run; ls /sys/class/net"
        found = lab("exec", NAME, "--host", "node1", "--", "sh", "-c", script).stdout.split()
        assert found == ["lock", "ens1np0", "ens2np0", "lo", "mgmt0"]
        assert not Path("/etc", NAME).exists()
        other = f"ls /etc/{NAME}; cat /proc/sys/net/ipv4/ip_forward; cat /etc/hostname"
        assert lab("exec", NAME, "--host", "node2", "--", "sh", "-c", other, check=False).stdout == "0\nnode2\n"

    def test_a_start_that_fails_takes_its_own_back_and_nothing_else(self):
        other = f"rlab-{NAME}.node2"
        subprocess.run(["ip", "netns", "add", other], check=True)
        try:
            assert lab("up", "--name", NAME, "--nodes", "2", "--rails", "1", check=False).returncode
            assert left() == {**NOTHING, "namespaces": [other]}
        finally:
            subprocess.run(["ip", "netns", "delete", other], check=True)


class TestRefusals:
    def test_without_root_it_says_what_it_needs(self):
        command = [sys.executable, str(HERE / "lab.py"), "up", "--name", NAME]
        if os.geteuid() == 0:
            # A user namespace without a map: still us to the file system, nobody to geteuid.
            command = ["unshare", "--user", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if "unshare" in done.stderr:
            pytest.skip(f"this kernel allows no user namespaces: {done.stderr.strip()}")
        assert done.returncode == 1
        assert "only root may" in done.stderr
        assert "sudo" in done.stderr

    @root
    def test_without_qemu_guests_name_the_packages_and_namespaces_still_work(self, tmp_path):
        for tool in ("ip", "unshare", "nsenter", "mount", "tee", "sh"):
            (tmp_path / tool).symlink_to(shutil.which(tool))
        (tmp_path / f"python3.{sys.version_info.minor}").symlink_to(Path(sys.executable).resolve())
        poor = {**os.environ, "PATH": str(tmp_path)}
        done = lab("up", "--name", NAME, "--kind", "guests", check=False, env=poor)
        assert "apt-get install" in done.stderr
        assert "qemu-system-x86" in done.stderr
        assert left() == NOTHING
        try:
            lab("up", "--name", NAME, "--nodes", "1", "--rails", "1", env=poor)
        finally:
            lab("down", NAME, check=False)
        assert left() == NOTHING

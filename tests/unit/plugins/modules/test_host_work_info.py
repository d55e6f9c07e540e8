# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles
from ansible_collections.railops.rdma.plugins.module_utils._rdma import workload
from ansible_collections.railops.rdma.tests.unit.machines import put, stand_for_the_host

POD = "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n"
NVIDIA, VERBS = "/dev/nvidia0", "/dev/infiniband/uverbs0"


class Host:
    """The /proc of a host."""

    def __init__(self, root):
        self.root = root
        put(root, "/etc/machine-id", "3ffb\n")
        put(root, "/proc/sys/kernel/random/boot_id", "6d0c\n")
        (root / "proc/self/ns").mkdir(parents=True)
        (root / "proc/self/ns/pid").symlink_to("pid:[1]")

    def process(self, pid, argv, *opened, comm=None, cgroup="0::/user.slice\n", namespace="pid:[1]"):
        folder = f"/proc/{pid}"
        put(self.root, f"{folder}/cmdline", argv.replace(" ", "\0", 1) + "\0")
        put(self.root, f"{folder}/comm", (comm or argv.split()[0].rpartition("/")[2])[:15] + "\n")
        put(self.root, f"{folder}/cgroup", cgroup)
        (self.root / f"proc/{pid}/fd").mkdir()
        (self.root / f"proc/{pid}/ns").mkdir()
        (self.root / f"proc/{pid}/ns/pid").symlink_to(namespace)
        for number, path in enumerate(("/dev/null", "socket:[77]", *opened)):
            (self.root / f"proc/{pid}/fd/{number}").symlink_to(path)


@pytest.fixture
def host(tmp_path, monkeypatch):
    stand_for_the_host(monkeypatch, tmp_path)
    return Host(tmp_path)


def test_an_idle_host_has_an_identity_and_no_work(host, run_module):
    host.process(7, "/usr/sbin/sshd -D")
    found = run_module()
    assert (found["work"], found["pods"], found["kubelet"], found["emptied"]) == ([], [], "", "")
    assert (found["machine_id"], found["boot_id"]) == ("3ffb", "6d0c")


@pytest.mark.parametrize(
    ("text", "purpose"), [("reboot\n", "reboot"), ("upgrade\n", "upgrade"), ("", ""), ("{{ 1 }}\n", "")]
)
def test_the_purpose_for_which_a_command_emptied_the_host_is_known(host, run_module, text, purpose):
    put(host.root, workload.EMPTIED_MARK, text)
    assert run_module()["emptied"] == purpose


def test_jobs_and_processes_are_named_and_pods_apart(host, run_module):
    host.process(30, "slurmstepd: [4711.batch]", comm="slurmstepd")
    host.process(31, "slurmstepd: [4711.extern]", comm="slurmstepd")
    host.process(32, "/usr/sbin/slurmstepd infinity")
    host.process(33, "python3 train.py", NVIDIA, "/dev/nvidiactl", VERBS)
    host.process(34, "python3 serve.py", NVIDIA, cgroup=POD)
    found = run_module()
    assert found["work"] == ["job 4711 of Slurm", f"python3 (pid 33) holds {VERBS}, {NVIDIA}, /dev/nvidiactl"]
    assert found["pods"] == [f"python3 (pid 34) holds {NVIDIA}"]


@pytest.mark.parametrize("service", sorted(workload.SERVICES))
def test_services_without_a_job_do_not_count(host, run_module, service):
    host.process(40, f"/usr/bin/{service} --flag", NVIDIA, VERBS, "/dev/infiniband/umad0")
    assert run_module()["work"] == []


@pytest.mark.parametrize(
    ("argv", "comm", "namespace", "kubelet"),
    [
        pytest.param("/usr/bin/kubelet --config=x", None, "pid:[1]", "kubelet", id="kubelet"),
        pytest.param("/usr/local/bin/k3s agent", "k3s-agent", "pid:[1]", "k3s-agent", id="k3s"),
        pytest.param("/snap/microk8s/kubelite x", None, "pid:[1]", "kubelite", id="microk8s"),
        pytest.param("/usr/bin/kubelet --config=x", None, "pid:[2]", "", id="of-a-container-that-plays-a-node"),
        pytest.param("vi kubelet.yaml", None, "pid:[1]", "", id="another-program"),
    ],
)
def test_the_kubelet_is_known(host, run_module, argv, comm, namespace, kubelet):
    host.process(50, argv, comm=comm, namespace=namespace)
    assert run_module()["kubelet"] == kubelet


def test_a_real_process_of_this_machine_is_seen(monkeypatch):
    monkeypatch.setattr(workload, "DEVICES", workload.re.compile("/dev/zero"))
    code = "import time; file = open('/dev/zero'); print('open', flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"open\n"
        lines = workload.read(HostFiles())["work"]
        assert any(f"(pid {holder.pid}) holds /dev/zero" in line for line in lines), lines
        assert not any(f"(pid {os.getpid()})" in line for line in lines)
    finally:
        holder.kill()
        holder.wait()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workloads of a host, and its node in a cluster. Reads only /proc and /etc: a new host has no tools yet."""

from __future__ import annotations

import re
import typing as t

from .._files import HostFiles

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

SPEC: dict[str, t.Any] = {}
# Holds the purpose while the host is emptied by a command of the site's. Only a run of that purpose returns the host.
EMPTIED_MARK = "/var/lib/railops-rdma/emptied"
PURPOSES = ("reboot", "upgrade")
DEVICES = re.compile(r"/dev/(infiniband/.+|nvidia\d+|nvidia-uvm|nvidiactl|kfd)")
# Services that hold devices and have no job: by the program's name.
SERVICES = frozenset(
    {
        # NVIDIA's driver, fabric and monitoring
        *("nvidia-persistenced", "nv-fabricmanager", "nvlsm", "nvidia-imex", "nv-hostengine", "dcgm-exporter"),
        *("nvidia-cuda-mps-control", "nvidia-cuda-mps-server"),
        # device plugins and their companions
        *("nvidia-device-plugin", "gpu-feature-discovery", "nvidia-mig-manager", "k8s-device-plugin"),
        *("k8s-rdma-shared-dp", "sriovdp", "sriov-network-config-daemon"),
        # rdma-core
        *("ibacm", "rdma-ndd", "srp_daemon", "iwpmd"),
    }
)
PROCESS_NAMES = frozenset(name[:15] for name in SERVICES)  # as /proc/PID/comm has them
# What runs pods on a host; k3s, MicroK8s and MicroShift have the kubelet inside of their own program.
KUBELETS = frozenset({"kubelet", "k3s-server", "k3s-agent", "kubelite", "microshift"})
# slurmd starts a program for each step of a job, and one for the job itself: "slurmstepd: [4711.batch]".
SLURM_STEP = re.compile(r"slurmstepd:[ \0]\[(\d+)")


def read(files: HostFiles) -> dict[str, t.Any]:
    """Return the host's identity as a node, and who works on it: `work` beside Kubernetes, `pods` in it."""
    found: dict[str, t.Any] = {
        "machine_id": files.text("/etc/machine-id") or files.text("/var/lib/dbus/machine-id") or "",
        "boot_id": files.boot_id,
        "kubelet": "",
        "emptied": mark if (mark := files.text(EMPTIED_MARK)) in PURPOSES else "",
    }
    jobs: set[str] = set()
    work: dict[bool, list[str]] = {False: [], True: []}
    own = files.link("/proc/self/ns/pid")
    for pid in (name for name in files.names("/proc") if name.isdigit()):
        comm = files.text(f"/proc/{pid}/comm") or ""
        # A kubelet in a container's own namespace makes a node of the container, not of this host.
        if comm in KUBELETS and files.link(f"/proc/{pid}/ns/pid") == own:
            found["kubelet"] = comm
        words = files.text(f"/proc/{pid}/cmdline") or ""
        if step := SLURM_STEP.match(words):
            jobs.add(step[1])
        if comm in PROCESS_NAMES or words.partition("\0")[0].rpartition("/")[2] in SERVICES:
            continue
        opened = {files.link(f"/proc/{pid}/fd/{number}") or "" for number in files.names(f"/proc/{pid}/fd")}
        if devices := sorted(filter(DEVICES.fullmatch, opened)):
            in_pod = "kubepods" in (files.text(f"/proc/{pid}/cgroup") or "")
            work[in_pod].append(f"{comm} (pid {pid}) holds {', '.join(devices[:3])}")
    found["work"] = [f"job {job} of Slurm" for job in sorted(jobs, key=int)] + work[False]
    return {**found, "pods": work[True]}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Return who works on the host."""
    return {"changed": False, **read(HostFiles())}

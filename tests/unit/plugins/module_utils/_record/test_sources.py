# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What readers need of the texts that are taken by expressions stays in them, and nothing beside it."""

from __future__ import annotations

import re

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._record import run as work
from ansible_collections.railops.rdma.tests.unit.machines import put

RELEASE = "6.8.0-1012-azure"
NVRM = (
    "NVRM version: NVIDIA UNIX {}x86_64 Kernel Module  550.54.15  Release Build  (alice@acme)  Tue\nGCC version: acme\n"
)


@pytest.fixture(autouse=True)
def nothing_of_this_host(monkeypatch):
    monkeypatch.setattr(work, "connection_ends", lambda sysfs: None)
    monkeypatch.setattr(work, "dumped", lambda kind: [])


@pytest.mark.parametrize(
    ("path", "text", "kept"),
    [
        (
            "/proc/cmdline",
            "vault_pci=acme pci=realloc=off iommu=pt intel_iommu=on,acme ib_core.netns_mode=0 net.ifnames=0",
            "pci=realloc=off iommu=pt ib_core.netns_mode=0 net.ifnames=0 ",
        ),
        ("/proc/cmdline", "pci=config_acs=10x@0000:c1:00.0", "pci=config_acs=10x@0000:c1:00.0 "),
        (
            "/proc/kallsyms",
            "ffffffffc0a1b2c3 T ib_register_peer_memory_client\t[ib_core]\nffffffff81000000 T acme\n",
            "0 T ib_register_peer_memory_client\n",
        ),
        ("/proc/driver/nvidia/version", NVRM.format(""), "NVRM version:  550.54.15\n"),
        (
            "/proc/driver/nvidia/version",
            NVRM.format("Open Kernel Module for "),
            "NVRM version: Open Kernel Module 550.54.15\n",
        ),
        (
            "/proc/mounts",
            "acme:/home/alice /acme nfs4 rw,addr=192.0.2.9,sec=sys 0 0\nacme / lustre rw 0 0\n",
            "- - nfs4 addr=<192.0.2.9> 0 0\n",
        ),
        (
            "/etc/os-release",
            'NAME="Acme Linux"\nID="rhel"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\nPLATFORM_ID="platform:el9"\n'
            "HOME_URL=https://acme.example\n",
            'ID="rhel"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\nPLATFORM_ID="platform:el9"\n',
        ),
        (
            f"/lib/modules/{RELEASE}/modules.dep",
            "kernel/infiniband/ib_core.ko.zst: kernel/acme.ko\nupdates/dkms/nvidia-peermem.ko:\nextra/acme.ko:\n",
            "/ib_core.ko.zst:\n/nvidia-peermem.ko:\n",
        ),
        (
            "/etc/modprobe.d/a.conf",
            "# acme\noptions ib_core netns_mode=0\noptions cfg80211 a=b\n",
            "options ib_core netns_mode=0\n",
        ),
        (
            "/etc/modprobe.d/a.conf",
            "options mlx5_core prof_sel=acme\noptions ib_core netns_mode=1\n"
            'options nvidia NVreg_RegistryDwords="acme=1"\n'
            "options ib_core netns_mode=0 acme=1\noptions rdma_rxe a=1 # acme\n",
            "options ib_core netns_mode=1\n",
        ),
        (
            "/run/udev/data/n2",
            "I:7\nE:ID_NET_NAME_PATH=enp1s0f0np0\nE:ID_PATH=pci-0000:15:00.0\nE:ID_BUS=pci\nE:ID_NET_DRIVER=mlx5_core\nS:acme\n"
            "E:ID_NET_LABEL_ONBOARD=Acme\n",
            "E:ID_NET_NAME_PATH=enp1s0f0np0\nE:ID_PATH=pci-0000:15:00.0\nE:ID_BUS=pci\nE:ID_NET_DRIVER=mlx5_core\n",
        ),
        (
            "/sys/class/nvme/nvme0/address",
            "traddr=192.0.2.9,trsvcid=4420,host_traddr=192.0.2.7",
            "traddr=<192.0.2.9>",
        ),
        ("/sys/class/nvme/nvme0/address", "traddr=nn-0x200,host=acme", ""),
        ("/sys/class/net/eth0/address", "00:00:5e:00:53:01\n", "<00:00:5e:00:53:01>\n"),
        ("/sys/class/net/gre9/address", "cb:00:71:07\n", ""),
        (
            "/etc/sysctl.d/50-acme.conf",
            "# acme\nnet.ipv4.conf.eth0.arp_ignore = 1\n-net/ipv6/conf/all/forwarding=0\nkernel.core_pattern=|/acme\n",
            "net.ipv4.conf.eth0.arp_ignore = 1\n-net/ipv6/conf/all/forwarding=0\n",
        ),
        ("/proc/cpuinfo", "model name\t: Acme\nflags\t\t: fpu hypervisor lm\n", "flags\t\t: hypervisor\n"),
    ],
)
def test_what_is_taken_by_expressions(tmp_path, monkeypatch, path, text, kept):
    """What stands between angles in what is kept has a stand-in."""
    monkeypatch.setattr(work.os, "uname", lambda: work.os.uname_result(("Linux", "gpu17", RELEASE, "", "x86_64")))
    put(tmp_path, path, text)
    made = work.Recorder(Sysfs(str(tmp_path)), lambda _argv, _text: None, "key")
    rows = {row[1]: row[2] for row in made.record()["files"]}
    expected = re.sub("<(.*)>", lambda real: made.scrub.text(real[1]), kept)
    assert rows[made.scrub.label(path) if path.startswith("/etc") else path] == expected
    assert "acme" not in str(rows).lower()

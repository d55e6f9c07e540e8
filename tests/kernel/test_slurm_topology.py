# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slurm itself takes the plan's topology.conf: Debian's slurmctld on lo of its own namespace, asked by scontrol."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import packages
import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, rails, raw_of
from ansible_collections.railops.rdma.tests.unit.plugins.plugin_utils._plan.test_workload import expanded

# The controller, its plugins, the client, and the library that both stand on.
PACKAGES = ("slurmctld", "slurm-wlm-basic-plugins", "slurm-client", "libslurm38", "munge", "libmunge2")
# A namespace's lo alone: with 127.0.0.1 only, the resolver takes no address for one that it may use.
SCRIPT = """
ip link set lo up
ip address add 127.0.0.2/8 dev lo
hostname ctl
mkdir state
slurmctld-wlm -D -c >slurmctld.out 2>&1 &
pid=$!
for second in $(seq 120); do
    scontrol ping 2>/dev/null | grep -q 'is UP' && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.5
done
scontrol show topology
code=$?
kill $pid
wait $pid
exit $code
"""
CONF = """
ClusterName=test
SlurmctldHost=ctl(127.0.0.2)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmctldPort=16817
SlurmdPort=16818
PluginDir={lib}/slurm-wlm
SelectType=select/cons_tres
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
TopologyPlugin=topology/tree
NodeName={nodes} NodeAddr=127.0.0.2 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def slurm_topology(folder: Path, topology: str, nodes: str) -> tuple[dict[str, tuple[set[str], set[str]]], str]:
    """Start slurmctld with a topology and return its switches (nodes, children), and its log."""
    if os.geteuid():
        pytest.skip("it needs root, for a network namespace; run the same command with sudo")
    try:
        home = packages.unpacked(*PACKAGES)
    except packages.NotOfferedError as exc:
        pytest.skip(str(exc))
    lib = home / "usr/lib/x86_64-linux-gnu"
    if not lib.is_dir():
        pytest.skip("Debian's packages for amd64 are what this knows")
    (folder / "slurm.conf").write_text(CONF.format(folder=folder, lib=lib, nodes=nodes), encoding="utf-8")
    (folder / "topology.conf").write_text(topology, encoding="utf-8")
    path = f"{home}/usr/sbin:{home}/usr/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
    own = {"PATH": path, "LD_LIBRARY_PATH": f"{lib}:{lib}/slurm-wlm", "SLURM_CONF": str(folder / "slurm.conf")}
    argv = ["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", SCRIPT]
    done = subprocess.run(argv, cwd=folder, env=own, capture_output=True, text=True, timeout=600, check=False)
    log = folder / "slurmctld.log"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else (folder / "slurmctld.out").read_text()
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{text[-3000:]}"
    found = {}
    for line in done.stdout.splitlines():
        row = dict(word.split("=", 1) for word in line.split() if "=" in word)
        found[row["SwitchName"]] = {*expanded(row.get("Nodes", ""))}, {*expanded(row.get("Switches", ""))}
    return found, text.replace(str(folder), "")


def checked(folder: Path, raw, nodes) -> None:
    """Compare what Slurm has with a fabric's plan: each zone's nodes, all of them, and nothing that it warns of."""
    made = run({**raw, "plan_dir": str(folder / "plan")}, nodes, check_mode=False)
    text = Path(made["plan_dir"], "workload/topology.conf").read_text(encoding="utf-8")
    names = [node["host"] for node in nodes]
    found, log = slurm_topology(folder, text, ",".join(names))
    lines = [line.split(" ") for line in text.splitlines() if line.startswith("SwitchName")]
    wanted = {words[0].partition("=")[2]: words[1].partition("=")[::2] for words in lines}
    assert found.keys() == wanted.keys()
    for name, (kind, value) in wanted.items():
        nodes, children = found[name]
        assert (nodes if kind == "Nodes" else children) == {*expanded(value)}
    warned = [line for line in log.splitlines() if re.search("topology|switch", line, re.IGNORECASE)]
    assert [line for line in warned if re.search("warn|error|fatal", line, re.IGNORECASE)] == []
    assert set().union(*(nodes for nodes, _children in found.values())) == set(names)


@pytest.mark.parametrize("sample", ["exclusive", "two-zones-dual-stack", "zones exclusive"])
def test_slurm_takes_the_topology(sample, tmp_path):
    checked(tmp_path, *SAMPLES[sample])


def test_slurm_takes_leaves_inside_of_a_fabric(tmp_path):
    nodes = [
        {"host": f"node{n}", "cables": {f"rail{rail}": {"leaf": f"l{rail}{'ab'[n > 2]}"} for rail in (1, 2)}}
        for n in (1, 2, 3, 4)
    ]
    checked(tmp_path, raw_of(rails=rails(2)), nodes)

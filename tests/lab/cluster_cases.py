# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cases of the matrix with a real cluster on the guests: each takes a fleet and returns what was seen."""

from __future__ import annotations

import json
import re
import typing as t

import container_images
import image
from fleet import CaseError, Fleet, unchanged

# An emulated pod with eight rails takes its time, and so do those that a DaemonSet has at once.
PATIENT = {
    "spiderpool_timeout": 900,
    "rail_objects_wait_seconds": 900,
    "rail_objects_test_wait_seconds": 900,
    "verify_pod_timeout": 600,
    # While one pod measures, the other of its emulated node does not start in any time.
    "verify_pod_parallel": 1,
}
# What is checked in a pod whose rails share devices.
PODS = {
    *("pod_running", "pod_network", "pod_interface", "pod_rule", "pod_table", "pod_main_table", "pod_rdma", "pod_gid"),
    "pod_read_lat",
}
# An unmanaged pod that holds an address of the first rail.
TENANT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "tenant",
        "namespace": "default",
        "annotations": {"k8s.v1.cni.cncf.io/networks": "spiderpool/fabric-rail1"},
    },
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "pause", "image": "localhost/pause:1", "imagePullPolicy": "Never"}],
    },
}
# One run of NetPIPE for each rail, from pod to pod; soft-RoCE is special as on hosts (host_cases.NETPIPE). In the mode
# `shared` a pod sees the devices of others too: its own are those with an interface.
NETPIPE = r"""
for rail in $RAILS; do
  echo "netpipe over $rail"
  mpirun --host {hosts} -np 2 --mca pml ucx --mca oob_tcp_if_include eth0 \
    -x UCX_TLS=rc,self -x UCX_UD_ETH_DGID_CHECK=n -x UCX_LOG_LEVEL=info \
    sh -c 'device=$(rdma -j link show | jq -r --arg rail "$0" ".[] | select(.netdev == \$rail) | .ifname")
      UCX_NET_DEVICES=$device:1 exec NPopenmpi -p 0 -l 4096 -u 65536 -n 5 -o /tmp/netpipe' "$rail"
done
"""


def verdict(fleet: Fleet) -> dict[str, t.Any]:
    """Return the last verdict."""
    found: dict[str, t.Any] = json.loads((fleet.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    return found


def checks(fleet: Fleet) -> list[dict[str, t.Any]]:
    """Return what the last verdict holds of hosts and cluster that is not ok, each with its host."""
    found = verdict(fleet)
    hosts = [{**row, "host": name} for name, entry in found["hosts"].items() for row in entry["checks"]]
    return hosts + [{**row, "host": None} for row in found["cluster"]["checks"]]


def green_with_pods(fleet: Fleet, output: str) -> dict[str, float]:
    """Insist that a green run checked pods and left out none of their checks; return the read latencies.

    :param output: what the run printed with -v.
    :return: microseconds by node and rail.
    """
    left_out = [row for row in checks(fleet) if row["id"].startswith("pod")]
    if left_out:
        raise CaseError(f"these checks of pods are not ok: {left_out}")
    task = re.search(r"TASK \[[^\n]*Check the pods of the test application\][^\n]*\n[^{]*(\{.*\})", output)
    if not task:
        raise CaseError("the run did not check pods")
    rows = json.loads(task[1])["checks"]
    missing = PODS - {row["id"] for row in rows}
    if missing:
        raise CaseError(f"these checks of pods were not made: {sorted(missing)}")
    latencies = {
        f"{row['node']} {row['rail']}": float(row["observed"].split()[0]) for row in rows if row["id"] == "pod_read_lat"
    }
    if len(latencies) != fleet.case.nodes * fleet.rails:
        raise CaseError(f"read latency between pods was measured for {sorted(latencies)} only")
    return latencies


def begin(fleet: Fleet, example: str, **changes: object) -> None:
    """Start the guests, plan, and give the switches their addresses."""
    fleet.up()
    fleet.declare(example, **PATIENT, **changes)
    fleet.play("plan")
    fleet.lab("gateways", fleet.name, "--plan", str(fleet.plan))


def nothing_left(fleet: Fleet) -> None:
    """Insist that neither Spiderpool's kinds, and so no pool and no config, nor a release is left."""
    kinds = [name for name in fleet.kubectl("get", "crds", "--output=name").split() if "spidernet.io" in name]
    records = fleet.kubectl("get", "secrets", "--all-namespaces", "--selector=owner=helm", "--output=name").split()
    if left := kinds + [name for name in records if name.startswith("secret/")]:
        raise CaseError(f"teardown left {left}")


def shared(fleet: Fleet) -> str:
    """From bare guests to pods with all rails, through a reboot of all, and back."""
    begin(fleet, "shared", fabric_mtu=4200, fabric_rail_prefix=24)
    fleet.play("site", "--check", "--diff")
    fleet.play("site")
    fleet.play("test_application")
    again = fleet.play("site", "-v")
    unchanged(again)
    found = [green_with_pods(fleet, again), rebooted(fleet)]
    refused(fleet)
    fleet.play("teardown", "-e", "teardown_spiderpool=true")
    nothing_left(fleet)
    speeds = " and ".join(f"{len(one)} (typical {typical(one):.0f} us)" for one in found)
    return (
        "real Kubernetes, Spiderpool and device plugin; bare guests to pods; second run empty; read latencies between "
        f"pods before and after a reboot of all: {speeds}; a pool in use kept; teardown leaves nothing"
    )


def typical(latencies: dict[str, float]) -> float:
    """Return the one in the middle."""
    return sorted(latencies.values())[len(latencies) // 2]


def rebooted(fleet: Fleet) -> dict[str, float]:
    """Reboot all; verify is green without another run.

    :return: the read latencies then, microseconds by node and rail.
    """
    fleet.reboot()
    fleet.lab("wait", fleet.name)
    # A pod is started again once its node's device plugin offers the rails again.
    fleet.kubectl("rollout", "status", "daemonset/fabric-test", "--timeout=900s")
    return green_with_pods(fleet, fleet.play("verify", "-v"))


def broken(fleet: Fleet) -> str:
    """An MPI job over pods, a cut rail."""
    begin(fleet, "shared", fabric_mtu=4200, fabric_rail_prefix=24)
    fleet.play("site")
    fleet.play("test_application")
    speeds = collective(fleet)
    found = cut(fleet)
    return (
        f"NetPIPE as an Indexed Job over pods on both nodes (GB/s: {', '.join(speeds)}); a cut rail is named, then "
        f"{len(found)} read latencies between pods (typical {typical(found):.0f} us)"
    )


def collective(fleet: Fleet) -> list[str]:
    """Run an MPI program over pods on both nodes as an Indexed Job; return GB/s by rail, reported by RDMA alone."""
    rails = [f"net{number}" for number in range(1, fleet.rails + 1)]
    options = {
        "plan_dir": str(fleet.plan),
        "nodes": fleet.hosts,
        "image": container_images.pinned(container_images.MPI, image.container_images()),
        "words": ["sh", "-c", f"RAILS='{' '.join(rails)}'\n{NETPIPE}"],
        "seconds": 900,
        "kubeconfig": "{{ fabric_kubeconfig }}",
    }
    output = fleet.folder / "collective.txt"
    tasks: list[dict[str, t.Any]] = [
        {"railops.rdma.collective_job": options, "register": "job"},
        {"ansible.builtin.copy": {"content": "{{ job.output }}", "dest": str(output), "mode": "0644"}},
        {"ansible.builtin.assert": {"that": "job.code == 0"}},
    ]
    book = fleet.folder / "collective.yml"
    book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    fleet.ansible(book)
    found = {}
    for run in re.split(r"^netpipe over ", output.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        rail = run.split()[0]
        # `ep_cfg[1]: tag(rc_verbs/pod0123456789ab:1)`, and a row for each size.
        went = set(re.findall(r"ep_cfg\[[1-9]\d*\]: tag\((\w+)/", run))
        largest = re.search(r" 65536 bytes.*?([\d.]+) Mbps", run)
        if went != {"rc_verbs"} or not largest:
            raise CaseError(f"NetPIPE over {rail} of pods went by {went or 'nothing'}: {run[-300:]}")
        found[rail] = float(largest[1]) / 8000
    if list(found) != rails:
        raise CaseError(f"NetPIPE ran over {list(found)} of pods only")
    # With the Job goes what belongs to it, once the garbage collector has seen that.
    words = ("--namespace", "default", "--selector=railops.io/probe=collective", "--for=delete", "--timeout=60s")
    for kind in ("jobs", "pods", "secrets", "services"):
        fleet.kubectl("wait", kind, *words)
    return [f"{rail} {speed:.4f}" for rail, speed in found.items()]


def cut(fleet: Fleet) -> dict[str, float]:
    """Pull a rail's cable: verify is red and names it for the pods too; plugged, it is green again.

    :return: the read latencies then, microseconds by node and rail.
    """
    fleet.lab("cable", fleet.name, "node2", "ens2np0", "pull")
    # The pods on that rail do not start: there is no need to wait for them as for those that do.
    fleet.play("verify", "-e", "verify_pod_timeout=150", fails=True)
    wrong = {
        (row["rail"], row["id"])
        for row in checks(fleet)
        if row["status"] == "deviation" and row["cause"] and row["fix"]
    }
    if ("rail2", "pod_read_lat") not in wrong or {rail for rail, _check in wrong} != {"rail2"}:
        raise CaseError(f"with rail2 of node2 cut, these are named: {sorted(wrong, key=str)}")
    fleet.lab("cable", fleet.name, "node2", "ens2np0", "plug")
    return green_with_pods(fleet, fleet.play("verify", "-v"))


def refused(fleet: Fleet) -> None:
    """A pool whose addresses a pod holds is not taken away, and the pod's name is reported."""
    (fleet.folder / "tenant.json").write_text(json.dumps(TENANT), encoding="utf-8")
    fleet.kubectl("apply", "-f", str(fleet.folder / "tenant.json"))
    fleet.lab("wait", fleet.name)
    text = fleet.play("teardown", "-e", "teardown_spiderpool=true", fails=True)
    if "tenant" not in text:
        raise CaseError("teardown was refused, but does not name the pod that holds an address")
    fleet.kubectl("delete", "pod", "tenant")

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cases of the matrix with a real cluster on the guests: each takes a fleet and returns what was seen."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import typing as t
from pathlib import Path

import cluster
import container_images
import image
import state
from fleet import BROKEN, CHECKOUT, DUAL_STACK, CaseError, Fleet, messages, named, unchanged

# An emulated pod with eight rails takes its time, and so do those that a DaemonSet has at once.
PATIENT = {
    "spiderpool_timeout": 900,
    "rail_objects_wait_seconds": 900,
    "rail_objects_test_wait_seconds": 900,
    "verify_pod_timeout": 600,
    # While one pod measures, the other of its emulated node does not start in any time.
    "verify_pod_parallel": 1,
}
# What is killed while site runs, and what a sentence may call it.
KILLED = {
    "spiderpool-agent": r"spiderpool-agent",
    "spiderpool-controller": r"spiderpool-controller|webhook",
    "k8s-rdma-shared-dp": r"spiderpool-rdma-shared-device-plugin",
    "kubelet": r"node[12]",
    "kube-apiserver": r"\bAPI\b",
}
# What is looked at in a pod whose rails share devices.
PODS = {
    *("pod_running", "pod_network", "pod_nic", "pod_rule", "pod_table", "pod_main_table", "pod_rdma", "pod_gid"),
    "pod_read_lat",
}
# A pod of somebody else that holds an address of the first rail.
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
    """Insist that a green run looked into pods and left out none of their checks; return the read latencies.

    :param output: what the run printed with -v.
    :return: microseconds by node and rail.
    """
    left_out = [row for row in checks(fleet) if row["id"].startswith("pod")]
    if left_out:
        raise CaseError(f"these checks of pods are not ok: {left_out}")
    task = re.search(r"TASK \[[^\n]*Look into the pods of the test application\][^\n]*\n[^{]*(\{.*\})", output)
    if not task:
        raise CaseError("the run did not look into pods")
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
    # A pod is started anew once its node's device plugin offers the rails again.
    fleet.kubectl("rollout", "status", "daemonset/fabric-test", "--timeout=900s")
    return green_with_pods(fleet, fleet.play("verify", "-v"))


def broken(fleet: Fleet) -> str:
    """An MPI job over pods, a cut rail, the gate."""
    begin(fleet, "shared", fabric_mtu=4200, fabric_rail_prefix=24)
    fleet.play("site")
    fleet.play("test_application")
    speeds = collective(fleet)
    found = cut(fleet)
    gate(fleet)
    return (
        f"NetPIPE as an Indexed Job over pods on both nodes (GB/s: {', '.join(speeds)}); a cut rail is named, then "
        f"{len(found)} read latencies between pods (typical {typical(found):.0f} us); the gate keeps a pod off that "
        "node and lets it on again"
    )


def collective(fleet: Fleet) -> list[str]:
    """Run an MPI program over pods on both nodes as an Indexed Job; return GB/s by rail, told by RDMA alone."""
    rails = [f"net{number}" for number in range(1, fleet.rails + 1)]
    asked = {
        "plan_dir": str(fleet.plan),
        "nodes": fleet.hosts,
        "image": container_images.pinned(container_images.MPI, image.container_images()),
        "words": ["sh", "-c", f"RAILS='{' '.join(rails)}'\n{NETPIPE}"],
        "seconds": 900,
        "kubeconfig": "{{ fabric_kubeconfig }}",
    }
    said = fleet.folder / "collective.txt"
    tasks: list[dict[str, t.Any]] = [
        {"railops.rdma.collective_job": asked, "register": "job"},
        {"ansible.builtin.copy": {"content": "{{ job.output }}", "dest": str(said), "mode": "0644"}},
        {"ansible.builtin.assert": {"that": "job.code == 0"}},
    ]
    book = fleet.folder / "collective.yml"
    book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    fleet.ansible(book)
    found = {}
    for run in re.split(r"^netpipe over ", said.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
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


def gate(fleet: Fleet) -> None:
    """With a rail cut, the gate keeps pods off that node, and lets them on again; somebody else's taint stays."""
    asked = {"gate": True, "gate_taint": True, "gate_bad": 1, "gate_good": 1, "gate_max_out": 1}
    words = ("-e", json.dumps({f"audit_{name}": value for name, value in asked.items()}))
    fleet.play("audit", *words)
    gated(fleet, {"node1": "True", "node2": "True"}, [])
    fleet.kubectl("taint", "node", "node2", "example.com/theirs=1:PreferNoSchedule")
    fleet.lab("cable", fleet.name, "node2", "ens2np0", "pull")
    fleet.play("audit", *words, fails=True)
    gated(fleet, {"node1": "True", "node2": "False"}, ["example.com/theirs", "fabric.railops.io/rails"])
    spec = {**TENANT["spec"], "nodeSelector": {"kubernetes.io/hostname": "node2"}}
    job = {**TENANT, "metadata": {"name": "job", "namespace": "default"}, "spec": spec}
    (fleet.folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    fleet.kubectl("apply", "-f", str(fleet.folder / "job.json"))
    fleet.kubectl("wait", "pod/job", "--for=condition=PodScheduled=false", "--timeout=60s")
    status = json.loads(fleet.kubectl("get", "pod", "job", "--output=json"))["status"]
    if "untolerated taint" not in json.dumps(status):
        raise CaseError(f"the pod is not kept off by the gate's taint: {status}")
    fleet.lab("cable", fleet.name, "node2", "ens2np0", "plug")
    fleet.play("audit", *words)
    gated(fleet, {"node1": "True", "node2": "True"}, ["example.com/theirs"])
    fleet.kubectl("wait", "pod/job", "--for=condition=Ready", "--timeout=300s")
    fleet.kubectl("delete", "pod", "job")
    fleet.kubectl("taint", "node", "node2", "example.com/theirs-")


def gated(fleet: Fleet, ready: dict[str, str], taints: list[str]) -> None:
    """Insist on what the gate wrote of each node: its condition, and which taints node2 has."""
    nodes = {item["metadata"]["name"]: item for item in json.loads(fleet.kubectl("get", "nodes", "-ojson"))["items"]}
    seen = {
        name: row["status"]
        for name, node in nodes.items()
        for row in node["status"]["conditions"]
        if row["type"] == "RailsReady"
    }
    keys = sorted(taint["key"] for taint in nodes["node2"]["spec"].get("taints", []))
    if (seen, keys) != (ready, taints):
        raise CaseError(f"RailsReady is {seen} and node2 has the taints {keys}, due are {ready} and {taints}")


def refused(fleet: Fleet) -> None:
    """A pool whose addresses a pod holds is not taken away, and the pod's name is told."""
    (fleet.folder / "tenant.json").write_text(json.dumps(TENANT), encoding="utf-8")
    fleet.kubectl("apply", "-f", str(fleet.folder / "tenant.json"))
    fleet.lab("wait", fleet.name)
    said = fleet.play("teardown", "-e", "teardown_spiderpool=true", fails=True)
    if "tenant" not in said:
        raise CaseError("teardown was refused, but does not name the pod that holds an address")
    fleet.kubectl("delete", "pod", "tenant")


def ended(fleet: Fleet, program: str) -> None:
    """Kill a program on the first guest that has it; the API's server is beside the controller."""
    if program == "kube-apiserver":
        home = cluster.folder(state.load(fleet.name))
        found = [path.parent for path in Path("/proc").glob("[0-9]*/cwd") if path.resolve() == home]
        pids = [int(path.name) for path in found if b"kube-apiserver" in (path / "cmdline").read_bytes()]
        if not pids:
            raise CaseError("no kube-apiserver of this lab runs")
        os.kill(pids[0], signal.SIGKILL)
        return
    # `pkill` looks at the first 15 letters of a name. Between the old pods and the new ones there is none to kill.
    until = time.monotonic() + 180
    while not any(
        fleet.on(node, "sh", "-c", f"pkill -KILL {program[:15]} || echo none").strip() == "" for node in fleet.hosts
    ):
        if time.monotonic() > until:
            raise CaseError(f"{program} runs on no node")
        time.sleep(1)


def kills(fleet: Fleet) -> str:
    """Each part is killed while the cluster changes: success, or one sentence that names it; then all is well again."""
    begin(fleet, "shared", fabric_mtu=4200, fabric_rail_prefix=24)
    fleet.play("site")
    how = [killed(fleet, program) for program in KILLED]
    unchanged(fleet.play("site", *metrics(list(KILLED)[-1])))
    fleet.play("teardown", "-e", "teardown_spiderpool=true")
    nothing_left(fleet)
    return f"killed while site changes the release: {', '.join(how)}; the next run completes, the one after is empty"


def metrics(program: str) -> tuple[str, str]:
    """Return the words that change the release for each program in turn."""
    return ("-e", f"spiderpool_metrics={list(KILLED).index(program) % 2 == 0}")


def killed(fleet: Fleet, program: str) -> str:
    """Kill a program while the release changes; the next run completes, and the one after changes nothing."""
    # The hosts' part and verify have nothing to do with what is killed, and take most of the time.
    changed = ("railops.rdma.site", "--tags", "plan,cluster", *metrics(program))

    # helm keeps a record of each revision: with a new one the release changes, and site waits for what follows.
    words = ("get", "secrets", "--namespace", "spiderpool", "--output=name", "--selector=owner=helm")
    before = fleet.kubectl(*words)

    def kill() -> None:
        until = time.monotonic() + 300
        while fleet.kubectl(*words) == before:
            if time.monotonic() > until:
                raise CaseError(f"the release did not change, so {program} was not killed")
            time.sleep(1)
        ended(fleet, program)

    code, output = fleet.ended(fleet.book(*changed), kill)
    told = messages(output)
    if code and not any(re.search(KILLED[program], said) for said in told):
        raise CaseError(f"with {program} killed, site does not name it: {told[-1:]}")
    fleet.lab("wait", fleet.name)
    if code:
        fleet.ansible(*changed)
    unchanged(fleet.ansible(*changed))
    return f"{program} {'named' if code else 'outlived'}"


def webhooks(fleet: Fleet) -> str:
    """All example inventories whole, and 200 random fabrics, are stored by the real webhooks as they are planned."""
    beside = [sys.executable, str(CHECKOUT / "tests/cluster/real_api.py")]
    tests = ["-m", "pytest", "-q", "-s", "--real-only", str(CHECKOUT / "tests/cluster/test_spiderpool.py")]
    asked = ["RAILOPS_TEST_LONG=1", "RAILOPS_REAL_FABRICS=200", "RAILOPS_REAL_WHOLE=1"]
    said = fleet.run(["env", *asked, *beside, sys.executable, *tests, "-k", "stored_as"])
    told = re.findall(r"\d+ fabrics, \d+ pools, seed \d+", said)
    if not told:
        raise CaseError("the tests do not say how many fabrics they stored")
    return f"all example inventories whole, {told[0]}: stored as planned, found unchanged; at most 250 pools at once"


def audit(fleet: Fleet) -> str:
    """What is broken on a host and in the cluster is named by one audit and mended by one run."""
    begin(fleet, "exclusive", **DUAL_STACK)
    fleet.play("site")
    unchanged(fleet.play("site"))
    host, _rail, _check, command = BROKEN[0]
    fleet.on(host, *command)
    edited, gone = "fabric-rail1-v4-node1", "fabric-rail2"
    patch = json.dumps({"spec": {"nodeName": ["elsewhere"]}})
    fleet.kubectl("patch", "spiderippool", edited, "--type=merge", "--patch", patch)
    fleet.kubectl("delete", "spidermultusconfig", gone, "--namespace", "spiderpool")
    named(fleet, BROKEN[0][:3])
    told = {row["planned"] for row in verdict(fleet)["cluster"]["checks"] if row["status"] == "deviation"}
    if told != {f"SpiderIPPool {edited}", f"SpiderMultusConfig spiderpool/{gone}"}:
        raise CaseError(f"the audit does not name {edited} and {gone}, only {sorted(told)}")
    fleet.play("site")
    fleet.play("audit")
    pool = json.loads(fleet.kubectl("get", "spiderippool", edited, "--output=json"))
    if pool["spec"]["nodeName"] != ["node1"]:
        raise CaseError(f"the edited pool was not mended: {pool['spec']}")
    fleet.play("teardown", "-e", "teardown_spiderpool=true")
    nothing_left(fleet)
    return (
        "real Kubernetes and Spiderpool; second run empty; a pool edited, a config and a rule deleted: one audit names "
        "all, site mends; teardown leaves nothing"
    )

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command beside a real Kubernetes API in a network namespace of its own; all of it ends with the command.

    real_api.py pytest tests/cluster            RAILOPS_TEST_KUBECONFIG names its kubeconfig
    real_api.py --bare COMMAND ...              etcd, kube-apiserver and the CRDs alone, as the benchmarks want it
    real_api.py --here --nodes 2 COMMAND ...    in the namespace in which it is called, with nodes node1 and node2

The control plane is real (control_plane.py, of the programs that programs.py finds), and ended programs are started
again. kubelet.py and simulated.py simulate kubelets and nodes. Spiderpool's controller, its webhooks and its Jobs are
the real programs once its chart is installed; without these programs only its CRDs exist. Needs root for the
namespace; nothing of it is reachable from outside.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import typing as t
from pathlib import Path

import programs
from control_plane import ControlPlane, StartError
from simulated import NODES, SimulatedCluster

INSIDE = "RAILOPS_REAL_API_INSIDE"
# The kubelets are simulated and send no heartbeats.
EXTRA = {"kube-controller-manager": ["--controllers=*,-node-lifecycle-controller"]}


def inside(command: list[str], *, bare: bool, nodes: int) -> int:
    """Run the command in this namespace, beside the cluster."""
    with tempfile.TemporaryDirectory(prefix="rr-api-") as name:
        cluster = ControlPlane(Path(name), bare=bare, extra=EXTRA)
        crds = bare or bool(programs.lacking("webhooks"))
        nodes = 0 if bare else nodes
        try:
            with (
                cluster,
                restarting(cluster),
                SimulatedCluster(cluster.kubeconfig, Path(name) / "pods", cluster.address, crds=crds, nodes=nodes),
            ):
                given = {
                    "RAILOPS_TEST_KUBECONFIG": str(cluster.kubeconfig),
                    "RAILOPS_TEST_SIMULATED": "" if bare else "1",
                    "RAILOPS_TEST_SPIDERPOOL": "" if crds else "1",
                    "RAILOPS_TEST_RELEASE": programs.version(programs.SERVER),
                    # Clients keep there what kinds the API of this address had the last time.
                    "TMPDIR": name,
                }
                return subprocess.run(command, env={**os.environ, **given}, check=False).returncode
        finally:
            if logs := os.environ.get("RAILOPS_REAL_API_LOGS"):
                for log in Path(name).glob("*.log"):
                    shutil.copy2(log, logs)


@contextlib.contextmanager
def restarting(cluster: ControlPlane) -> t.Iterator[None]:
    """Start again what ends, as a kubelet does with static pods."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(1):
            cluster.restart_ended()

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()


def namespace() -> str:
    """Return the name of the network namespace that this runs in; none when it has no name."""
    done = subprocess.run(["ip", "netns", "identify"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def why_not(level: str = "server") -> str:
    """Say why there can be no real API on this machine, with the remedy; nothing if there can.

    :param level: what must be beside it (programs.LEVELS).
    """
    if os.geteuid():
        return "a network namespace of its own needs root; run the same command with sudo"
    lacking = [name for name in ("ip", "unshare") if not shutil.which(name)]
    if lacking:
        return f"{', '.join(lacking)} not found; run: apt-get install iproute2 util-linux"
    return programs.lacking(level)


def main() -> None:
    """Enter the namespace and run there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bare", action="store_true", help="only etcd, the API and the CRDs")
    parser.add_argument("--here", action="store_true", help="in this network namespace, which must be one of a test")
    parser.add_argument("--nodes", type=int, default=NODES, help="how many nodes there are (default %(default)s)")
    levels = {"nargs": "?", "const": "server", "choices": list(programs.LEVELS)}
    parser.add_argument("--why-not", **levels, help="say why there can be none here, or not all of this, if so")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.why_not:
        sys.exit(why_not(options.why_not) or None)
    if not options.command:
        parser.error("which command?")
    try:
        if os.environ.get(INSIDE):
            sys.exit(inside(options.command, bare=options.bare, nodes=options.nodes))
        if options.here and not namespace():
            raise StartError("--here is for a named network namespace of a test: this is none.")
    except (programs.MissingError, StartError) as exc:
        sys.exit(str(exc))
    if reason := why_not():
        sys.exit(reason)
    # All that is started in the namespaces ends with the first process in them.
    own = ["unshare", *([] if options.here else ["--net"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
    done = subprocess.run([*own, sys.executable, *sys.argv], env={**os.environ, INSIDE: "1"}, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()

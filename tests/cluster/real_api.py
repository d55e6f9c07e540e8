# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command beside a real Kubernetes API in a network namespace of its own; all of it ends with the command.

    real_api.py pytest tests/cluster            RAILOPS_TEST_KUBECONFIG names its kubeconfig
    real_api.py --bare COMMAND ...              etcd, kube-apiserver and the CRDs alone, as the benchmarks want it
    real_api.py --here --nodes 2 COMMAND ...    in the namespace in which it is called, with nodes node1 and node2
    real_api.py --newer COMMAND ...             custom resources served by the current Kubernetes (newer_build.py)

kube-apiserver, its controller manager, its scheduler and etcd are real (real_build.py). What a cluster has besides is
played by real_parts.py: kubelets, Spiderpool's controller and its webhooks with the collection's own admission rules.
Needs root for the namespace; nothing of it is reachable from outside.
"""

from __future__ import annotations

import argparse
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import typing as t
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from api_tls import Certificate
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from newer_build import PROGRAM, newer, version
from real_build import RELEASE, BuildError, built
from real_parts import NODES, Parts

PORT = 6443
# Of the older server when a newer one stands before it.
CORE_PORT = 6444
TOKEN = "a-token-of-the-tests"
INSIDE = "RAILOPS_REAL_API_INSIDE"
START_SECONDS = 90
ROOM = 2**30  # bytes


def url(port: int) -> str:
    """Return the address of a server."""
    return f"https://127.0.0.1:{port}"


class StartError(Exception):
    """A program did not come up; its log tells why."""


class Cluster:
    """The processes of a control plane and their folder."""

    def __init__(self, programs: Path, folder: Path, newer_programs: Path | None = None) -> None:
        self.programs = programs
        self.folder = folder
        self.newer = newer_programs
        self.kubeconfig = folder / "kubeconfig"
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, *, bare: bool) -> None:
        """Start all of it and wait until it answers; `bare` leaves it at the API."""
        self.credentials()
        self.program(
            self.newer / "etcd" if self.newer else "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380",
        )
        key = self.folder / "accounts.key"
        self.program(
            "kube-apiserver",
            "--advertise-address=10.255.255.1",
            f"--secure-port={CORE_PORT if self.newer else PORT}",
            *self.serving,
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            "--feature-gates=ServerSideApply=true",
        )
        if self.newer:
            self.wait("/readyz", CORE_PORT)
            self.before()
        self.wait("/readyz")
        if bare:
            return
        same = f"--kubeconfig={self.kubeconfig}"
        # The kubelets are played and send no heartbeats.
        self.program(
            "kube-controller-manager",
            same,
            f"--service-account-private-key-file={key}",
            "--use-service-account-credentials=false",
            "--controllers=*,-nodelifecycle",
            "--leader-elect=false",
        )
        self.program("kube-scheduler", same, "--leader-elect=false")
        self.wait("/api/v1/namespaces/default/serviceaccounts/default")

    @property
    def serving(self) -> tuple[str, ...]:
        """Return a server's options of its own certificate and of etcd."""
        return (
            "--etcd-servers=http://127.0.0.1:2379",
            "--bind-address=127.0.0.1",
            f"--tls-cert-file={self.folder / 'tls.crt'}",
            f"--tls-private-key-file={self.folder / 'tls.key'}",
        )

    def before(self) -> None:
        """Start the newer server of custom resources before the older one, which it asks who may do what."""
        core = self.folder / "core-kubeconfig"
        self.write_kubeconfig(core, CORE_PORT)
        self.program(
            t.cast("Path", self.newer) / PROGRAM,
            *self.serving,
            f"--secure-port={PORT}",
            f"--core={url(CORE_PORT)}",
            f"--core-authority={self.folder / 'tls.crt'}",
            f"--core-token={TOKEN}",
            *(f"--{what}kubeconfig={core}" for what in ("", "authentication-", "authorization-")),
            "--authentication-skip-lookup",
            # The older server does not have their kinds.
            "--disable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy",
            "--enable-priority-and-fairness=false",
        )

    def credentials(self) -> None:
        """Write keys, the certificate, the token and the kubeconfig."""
        self.folder.chmod(0o700)
        made = Certificate("API of the tests")
        (self.folder / "tls.crt").write_text(made.text, encoding="utf-8")
        (self.folder / "tls.key").write_text(made.secret, encoding="utf-8")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        (self.folder / "accounts.key").write_bytes(text)
        (self.folder / "tokens.csv").write_text(f"{TOKEN},tester,1,system:masters\n", encoding="utf-8")
        self.write_kubeconfig(self.kubeconfig, PORT)

    def write_kubeconfig(self, path: Path, port: int) -> None:
        """Write how to reach a server."""
        cluster = {"server": url(port), "certificate-authority": str(self.folder / "tls.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "real", "user": {"token": TOKEN}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
        }
        path.write_text(yaml.safe_dump(config), encoding="utf-8")

    def program(self, which: str | Path, *arguments: str) -> None:
        """Start one program with its log beside it."""
        path = self.programs / which
        name = path.name
        with (self.folder / f"{name}.log").open("wb") as log:
            argv = [str(path), *arguments]
            made = subprocess.Popen(argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._running.append((name, made))

    def wait(self, path: str, port: int = PORT) -> None:
        """Wait until the API answers a path with success.

        :raises StartError: it does not in time, or a program has ended.
        """
        trusted = ssl.create_default_context(cafile=str(self.folder / "tls.crt"))
        asked = urllib.request.Request(f"{url(port)}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(asked, timeout=5, context=trusted).close()
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
            else:
                return
            ended = [name for name, process in self._running if process.poll() is not None]
            if ended or time.monotonic() > until:
                which = ended[0] if ended else "kube-apiserver"
                said = (self.folder / f"{which}.log").read_text(encoding="utf-8", errors="replace")[-3000:]
                why = "has ended" if ended else f"does not answer {path} after {START_SECONDS} s"
                raise StartError(f"{which} {why}: {said}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End all of it, the API before its store."""
        for _name, process in reversed(self._running):
            process.terminate()
        for _name, process in reversed(self._running):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def inside(command: list[str], *, bare: bool, nodes: int, newer_programs: Path | None) -> int:
    """Run the command in this namespace, beside the cluster."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # In memory etcd waits for no disk, but it wants some room.
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > ROOM
    with tempfile.TemporaryDirectory(prefix="rr-api-", dir=memory if roomy else None) as name:
        cluster = Cluster(built(), Path(name), newer_programs)
        try:
            cluster.start(bare=bare)
            with Parts(cluster.kubeconfig, bare=bare, nodes=nodes):
                given = {"RAILOPS_TEST_KUBECONFIG": str(cluster.kubeconfig), "RAILOPS_TEST_PLAYED": "" if bare else "1"}
                given["RAILOPS_TEST_RELEASE"] = version(newer_programs) if newer_programs else RELEASE
                done = subprocess.run(command, env={**os.environ, **given}, check=False)
        finally:
            cluster.stop()
            if logs := os.environ.get("RAILOPS_REAL_API_LOGS"):
                for log in Path(name).glob("*.log"):
                    shutil.copy2(log, logs)
    return done.returncode


def namespace() -> str:
    """Return the name of the network namespace that this runs in; none when nobody gave it one."""
    done = subprocess.run(["ip", "netns", "identify"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main() -> None:
    """Enter the namespace and run there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bare", action="store_true", help="only etcd, the API and the CRDs")
    parser.add_argument("--here", action="store_true", help="in this network namespace, which must be one of a test")
    parser.add_argument("--nodes", type=int, default=NODES, help="how many nodes there are (default %(default)s)")
    parser.add_argument("--newer", action="store_true", help="custom resources by the current Kubernetes")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("which command?")
    try:
        if os.environ.get(INSIDE):
            programs = newer() if options.newer else None
            sys.exit(inside(options.command, bare=options.bare, nodes=options.nodes, newer_programs=programs))
        if options.here and not namespace():
            raise StartError("--here is for a named network namespace of a test: this is none.")
        if os.geteuid():
            raise BuildError("A network namespace of its own needs root; run the same command with sudo.")
        built()
        if options.newer:
            newer()
    except (BuildError, StartError) as exc:
        sys.exit(str(exc))
    # All that is started in the namespaces ends with the first process in them.
    own = ["unshare", *([] if options.here else ["--net"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
    done = subprocess.run([*own, sys.executable, *sys.argv], env={**os.environ, INSIDE: "1"}, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()

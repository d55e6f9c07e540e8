# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start a real Kubernetes control plane in a network namespace of a test: etcd, API, controller manager, scheduler.

    with ControlPlane(folder, address="10.99.0.1") as cluster:
        subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig, ...])

It knows nothing of nodes. The address and the service address of the API are put on `lo` where the namespace does not
have them, so that a process routed to this namespace reaches the API as pods expect it, without a proxy; webhooks are
called at their endpoints. It refuses to start in a namespace that has a way out.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import typing as t
import urllib.request
from pathlib import Path

import programs
from api_tls import Certificate, kubeconfig
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ADDRESS = "10.255.0.1"
# The first address of SERVICES: that of the API inside the cluster.
SERVICE = "10.96.0.1"
SERVICES = "10.96.0.0/16"
PORT = 443
TOKEN = "a-token-of-the-tests"
START_SECONDS = 90
ROOM = 2**30  # bytes


class StartError(Exception):
    """A program did not come up; its log says why."""


class ControlPlane:
    """The processes of a control plane and their folder.

    :param folder: takes keys, logs and the kubeconfig; made readable for this user alone.
    :param address: on which the API is reached and which it advertises.
    :param bare: leave it at etcd and the API, as where there are no controllers.
    :param extra: more options by program ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd").
    """

    def __init__(
        self,
        folder: Path,
        *,
        address: str = ADDRESS,
        bare: bool = False,
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.folder = folder
        self.address = address
        self.kubeconfig = folder / "kubeconfig"
        self.url = f"https://{address}:{PORT}"
        self.bare = bare or bool(programs.lacking("controllers"))
        self._extra = extra or {}
        self._store: tempfile.TemporaryDirectory[str] | None = None
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    def __enter__(self) -> ControlPlane:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *dummy: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all of it and wait until it answers.

        :raises StartError: a program ends or does not answer, or this namespace has a way out.
        """
        refuse_open_namespace()
        for address in (self.address, SERVICE):
            have(address)
        self.credentials()
        self.start_etcd()
        self.start_api()
        if self.bare:
            return
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.start_controller(name)
        self.wait("/api/v1/namespaces/default/serviceaccounts/default")

    def credentials(self) -> None:
        """Write keys, the certificate, the token and the kubeconfig."""
        self.folder.chmod(0o700)
        made = Certificate("API of the tests", (self.address, SERVICE, "localhost", "kubernetes.default.svc"))
        (self.folder / "tls.crt").write_text(made.text, encoding="utf-8")
        (self.folder / "tls.key").write_text(made.secret, encoding="utf-8")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        (self.folder / "accounts.key").write_bytes(text)
        (self.folder / "tokens.csv").write_text(f"{TOKEN},tester,1,system:masters\n", encoding="utf-8")
        self.kubeconfig.write_text(kubeconfig("real", self.url, made.text, TOKEN), encoding="utf-8")

    def start_etcd(self) -> None:
        """Start the store: in memory, where it waits for no disk, if there is room."""
        memory = Path("/dev/shm")
        roomy = memory.is_dir() and shutil.disk_usage(memory).free > ROOM
        self._store = tempfile.TemporaryDirectory(prefix="rr-etcd-", dir=memory if roomy else self.folder)
        self.program(
            "etcd",
            f"--data-dir={self._store.name}",
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380",
        )

    def start_api(self) -> None:
        """Start the API alone, also again after it was ended; its store is as it was."""
        key = self.folder / "accounts.key"
        self.program(
            "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            "--bind-address=0.0.0.0",
            f"--advertise-address={self.address}",
            f"--secure-port={PORT}",
            f"--tls-cert-file={self.folder / 'tls.crt'}",
            f"--tls-private-key-file={self.folder / 'tls.key'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={SERVICES}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            # Webhooks are called at their endpoints: service addresses do not exist here.
            "--enable-aggregator-routing=true",
            "--kubelet-preferred-address-types=InternalIP",
        )
        self.wait("/readyz")

    def start_controller(self, name: str) -> None:
        """Start the controller manager or the scheduler."""
        common = [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"]
        if name == "kube-controller-manager":
            common += [
                f"--service-account-private-key-file={self.folder / 'accounts.key'}",
                f"--root-ca-file={self.folder / 'tls.crt'}",
            ]
        self.program(name, *common)

    def program(self, name: str, *arguments: str) -> None:
        """Start one program with its log beside it."""
        self._commands[name] = [str(programs.program(name)), *arguments, *self._extra.get(name, ())]
        self._run(name)

    def restart_ended(self) -> None:
        """Restart the programs that have ended."""
        for name, process in list(self._running.items()):
            if process.poll() is not None:
                print(f"{name} ended with {process.returncode}; started again", file=sys.stderr, flush=True)
                self._run(name)

    def _run(self, name: str) -> None:
        argv = self._commands[name]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def request(self, path: str) -> bytes:
        """Return the API's answer at a path.

        :raises OSError: it does not, or not with success.
        """
        trusted = ssl.create_default_context(cafile=str(self.folder / "tls.crt"))
        query = urllib.request.Request(f"{self.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(query, timeout=5, context=trusted) as response:
            return t.cast("bytes", response.read())

    def wait(self, path: str) -> None:
        """Wait until the API answers a path with success.

        :raises StartError: it does not in time, or a program has ended.
        """
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                self.request(path)
            except OSError:
                pass
            else:
                return
            ended = [name for name, process in self._running.items() if process.poll() is not None]
            if ended or time.monotonic() > until:
                which = ended[0] if ended else "kube-apiserver"
                text = (self.folder / f"{which}.log").read_text(encoding="utf-8", errors="replace")[-3000:]
                why = "has ended" if ended else f"does not answer {path} after {START_SECONDS} s"
                raise StartError(f"{which} {why}: {text}")
            time.sleep(0.1)

    def end(self, name: str) -> None:
        """End one program."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """End all of it at once: nothing of it is checked again."""
        for process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()
        if self._store:
            self._store.cleanup()


def refuse_open_namespace() -> None:
    """Refuse a network namespace that is not a test's own.

    :raises StartError: it has a default route.
    """
    for family in ("-4", "-6"):
        shown = subprocess.run(
            ["ip", family, "route", "show", "default"], capture_output=True, text=True, check=True
        ).stdout
        if shown.strip():
            raise StartError(f"This network namespace has a way out ({shown.strip()}): start it in one of its own.")


def have(address: str) -> None:
    """Put an address on lo, unless this namespace has it."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    shown = subprocess.run(["ip", "-o", "address", "show", "to", address], capture_output=True, text=True, check=True)
    if not shown.stdout.strip():
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the real programs of a cluster that tests start. Never shipped.

    programs.py                say which control plane there is, or how to get one
    programs.py NAME           print the path of one of the parts (k8s, multus, spiderpool-1.2.1.tgz), unpacked
    programs.py --etcd         print the path of etcd

The parts are a folder of programs with a file SHA256SUMS: $RAILOPS_PARTS, else shared/parts beside the checkout. They
are checked and unpacked into the cache, once. etcd comes from Debian's package, unpacked too: nothing is installed.
Without the parts a control plane can be that of envtest (KUBEBUILDER_ASSETS): API objects, but no Spiderpool.
"""

from __future__ import annotations

import functools
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import env

KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
CHART = "spiderpool-1.2.1.tgz"
ASSETS = "KUBEBUILDER_ASSETS"
REMEDY = (
    "put the parts beside the checkout (shared/parts) or name their folder in RAILOPS_PARTS; or name envtest's folder "
    f"in {ASSETS} (setup-envtest use -p path), or a cluster in RAILOPS_TEST_KUBECONFIG"
)


class MissingError(Exception):
    """A program is not there: which, and what to do."""


def folder() -> Path:
    """Return the folder of the parts.

    :raises MissingError: there is none.
    """
    named = os.environ.get("RAILOPS_PARTS")
    path = Path(named) if named else env.CHECKOUT.parent / "shared/parts"
    if not (path / "SHA256SUMS").is_file():
        raise MissingError(f"{path} holds no parts of a cluster: {REMEDY}")
    return path


@functools.cache
def sums() -> dict[str, str]:
    """Return the digest of each part by the name of its file."""
    rows = (line.split() for line in (folder() / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    return {name.lstrip("*"): digest for digest, name in rows}


@functools.cache
def part(name: str) -> Path:
    """Return the path of a part: of a program its unpacked form.

    :raises MissingError: it is not there, or not what SHA256SUMS says.
    """
    packed = name if name in sums() else f"{name}.xz"
    if packed not in sums():
        raise MissingError(f"{folder()} has no {name}: {REMEDY}")
    digest = sums()[packed]
    target = env.cache() / "parts" / f"{digest[:12]}-{name}"
    with env.Locked(f"part-{digest[:12]}"):
        if not target.exists():
            data = (folder() / packed).read_bytes()
            if hashlib.sha256(data).hexdigest() != digest:
                raise MissingError(f"{folder() / packed} is not the file that SHA256SUMS names: not used")
            keep(target, lzma.decompress(data) if packed != name else data)
    return target


def keep(target: Path, data: bytes) -> None:
    """Write a program into the cache: whole, or not at all."""
    target.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as made:
        made.write(data)
    Path(made.name).chmod(0o755)
    Path(made.name).rename(target)


@functools.cache
def etcd() -> Path:
    """Return Debian's etcd, out of its package.

    :raises MissingError: this is no Debian, or apt does not offer it.
    """
    uri = ""
    if shutil.which("apt-get") and shutil.which("dpkg"):
        asked = ["apt-get", "--print-uris", "download", "etcd-server"]
        uri = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    if not uri:
        raise MissingError("apt offers no package etcd-server here; on Debian run: apt-get update")
    target = env.cache() / "parts" / f"{hashlib.sha256(uri.encode()).hexdigest()[:12]}-etcd"
    with env.Locked(target.name):
        if not target.exists():
            with tempfile.TemporaryDirectory(prefix="rr-etcd-") as name:
                for argv in (["apt-get", "-qq", "download", "etcd-server"], ["sh", "-c", "dpkg -x *.deb root"]):
                    done = subprocess.run(argv, cwd=name, capture_output=True, text=True, check=False)
                    if done.returncode:
                        raise MissingError(f"{' '.join(argv)} failed: {done.stderr.strip()[-300:]}")
                keep(target, (Path(name) / "root/usr/bin/etcd").read_bytes())
    return target


@dataclass(frozen=True)
class Programs:
    """A control plane that can be started: the words that begin each program's command."""

    etcd: tuple[str, ...]
    kubernetes: t.Mapping[str, tuple[str, ...]]
    release: str
    parts: bool

    @property
    def controllers(self) -> bool:
        """Whether there are a controller manager and a scheduler: without them no Deployment has pods."""
        return set(KUBERNETES) <= set(self.kubernetes)


@functools.cache
def control_plane() -> Programs:
    """Return the programs of the parts, else those of envtest.

    :raises MissingError: there are neither.
    """
    assets = os.environ.get(ASSETS)
    if assets and "RAILOPS_PARTS" not in os.environ:
        found = {name: (str(Path(assets) / name),) for name in ("etcd", *KUBERNETES) if (Path(assets) / name).is_file()}
        if not {"etcd", "kube-apiserver"} <= set(found):
            raise MissingError(f"{ASSETS} is {assets}, which lacks etcd or kube-apiserver: setup-envtest use -p path")
        return Programs(found.pop("etcd"), found, release(found["kube-apiserver"]), parts=False)
    program = str(part("k8s"))
    kubernetes = {name: (program, name) for name in KUBERNETES}
    return Programs((str(etcd()),), kubernetes, release(kubernetes["kube-apiserver"]), parts=True)


def release(server: tuple[str, ...]) -> str:
    """Return which Kubernetes a server is."""
    done = subprocess.run([*server, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1].lstrip("v")


def main() -> None:
    """Print what was asked for."""
    try:
        match sys.argv[1:]:
            case []:
                found = control_plane()
                print(f"Kubernetes {found.release}: {' '.join(found.kubernetes['kube-apiserver'])}")
            case ["--etcd"]:
                print(etcd())
            case [name] if not name.startswith("-"):
                print(part(name))
            case _:
                sys.exit(__doc__)
    except MissingError as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main()

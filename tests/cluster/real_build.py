# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build a real kube-apiserver, controller manager and scheduler from Debian's source package, once. Never shipped.

    real_build.py          print the folder of the programs, built when missing (about five minutes)
    real_build.py --have   print it only when it is there

No registry ships kube-apiserver, but Debian 12 has the whole source of Kubernetes 1.20 with its dependencies, and the
compiler and the etcd that go with it. Nothing is installed: packages are unpacked in the cache folder, without root.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import typing as t
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import env

RELEASE = "1.20.2"
# From Debian's signed index of sources: kubernetes 1.20.5+really1.20.2-1.1+deb12u1.
SOURCE = "pool/main/k/kubernetes/kubernetes_1.20.5+really1.20.2.orig.tar.gz"
SHA256 = "b83c0780efb182d928dc63d46488a847f161f04e40a94b96bf5247dd671ecdfc"
# Packages that are unpacked, not installed. A newer Go does not build this source.
PACKAGES = ("golang-1.19-go", "golang-1.19-src", "golang-github-modern-go-reflect2-dev", "etcd-server")
# The reflect2 that the source carries walks maps in a way that Go 1.18 and newer crash on: Debian's is newer.
REFLECT2 = "github.com/modern-go/reflect2"
# With Go 1.19 this comparison takes an empty text for none, and refuses what Kubernetes accepts.
ZERO_FILE = "vendor/k8s.io/kube-openapi/pkg/validation/validate/type.go"
ZERO_TEST = "data == nil || reflect.DeepEqual(reflect.Zero(reflect.TypeOf(data)), reflect.ValueOf(data))"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
TOOLS = {"apt-get": "apt", "dpkg": "dpkg", "make": "make", "rsync": "rsync"}
# Count up when a step of the build changes, so that all is built anew.
RECIPE = 1


class BuildError(Exception):
    """This machine cannot build it: why, and what would let it."""


def home() -> Path:
    """Return the folder where the programs lie or will lie."""
    key = hashlib.sha256(repr((RECIPE, SHA256, PACKAGES, ZERO_FILE, ZERO_TEST)).encode()).hexdigest()[:12]
    return env.cache() / f"kubernetes-{RELEASE}-{key}"


def built() -> Path:
    """Return the folder of the programs, built when missing.

    :raises BuildError: this machine cannot.
    """
    return once(home(), f"Kubernetes {RELEASE} from Debian's source", build)


def once(target: Path, what: str, make: t.Callable[[Path, Path], None]) -> Path:
    """Return a folder of the cache, made whole before it counts.

    :param make: is given a folder that is thrown away, and the one to fill.
    """
    with env.Locked(target.name):
        if not (target / ".complete").exists():
            print(f"Building {what} (once, about five minutes) ...", file=sys.stderr)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            with tempfile.TemporaryDirectory(prefix="rr-kubernetes-", dir=target.parent) as work:
                make(Path(work), target)
            (target / ".complete").touch()
    return target


def check_tools(names: t.Iterable[str]) -> None:
    """Look for the programs that a build starts.

    :raises BuildError: one is missing.
    """
    lacking = [name for name in names if not shutil.which(name)]
    if lacking:
        raise BuildError(f"{', '.join(lacking)} not found; run: apt-get install {' '.join(TOOLS[n] for n in lacking)}")


def build(work: Path, target: Path) -> None:
    """Fetch, check and compile in a folder that is thrown away; put the programs into another."""
    check_tools(TOOLS)
    mirror = unpack_packages(work)
    archive = work / "source.tar.gz"
    with urllib.request.urlopen(f"{mirror}/{SOURCE}", timeout=60) as answer, archive.open("wb") as stream:
        shutil.copyfileobj(answer, stream)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise BuildError(f"{SOURCE} has sha256 {found}, wanted {SHA256}: not used.")
    with tarfile.open(archive) as tar:
        tar.extractall(work, filter="data")
    source = work / f"kubernetes-{RELEASE}"
    mend(source, work / "root/usr/share/gocode/src")
    compile_in(source, work / "root/usr/lib/go-1.19", work / "gocache")
    for name in PROGRAMS:
        shutil.copy2(source / "_output/local/bin/linux/amd64" / name, target / name)
    shutil.copy2(work / "root/usr/bin/etcd", target / "etcd")


def mend(source: Path, packaged: Path) -> None:
    """Change what does not work with a Go newer than the source."""
    shutil.rmtree(source / "vendor" / REFLECT2)
    shutil.copytree(packaged / REFLECT2, source / "vendor" / REFLECT2)
    text = (source / ZERO_FILE).read_text(encoding="utf-8")
    if text.count(ZERO_TEST) != 1:
        raise BuildError(f"{ZERO_FILE} of the source is not the one that this build mends.")
    (source / ZERO_FILE).write_text(text.replace(ZERO_TEST, "data == nil"), encoding="utf-8")


def unpack_packages(work: Path) -> str:
    """Unpack Debian's packages below work/root and return the mirror that apt took them from."""
    listed = subprocess.run(
        ["apt-get", "--print-uris", "download", *PACKAGES], capture_output=True, text=True, check=False, cwd=work
    )
    uris = [line.split("'")[1] for line in listed.stdout.splitlines() if line.startswith("'")]
    if listed.returncode or len(uris) != len(PACKAGES):
        raise BuildError(
            f"apt does not offer {', '.join(PACKAGES)} here; they are Debian 12's. On Debian 12 run: apt-get update"
        )
    run(["apt-get", "-qq", "download", *PACKAGES], work, work / "apt.log")
    for package in sorted(work.glob("*.deb")):
        run(["dpkg", "-x", str(package), str(work / "root")], work, work / "apt.log")
    return uris[0].partition("/pool/")[0]


def compile_in(source: Path, go: Path, cache: Path) -> None:
    """Compile the programs as upstream's Makefile does."""
    environment = {
        **os.environ,
        "PATH": f"{go / 'bin'}:{os.environ['PATH']}",
        "GOROOT": str(go),
        "GOCACHE": str(cache),
        # No C compiler is needed then.
        "CGO_ENABLED": "0",
        "GOFLAGS": f"-p={os.cpu_count() or 2}",
        "KUBE_GIT_VERSION": f"v{RELEASE}",
        "KUBE_GIT_COMMIT": "0" * 40,
        "KUBE_GIT_TREE_STATE": "clean",
        "KUBE_GIT_MAJOR": "1",
        "KUBE_GIT_MINOR": "20",
    }
    what = " ".join(f"cmd/{name}" for name in PROGRAMS)
    run(["make", "all", f"WHAT={what}"], source, source.parent / "build.log", environment)


def run(argv: t.Sequence[str], folder: Path, log: Path, environment: dict[str, str] | None = None) -> None:
    """Run a command; of a failure tell the end of what it said."""
    with log.open("ab") as output:
        done = subprocess.run(
            argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
    if done.returncode:
        said = log.read_text(encoding="utf-8", errors="replace")[-3000:]
        raise BuildError(f"`{' '.join(argv)}` failed ({done.returncode}): {said}")


def main(target: Path, make: t.Callable[[], Path]) -> None:
    """Print the folder of the programs; with --have only when it is there."""
    try:
        if sys.argv[1:] != ["--have"]:
            print(make())
        elif (target / ".complete").exists():
            print(target)
    except BuildError as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main(home(), built)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the current Kubernetes' server of custom resources from Debian's packages, once. Never shipped.

    newer_build.py          print the folder of the programs, built when missing (about five minutes)
    newer_build.py --have   print it only when it is there

Debian's development branch has the source of the current apiextensions-apiserver: the part of kube-apiserver that
serves custom resources. newer/main.go puts the old kube-apiserver of real_build.py behind it for all that it does not
serve. `version` beside the programs tells which release that is. apt checks Debian's signatures.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from pathlib import Path

from real_build import BuildError, check_tools, env, main, once, run

HERE = Path(__file__).resolve().parent
PROGRAM = "newer-apiserver"
LIBRARY = "golang-k8s-apiextensions-apiserver-dev"
# Raise it when Debian has moved on and apt no longer finds this one.
RELEASE = "0.36.*"
PACKAGES = (f"{LIBRARY}={RELEASE}", "golang-go", "etcd-server")
MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Count up when a step of the build changes, so that all is built anew.
RECIPE = 1


def home() -> Path:
    """Return the folder where the programs lie or will lie."""
    key = hashlib.sha256(f"{RECIPE} {PACKAGES}".encode() + (HERE / "newer/main.go").read_bytes()).hexdigest()[:12]
    return env.cache() / f"newer-kubernetes-{key}"


def newer() -> Path:
    """Return the folder of the programs, built when missing.

    :raises BuildError: this machine cannot.
    """
    return once(home(), "the current Kubernetes' server of custom resources", build)


def version(programs: Path) -> str:
    """Return which Kubernetes the programs are."""
    return (programs / "version").read_text(encoding="utf-8").strip()


def build(work: Path, target: Path) -> None:
    """Fetch and compile in a folder that is thrown away; put the programs into another."""
    check_tools(("apt-get", "dpkg"))
    if platform.machine() != "x86_64" or not Path(KEYS).exists():
        raise BuildError(f"this wants Debian on x86_64, with its keys in {KEYS}")
    root = work / "root"
    unpack(work, root)
    compile_in(root, work)
    for program in (work / PROGRAM, root / "usr/bin/etcd"):
        shutil.copy2(program, target)
    # The library 0.36.4 is that of Kubernetes 1.36.4.
    found = next(work.glob(f"debs/{LIBRARY}_*.deb")).name.split("_")[1]
    (target / "version").write_text(f"1.{found.partition('.')[2].partition('-')[0]}\n", encoding="utf-8")


def unpack(work: Path, root: Path) -> None:
    """Unpack the packages and all that they depend on; nothing is installed."""
    apt = [
        *("apt-get", "-qq", "-o", f"Dir::State={work}/apt", "-o", f"Dir::State::status={work}/apt/status"),
        *("-o", f"Dir::Cache={work}/apt", "-o", f"Dir::Cache::Archives={work}/debs"),
        *("-o", f"Dir::Etc::sourcelist={work}/apt/debian.list", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", "Dir::Etc::preferencesparts=-", "-o", "APT::Install-Recommends=0", "-o", "Acquire::Languages=none"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    for folder in ("apt/lists/partial", "debs/partial"):
        (work / folder).mkdir(parents=True)
    (work / "apt/status").touch()
    (work / "apt/debian.list").write_text(f"deb [signed-by={KEYS}] {MIRROR} sid main\n", encoding="utf-8")
    log = work / "apt.log"
    run([*apt, "update"], work, log)
    run([*apt, "install", "--yes", "--download-only", *PACKAGES], work, log)
    for package in sorted(work.glob("debs/*.deb")):
        if package.name.startswith(("golang-", "etcd-server_")):
            run(["dpkg", "-x", str(package), str(root)], work, log)


def compile_in(root: Path, work: Path) -> None:
    """Compile the program with the sources beside each other, as Debian compiles."""
    go = root / "usr/lib/go"
    go = go if go.exists() else max((root / "usr/lib").glob("go-*"))
    sources = root / "usr/share/gocode"
    shutil.copytree(HERE / "newer", sources / "src/railops-newer")
    environment = {
        **os.environ,
        "GOROOT": str(go),
        "GOPATH": str(sources),
        "GOCACHE": str(work / "gocache"),
        "GO111MODULE": "off",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "",
        # No C compiler is needed then.
        "CGO_ENABLED": "0",
    }
    argv = [str(go / "bin/go"), "build", "-o", str(work / PROGRAM), "railops-newer"]
    run(argv, work, work / "build.log", environment)


if __name__ == "__main__":
    main(home(), newer)

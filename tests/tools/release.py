# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put beside the tarball in dist/ what a release has: an SBOM, held to its schema, and checksums. Nothing is published.

The SBOM is CycloneDX 1.6: the collection, the wheels that it carries, and by their ranges what its metadata asks for.
The library that makes it is kept in the cache beside the environments.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import typing as t
import zipfile
from pathlib import Path

import env

LIBRARY = "cyclonedx-python-lib[json-validation]==11.12.0"
# What that library's interpreter runs: the parts come as JSON on stdin, the first is what the SBOM is about.
MAKE = """
import json, sys
from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

def component(part):
    licenses = [LicenseFactory().make_from_string(word) for word in part.pop("licenses", [])]
    hashes = [HashType.from_composite_str("sha256:" + part.pop("sha256"))] if "sha256" in part else []
    return Component(**part, bom_ref=part["name"], licenses=licenses, hashes=hashes)

bom = Bom()
bom.metadata.component, *needs = map(component, json.load(sys.stdin))
bom.components.update(needs)
bom.register_dependency(bom.metadata.component, needs)
text = JsonV1Dot6(bom).output_as_string(indent=2)
if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
    sys.exit(f"The SBOM breaks its schema: {wrong}")
print(text)
"""


def sha256(data: bytes) -> str:
    """Return the checksum in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def parts(tarball: Path) -> t.Iterator[dict[str, t.Any]]:
    """Yield the collection, then what it needs: collections and Python packages, as its own metadata names them."""
    with tarfile.open(tarball) as archive:

        def read(name: str) -> str:
            return t.cast("t.IO[bytes]", archive.extractfile(name)).read().decode()

        about = json.loads(read("MANIFEST.json"))["collection_info"]
        packages = read("meta/ee-requirements.txt").split()
        wheels = {
            Path(name).name: t.cast("t.IO[bytes]", archive.extractfile(name)).read()
            for name in archive.getnames()
            if name.endswith(".whl")
        }
    yield {
        "name": f"{about['namespace']}.{about['name']}",
        "version": about["version"],
        "licenses": about["license"],
        "sha256": sha256(tarball.read_bytes()),
    }
    for name, data in wheels.items():
        label, version = name.split("-", 2)[:2]
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            about_wheel = wheel.read(f"{label}-{version}.dist-info/METADATA").decode()
        licenses = re.findall(r"^License(?:-Expression)?: (.+)$", about_wheel, re.MULTILINE)
        yield {"name": label, "version": version, "licenses": licenses, "sha256": sha256(data)}
    for name, wanted in about["dependencies"].items():
        yield {"name": name, "version": wanted}
    for word in packages:
        name, wanted = t.cast("re.Match[str]", re.fullmatch(r"([\w.-]+)(.*)", word)).groups()
        yield {"name": name, "version": wanted or "any"}


def made() -> Path:
    """Return the interpreter that has the library, made when missing."""
    home = env.cache() / f"release-{env.digest(LIBRARY, env.default_interpreter())}"
    env.once(home, lambda: env.furnish(home, env.default_interpreter(), LIBRARY))
    return home / "bin/python"


def finish(tarball: Path) -> list[Path]:
    """Write the SBOM and SHA256SUMS beside a tarball.

    :returns: both files.
    :raises SystemExit: the SBOM breaks its schema.
    """
    done = subprocess.run(
        [str(made()), "-c", MAKE],
        input=json.dumps(list(parts(tarball))),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        sys.exit(done.stderr)
    sbom = tarball.with_name(tarball.name.removesuffix(".tar.gz") + ".cdx.json")
    sbom.write_text(done.stdout, encoding="utf-8")
    sums = tarball.with_name("SHA256SUMS")
    lines = (f"{sha256(path.read_bytes())}  {path.name}\n" for path in (sbom, tarball))
    sums.write_text("".join(lines), encoding="utf-8")
    return [sbom, sums]


if __name__ == "__main__":
    for path in sorted((env.CHECKOUT / "dist").glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)[-1:]:
        print(*finish(path), sep="\n")

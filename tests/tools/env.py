# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make the development environments outside of the checkout, once for each set of inputs.

    python3 tests/tools/env.py bin [VERSION]     print the bin folder of that environment, built when missing
    python3 tests/tools/env.py tree              print a collections path in which this checkout is railops.rdma
    python3 tests/tools/env.py copy DIR          copy what git knows below DIR/ansible_collections (for ansible-test)
    python3 tests/tools/env.py python VERSION    print the interpreter of that version, or nothing
    python3 tests/tools/env.py cache             print the cache folder

The cache is $RAILOPS_CACHE, else $XDG_CACHE_HOME/railops-rdma, else ~/.cache/railops-rdma.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
REQUIREMENTS = CHECKOUT / "tests/tools/requirements.txt"
# The collections of galaxy.yml's dependencies, taken from the PyPI package that carries them.
ANSIBLE_WHEEL = "ansible==12.3.0"
DEPENDENCIES = ("kubernetes/core",)


def cache() -> Path:
    """Return the cache folder, made when missing."""
    base = os.environ.get("RAILOPS_CACHE")
    path = Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "railops-rdma"
    path.mkdir(parents=True, exist_ok=True)
    return path


def interpreter(version: str) -> str | None:
    """Return an interpreter of that version from PATH or pyenv, or None."""
    found = sorted((Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python{version}"))
    names = [shutil.which(f"python{version}"), *(str(path) for path in reversed(found))]
    for name in names:
        if (
            name
            and subprocess.run([name, "-c", "import ensurepip, sys"], capture_output=True, check=False).returncode == 0
        ):
            return name
    return None


def default_interpreter() -> str:
    """Return the first interpreter that a controller may have: 3.11 is the oldest."""
    for version in ("3.11", "3.12", "3.13"):
        if found := interpreter(version):
            return found
    sys.exit(
        "No Python 3.11 to 3.13 with ensurepip is on PATH. On Debian or Ubuntu: apt-get install python3 python3-venv."
    )


def digest(*parts: str) -> str:
    """Return a short key for a set of inputs."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def environment(version: str | None) -> Path:
    """Return the bin folder of the environment for a Python version, built when missing."""
    python = interpreter(version) if version else default_interpreter()
    if python is None:
        sys.exit(f"Python {version} is not installed.")
    release = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
    home = cache() / f"venv-{release.split()[-1]}-{digest(release, REQUIREMENTS.read_text(encoding='utf-8'))}"
    with Locked(home.name):
        if not (home / ".complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            print(f"Making the environment {home.name} (once, about a minute) ...", file=sys.stderr)
            run([python, "-m", "venv", str(home)])
            run([str(home / "bin/pip"), "install", "-qq", "--disable-pip-version-check", "-r", str(REQUIREMENTS)])
            (home / ".complete").touch()
    return home / "bin"


class Locked:
    """Hold a lock file of the cache, so that two runs do not build one thing twice."""

    def __init__(self, name: str) -> None:
        self._path = cache() / f".{name}.lock"

    def __enter__(self) -> None:
        self._file = self._path.open("w", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *dummy: object) -> None:
        self._file.close()


def run(argv: list[str]) -> None:
    """Run a command whose output matters only when it fails."""
    done = subprocess.run(argv, stdout=sys.stderr, stderr=sys.stderr, check=False)
    if done.returncode:
        sys.exit(f"Failed: {' '.join(argv)}")


def dependencies() -> Path:
    """Return the folder with the collections that this one depends on."""
    home = cache() / f"collections-{digest(ANSIBLE_WHEEL, *DEPENDENCIES)}"
    with Locked(home.name):
        if not (home / ".complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            print(f"Fetching {', '.join(DEPENDENCIES)} out of {ANSIBLE_WHEEL} (once) ...", file=sys.stderr)
            pip = environment(None) / "pip"
            run([str(pip), "download", "-qq", "--no-deps", "-d", str(home / "wheel"), ANSIBLE_WHEEL])
            wheel = next((home / "wheel").glob("*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                prefixes = tuple(f"ansible_collections/{name}/" for name in DEPENDENCIES)
                archive.extractall(home, [name for name in archive.namelist() if name.startswith(prefixes)])
            shutil.rmtree(home / "wheel")
            (home / ".complete").touch()
    return home


def place_dependencies(root: Path) -> None:
    """Put the dependencies beside the collection in an ansible_collections folder."""
    source = dependencies() / "ansible_collections"
    for name in DEPENDENCIES:
        target = root / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source / name, target)


def node_environment(python: str) -> Path:
    """Return an environment like a managed node's: an old Python with the controller's module_utils beside it."""
    source = environment(None).parent
    packages = ("pytest>=8,<9", "hypothesis", "PyYAML", "pyroute2>=0.7.2,<0.10")
    home = cache() / f"node-{digest(python, str(source), *packages)}"
    with Locked(home.name):
        if not (home / ".complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            run([python, "-m", "venv", str(home)])
            run([str(home / "bin/pip"), "install", "-qq", "--disable-pip-version-check", *packages])
            (home / "controller").mkdir()
            (home / "controller/ansible").symlink_to(next(source.glob("lib/python3.*/site-packages/ansible")))
            (home / ".complete").touch()
    return home


def old_pyroute2() -> Path:
    """Return a folder with the oldest pyroute2 that the collection promises to work with (Debian 12's)."""
    package = "pyroute2==0.7.2"
    home = cache() / f"pyroute2-{digest(package)}"
    with Locked(home.name):
        if not (home / ".complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            pip = str(environment(None) / "pip")
            run([pip, "install", "-qq", "--disable-pip-version-check", "--no-deps", "--target", str(home), package])
            (home / ".complete").touch()
    return home


def tree() -> Path:
    """Return a collections path whose railops.rdma is a link to this checkout."""
    home = cache() / f"tree-{digest(str(CHECKOUT), ANSIBLE_WHEEL, *DEPENDENCIES)}"
    link = home / "ansible_collections/railops/rdma"
    with Locked(home.name):
        link.parent.mkdir(parents=True, exist_ok=True)
        place_dependencies(home / "ansible_collections")
        if not link.is_symlink():
            link.symlink_to(CHECKOUT)
    return home


def copy(destination: Path) -> Path:
    """Copy what git tracks or would track; ansible-test refuses a link."""
    target = destination / "ansible_collections/railops/rdma"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source = CHECKOUT / name
        if source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    place_dependencies(destination / "ansible_collections")
    return target


def main() -> None:
    """Answer one question."""
    match sys.argv[1:]:
        case ["bin"]:
            print(environment(None))
        case ["bin", version]:
            print(environment(version))
        case ["tree"]:
            print(tree())
        case ["copy", destination]:
            print(copy(Path(destination)))
        case ["python", version]:
            print(interpreter(version) or "")
        case ["cache"]:
            print(cache())
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make the development environments outside of the checkout, once for each set of inputs.

    python3 tests/tools/env.py bin [VERSION]     print the bin folder of that environment, built when missing
    python3 tests/tools/env.py run               print that of one in which the collection runs, and no more
    python3 tests/tools/env.py tree              print a collections path in which this checkout is railops.rdma
    python3 tests/tools/env.py copy DIR          copy what git knows below DIR/ansible_collections (for ansible-test)
    python3 tests/tools/env.py python VERSION    print the interpreter of that version, or nothing
    python3 tests/tools/env.py image-builder     print a folder with the package ansible_builder
    python3 tests/tools/env.py cache             print the cache folder

RAILOPS_CORE=2.16 pins ansible-core to that release, beside what the tests of plugins and the demo need and no more.
The cache is $RAILOPS_CACHE, else $XDG_CACHE_HOME/railops-rdma, else ~/.cache/railops-rdma.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import typing as t
import zipfile
from pathlib import Path

import progress

CHECKOUT = Path(__file__).resolve().parents[2]
REQUIREMENTS = CHECKOUT / "tests/tools/requirements.txt"
REQUIREMENTS_RUN = CHECKOUT / "tests/tools/requirements-run.txt"
REQUIREMENTS_SITE = CHECKOUT / "tests/tools/requirements-site.txt"
CORE = os.environ.get("RAILOPS_CORE", "")
# Of the tests' packages those that any ansible-core lives with.
WITH_ANY_CORE = ("jsonschema", "pytest", "hypothesis")
# Upstream's CRDs: data that may lie beside the checkout. Where it does not, tests that want it are skipped with this.
SHARED = CHECKOUT.parent / "shared"
NO_CRDS = "upstream's CRDs are not beside the checkout (../shared/crds and ../shared/crds-workload)"
# A controller may have any of these; 3.11 is the oldest.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Where progress is shown; stdout is for answers, unless a program has none.
stream: t.TextIO = sys.stderr
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
    """Return an interpreter of that version from the distribution, PATH or pyenv, or None.

    Distributions build Python with optimization, pyenv only when told to: then all checks take a sixth longer.
    """
    found = sorted((Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python{version}"))
    names = [f"/usr/bin/python{version}", shutil.which(f"python{version}"), *(str(path) for path in reversed(found))]
    for name in names:
        if name and os.access(name, os.X_OK):
            words = [name, "-c", "import ensurepip, sys"]
            if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                return name
    return None


def trust_checkout() -> None:
    """Let git work for root in a checkout of another user: root runs its code anyway."""
    if CHECKOUT.stat().st_uid != os.geteuid():
        path = cache() / "gitconfig"
        path.write_text("[safe]\n\tdirectory = *\n", encoding="utf-8")
        os.environ["GIT_CONFIG_GLOBAL"] = str(path)


def emptied(folder: Path) -> Path:
    """Return a folder for results, made again.

    :raises progress.Failure: another user's results are there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
    except OSError as exc:
        raise progress.Failure(
            f"{folder} cannot be made again.",
            f"{exc.strerror}: results of another user's run are there.",
            f"sudo rm -r {CHECKOUT / 'tests/output'}",
        ) from exc
    return folder


def found_interpreter() -> str | None:
    """Return the first interpreter that a controller may have and that can make an environment, or None."""
    return next(filter(None, map(interpreter, PYTHONS)), None)


def default_interpreter() -> str:
    """Return the first interpreter that a controller may have."""
    if found := found_interpreter():
        return found
    raise progress.Failure(
        "There is no environment to run in.",
        f"No Python {PYTHONS[0]} to {PYTHONS[-1]} with the module venv is on PATH.",
        "On Debian 12 or Ubuntu 24.04 and later: apt-get install python3 python3-venv. Elsewhere install one of them.",
    )


def digest(*parts: str) -> str:
    """Return a short key for a set of inputs."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def environment(version: str | None, core: str = CORE) -> Path:
    """Return the bin folder of the environment for a Python version, built when missing.

    :param core: the release of ansible-core; empty for the newest of the range, with all tools.
    """
    python = interpreter(version) if version else default_interpreter()
    if python is None:
        sys.exit(f"Python {version} is not installed.")
    return _made("venv", python, core, REQUIREMENTS_RUN, REQUIREMENTS)


def newest_releases(version: str) -> Path:
    """Return the bin folder of an environment with the newest of all, without an upper bound; made again each day.

    Nothing else of this project is fetched without one.
    """
    python = interpreter(version) or default_interpreter()
    wanted = [re.sub(r",?<[^,]*", "", word) for word in packages("", REQUIREMENTS_RUN, REQUIREMENTS)]
    home = cache() / f"newest-{version}-{digest(time.strftime('%Y-%m-%d'), *wanted)}"

    def make() -> None:
        for old in cache().glob(f"newest-{version}-*"):
            shutil.rmtree(old, ignore_errors=True)
        furnish(home, python, "--upgrade", *wanted)

    once(home, make)
    return home / "bin"


def runtime() -> Path:
    """Return the bin folder of an environment in which the collection runs: that of the tests where it is there."""
    python = default_interpreter()
    whole = _home("venv", python, CORE, REQUIREMENTS_RUN, REQUIREMENTS)
    if (whole / ".complete").exists():
        return whole / "bin"
    return _made("run", python, CORE, REQUIREMENTS_RUN)


def _home(kind: str, python: str, core: str, *requirements: Path) -> Path:
    """Return the folder of an environment."""
    release = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
    key = digest(release, core, *(path.read_text(encoding="utf-8") for path in requirements))
    return cache() / f"{kind}-{release.split()[-1]}-{key}"


def packages(core: str, *requirements: Path) -> list[str]:
    """Return what pip installs for these files; with a release of ansible-core no tools that may want another one."""
    found = []
    pin = f"ansible-core=={core}.*"
    for path in requirements:
        lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
        wanted = [line for line in lines if line and not line.startswith("-r")]
        if core and path == REQUIREMENTS:
            wanted = [line for line in wanted if line.startswith(WITH_ANY_CORE)]
        found += [pin if core and line.startswith("ansible-core") else line for line in wanted]
    return found


def _made(kind: str, python: str, core: str, *requirements: Path) -> Path:
    """Make an environment unless it is there; return its bin folder."""
    home = _home(kind, python, core, *requirements)
    once(home, lambda: furnish(home, python, *packages(core, *requirements)))
    return home / "bin"


def once(home: Path, make: t.Callable[[], None]) -> None:
    """Make a folder of the cache once and completely, also for concurrent callers."""
    if (home / ".complete").exists():
        return
    with Locked(home.name):
        if not (home / ".complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            make()
            (home / ".complete").touch()


class Locked:
    """Hold a lock file of the cache, so that two runs do not build one thing twice."""

    def __init__(self, name: str) -> None:
        self._path = cache() / f".{name}.lock"

    def __enter__(self) -> None:
        self._file = self._path.open("w", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say(f"  Another run makes {self._path.name[1:-5]}: waiting for it ...", stream)
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *dummy: object) -> None:
        self._file.close()


def run(title: str, argv: list[str]) -> None:
    """Run a command whose output matters only when it fails."""
    log = cache() / "logs/environment.log"
    done = progress.step(title, argv, log=log, timeout=1800, stream=stream)
    if done.code:
        lines = [line for line in done.output.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        raise progress.Failure(
            f"`{title}` failed (exit code {done.code}).",
            errors[-1] if errors else "It said nothing.",
            "Packages come from PyPI: see that this machine reaches it (`pip download ansible-core`), then again.",
            log,
        )


def pip_install(pip: Path, title: str, *words: str) -> None:
    """Install packages."""
    run(title, [str(pip), "install", "--disable-pip-version-check", "--progress-bar=off", *words])


def furnish(home: Path, python: str, *words: str) -> None:
    """Make a Python environment with packages; `words` are for pip."""
    run(f"make the Python environment {home.name}", [python, "-m", "venv", str(home)])
    pip_install(home / "bin/pip", "fetch and install its packages", *words)


def isolated_environment(kind: str, package: str, *options: str) -> Path:
    """Return a folder with a package, apart from what the tests import."""
    home = cache() / f"{kind}-{digest(package)}"
    pip = environment(None) / "pip"
    once(home, lambda: pip_install(pip, f"fetch {package}", *options, "--target", str(home), package))
    return home


def dependencies() -> Path:
    """Return the folder with the collections that this one depends on."""
    home = cache() / f"collections-{digest(ANSIBLE_WHEEL, *DEPENDENCIES)}"

    def make() -> None:
        home.mkdir()
        pip = [str(runtime() / "pip"), "download", "--progress-bar=off", "--no-deps", "-d", str(home / "wheel")]
        run(f"fetch {', '.join(DEPENDENCIES)} out of {ANSIBLE_WHEEL}", [*pip, ANSIBLE_WHEEL])
        wheel = next((home / "wheel").glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            prefixes = tuple(f"ansible_collections/{name}/" for name in DEPENDENCIES)
            archive.extractall(home, [name for name in archive.namelist() if name.startswith(prefixes)])
        shutil.rmtree(home / "wheel")

    once(home, make)
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

    def make() -> None:
        furnish(home, python, *packages)
        (home / "controller").mkdir()
        (home / "controller/ansible").symlink_to(next(source.glob("lib/python3.*/site-packages/ansible")))

    once(home, make)
    return home


def old_pyroute2() -> Path:
    """Return a folder with the oldest pyroute2 that the collection promises to work with (Debian 12's)."""
    return isolated_environment("pyroute2", "pyroute2==0.7.2", "--no-deps")


def old_kubernetes() -> Path:
    """Return a folder with the oldest Python client of Kubernetes that the collection promises to work with."""
    return isolated_environment("kubernetes", "kubernetes==31.0.0")


def image_builder() -> Path:
    """Return a folder with ansible-builder."""
    return isolated_environment("image-builder", "ansible-builder>=3.1,<4")


def site() -> Path:
    """Return the bin folder of the environment that builds the documentation site, with exact versions."""
    return _made("site", default_interpreter(), "", REQUIREMENTS_SITE)


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


def files(*paths: str) -> list[str]:
    """Return the files that git tracks or would track, all or those of these pathspecs."""
    words = ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in listed.split("\0") if name and (CHECKOUT / name).exists()})


def contents(*paths: str, but: t.Collection[str] = ()) -> str:
    """Return the digest of names and contents of those files, without some of them."""
    found = hashlib.sha256()
    for name in files(*paths):
        if name not in but and (CHECKOUT / name).is_file():
            found.update(f"{name}\0".encode() + (CHECKOUT / name).read_bytes())
    return found.hexdigest()[:12]


def copy_files(target: Path) -> Path:
    """Copy what git tracks or would track into a folder, made again."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, target / name, follow_symlinks=False)
    return target


def copy(destination: Path) -> Path:
    """Copy the collection below a collections path, with its dependencies; ansible-test refuses a link."""
    target = copy_files(destination / "ansible_collections/railops/rdma")
    place_dependencies(destination / "ansible_collections")
    return target


def main() -> None:
    """Answer one question."""
    words = sys.argv[1:]
    answers: dict[str, t.Callable[..., object]] = {
        "bin": lambda version=None: environment(version),
        "run": runtime,
        "tree": tree,
        "copy": lambda destination: copy(Path(destination)),
        "python": lambda version: interpreter(version) or "",
        "image-builder": image_builder,
        "cache": cache,
    }
    if not words or words[0] not in answers:
        sys.exit(__doc__)
    try:
        print(answers[words[0]](*words[1:]))
    except progress.Failure as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main()

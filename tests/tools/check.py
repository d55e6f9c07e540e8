# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the project's checks and say of each whether it passed, failed or was skipped, and why.

    check.py             all of them
    check.py NAME ...    only these
    check.py --list      their names and what each is for

Logs lie in the cache folder that `env.py cache` prints, one file a check.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import env

CHECKOUT = env.CHECKOUT
COLLECTION = "ansible_collections/railops/rdma"
# ansible-test fetches this file from the network; here it is the pip that the interpreter carries.
GET_PIP = "import ensurepip\n\nensurepip.bootstrap()\n"
GET_PIP_NAMES = ("get_pip_24_2.py", "get_pip_25_2.py")
TIMEOUT = 1500  # seconds; no single check may take longer

Argv = t.Sequence[str]


@dataclass(frozen=True)
class Step:
    """One check: its commands run in order, the first failure ends it."""

    name: str
    about: str
    commands: t.Callable[[], t.Iterable[Argv]]
    needs: tuple[str, ...] = ()  # "root", or programs on PATH
    parallel: bool = False


class SkipStep(Exception):
    """This machine cannot run a check: why, and what would let it."""


def tool(name: str, version: str | None = None) -> str:
    """Return the path of a program of the environment."""
    return str(env.environment(version) / name)


def environ(version: str | None = None) -> dict[str, str]:
    """Return the process environment of a check."""
    tree = str(env.tree())
    return {
        **os.environ,
        "PATH": f"{env.environment(version)}:{os.environ['PATH']}",
        "PYTHONPATH": tree,
        "MYPYPATH": tree,
        "ANSIBLE_COLLECTIONS_PATH": tree,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "RAILOPS_PYROUTE2_OLD": str(env.old_pyroute2()),
    }


def ruff() -> t.Iterator[Argv]:
    yield [tool("ruff"), "check", "."]
    yield [tool("ruff"), "format", "--check", "."]


def mypy() -> t.Iterator[Argv]:
    yield [
        *("env", "-C", str(env.tree()), tool("mypy"), "--config-file", str(CHECKOUT / "pyproject.toml")),
        *("--namespace-packages", "--explicit-package-bases", f"{COLLECTION}/plugins"),
    ]


def yamllint() -> t.Iterator[Argv]:
    yield [tool("yamllint"), "--strict", "."]


def docs() -> t.Iterator[Argv]:
    yield [tool("antsibull-docs"), "lint-collection-docs", "--plugin-docs", "--validate-collection-refs", "self", "."]
    yield [tool("antsibull-changelog"), "lint"]
    yield pytest("tests/docs")


def ansible_lint() -> t.Iterator[Argv]:
    yield [tool("ansible-lint"), "--offline", "--profile", "production", "--strict"]


def sanity() -> t.Iterator[Argv]:
    version = "3.13" if env.interpreter("3.13") else "3.11"
    for name in GET_PIP_NAMES:
        path = Path.home() / ".ansible/test/cache" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GET_PIP, encoding="utf-8")
    copy = env.copy(env.cache() / "sanity")
    subprocess.run(["git", "init", "-q", str(copy)], check=True)
    command = f"{tool('ansible-test', version)} sanity --venv --python {version} --color no"
    interpreter = env.interpreter(version)
    folder = str(Path(interpreter).parent) if interpreter else ""
    yield [*("env", "-C", str(copy), f"PATH={folder}:{environ(version)['PATH']}", "sh", "-c", command)]


def unit() -> t.Iterator[Argv]:
    yield pytest("tests/unit", parallel=True)


def unit_newest() -> t.Iterator[Argv]:
    if not env.interpreter("3.13"):
        raise SkipStep("there is no Python 3.13 here; install python3.13 with its venv module, or pyenv's 3.13")
    # All random fabrics are planned by the other Python; here a few show that this one plans them too.
    yield ["env", "RAILOPS_FABRICS=200", *pytest("tests/unit", parallel=True, version="3.13")]


def unit_oldest() -> t.Iterator[Argv]:
    python = env.interpreter("3.9")
    if not python:
        raise SkipStep("there is no Python 3.9 here; install python3.9 with its venv module, or pyenv's 3.9")
    home = env.node_environment(python)
    tests = ["tests/unit/plugins/module_utils", "tests/unit/plugins/modules"]
    controller = [
        f"--ignore-glob={pattern}"
        for pattern in ("*fabric*", "*ippool*", "*admission*", "*cluster*", "*plan_store*", "*verdict*", "*schedule*")
    ]
    yield [
        *("env", f"PYTHONPATH={env.tree()}:{home / 'controller'}", str(home / "bin/python")),
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", *controller, *tests),
    ]


def pytest(folder: str, *, parallel: bool = False, version: str | None = None) -> Argv:
    """Return the command that runs a folder of tests."""
    if not any((CHECKOUT / folder).rglob("test_*.py")):
        raise SkipStep(f"{folder} has no tests")
    workers = ["-n", "2"] if parallel else []
    if folder in ("tests/kernel", "tests/site"):
        workers += ["--dist", "loadfile"]  # the tests of a file share one lab
    return [tool("python", version), "-m", "pytest", "-q", *workers, folder]


def suite(folder: str, *, parallel: bool = False) -> t.Callable[[], t.Iterator[Argv]]:
    """Return the commands of one folder of tests."""

    def commands() -> t.Iterator[Argv]:
        yield pytest(folder, parallel=parallel)

    return commands


def real_api() -> Argv:
    """Return what comes before a command that is run beside a real API: nothing when the user names a cluster.

    :raises SkipStep: there is none here.
    """
    if os.environ.get("RAILOPS_TEST_KUBECONFIG"):
        return []
    beside = [tool("python"), str(CHECKOUT / "tests/cluster/real_api.py")]
    done = subprocess.run([*beside, "--why-not"], capture_output=True, text=True, check=False, env=environ())
    if done.returncode:
        raise SkipStep(done.stderr.strip()[-600:])
    return beside


def wanted(name: str) -> bool:
    """Say whether a check is among those that were asked for."""
    return not sys.argv[1:] or name in sys.argv[1:]


def cluster() -> t.Iterator[Argv]:
    command = ["env", "-u", "RAILOPS_TEST_KUBECONFIG", *pytest("tests/cluster", parallel=True)]
    if wanted("api"):
        with contextlib.suppress(SkipStep):
            real_api()
            # A minute that the real API spends better.
            command += ["--deselect", "tests/cluster/test_roles.py::test_life_of_a_cluster"]
    yield command


def api() -> t.Iterator[Argv]:
    files = [f"tests/cluster/test_{name}.py" for name in ("double", "objects", "roles")]
    yield [*real_api(), tool("python"), "-m", "pytest", "-q", "--real-only", *files]


def molecule() -> t.Iterator[Argv]:
    yield [tool("molecule"), "test", "--scenario-name", "netns"]


def guests() -> t.Iterator[Argv]:
    yield [tool("molecule"), "test", "--scenario-name", "guests"]


def package() -> t.Iterator[Argv]:
    yield [tool("python"), "-m", "pytest", "-q", "tests/package"]


STEPS = (
    Step("ruff", "style and common mistakes of the Python code", ruff, parallel=True),
    Step("mypy", "types of everything under plugins/, strict", mypy, parallel=True),
    Step("yamllint", "YAML style", yamllint, parallel=True),
    Step("docs", "plugin documentation, changelog, every command of the docs", docs, parallel=True),
    Step("ansible-lint", "roles and playbooks, profile production", ansible_lint, parallel=True),
    Step("sanity", "ansible-test sanity", sanity, parallel=True),
    Step("unit-oldest", "the host modules' tests on Python 3.9", unit_oldest, parallel=True),
    Step("package", "build the tarball, install it, run it installed", package, parallel=True),
    Step("unit", "unit and property tests, oldest controller", unit),
    Step("unit-newest", "the same on Python 3.13 and its ansible-core", unit_newest),
    Step(
        "kernel",
        "the host modules on a real kernel in network namespaces",
        suite("tests/kernel", parallel=True),
        ("root", "ip"),
    ),
    Step("cluster", "objects, Helm and roles against an API double", cluster),
    Step("api", "objects, Helm and roles against a real Kubernetes control plane", api),
    Step("lab", "the lab starts, lists and ends", suite("tests/lab"), ("root", "ip")),
    Step("site", "the whole path on namespace hosts", suite("tests/site", parallel=True), ("root", "ip")),
    Step("molecule", "the scenario on namespace hosts", molecule, ("root", "ip")),
    Step(
        "guests",
        "two QEMU guests: one fabric from bare image to RDMA",
        guests,
        ("root", "ip", "qemu-system-x86_64", "debootstrap"),
    ),
)

PACKAGES = {
    "ip": "iproute2",
    "qemu-system-x86_64": "qemu-system-x86",
    "debootstrap": "debootstrap",
}


def missing(step: Step) -> str | None:
    """Say what a check needs that this machine lacks, and the remedy."""
    if "root" in step.needs and os.geteuid() != 0:
        return "it needs root; run: sudo make test"
    lacking = [name for name in step.needs if name != "root" and not shutil.which(name)]
    if lacking:
        return f"{', '.join(lacking)} not found; run: apt-get install {' '.join(PACKAGES[name] for name in lacking)}"
    return None


@dataclass(frozen=True)
class Result:
    """How one check ended."""

    step: Step
    status: str  # passed, failed, skipped
    seconds: float
    detail: str
    log: Path


def run(step: Step) -> Result:
    """Run one check with its output in its own log file."""
    log = env.cache() / "logs" / f"{step.name}.log"
    log.parent.mkdir(exist_ok=True)
    start = time.monotonic()

    def result(status: str, detail: str) -> Result:
        return Result(step, status, time.monotonic() - start, detail, log)

    if why := missing(step):
        log.write_text(why, encoding="utf-8")
        return result("skipped", why)
    try:
        with log.open("w", encoding="utf-8") as output:
            for command in step.commands():
                done = subprocess.run(
                    list(command),
                    cwd=CHECKOUT,
                    env=environ(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=TIMEOUT,
                    check=False,
                )
                if done.returncode:
                    return result("failed", f"exit code {done.returncode}")
    except SkipStep as why_not:
        return result("skipped", str(why_not))
    except subprocess.TimeoutExpired:
        return result("failed", f"no end after {TIMEOUT} s")
    return result("passed", closing_line(log))


def closing_line(log: Path) -> str:
    """Return the line in which a test runner adds up, or nothing."""
    found = re.findall(r"^=* ?(\d+ passed.*?) ?=*$", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return found[-1] if found else ""


def show(result: Result) -> None:
    """Print one result; of a failure the end of its log, of a pass what was skipped in it."""
    print(f"{result.status:8} {result.step.name:13} {result.seconds:6.1f} s  {result.detail}", flush=True)
    text = result.log.read_text(encoding="utf-8", errors="replace") if result.log.exists() else ""
    if result.status == "failed":
        lines = text.splitlines()
        told = [line for line in lines if re.match(r"ERROR|FAILED|E  |fatal:", line)][:40]
        print("".join(f"    {line}\n" for line in [*told, *lines[-30:]]), end="", flush=True)
        print(f"    the whole log: {result.log}", flush=True)
    else:
        for line in re.findall(r"^SKIPPED .*$", text, re.MULTILINE):
            print(f"    {line}", flush=True)


def main() -> None:
    """Run the checks that were asked for."""
    if sys.argv[1:] == ["--list"]:
        for step in STEPS:
            print(f"{step.name:13} {step.about}")
        return
    unknown = set(sys.argv[1:]) - {step.name for step in STEPS}
    if unknown:
        sys.exit(f"No such check: {', '.join(sorted(unknown))}. See: check.py --list")
    chosen = [step for step in STEPS if wanted(step.name)]
    env.environment(None)
    env.tree()
    env.old_pyroute2()
    results = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for result in pool.map(run, [step for step in chosen if step.parallel]):
            show(result)
            results.append(result)
    for step in chosen:
        if not step.parallel:
            results.append(run(step))
            show(results[-1])
    count = {status: sum(result.status == status for result in results) for status in ("passed", "failed", "skipped")}
    print(f"checks: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    sys.exit(1 if count["failed"] else 0)


if __name__ == "__main__":
    main()

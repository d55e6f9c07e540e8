# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the project's checks and report the result of each: passed, failed or skipped, with the reason.

    check.py             those that find most in the least time: `make test`
    check.py --rest      all others, but those that are only run by name: `make test-all`
    check.py --all       both: what CI runs
    check.py NAME ...    only these
    check.py --list      their names, when each is run, and what it is for

RAILOPS_REQUIRE="NAME ..." names checks that must not be skipped: then a skip is a failure. RAILOPS_WEEKLY=1 runs what a
push leaves out too, changed or not. RAILOPS_INSTALL=0 keeps the run from installing packages. Logs are in
tests/output/logs, one file for each check.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import typing as t
from pathlib import Path

import env
import roots
import runner
from runner import Argv, SkipStep, Step

CHECKOUT = env.CHECKOUT
# ansible-test fetches this file from the network; here it is the pip that the interpreter carries.
GET_PIP = "import ensurepip\n\nensurepip.bootstrap()\n"
GET_PIP_NAMES = ("get_pip_24_2.py", "get_pip_25_2.py")


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
        "ANSIBLE_COLLECTIONS_PATH": tree,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        # Compiled tests and plugins stay for the next check, beside the checkout.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(env.cache() / "bytecode"),
        "RAILOPS_PYROUTE2_OLD": str(env.old_pyroute2()),
        "RAILOPS_KUBERNETES_OLD": str(env.old_kubernetes()),
    }


def skipped(count: int, why: str) -> Argv:
    """Return the command that counts tests as skipped, as pytest does (runner.skips)."""
    return ["echo", f"SKIPPED [{count}] check.py: {why}"]


def ruff() -> t.Iterator[Argv]:
    yield [tool("ruff"), "check", "."]
    yield [tool("ruff"), "format", "--check", "."]


def mypy() -> t.Iterator[Argv]:
    yield [tool("mypy"), "plugins"]


def yamllint() -> t.Iterator[Argv]:
    yield [tool("yamllint"), "--strict", "."]
    schema = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    workflows = sorted(str(path) for path in (CHECKOUT / ".github/workflows").glob("*.yml"))
    checker = env.isolated_environment("workflows", "check-jsonschema==0.39.0")
    yield ["env", f"PYTHONPATH={checker}", tool("python"), *schema, *workflows]


def docs() -> t.Iterator[Argv]:
    yield [tool("antsibull-docs"), "lint-collection-docs", "--plugin-docs", "--validate-collection-refs", "self", "."]
    yield [tool("antsibull-changelog"), "lint"]
    yield pytest("tests/docs")


def docsite() -> t.Iterator[Argv]:
    yield [tool("python"), "tests/docs/site.py"]


def links() -> t.Iterator[Argv]:
    yield [tool("python"), "tests/docs/site.py", "--external"]


def ansible_lint() -> t.Iterator[Argv]:
    yield [tool("ansible-lint"), "--offline", "--profile", "production", "--strict"]


def newest() -> str:
    """Return the Python of the newest ansible-core that the tests know; where it is not here, the one that is."""
    return "3.13" if env.interpreter("3.13") else next(filter(env.interpreter, env.PYTHONS))


def newest_environment() -> Path:
    """Return the environment of that Python."""
    return env.environment(newest())


def sanity(*words: str) -> t.Iterator[Argv]:
    version = newest()
    # A home of its own: the developer's ~/.ansible/test/cache stays as it is. pip keeps the settings of the user.
    home = env.cache() / "ansible-test"
    settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    (home / ".ansible/test/cache").mkdir(parents=True, exist_ok=True)
    for name in GET_PIP_NAMES:
        (home / ".ansible/test/cache" / name).write_text(GET_PIP, encoding="utf-8")
    copy = env.copy(env.cache() / f"sanity-{env.digest(str(CHECKOUT))}")
    subprocess.run(["git", "init", "-q", str(copy)], check=True)
    command = f"{tool('ansible-test', version)} sanity --venv --python {version} --color no {' '.join(words)}"
    interpreter = env.interpreter(version)
    folder = str(Path(interpreter).parent) if interpreter else ""
    environment = (f"HOME={home}", f"XDG_CONFIG_HOME={settings}", f"PATH={folder}:{environ(version)['PATH']}")
    yield ["env", "-C", str(copy), *environment, "sh", "-c", command]


def sanity_of_plugins() -> t.Iterator[Argv]:
    # Most of its time would go to the tests, which ruff looks at too.
    yield from sanity("--exclude tests/ --exclude playbooks/collections/")


def main_job() -> t.Iterator[Argv]:
    yield [tool("python"), str(CHECKOUT / "tests/demo/demo.py")]


def unbounded() -> t.Iterator[Argv]:
    """Run what leans on others' code with the newest of all of it, whatever that is: the versions come first."""
    home = env.newest_releases(newest())
    yield [str(home / "pip"), "list", "--disable-pip-version-check"]
    words = [*("-m", "pytest", "-q", "-n", "2", "-m", "not slow")]
    # The oldest client was made for another Python, with its own libraries.
    with_newest = ["env", "RAILOPS_KUBERNETES_OLD=", f"PATH={home}:{os.environ['PATH']}", str(home / "python")]
    yield [*with_newest, *words, "tests/unit", *CLIENTS]


def unit_newest() -> t.Iterator[Argv]:
    if not env.interpreter("3.13"):
        raise SkipStep("there is no Python 3.13 here; install python3.13 with its venv module, or pyenv's 3.13")
    if env.interpreter("3.13") == env.default_interpreter():
        raise SkipStep("it is the Python of the check unit here")
    folders = [f"tests/unit/plugins/{name}" for name in ("module_utils", "modules")]
    yield [tool("python", "3.13"), "-m", "pytest", "-q", *folders]


def cores() -> t.Iterator[Argv]:
    version = next(filter(env.interpreter, ("3.11", "3.12")), None)
    if version is None:
        raise SkipStep("ansible-core 2.16 wants Python 3.11 or 3.12: install one with its venv module")
    for core, folders in (("2.16", ("action", "filter", "modules")), ("2.18", ("action", "filter"))):
        home = env.environment(version, core)
        with_core = ["env", f"RAILOPS_CORE={core}", f"PATH={home}:{os.environ['PATH']}"]
        tests = [f"tests/unit/plugins/{name}" for name in folders]
        yield [*with_core, str(home / "python"), "-m", "pytest", "-q", "-n", "2", *tests]
        if not runner.WEEKLY:
            yield skipped(2, "ansible-core 2.18, and the demo with 2.16: left to the weekly run")
            return
        if core == "2.16":
            yield [*with_core, str(home / "python"), str(CHECKOUT / "tests/demo/demo.py")]


def node() -> Path | None:
    """Return the environment of a managed node, made when missing, or None without its Python."""
    python = env.interpreter("3.9")
    return env.node_environment(python) if python else None


def unit_oldest() -> t.Iterator[Argv]:
    home = node()
    if not home:
        raise SkipStep("there is no Python 3.9 here; install python3.9 with its venv module, or pyenv's 3.9")
    controller = [
        f"--ignore-glob={pattern}"
        for pattern in ("*/_cluster/*", "*/test_collective.py", "*/test_schedule.py", "*/test_ippool_plan.py")
    ]
    # Python 3.9 copies its process for each program: the tests that start many run in a small one.
    for folder in ("modules", "module_utils"):
        yield [
            *("env", f"PYTHONPATH={env.tree()}:{home / 'controller'}", str(home / "bin/python")),
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", *controller, f"tests/unit/plugins/{folder}"),
        ]


def pytest(folder: str, *, parallel: bool = False, version: str | None = None, only: str = "") -> Argv:
    """Return the command that runs a folder of tests.

    :param only: an expression over marks: those alone.
    """
    # Those of the cluster mostly wait.
    workers = ["-n", "4" if folder == "tests/cluster" else "2"] if parallel else []
    if folder in ("tests/kernel", "tests/site"):
        workers += ["--dist", "loadfile"]  # the tests of a file share one lab
    elif parallel:
        workers += ["--dist", "loadgroup"]
    marked = ["-m", only] if only else []
    return [tool("python", version), "-m", "pytest", "-q", *workers, *marked, folder]


def suite(folder: str, *, parallel: bool = False, only: str = "") -> t.Callable[[], t.Iterator[Argv]]:
    """Return the commands of one folder of tests."""

    def commands() -> t.Iterator[Argv]:
        yield pytest(folder, parallel=parallel, only=only)

    return commands


def real_api(level: str = "server") -> Argv:
    """Return what comes before a command that is run beside a real API: nothing when the user names a cluster.

    :param level: what is beside that API (tests/cluster/programs.py).
    :raises SkipStep: there is none here.
    """
    if os.environ.get("RAILOPS_TEST_KUBECONFIG"):
        return []
    beside = [tool("python"), str(CHECKOUT / "tests/cluster/real_api.py")]
    done = subprocess.run([*beside, "--why-not", level], capture_output=True, text=True, check=False, env=environ())
    if done.returncode:
        raise SkipStep(done.stderr.strip()[-600:])
    return beside


def is_selected(name: str) -> bool:
    """Return whether a check is among those on the command line."""
    return not runner.command_line_names() or name in runner.command_line_names()


# What runs on a real cluster, the longest first. The first wants one without Spiderpool.
ON_REAL = [
    f"tests/cluster/test_{name}.py" for name in ("life", "spiderpool", "recorded", "gate", "objects", "roles", "lease")
]


EXISTING = (
    "spiderpool_by_helm_under_the_same_name",
    "spiderpool_by_helm_in_another_namespace",
    "multus_only",
    "a_users_network",
    "nvidias_network_operator",
)


SHORT, SLOW = "not slow", "slow"
# The tests of the cluster that lean on the Python client most.
CLIENTS = ("tests/cluster/test_clients.py", "tests/cluster/test_pods.py")


def cluster(only: str = SHORT) -> t.Iterator[Argv]:
    command = ["env", "-u", "RAILOPS_TEST_KUBECONFIG", *pytest("tests/cluster", parallel=True, only=only)]
    if only == SLOW and is_selected("api"):
        with contextlib.suppress(SkipStep):
            real_api("webhooks")
            # What the check `api` runs on the real API is not run on the double as well, but for what compares the two.
            twice = [name for name in ON_REAL if not name.endswith("test_recorded.py")]
            yield [*command, *(f"--ignore={name}" for name in twice)]
            yield [*command[:-1], "--double-only", *twice]
            return
    if only == SLOW and not runner.WEEKLY and not runner.command_line_names():
        command += [f"--ignore={ON_REAL[0]}"]
        yield skipped(1, "the life of a cluster: left to the check api and the weekly run")
    yield command


def api() -> t.Iterator[Argv]:
    command = [tool("python"), "-m", "pytest", "-q", "--real-only"]
    if beside := real_api():
        # Two workers, each beside a cluster of its own; the files in this order.
        worker = shlex.join([*beside, tool("python")])
        command += ["--dist", "loadfile", "--no-loadscope-reorder", "--tx", f"2*popen//python={worker}"]
    yield [*command, *ON_REAL]


# What the real network managers of a release make of our files and of others'.
WITH_MANAGERS = [f"tests/kernel/test_rail_persist_{name}.py" for name in ("tools", "boot", "others", "next_boot")]


def long() -> t.Iterator[Argv]:
    whole = ["env", "RAILOPS_TEST_LONG=1", tool("python"), "-m", "pytest", "-q"]
    marked = [*whole, "-m", "long"]
    # The data of tests are others' files, as they were: some hold several documents.
    yield from sanity("--exclude playbooks/collections/ --exclude tests/cluster/existing/")
    if env.interpreter("3.13"):
        yield [
            *whole[:2],
            "RAILOPS_FABRICS=3000",
            "RAILOPS_HISTORIES=2000",
            *pytest("tests/unit", parallel=True, version="3.13"),
        ]
    # Its tests go on where the one before ended, faults among them.
    together = "tests/site/test_site_cluster.py"
    yield [*whole, together]
    yield [*whole[:2], *pytest("tests/site", parallel=True, only="long"), f"--ignore={together}"]
    yield [*marked, "-n", "2", "tests/kernel"]
    # Those of Debian 12 are in the check `kernel`. Where a mirror is out of reach, pytest says so for each test.
    for suite in ("trixie", "jammy", "noble"):
        yield ["env", f"RAILOPS_MANAGERS={suite}", *whole[1:], *WITH_MANAGERS]
    yield [*whole[:2], *pytest("tests/cluster", parallel=True, only="long"), "--double-only"]
    try:
        yield [*real_api(), *marked, "--real-only", *ON_REAL]
        if beside := real_api("webhooks"):
            # What others left in a cluster is there for good: each case has a cluster of its own.
            yield from (
                [*beside, *whole, "--real-only", f"tests/cluster/test_existing.py::test_{name}"] for name in EXISTING
            )
    except SkipStep as exc:
        yield skipped(len(ON_REAL) + len(EXISTING), f"files of tests want a real API: {exc}")


BARE = "tests/bare/test_bare.py"


def bare_tests() -> t.Iterator[Argv]:
    for case in ("user", "forbidden", "root"):
        yield [tool("python"), "-m", "pytest", "-q", f"tests/bare/test_second_command.py::test_{case}"]


def lab() -> t.Iterator[Argv]:
    # Those of guests are counted as skipped where RAILOPS_LAB names no lab.
    yield [*pytest("tests/lab"), "tests/guests"]


def molecule() -> t.Iterator[Argv]:
    yield [tool("molecule"), "test"]
    if runner.WEEKLY:
        yield [tool("molecule"), "test", "--scenario-name", "netns"]
        yield [tool("molecule"), "test", "--scenario-name", "hosts-only"]
    else:
        yield skipped(1, "the scenarios netns and hosts-only: left to the weekly run")


def guests() -> t.Iterator[Argv]:
    yield [tool("molecule"), "test", "--scenario-name", "guests"]


def package() -> t.Iterator[Argv]:
    yield [tool("python"), "-m", "pytest", "-q", "tests/package"]


# Host roles and rooms: what guests show on a kernel with RDMA. A refactoring elsewhere starts none.
HOSTS = (
    *("roles/rail_network", "roles/rdma_*", "roles/lossless_roce"),
    *(f"plugins/module_utils/_{part}" for part in ("rdma", "netns", "driver", "qos", "persist", "route")),
    *(f"plugins/modules/{name}.py" for name in ("rdma_*", "rail_persist", "policy_route", "roce_qos")),
)
GUESTS = (*HOSTS, "molecule/guests", "molecule/netns", "tests/lab")
CLUSTER = (
    *("tests/cluster", "tests/admission", "playbooks", "roles"),
    *("plugins/module_utils/_cluster", "plugins/module_utils/_pods", "plugins/modules/cluster_*"),
)
FIRST_COMMAND = ("README.md", "Makefile", "tests/tools", "tests/demo", "tests/bare")

# They begin in this order: what takes longest first, what waits beside what works.
STEPS = (
    # Emulated processors take both cores: nothing runs beside it.
    Step(
        "guests",
        "two QEMU guests: one fabric from bare image to RDMA",
        guests,
        workers=runner.ROOM,
        root=True,
        rest=True,
        shows=GUESTS,
    ),
    Step(
        "site", "the whole path on namespace hosts", suite("tests/site", parallel=True), workers=2, root=True, rest=True
    ),
    Step(
        "kernel-slow",
        "the long stories of the check kernel",
        suite("tests/kernel", parallel=True, only=SLOW),
        root=True,
        rest=True,
        prepare=roots.managers,
        shows=(*HOSTS, "tests/kernel"),
    ),
    Step("docs", "plugin documentation, changelog, every command of the docs", docs, rest=True),
    Step("docsite", "the documentation site; a warning or a dead link is an error", docsite, rest=True),
    Step("links", "links of the docs to other sites", links, rest=True, weekly=True),
    Step(
        "cluster-slow",
        "the long stories of the check cluster",
        lambda: cluster(SLOW),
        workers=2,
        rest=True,
        shows=CLUSTER,
    ),
    Step(
        "unit", "unit and property tests, oldest controller", suite("tests/unit", parallel=True, only=SHORT), workers=2
    ),
    Step(
        "kernel",
        "the host modules and the real network managers on a real kernel in network namespaces",
        suite("tests/kernel", parallel=True, only=SHORT),
        root=True,
        prepare=roots.managers,
    ),
    Step("cluster", "objects, Helm and roles against an API double", cluster, workers=2),
    Step("api", "objects, Helm and roles against a real Kubernetes control plane", api, workers=2, rest=True),
    Step(
        "bare",
        "the README's first command on a pristine Debian",
        suite(BARE),
        root=True,
        rest=True,
        prepare=roots.pristine,
        shows=FIRST_COMMAND,
    ),
    Step("main", "the main job: plan, hosts, audit, a broken rail, over namespaces", main_job, root=True),
    Step(
        "sanity",
        "ansible-test sanity, without the tests' own files",
        sanity_of_plugins,
        rest=True,
        prepare=newest_environment,
    ),
    Step("cores", "plugins with ansible-core 2.16; weekly also with 2.18, and the demo", cores, workers=2, rest=True),
    Step("ansible-lint", "roles and playbooks, profile production", ansible_lint),
    Step("unit-oldest", "the host modules' tests on Python 3.9", unit_oldest, rest=True, prepare=node),
    Step(
        "unit-slow",
        "the long properties of the check unit",
        suite("tests/unit", parallel=True, only=SLOW),
        workers=2,
        rest=True,
    ),
    Step(
        "package", "build the tarball, install it, run it installed, create the image's context; a plain clone", package
    ),
    Step(
        "molecule",
        "the scenario on the API double; weekly also that on namespace hosts",
        molecule,
        root=True,
        rest=True,
    ),
    Step("report", "the report's page in a real browser", suite("tests/report"), rest=True),
    Step("mypy", "types of everything under plugins/, strict", mypy),
    Step("lab", "the lab starts, lists and ends", lab, root=True, rest=True),
    Step("yamllint", "YAML style, and the workflows of GitHub by their schema", yamllint),
    Step("ruff", "style and common mistakes of the Python code", ruff),
    Step(
        "newest",
        "plugins with the newest release of all that they lean on",
        unbounded,
        workers=2,
        rest=True,
        weekly=True,
    ),
    Step(
        "unit-newest",
        "what goes to hosts, on Python 3.13 and its ansible-core",
        unit_newest,
        rest=True,
        weekly=True,
        prepare=newest_environment,
    ),
    # By name only.
    Step(
        "long",
        "rare faults that take minutes; all of sanity, and all unit tests on Python 3.13",
        long,
        by_name=True,
        root=True,
    ),
    # Each of its cases runs the checks itself: nothing beside it.
    Step(
        "bare-tests",
        "the README's second command on a pristine Debian",
        bare_tests,
        workers=runner.ROOM,
        by_name=True,
        root=True,
    ),
)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        runner.show_all(STEPS)
    else:
        runner.main(STEPS, environ)

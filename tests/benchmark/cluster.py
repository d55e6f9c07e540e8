# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print how cluster_objects compares with kubernetes.core.k8s given a list, both measured in this run.

    python tests/benchmark/cluster.py                2,000 objects each way, three rounds, then 10,000: time and memory
    python tests/benchmark/cluster.py --objects 500 --rounds 1 --looped 0 --large 0
    python tests/benchmark/cluster.py --double       on the API double of tests/cluster, where there is no real one

It runs on a real kube-apiserver, started in a network namespace (tests/cluster/real_api.py), without Spiderpool's
webhook. Both sides use server-side apply, theirs with all objects in one call, which is its fastest way. The bars are
of whole playbooks, with Ansible's own start: a first apply at least 3 x, an unchanged one at least 8 x faster. The call
is what a playbook takes more than one that only pings. On a busy machine look at processor time. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

from table import CHECKOUT, Row, enter_environment, show

sys.path.insert(0, str(CHECKOUT / "tests/cluster"))

# The kubeconfig of the real API, when this runs beside one.
REAL = os.environ.get("RAILOPS_TEST_KUBECONFIG")


class Double:
    """An API double in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / f"kubeconfig-{time.time_ns()}"
        argv = [sys.executable, str(CHECKOUT / "tests/cluster/api_double.py"), "--kubeconfig", str(self.kubeconfig)]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        said = self._process.stdout
        self.about = said.readline().strip() if said else ""

    def __enter__(self) -> Double:
        return self

    def __exit__(self, *dummy: object) -> None:
        self._process.terminate()
        self._process.wait(10)


class Real:
    """The real API of this run; all pools are deleted afterwards."""

    def __init__(self, _folder: Path) -> None:
        self.kubeconfig = Path(str(REAL))

    def __enter__(self) -> Real:
        return self

    def __exit__(self, *dummy: object) -> None:
        from played import POOLS, Api

        api = Api(self.kubeconfig)
        api.call("DELETE", POOLS)
        while api.items(POOLS):
            time.sleep(0.2)


Server = Real if REAL else Double


def manifests(folder: Path, count: int) -> Path:
    """Write that many pools of one fabric and return the file."""
    import yaml
    from fabric_objects import pool

    nodes = (count + 7) // 8
    rows = [pool("bench", rail, node, most=2048) for node in range(1, nodes + 1) for rail in range(1, 9)][:count]
    path = folder / f"pools-{count}.yaml"
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump_all(rows, stream, Dumper=yaml.CSafeDumper)
    return path


class Took(t.NamedTuple):
    """Seconds of a playbook: on the wall, and of processor time without the server's."""

    wall: float
    cpu: float


def spent() -> float:
    """Return the processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def playbook(folder: Path, task: dict[str, t.Any]) -> Took:
    """Run one task and return how long it took."""
    path = folder / "play.yml"
    path.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]), encoding="utf-8")
    began, before = time.perf_counter(), spent()
    done = subprocess.run(["ansible-playbook", str(path)], capture_output=True, text=True, check=False, timeout=1200)
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    return Took(time.perf_counter() - began, spent() - before)


def ours(server: Double | Real, source: Path) -> dict[str, t.Any]:
    """Return the task of this collection."""
    return {"railops.rdma.cluster_objects": {"src": [str(source)], "kubeconfig": str(server.kubeconfig)}}


def theirs(server: Double | Real, source: Path) -> dict[str, t.Any]:
    """Return the task of kubernetes.core: one call with the whole list, server-side apply."""
    return {
        "kubernetes.core.k8s": {
            "src": str(source),
            "kubeconfig": str(server.kubeconfig),
            "apply": True,
            "server_side_apply": {"field_manager": "bench"},
        }
    }


def looped(server: Double | Real, source: Path, count: int) -> dict[str, t.Any]:
    """Return the task of kubernetes.core as the guides' playbooks have it: one call an object."""
    import yaml

    with source.open(encoding="utf-8") as stream:
        some = [row for row, _number in zip(yaml.load_all(stream, yaml.CSafeLoader), range(count), strict=False)]
    task = theirs(server, source)
    task["kubernetes.core.k8s"].pop("src")
    task["kubernetes.core.k8s"]["definition"] = "{{ item }}"
    return {**task, "loop": some, "no_log": True}


class Round(t.NamedTuple):
    """What one round took: pings, and both sides' first and second apply."""

    pings: list[Took]
    ours_first: Took
    theirs_first: Took
    ours_again: Took
    theirs_again: Took


def one_round(folder: Path, source: Path) -> Round:
    """Apply all objects twice, first one way and then the other, each to an empty server, with a ping before each."""
    pings = []

    def timed(task: dict[str, t.Any]) -> Took:
        pings.append(playbook(folder, {"ansible.builtin.ping": {}}))
        return playbook(folder, task)

    def twice(task: t.Callable[[Double | Real, Path], dict[str, t.Any]]) -> tuple[Took, Took]:
        with Server(folder) as server:
            return timed(task(server, source)), timed(task(server, source))

    first, again = twice(ours)
    theirs_first, theirs_again = twice(theirs)
    return Round(pings, first, theirs_first, again, theirs_again)


def least_ping(rounds: list[Round], unit: str) -> float:
    """Return the shortest ping: on a busy machine the one that says the least in our favour."""
    return min(getattr(ping, unit) for row in rounds for ping in row.pings)


def median(rounds: list[Round], which: str, unit: str, less: bool) -> float:
    """Return the median of one time over the rounds, without the ping's if asked."""
    base = least_ping(rounds, unit) if less else 0.0
    return statistics.median(getattr(getattr(row, which), unit) for row in rounds) - base


def comparison(what: str, key: str, rounds: list[Round], target: float) -> list[Row]:
    """Compare the whole playbook, which has the target, and the call alone."""
    rows = []
    for label, less in (("whole playbook", False), ("the call", True)):
        for unit, name in (("wall", "wall"), ("cpu", "processor")):
            left, right = (median(rounds, f"{side}_{key}", unit, less) for side in ("ours", "theirs"))
            title = f"{what}, {label}, {name}"
            row = Row.faster(title, f"{left:.2f} s", f"{right:.2f} s", right / max(left, 0.01), target)
            rows.append(row if (less, unit) == (False, "wall") else row.told())
    return rows


def large(folder: Path, count: int) -> None:
    """Print time and memory of the module alone at many objects."""
    source = manifests(folder, count)
    with Server(folder) as server:
        for what in ("first apply", "unchanged"):
            arguments = folder / "arguments.json"
            given = {"src": [str(source)], "kubeconfig": str(server.kubeconfig)}
            arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": given}), encoding="utf-8")
            module = "ansible_collections.railops.rdma.plugins.modules.cluster_objects"
            code = (
                "import resource, runpy, sys\n"
                f"sys.argv = ['cluster_objects', {str(arguments)!r}]\n"
                "try:\n"
                f"    runpy.run_module({module!r}, run_name='__main__')\n"
                "except SystemExit as exc:\n"
                "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
                "    raise\n"
            )
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=1200
            )
            seconds = time.perf_counter() - began
            result = json.loads(done.stdout.splitlines()[-1])
            peak = int(done.stderr.split()[-1]) / 1024
            print(
                f"{count:,} objects, {what:<12} {seconds:8.2f} s {count / seconds:8.0f}/s {peak:8.0f} MB at most"
                f"   {result['msg']}",
                flush=True,
            )


def beside_real_api() -> None:
    """Run all of this again beside a real API; return where there can be none."""
    real = [sys.executable, str(CHECKOUT / "tests/cluster/real_api.py")]
    done = subprocess.run([*real, "--why-not"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"No real API here ({done.stderr.strip()}): measured on the API double.", flush=True)
        return
    os.execv(sys.executable, [*real, "--bare", sys.executable, *sys.argv])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--looped", type=int, default=20)
    parser.add_argument("--large", type=int, default=10000)
    parser.add_argument("--double", action="store_true")
    options = parser.parse_args()
    enter_environment("kubernetes", "yaml")
    if not options.double and not REAL:
        beside_real_api()
    with tempfile.TemporaryDirectory(prefix="rr-bench-") as name:
        folder = Path(name)
        source = manifests(folder, options.objects)
        rounds = [one_round(folder, source) for _number in range(options.rounds)]
        where = f"a real API {os.environ.get('RAILOPS_TEST_RELEASE', '')}".strip() if REAL else "the API double"
        title = f"{options.objects:,} pools on {where}, medians of {options.rounds} rounds"
        show(title, [*comparison("first apply", "first", rounds, 3), *comparison("unchanged", "again", rounds, 8)])
        if options.looped:
            with Server(folder) as server:
                took = playbook(folder, looped(server, source, options.looped))
            each = (took.wall - least_ping(rounds, "wall")) / options.looped
            print(
                f"kubernetes.core.k8s in a loop: {each:.2f} s an object, {each * options.objects / 60:.0f} min for all"
            )
        if options.large:
            large(folder, options.large)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"Peak memory of any process of this run: {peak:.0f} MB.")


if __name__ == "__main__":
    main()

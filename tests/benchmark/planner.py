# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print the planner's benchmarks, each beside its baseline, both measured in this run, with the target beside it.

    python tests/benchmark/planner.py            about three minutes
    python tests/benchmark/planner.py --full     the Jinja playbook over all 10,000 nodes too, instead of scaled

Times are CPU seconds, the best of a few runs, so that other work on the machine does not count; the row of files has
wall seconds, because the disk is part of it.
The Jinja way needs ansible.utils, which is taken from the PyPI package `ansible` once.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from table import CHECKOUT, Row, enter_environment, env, show

BASELINE = CHECKOUT / "tests/benchmark/baseline"

NODES = 10_000
SMALL = 1_000
RAILS = 8
SUPERNET = "10.0.0.0/8"


def cpu(*actions: t.Callable[[], object], rounds: int = 5) -> list[float]:
    """Return the CPU seconds of the fastest run of each, taking turns."""
    best = [float("inf")] * len(actions)
    for _round in range(rounds):
        for number, action in enumerate(actions):
            began = time.process_time()
            action()
            best[number] = min(best[number], time.process_time() - began)
    return best


def walls(*actions: t.Callable[[], object], rounds: int = 4) -> list[float]:
    """Return the wall seconds of the fastest run of each, taking turns."""
    best = [float("inf")] * len(actions)
    for _round in range(rounds):
        for number, action in enumerate(actions):
            os.sync()
            began = time.perf_counter()
            action()
            best[number] = min(best[number], time.perf_counter() - began)
    return best


def raw_fabric(count: int) -> dict[str, t.Any]:
    """Return the fabric's values: a /27 per node and rail."""
    return {
        "mode": "exclusive",
        "supernets": [SUPERNET],
        "max_nodes": count,
        "rails": [{"name": f"rail{number}", "interface": f"ens{number}np0"} for number in range(1, RAILS + 1)],
    }


def raw_nodes(count: int) -> list[dict[str, t.Any]]:
    """Return the nodes as the action plugin hands them over."""
    return [{"host": f"node{number}", "groups": []} for number in range(1, count + 1)]


def make_plan(count: int, nodes: list[dict[str, t.Any]] | None = None) -> t.Any:
    """Validate, allocate and plan: everything but writing. The nodes may be made before, as the inventory does."""
    from ansible_collections.railops.rdma.plugins.plugin_utils._plan import allocation, blocks
    from ansible_collections.railops.rdma.plugins.plugin_utils._plan import input as plan_input
    from ansible_collections.railops.rdma.plugins.plugin_utils._plan import nodes as plan_nodes

    fabric = plan_input.read_fabric(raw_fabric(count))
    candidates = plan_nodes.read_nodes(fabric, nodes or raw_nodes(count))
    given = allocation.allocate(fabric, candidates, None, plan_input.Options())
    return blocks.build_plan(fabric, given.nodes, given.retired)


def in_memory(count: int, nodes: list[dict[str, t.Any]]) -> str:
    """Plan, and write the text that the template of the Jinja way writes: all pools with all their addresses."""
    from ansible_collections.railops.rdma.plugins.plugin_utils._plan.pools import render_pools

    return render_pools(make_plan(count, nodes))


# --- playbooks --------------------------------------------------------------------------------------------------------


class Playbooks:
    """Runs playbooks over generated inventories."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # ansible.utils only for the baseline: the collection does not need it.
        wanted, env.DEPENDENCIES = env.DEPENDENCIES, ("ansible/utils",)
        utils = env.dependencies()
        env.DEPENDENCIES = wanted
        self.environment = {
            **os.environ,
            "PATH": f"{env.environment(None)}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": f"{env.tree()}:{utils}",
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_DEPRECATION_WARNINGS": "false",
            "PYTHONPATH": "",
        }

    def inventory(self, count: int) -> Path:
        """Write an ini inventory."""
        path = self.folder / f"inventory-{count}"
        variables = path / "group_vars/all"
        variables.mkdir(parents=True, exist_ok=True)
        names = "\n".join(f"node{number}" for number in range(1, count + 1))
        (path / "hosts").write_text(f"[gpu_nodes]\n{names}\n", encoding="utf-8")
        lines = [f"fabric_{key}: {value!r}" for key, value in raw_fabric(count).items()]
        slots = 1 << (count - 1).bit_length()
        lines += [f"fabric_plan_dir: {self.folder}/plan-{count}", f"destination: {self.folder}"]
        lines += [f"supernet: {SUPERNET}", f"slots: {slots}"]
        (variables / "fabric.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def run(self, playbook: str, count: int, rounds: int = 1) -> tuple[float, int]:
        """Return (CPU seconds of the fastest run, the largest resident set in MB) of a playbook and its children."""
        argv = ["ansible-playbook", "-i", str(self.inventory(count)), playbook]
        best, memory = float("inf"), 0
        for _round in range(rounds):
            with (self.folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    argv, env=self.environment, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
                )
                _pid, status, usage = os.wait4(process.pid, 0)
            if status:
                text = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
                sys.exit(f"{' '.join(argv)} failed:\n{text[-3000:]}")
            best = min(best, usage.ru_utime + usage.ru_stime)
            memory = max(memory, usage.ru_maxrss // 1024)
        return best, memory


# --- rows -------------------------------------------------------------------------------------------------------------


def memory_rows(jinja: float) -> list[Row]:
    """Plan in memory: against the template, and its growth."""
    few, many = raw_nodes(SMALL), raw_nodes(NODES)
    small, large = cpu(lambda: in_memory(SMALL, few), lambda: in_memory(NODES, many), rounds=15)
    return [
        Row.faster(
            f"plan {NODES:,} x {RAILS} in memory / the Jinja way",
            f"{large:.3f} s",
            f"{jinja:.0f} s",
            jinja / large,
            500,
        ),
        Row.within(
            f"growth of planning, {SMALL:,} to {NODES:,} nodes",
            f"{large:.3f} s",
            f"{small:.4f} s at {SMALL:,}",
            large / small,
            11,
        ),
    ]


def files_row(folder: Path) -> Row:
    """All plan files, planned and written, against writing the same files raw."""
    from ansible_collections.railops.rdma.plugins.plugin_utils._plan import run as plan_run

    files = plan_run.render(make_plan(NODES))
    blobs = [text.encode() for text in files.values()]
    counter = iter(range(100))

    def raw() -> None:
        target = folder / f"raw{next(counter)}"
        target.mkdir()
        for number, blob in enumerate(blobs):
            with open(target / str(number), "wb") as stream:
                stream.write(blob)
        os.sync()

    def ours() -> None:
        target = folder / f"plan{next(counter)}"
        plan_run.run({**raw_fabric(NODES), "plan_dir": str(target)}, raw_nodes(NODES), check_mode=False)

    theirs, mine = walls(raw, ours)
    size = sum(map(len, blobs)) / 1e6
    return Row.within(
        f"plan and write all {len(files):,} files ({size:.0f} MB) / write them raw",
        f"{mine:.2f} s",
        f"{theirs:.2f} s",
        mine / theirs,
        3,
    )


def yaml_row() -> Row:
    """The pools as YAML, against PyYAML's C dumper on the same objects."""
    import yaml

    from ansible_collections.railops.rdma.plugins.plugin_utils._plan import objects as plan_objects

    plan = make_plan(NODES)
    part = make_plan(SMALL)
    objects = list(yaml.load_all(plan_objects.render_cluster(part)["ippools.yaml"], Loader=yaml.CSafeLoader))
    (mine,) = cpu(lambda: plan_objects.render_cluster(plan))
    (part_theirs,) = cpu(lambda: yaml.dump_all(objects, Dumper=yaml.CSafeDumper), rounds=3)
    theirs = part_theirs * NODES / SMALL
    what = f"{NODES * RAILS:,} objects as YAML / PyYAML's C dumper"
    return Row.faster(what, f"{mine:.2f} s", f"{theirs:.1f} s", theirs / mine, 20)


def playbook_rows(books: Playbooks, jinja: float, idle: float) -> list[Row]:
    """The playbook over 10,000 hosts, first run and second."""
    first, memory = books.run("railops.rdma.plan", NODES)
    again, other = books.run("railops.rdma.plan", NODES)
    memory = max(memory, other)
    return [
        Row.faster(
            f"railops.rdma.plan, {NODES:,}-host ini inventory / the Jinja playbook",
            f"{first:.1f} s (again {again:.1f} s)",
            f"{jinja + idle:.0f} s",
            (jinja + idle) / first,
            10,
        ),
        Row("  its largest resident set", f"{memory} MB", "", "", "< 600 MB", memory < 600),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="run the Jinja playbook over all nodes, not scaled")
    full = parser.parse_args().full
    enter_environment("netaddr", "yaml")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name:
        folder = Path(name)
        books = Playbooks(folder)
        nothing = str(BASELINE / "nothing.yml")
        template = str(BASELINE / "plan.yml")
        books.run(nothing, SMALL)  # warms the caches of the disk
        if full:
            idle = books.run(nothing, NODES)[0]
            jinja = books.run(template, NODES)[0] - idle
            how = f"measured at {NODES:,} nodes"
        else:
            idle = books.run(nothing, SMALL, rounds=2)[0]
            jinja = (books.run(template, SMALL)[0] - idle) * NODES / SMALL
            how = f"measured at {SMALL:,} nodes and scaled linearly"
        rows = [*memory_rows(jinja), files_row(folder), yaml_row(), *playbook_rows(books, jinja, idle)]
    show("planner", rows)
    print(f"The Jinja way was {how}, without Ansible's own start ({idle:.1f} s).")


if __name__ == "__main__":
    main()

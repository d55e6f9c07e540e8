# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The planner, and the playbook around it, against the same made by a template.

Times are seconds of processor. The Jinja way needs ansible.utils, which is taken from the PyPI package `ansible` once.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import typing as t
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import env
from ran import CHECKOUT, Pair, playbook

BASELINE = CHECKOUT / "tests/benchmark/baseline"

NODES, SMALL, JINJA = 10_000, 1_000, 500
RAILS = 8
SUPERNET = "10.0.0.0/8"


def least(*actions: t.Callable[[], object], rounds: int) -> list[float]:
    """Return the CPU seconds of the fastest run of each, taking turns."""
    best = [float("inf")] * len(actions)
    for _round in range(rounds):
        for number, action in enumerate(actions):
            began = time.process_time()
            action()
            best[number] = min(best[number], time.process_time() - began)
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
    from ansible_collections.railops.rdma.plugins.plugin_utils._plan import allocation, blocks, run

    fabric, options, candidates = run.read_input(raw_fabric(count), nodes or raw_nodes(count))
    given = allocation.allocate(fabric, candidates, None, options)
    return blocks.build_plan(fabric, given.nodes, given.retired)


def in_memory() -> list[float]:
    """Plan few and many nodes, and write the text that the template writes: all pools with all their addresses."""
    from ansible_collections.railops.rdma.plugins.plugin_utils._plan.pools import render_pools

    few, many = raw_nodes(SMALL), raw_nodes(NODES)
    return least(lambda: render_pools(make_plan(SMALL, few)), lambda: render_pools(make_plan(NODES, many)), rounds=15)


def inventory(folder: Path, count: int) -> str:
    """Write an ini inventory."""
    path = folder / f"inventory-{count}"
    variables = path / "group_vars/all"
    variables.mkdir(parents=True)
    names = "\n".join(f"node{number}" for number in range(1, count + 1))
    (path / "hosts").write_text(f"[gpu_nodes]\n{names}\n", encoding="utf-8")
    lines = [f"fabric_{key}: {value!r}" for key, value in raw_fabric(count).items()]
    slots = 1 << (count - 1).bit_length()
    lines += [f"fabric_plan_dir: {folder}/plan", f"destination: {folder}", f"supernet: {SUPERNET}", f"slots: {slots}"]
    (variables / "fabric.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def template() -> t.Iterator[dict[str, Pair]]:
    """The plan in memory and by its playbook, each against the template over fewer nodes, scaled."""
    # ansible.utils only for the baseline: the collection does not need it.
    wanted, env.DEPENDENCIES = env.DEPENDENCIES, ("ansible/utils",)
    paths = {"ANSIBLE_COLLECTIONS_PATH": f"{env.tree()}:{env.dependencies()}", "PYTHONPATH": ""}
    env.DEPENDENCIES = wanted
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name:
        folder = Path(name)
        few, many = inventory(folder, JINJA), inventory(folder, NODES)
        nothing, pools = ("-i", few, f"{BASELINE}/nothing.yml"), ("-i", few, f"{BASELINE}/plan.yml")
        playbook(folder, *nothing, **paths)  # warms the caches of the disk
        while True:
            idle = playbook(folder, *nothing, **paths).cpu
            jinja = (playbook(folder, *pools, **paths).cpu - idle) * NODES / JINJA
            # In a process of its own: what one has in memory counts as its children's.
            with ProcessPoolExecutor(1, get_context("fork")) as apart:
                small, large = apart.submit(in_memory).result()
            ours = playbook(folder, "-i", many, "railops.rdma.plan", **paths)
            shutil.rmtree(folder / "plan")
            yield {
                "memory": (large, jinja),
                "growth": (large, small),
                "playbook": (ours.cpu, jinja + idle),
                "resident": (ours.memory, None),
            }

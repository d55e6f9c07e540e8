# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of the planner: read, decide, render, compare, write. The module and the benchmark call this."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import replace

from ...module_utils._check import Check, compared
from ...module_utils._errors import InputError, Problem, RdmaError
from ...module_utils._fabric.lock import FACTS, LOCK, parent_hint, part_digests
from .._fabric.model import Fabric, FabricPlan, Node
from .._fabric.options import DEFAULTS
from .._json_lines import json_lines
from .._report.markdown import render_report
from .allocation import allocate
from .blocks import build_blocks, build_plan
from .check import Checker, shown
from .diff import View, changes_text, diff_of, summary_of
from .facts import facts_of
from .host_plans import host_plans
from .input import Options, fabric_of, read_options
from .lock import entries_of, freeze, parse_lock, write_lock
from .lock_copy import LockCopy
from .nodes import read_nodes
from .objects import object_warnings, render_cluster
from .space import Existing, check_overlaps, check_space
from .store import PlanStore, read_text
from .switch import render_switch
from .workload import render_workload

Nodes = t.Sequence[t.Mapping[str, t.Any]]

ATTRIBUTES = (
    "# The page is for people to open; report.md shows the same in a diff.\nreport.html -diff linguist-generated=true\n"
)
"""For git: reviewers read what changed, not a page of markup."""


def run(
    raw: t.Mapping[str, t.Any],
    nodes: Nodes,
    *,
    check_mode: bool,
    diff: bool = False,
    full: bool = False,
    copy: LockCopy | None = None,
) -> dict[str, t.Any]:
    """Plan a fabric and bring its folder to that state.

    :param raw: the fabric_* values by their names without the prefix.
    :param nodes: see `nodes.read_nodes`.
    :param check_mode: write nothing.
    :param copy: the cluster's copy of the lock, to start from.
    :param diff: return the readable diff as well; it takes longer.
    :param full: whether it has the text of files that come or go.
    :returns: changed, checks, plan_dir, digest, summary, plan_warnings, and diff when asked for.
    :raises InputError: everything wrong with the input. RdmaError: the folder cannot be used, or the plan is locked.
    """
    fabric, options, candidates = read_input(raw, nodes)
    parent = os.path.expanduser(os.path.expandvars(raw.get("plan_dir") or DEFAULTS["plan_dir"]))
    store = PlanStore(os.path.abspath(os.path.join(parent, fabric.name)))
    lock = store.read_lock(accept=options.accept_lock)
    hint = "" if lock else parent_hint(store.folder)
    if lock is None and raw.get("plan_locked"):
        text = f"There is no plan that fabric_plan_locked could keep: {store.lock_path!r} does not exist.{hint}"
        new = "For a new fabric, run `ansible-playbook railops.rdma.plan -e fabric_plan_locked=false`. [plan_missing]"
        raise RdmaError(text, f"Restore it from version control, or set fabric_plan_dir to the plan's folder. {new}")
    second = [f"There is no plan in {store.folder!r} yet.{hint}"] if hint else []
    if copy is not None:
        lock = copy.start(lock, store.lock_path)
    allocation = allocate(fabric, candidates, lock, options)
    plan = build_plan(fabric, allocation.nodes, allocation.retired, allocation.warnings)
    files = render(plan)
    entries = entries_of(fabric, plan.nodes, plan.retired)
    text, digest = write_lock(freeze(fabric), entries, part_digests(files))
    have = store.read_files()
    change = store.compare(files, text, have)
    summary = summary_of(plan, allocation)
    if change and raw.get("plan_locked"):
        numbers = lock is None or lock.nodes != entries or freeze(lock.fabric) != freeze(fabric)
        raise RdmaError(
            f"The inventory gives another plan than {store.lock_path!r}, which is locked"
            f" ({changes_text(summary, change, numbers=numbers)}). Nothing was changed.",
            "Run railops.rdma.plan, review, commit. On purpose, -e fabric_plan_locked=false plans in this run. "
            "[plan_locked]",
            summary=summary,
        )
    if not check_mode:
        store.apply(change, lock)
    result = {
        "changed": bool(change),
        "checks": [same_plan(bool(change))] if check_mode else [],
        "plan_dir": store.folder,
        "digest": digest,
        "summary": summary,
        # What lies beside the plan is not the plan's: its report does not have it.
        "plan_warnings": [*plan.warnings, *object_warnings(plan), *second],
    }
    if diff:
        before = View(lock.fabric, lock.nodes) if lock else View(None, {})
        result["diff"] = diff_of(before, View(fabric, entries), change, have, host_plans(plan), full=full)
    return result


def same_plan(change: bool) -> Check:
    """Return whether the inventory still gives the plan that is there."""
    return compared(
        "plan_inventory",
        "the plan that the inventory gives",
        "another plan" if change else "the same plan",
        "the inventory was changed after the plan was made, or files of the plan were edited",
        "Run the playbook railops.rdma.plan, review the difference and commit it.",
        good=not change,
    )


def render(plan: FabricPlan) -> dict[str, str]:
    """Return every file of the plan but plan.json, by its path relative to the plan folder."""
    files = {f"hosts/{name}": json_lines(piece, 2) + "\n" for name, piece in host_plans(plan).items()}
    files.update((f"cluster/{name}", text) for name, text in render_cluster(plan).items())
    files.update((f"switch/{name}", text) for name, text in render_switch(plan).items())
    files.update((f"workload/{name}", text) for name, text in render_workload(plan).items())
    files.update(render_report(replace(plan, warnings=(*plan.warnings, *object_warnings(plan)))))
    files[".gitattributes"] = ATTRIBUTES
    files[FACTS] = json.dumps(facts_of(plan), indent=1) + "\n"
    return files


def read_problems(raw: t.Mapping[str, t.Any], nodes: Nodes) -> tuple[Problem, ...]:
    """Return what is wrong with the input."""
    try:
        read_input(raw, nodes)
    except InputError as exc:
        return exc.problems
    return ()


def read_input(raw: t.Mapping[str, t.Any], nodes: Nodes) -> tuple[Fabric, Options, tuple[Node, ...]]:
    """Read the fabric, the options of the run and the nodes.

    :raises InputError: with every problem found; of one kind at most ten are listed, the others counted.
    """
    check = Checker()
    fabric = fabric_of(check, raw)
    # Arithmetic on stand-ins would only add noise to the real problems.
    if not check.problems:
        check_space(check, fabric)
    good = not check.problems
    candidates = read_nodes(check, fabric, nodes, raw.get("out_of_service")) if good else ()
    existing = read_existing(check, raw.get("existing_plans"))
    if good:
        check_overlaps(check, fabric, existing)
    options = read_options(check, raw)
    check.raise_any()
    return fabric, options, candidates


def read_existing(check: Checker, paths: object) -> tuple[Existing, ...]:
    """Read the plans of other clusters."""
    found: list[Existing] = []
    for place, path in check.entries("fabric_existing_plans", paths, "paths of plan.json files"):
        fix = (
            "Set the path of the other cluster's plan.json, relative to the working directory. [existing_plan_invalid]"
        )
        if not isinstance(path, str):
            check.add(place, f"{shown(path)} is not a path.", fix)
            continue
        if os.path.isdir(path):
            path = os.path.join(path, LOCK)
        try:
            fabric = parse_lock(read_text(path), f"{place} ({path})").fabric
            found += [(place, path, one) for one in sorted({block.aggregate for block in build_blocks(fabric)})]
        except (OSError, ValueError) as exc:
            check.add(place, f"It cannot be read: {exc}.", fix)
        except InputError as exc:
            check.problems.extend(exc.problems)
    return tuple(found)

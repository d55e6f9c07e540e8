# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say whether a part of a plan folder is what plan.json was written with: for readers, without the planner.

The digests of plan.json are defined here; `_plan.lock` describes the file and checks the whole of it.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import typing as t

from .._errors import InputError, Problem, RdmaError
from .._formatting import group_by
from .._validation import excerpt
from .backends import BACKENDS
from .shapes import HostPlan, PlanFile

LOCK = "plan.json"
FACTS = "facts.json"
KUSTOMIZATION = "kustomization.yaml"
FORMAT = 1
"""Version of plan.json."""
RESTORE = "Restore it from version control (git log shows its history); never write it manually. [plan_damaged]"
MISMATCH = "It was changed manually or merged: its digest is not that of its content."
REVERT = (
    "Restore it from version control. After a merge that you have checked (every node on its slot), run plan once with "
    "fabric_accept_lock=true. [plan_digest_mismatch]"
)
NEWER = "A newer version of railops.rdma wrote this; install that or newer. [plan_newer]"
HOST_PLAN_SCHEMA = 1
"""Version of hosts/*.json."""
PARTS = ("cluster", "hosts", "switch", "workload")
"""Folders of the layout; what is in none of them is the part `facts` or `report`."""

NAMES = {
    "cluster": (
        *(name for backend in BACKENDS.values() for name in backend.objects),
        *("deviceplugin.json", KUSTOMIZATION, "sriovpolicies.yaml", "values.yaml"),
    ),
    "switch": ("prefixes.csv", "gateways.csv"),
    "workload": (
        *(f"{library}-{where}.env" for library in ("nccl", "ucx") for where in ("hosts", "pods")),
        *("pod.yaml", "topology.conf"),
    ),
    "facts": (FACTS,),
    "report": ("report.md", "report.html", ".gitattributes"),
}
"""The files of each part; `hosts` has one for each host."""

RERUN_FIX = "Run the playbook railops.rdma.plan again; it finishes or repairs the plan. [plan_unfinished]"


def sha256(text: str) -> str:
    """Return the digest as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(value: object) -> str:
    """Return the digest of a value, as JSON in the one form that digests are made of."""
    return sha256(json.dumps(value, sort_keys=True, separators=(",", ":")))


def lock_digest(lock: t.Mapping[str, t.Any]) -> str:
    """Return the digest that plan.json's other keys must have."""
    return digest_of({key: value for key, value in lock.items() if key != "digest"})


def part_of(path: str) -> str:
    """Return the part of the plan that a file belongs to: a folder of the layout, facts or report."""
    head = path.partition("/")[0]
    if path == FACTS:
        return "facts"
    return head if "/" in path and head in PARTS else "report"


def part_digests(files: t.Mapping[str, str]) -> dict[str, str]:
    """Return a digest for each part: sha256 over its sorted lines `<sha256 of the file>  <path>`.

    The sums of `cd plan/fabric && sha256sum cluster/* | LC_ALL=C sort -k2 | sha256sum` are the same.
    """
    lines = group_by((part_of(path), f"{sha256(files[path])}  {path}\n") for path in sorted(files))
    return {part: sha256("".join(rows)) for part, rows in sorted(lines.items())}


def paths_of(folder: str, part: str) -> t.Iterator[str]:
    """Yield the paths, relative to the folder, that files of a part have."""
    if part == "hosts":
        for path in glob.iglob(os.path.join(glob.escape(folder), part, "*.json")):
            yield f"{part}/{os.path.basename(path)}"
        return
    for name in NAMES[part]:
        yield f"{part}/{name}" if part in PARTS else name


def parent_hint(folder: str) -> str:
    """Say that the folder above has the plan that a folder such as plan/fra1 lacks; nothing where it has none."""
    fabric = os.path.abspath(folder)
    plans = os.path.dirname(fabric)
    parts = os.path.basename(plans), os.path.basename(fabric)
    other = os.path.join(os.path.dirname(os.path.dirname(plans)), *parts)
    if other == fabric or not os.path.isfile(os.path.join(other, LOCK)):
        return ""
    return f" A plan of {parts[1]} is in {os.path.join('..', *parts)!r}: is this the folder to run in?"


def parsed_lock(text: str, place: str) -> PlanFile:
    """Return what plan.json says, of the format that this version reads.

    :param place: how problems name the file.
    :raises InputError: it is no such file.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        merged = "\n<<<<<<< " in f"\n{text}"
        problem = "It has conflict marks of a merge." if merged else f"It is not valid JSON ({exc})."
        raise InputError([Problem(place, problem, RESTORE)]) from None
    if not isinstance(data, dict):
        raise InputError([Problem(place, "It is not a JSON object.", RESTORE)])
    if (version := data.get("format")) != FORMAT:
        problem = f"It has format {version!r:.80}, and this collection reads format {FORMAT}."
        raise InputError([Problem(f"{place}: format", problem, NEWER)])
    if not isinstance(nodes := data.get("nodes", {}), dict):
        raise InputError(
            [Problem(place, f"It is damaged: nodes of the file is {excerpt(nodes)}, not an object.", RESTORE)]
        )
    return t.cast("PlanFile", data)


def load_lock(folder: str) -> PlanFile:
    """Read plan.json and believe what it says; `read_lock` proves it.

    :raises RdmaError: no plan, an unfinished one, or one of another format.
    """
    place = os.path.abspath(os.path.join(folder, LOCK))
    try:
        with open(place, encoding="utf-8") as stream:
            lock = parsed_lock(stream.read(), place)
    except FileNotFoundError:
        fix = "Run `ansible-playbook railops.rdma.plan`, or set fabric_plan_dir to the plan's folder. [plan_missing]"
        raise RdmaError(f"There is no plan: {place!r} does not exist.{parent_hint(folder)}", fix) from None
    except (OSError, UnicodeDecodeError) as exc:
        raise RdmaError(
            f"The plan {place!r} cannot be read: {exc}.", "Fix that and run again. [plan_unreadable]"
        ) from None
    except InputError as exc:
        (one,) = exc.problems
        raise RdmaError(f"The plan {place!r} cannot be used: {one.problem}", one.fix) from None
    if lock.get("digest") == "":
        raise RdmaError(f"The plan in {folder!r} is unfinished: a run was killed while it wrote.", RERUN_FIX)
    return lock


def read_lock(folder: str) -> PlanFile:
    """Read plan.json as far as readers need it.

    :raises RdmaError: no plan, an unfinished one, one of another format, or one that was changed.
    """
    lock = load_lock(folder)
    if lock.get("digest") != lock_digest(lock):
        raise RdmaError(f"The plan {os.path.abspath(os.path.join(folder, LOCK))!r} cannot be used: {MISMATCH}", REVERT)
    return lock


def read_host_plans(folder: str) -> list[HostPlan]:
    """Return the hosts' parts of a plan, sorted by the names of their files.

    :raises RdmaError: as `verified` does.
    """
    return [json.loads(text) for _path, text in sorted(verified(folder, "hosts")[1].items())]


def verified(folder: str, part: str) -> tuple[str, dict[str, str]]:
    """Return the plan's digest and the files of a part, by their paths, which are what plan.json was written with.

    :param part: a folder of the layout, facts or report.
    :raises RdmaError: no plan, an unfinished one, or a file that is missing, changed or too much.
    """
    lock = read_lock(folder)
    files = lock.get("files")
    wanted = files if isinstance(files, dict) else {}
    texts: dict[str, str] = {}
    try:
        for path in paths_of(folder, part):
            with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, path), "rb") as stream:
                # What is no text is not what the planner wrote: its digest will differ.
                texts[path] = stream.read().decode("utf-8", "replace")
    except OSError as exc:
        problem = f"The {part} files in {folder!r} cannot be read: {exc.strerror or exc}."
        raise RdmaError(problem, "Fix that and run again. [plan_parts_unreadable]") from None
    if part_digests(texts) != {key: value for key, value in wanted.items() if key == part}:
        raise RdmaError(f"The {part} files in {folder!r} are not those that plan.json was written with.", RERUN_FIX)
    return str(lock["digest"]), texts

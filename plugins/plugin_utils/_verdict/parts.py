# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The parts of a verdict: what each run found in the plan, in the cluster and on its nodes, and which hosts it had.

A run writes its part as sections.json, beside the folder of its hosts' results.
"""

from __future__ import annotations

import json
import os
import time
import typing as t
from numbers import Real

from ...module_utils._check import SKIPPED, Check
from ...module_utils._errors import InputError, Problem
from ...module_utils._validation import HOST, excerpt, line, validate
from .files import SECTIONS_FILE, parsed_file, result_path, write_json
from .intake import answer_in
from .require import GROUPS

NODES = "nodes"
KINDS = ("plan", "cluster", NODES)
FIX_FOLDER = "Name the verify folders of runs, with their hosts and sections.json (merge_folders). [merge_path]"
_SHAPE = {"plan_digest": (None, str), "time": Real, "hosts": [str], "require": [GROUPS], "checks": {}}
_SHAPE["errors"] = dict.fromkeys(KINDS, (None, str))


class VerdictPart(t.NamedTuple):
    """The results of one run beside those of its hosts.

    :param folder: where its files are.
    :param hosts: those of its play, and `require` what it must not skip.
    :param checks: by kind, and `errors`.
    :param time: seconds since 1970.
    """

    folder: str
    hosts: t.Sequence[str]
    require: t.Sequence[str]
    checks: dict[str, list[Check]]
    errors: dict[str, str | None]
    time: float


def part_of(folder: str, data: t.Mapping[str, t.Any]) -> VerdictPart:
    """Return a part of what modules returned, or of what its file holds.

    :param data: `hosts`, `require`, `checks` and `errors`, by kind.
    """
    answers = {kind: answer_in(data["checks"].get(kind), hosts=len(data["hosts"])) for kind in KINDS}
    errors = {kind: line(data["errors"].get(kind), answer.error) for kind, answer in answers.items()}
    # Nodes have no section of their own.
    errors["cluster"] = line(errors["cluster"], errors.pop(NODES))
    checks = {kind: answer.checks for kind, answer in answers.items()}
    return VerdictPart(folder, data["hosts"], data["require"], checks, errors, data.get("time", time.time()))


def write_part(part: VerdictPart, digest: str | None) -> None:
    """Write a part into its folder.

    :param digest: of its plan.
    """
    data = {"plan_digest": digest, **part._asdict()}
    del data["folder"]
    write_json(os.path.join(part.folder, SECTIONS_FILE), data)


def read_part(folder: str, digest: str | None) -> VerdictPart:
    """Return the part in a folder.

    :param digest: of the plan that it has to be of.
    :raises InputError: it cannot be used.
    """
    path = os.path.join(folder, SECTIONS_FILE)
    try:
        data = validate(parsed_file(path), _SHAPE, "it")
    except OSError as exc:
        raise InputError([Problem(path, f"it cannot be read: {exc.strerror}.", FIX_FOLDER)]) from None
    except ValueError as exc:
        fix = "Name the folder that verify or audit of this version has written. [merge_not_managed]"
        raise InputError([Problem(path, f"it is no sections.json of this collection: {exc}.", fix)]) from None
    if data["plan_digest"] != digest:
        problem = f"it is of the plan {excerpt(data['plan_digest'])}, and the plan at hand is {str(digest)[:12]}."
        fix = "Run verify or audit for that part again, with the plan that is merged with. [merge_other_plan]"
        raise InputError([Problem(path, problem, fix)])
    return part_of(folder, {**data, "hosts": [host for host in data["hosts"] if HOST.fullmatch(host)]})


def folders_of(parts: t.Iterable[VerdictPart]) -> dict[str, str]:
    """Return the folder with the result of each host: of two the newer, unless the host did not answer there."""
    found: dict[str, str] = {}
    for part in sorted(parts, key=lambda part: part.time):
        for host in part.hosts:
            if host not in found or os.path.exists(result_path(part.folder, host)):
                found[host] = part.folder
    return found


def merged_checks(parts: t.Sequence[VerdictPart], kind: str) -> tuple[list[Check], str | None]:
    """Return the checks of a kind, each once, and the errors: of the parts that checked it, if any did."""

    def looked(part: VerdictPart) -> bool:
        return bool(part.errors.get(kind) or any(check["status"] != SKIPPED for check in part.checks[kind]))

    seen = [part for part in parts if kind == NODES or looked(part)] or parts[:1]
    rows = [check for part in seen for check in part.checks[kind]]
    if len(seen) > 1:
        rows = list({json.dumps(check, sort_keys=True): check for check in rows}.values())
    return rows, line(*dict.fromkeys(part.errors.get(kind) for part in seen))

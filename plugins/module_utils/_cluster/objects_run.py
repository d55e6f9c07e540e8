# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: apply many objects to a cluster: the entry point of cluster_objects."""

from __future__ import annotations

import typing as t
from collections import Counter

from ansible.module_utils.basic import AnsibleModule

from .._errors import RdmaError
from .._fabric.labels import LABEL_FABRIC
from . import source
from .checks import object_checks
from .client import Cluster
from .model import PRUNED_KINDS, ClusterPlan, Ref
from .plan import ApplyOptions
from .progress import reporter
from .run import ApplyOutcome, ApplyRun
from .text import describe, summary

MOST_CHANGES = 1000
SHOWN = 20
DONE = {"create": "created", "apply": "applied", "replace": "replaced", "delete": "deleted"}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Plan, check and do; return the result."""
    params = module.params
    declared = source.read(params["definitions"], params["src"])
    kinds = params["kinds"]
    wanted = {ref: body for ref, body in declared.items() if not kinds or ref.kind in kinds}
    fabric = params["fabric"] or source.fabric_of(wanted.values())
    if params["prune"] and not fabric:
        text = f"prune needs to know the fabric: the objects carry no label {LABEL_FABRIC}, or several."
        raise RdmaError(text, "Set fabric. Nothing was changed. [prune_no_fabric]")
    options = ApplyOptions(
        fabric=fabric,
        prune=[key for key in PRUNED_KINDS if params["prune"] and (not kinds or key[1] in kinds)],
        absent=params["state"] == "absent",
        force=params["force"],
        check_mode=module.check_mode,
        application=params["application"],
    )
    with Cluster(params, retry_seconds=params["retry_seconds"]) as cluster:
        doing = ApplyRun(cluster, wanted, options, reporter(params["progress_file"]))
        plan = doing.plan()
        doing.check(plan)
        try:
            doing.execute(plan)
        except RdmaError as exc:
            exc.facts.update(facts_of(plan, doing.outcome))
            raise
    facts = facts_of(plan, doing.outcome)
    # What a run has done differs no more.
    return ended(plan, doing.outcome, {**facts, "checks": object_checks(facts) if module.check_mode else []})


def ended(plan: ClusterPlan, outcome: ApplyOutcome, facts: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the result, or fail with it when something was refused or belongs to another owner."""
    if outcome.refused:
        lines = _lines([exc.problem for _ref, exc in outcome.refused])
        text = f"{len(outcome.refused):,} object(s) were refused; {outcome.done:,} were done:\n{lines}"
        raise RdmaError(text, outcome.refused[0][1].fix, **facts)
    if rows := facts["conflicts"]:
        shown = [f"{row['kind']} {row['name']} {row['field']}: {row['reason']} ({row['owner']})" for row in rows]
        text = f"{len(rows):,} conflict(s) with other owners, skipped; the rest ({outcome.done:,}) was done:\n"
        fix = "Let the other owner release or delete it, or take it over with force: true. [objects_conflict]"
        raise RdmaError(text + _lines(shown), fix, **facts)
    line = summary(facts["summary"])
    retained = [f"{row['kind']} {row['name']} is kept, would {row['action']}: {row['reason']}" for row in facts["kept"]]
    return {
        **facts,
        "changed": bool(plan.steps),
        "diff": {"prepared": describe(plan, line) if plan.steps or facts["kept"] else ""},
        "msg": line,
        "warnings": [*outcome.warnings, *retained],
    }


def _lines(rows: list[str]) -> str:
    more = [f"and {len(rows) - SHOWN:,} more"] if len(rows) > SHOWN else []
    return "".join(f"  - {row}\n" for row in [*rows[:SHOWN], *more])


def named(ref: Ref) -> dict[str, str]:
    """Return an object's kind and name as the result has them."""
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def facts_of(plan: ClusterPlan, outcome: ApplyOutcome) -> dict[str, t.Any]:
    """Return what became of what, for the result and for a failure."""
    count = Counter(step.action for step in plan.steps)
    done = {name: count[action] for action, name in DONE.items()}
    rows = [*plan.retained, *outcome.retained]
    conflicts = [*plan.conflicts, *outcome.conflicts]
    return {
        "summary": {**done, "unchanged": plan.unchanged, "kept": len(rows), "conflicts": len(conflicts)},
        "changes": [
            {
                "action": step.action,
                **named(step.ref),
                "fields": [row.field for row in step.differences[:SHOWN]],
                "reverted": list(step.reverted[:SHOWN]),
            }
            for step in plan.steps[:MOST_CHANGES]
        ],
        "kept": [{"action": row.action, **named(row.ref), "reason": row.reason, "users": row.users} for row in rows],
        "conflicts": [
            {**named(row.ref), "field": row.field, "owner": row.owner, "reason": row.reason}
            for row in conflicts[:MOST_CHANGES]
        ],
    }

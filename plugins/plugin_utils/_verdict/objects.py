# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns what a dry run against the cluster would do into checks. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils._check import Check, CheckData, deviation, ok

if t.TYPE_CHECKING:
    from collections.abc import Mapping

_SITE = "Run the playbook railops.rdma.cluster."
# What a change of a dry run means for the object that is there.
_OBSERVED = {
    "create": ("not there", "the object was deleted, or never applied"),
    "delete": ("there, and not planned", "it is left over from an earlier plan, or was made by hand with our label"),
    "replace": ("another one", "a field that cannot be changed in place differs"),
    "apply": ("different", "somebody edited it, or the plan is newer than the cluster"),
}


def _name(entry: Mapping[str, t.Any]) -> str:
    space = f"{entry['namespace']}/" if entry.get("namespace") else ""
    return f"{entry['kind']} {space}{entry['name']}"


def object_checks(result: Mapping[str, t.Any]) -> list[CheckData]:
    """Return one check for each object that differs, and one for all that do not.

    :param result: of cluster_objects in check mode.
    """
    checks: list[Check] = []
    for entry in result.get("changes") or ():
        shown, cause = _OBSERVED.get(entry["action"], (entry["action"], "it differs from the plan"))
        fields = ", ".join(entry.get("fields") or ())
        planned = f"no {_name(entry)}" if entry["action"] == "delete" else _name(entry)
        checks.append(deviation("object_state", planned, f"{shown}: {fields}" if fields else shown, cause, _SITE))
    checks += [
        _stays("object_in_use", entry, "it is in use", "Move those pods away and run again.")
        for entry in result.get("kept") or ()
    ]
    for entry in result.get("conflicts") or ():
        fix = "Take the field out of the other owner's declaration, or out of ours."
        checks.append(_stays("object_owner", entry, f"{entry.get('owner') or 'somebody else'} owns it", fix))
    if same := (result.get("summary") or {}).get("unchanged", 0):
        checks.append(ok("object_state", f"{same} objects", f"{same} objects as planned"))
    return [check.data() for check in checks]


def _stays(check: str, entry: Mapping[str, t.Any], cause: str, fix: str) -> Check:
    field = f" {entry['field']}" if entry.get("field") else ""
    return deviation(check, f"{_name(entry)}{field}", entry.get("reason") or "different", cause, fix)

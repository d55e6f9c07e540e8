# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check a host in one process, and change nothing. A failed group leaves the other groups' results."""

from __future__ import annotations

import traceback
import typing as t

from .._errors import RdmaError
from .._route.options import host_plan_spec
from . import groups
from .groups import Request
from .preflight import PREFLIGHT_CHECKS

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from .._check import Check

GROUPS = {**groups.GROUPS, "preflight": PREFLIGHT_CHECKS}
SPEC = {
    **host_plan_spec(),
    "rdma_mode": {"type": "str", "choices": ["shared", "exclusive"]},
    "checks": {
        "type": "list",
        "elements": "str",
        "choices": list(GROUPS),
        "default": [name for name in GROUPS if name not in ("driver", "pings", "preflight")],
    },
    "settings": {"type": "dict", "default": {}},
    "neighbors": {"type": "list", "elements": "dict"},
    "addresses": {"type": "dict"},
    "since": {"type": "dict"},
    # Read by the action plugin, on the controller.
    "verify_dir": {"type": "path"},
    "roles": {"type": "list", "elements": "str"},
    "devices": {"type": "bool", "default": True},
    "traffic": {"type": "str", "choices": ["rdma", "ping", "none"], "default": "rdma"},
    "persist": {"type": "bool", "default": True},
}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Return the checks and facts of the groups that are wanted, and the error of each group that failed."""
    request = Request(module, dict(module.params))
    checks: list[Check] = []
    facts: dict[str, t.Any] = {}
    errors: list[str] = []
    for name in dict.fromkeys(module.params["checks"]):
        for check in GROUPS[name]:
            try:
                found, more = check(request)
            except RdmaError as exc:
                errors.append(f"{name}: {exc}")
                request.library_missing |= "library_missing" in exc.facts
            # A defect in one check must not take the others' answers along; it is reported like any other failure.
            except Exception as exc:
                where = traceback.extract_tb(exc.__traceback__)[-1]
                errors.append(
                    f"{name}: {type(exc).__name__}: {exc} ({where.filename.rpartition('/')[2]}:{where.lineno})"
                )
            else:
                checks += found
                facts.update(more)
    made = {"changed": False, "checks": checks, "facts": facts, "errors": errors, "warnings": request.warnings}
    return {**made, "library_missing": True} if request.library_missing else made

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA namespace mode of a host: read, plan, apply, and report."""

from __future__ import annotations

import typing as t
from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from .._errors import RdmaError
from .._programs import Machine
from .host import NetnsHost
from .plan import OWNED_FILE, NetnsOptions, NetnsPlan, NetnsState, checks, plan_netns

SPEC = {
    # Read by the action plugin, on the controller.
    "plan_dir": {"type": "path"},
    "mode": {"type": "str", "choices": ["shared", "exclusive"]},
    "live": {"type": "bool", "default": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def _result(plan: NetnsPlan, seen: NetnsState) -> dict[str, t.Any]:
    return {
        "changed": plan.changed,
        "current": plan.after.current,
        "persistent": plan.after.persistent,
        "wanted": plan.wanted,
        "support": plan.have.support,
        "live": plan.live,
        "namespaces": plan.have.namespaces,
        "initramfs": [path for path, _kernel in plan.images],
        "conflicts": [asdict(item) for item in plan.conflicts],
        "reboot_required": bool(plan.reboot_reasons),
        "reboot_reasons": plan.reboot_reasons,
        "checks": checks(plan, seen),
        "before": _shown(plan.before),
        "after": _shown(plan.after),
        "warnings": [
            f"{item.path} also sets ib_core's netns_mode ({item.mode}); this collection does not manage it."
            for item in plan.conflicts
        ],
    }


def _shown(state: NetnsState) -> dict[str, object]:
    return {"current": state.current, "persistent": state.persistent, OWNED_FILE: state.file}


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the host to the mode that the parameters want and describe what happened."""
    present = params["state"] == "present"
    want = NetnsOptions(params["mode"] if present else None, params["live"], present and not params["mode"])
    host = NetnsHost(Machine(module=module))
    plan = plan_netns(want, host.read(want))
    if check_mode:
        return {**_result(plan, plan.before), "problems": [asdict(plan.blocker)] if plan.blocker else []}
    if plan.blocker is not None:
        raise RdmaError(plan.blocker.problem, plan.blocker.fix)
    plan = host.apply(plan)
    return _result(plan, plan.after)

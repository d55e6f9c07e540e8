# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules and names of a host: read, plan, apply, and report."""

from __future__ import annotations

import typing as t
from dataclasses import asdict, replace

from ansible.module_utils.basic import AnsibleModule

from .._card.pci import normal_address
from .._card.port_roles import dependents, device_roles
from .._errors import InputError
from .._management_network import read_management_network
from .._module import rails_spec
from .._programs import Machine
from .host import RdmaHost
from .host_model import RdmaOptions, RdmaRail
from .host_plan import plan_host, wanted_modules

SPEC = {
    # Read by the action plugin, on the controller.
    "plan_dir": {"type": "path"},
    "network": {"type": "str", "choices": ["roce", "infiniband"], "default": "roce"},
    "rdma_mode": {"type": "str", "choices": ["shared", "exclusive"]},
    "rails": {**rails_spec(pci="str", mtu="int"), "default": []},
    "out_of_service": {"type": "list", "elements": "dict"},
    "rdma_prefixes": {"type": "list", "elements": "str"},
    "adopt_ports": {"type": "list", "elements": "str", "default": []},
    "modules": {"type": "list", "elements": "str"},
    "naming": {"type": "str", "choices": ["name", "none"], "default": "name"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def converge(want: RdmaOptions, host: RdmaHost, *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the host to the wanted state and return the result.

    :raises InputError: with all problems that no run can repair, before anything is changed.
    """
    plan = plan_host(want, host.read(want))
    checks = plan.checks
    problems = [replace(item, problem=f"{item.problem}.") for item in plan.problems]
    if problems and not check_mode:
        raise InputError(problems)
    if plan.changed and not check_mode:
        host.apply(plan)
        checks = plan_host(want, host.read(want)).checks
    return {
        "changed": plan.changed,
        "modules": list(wanted_modules(want)) if want.present else [],
        "loaded": plan.load,
        "files": sorted(plan.files),
        "reboot_required": bool(plan.reboot_reasons),
        "reboot_reasons": plan.reboot_reasons,
        "warnings": plan.warnings,
        "problems": [asdict(item) for item in problems],
        "checks": checks,
        "before": {"files": {path: plan.have.files.get(path) for path in plan.files}, "loaded": []},
        "after": {"files": plan.files, "loaded": plan.load},
    }


def _roles(params: dict[str, t.Any], machine: Machine) -> dict[str, str]:
    network = read_management_network(machine)
    roles = dependents(network, params["rdma_prefixes"] or (), params["adopt_ports"])
    return {**{f"/sys/class/net/{name}": role for name, role in roles.items()}, **device_roles(machine, network)}


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the host to what the parameters want."""
    rails = tuple(
        RdmaRail(item["name"], item["interface"], normal_address(item["pci"]) if item["pci"] else None, item["mtu"])
        for item in params["rails"]
    )
    own = {name: params[name] for name in ("network", "rdma_mode", "modules", "naming")}
    present = params["state"] == "present"
    out = frozenset(rail["name"] for rail in params["out_of_service"] or [] if present)
    want = RdmaOptions(**own, rails=rails, present=present, out=out)
    machine = Machine(module=module)
    return converge(want, RdmaHost(machine, lambda: _roles(params, machine)), check_mode=check_mode)

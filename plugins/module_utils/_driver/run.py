# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA packages of a host: read and plan. The role rdma_driver installs them."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule

from .._errors import RdmaError
from .._programs import Machine
from . import plan as planning
from .host import read_host

SPEC = {
    "source": {"type": "str", "choices": ["inbox", "doca", "container"], "default": "inbox"},
    "packages": {"type": "list", "elements": "str"},
    "extra_packages": {"type": "list", "elements": "str", "default": []},
    "doca_repository": {"type": "str"},
    "doca_checksum": {"type": "str"},
    "doca_profile": {"type": "str", "default": "doca-ofed"},
    "doca_version": {"type": "str"},
    "versions": {"type": "dict", "default": {}},
    "upgrade": {"type": "bool", "default": False},
    "done": {"type": "list", "elements": "str", "default": []},
    "replaced": {"type": "dict", "default": {}},
}


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Read and plan. After the installation, report whether it has reached the plan, and why a reboot is due."""
    host = read_host(Machine(module=module), params)
    plan = planning.make_plan(params, host)
    checks = planning.checks_of(params, host, plan)
    if params["done"]:
        if plan.packages:
            raise RdmaError(
                f"After the installation packages are not as planned: {', '.join(plan.packages)}.",
                "Check the host's package log, and whether a repository has the version. [package_not_installed]",
            )
        plan = replace(plan, packages=tuple(params["done"]), replaced=params["replaced"])
    pinned = planning.pinned_versions(params)
    reasons = list(planning.reboot_reasons(params, host, plan))
    return {
        "changed": False,
        "packages": list(plan.packages),
        "replaced": dict(plan.replaced),
        "family": host.family,
        "repository": plan.repository,
        "steps": [] if check_mode else [list(step) for step in plan.steps],
        "driver": {
            "source": planning.running_source(host),
            "version": host.ofed_version,
            "kernel": host.kernel,
        },
        "notes": list(plan.notes),
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
        "checks": checks,
        "before": {"installed": shown(pinned, host.installed)},
        "after": {"installed": shown(pinned, {**dict.fromkeys(plan.packages, ""), **host.installed, **plan.pinned})},
    }


def shown(pinned: t.Collection[str], installed: t.Mapping[str, str]) -> list[str]:
    """Return packages for a person, with the version where one is pinned."""
    return sorted(f"{name} {version}" if name in pinned else name for name, version in installed.items())

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA packages of a host: read, plan, install, and read again."""

from __future__ import annotations

import os
import shutil
import time
import typing as t
from dataclasses import fields

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import fetch_url

from .._errors import RdmaError
from .._programs import Machine
from . import plan as planning
from .host import Packages, check_sum, read_host
from .plan import BUILD_TOOLS, HEADERS, DriverOptions, DriverPlan

POLL_SECONDS = 10.0

SPEC = {
    "source": {"type": "str", "choices": ["inbox", "doca", "container"], "default": "inbox"},
    "packages": {"type": "list", "elements": "str"},
    "extra_packages": {"type": "list", "elements": "str", "default": []},
    "doca_repository": {"type": "str"},
    "doca_checksum": {"type": "str"},
    "doca_profile": {"type": "str", "default": "doca-ofed"},
    "doca_version": {"type": "str"},
    "container_timeout": {"type": "int", "default": 1800},
    "refresh": {"type": "bool", "default": True},
    "versions": {"type": "dict", "default": {}},
    "upgrade": {"type": "bool", "default": False},
}


def fetch(module: AnsibleModule, source: str) -> str:
    """Return the path of the repository package, fetched when it is an address."""
    if os.path.isabs(source):
        if not os.path.isfile(source):
            raise RdmaError(
                f"There is no repository package {source} on the host.",
                "Copy it there, or give its address. [doca_file]",
            )
        return source
    response, info = fetch_url(module, source, timeout=60)
    if info["status"] != 200:
        raise RdmaError(
            f"The repository package {source} cannot be fetched: {info['msg']}.",
            "Make its mirror reachable from this host, or copy the package there and give its path. [doca_fetch]",
            url=source,
        )
    path = os.path.join(module.tmpdir, source.rsplit("/", 1)[-1])
    with open(path, "wb") as file:
        shutil.copyfileobj(response, file)
    return path


def apply(module: AnsibleModule, plan: DriverPlan, want: DriverOptions, packages: Packages) -> None:
    """Install what the plan says."""
    refresh = module.params["refresh"]
    # Before the driver: its DKMS build needs them, and where they cannot be had nothing else is touched.
    if first := [name for name in plan.packages if name in BUILD_TOOLS or name.startswith(HEADERS)]:
        packages.install(first, {}, refresh=refresh)
    if plan.repository:
        path = fetch(module, want.doca_repository or "")
        check_sum(path, module.sha256(path), want.doca_checksum or "")
        packages.install_repository(path)
    if rest := [name for name in plan.packages if name not in first]:
        packages.install(rest, plan.pinned, refresh=refresh, older=bool(plan.replaced), keep=want.source != "doca")


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Read, plan, install unless in check mode, and read again."""
    machine = Machine(module=module)
    want = DriverOptions(**{item.name: params[item.name] for item in fields(DriverOptions)})
    before = read_host(machine, want)
    if want.source == "container" and not check_mode:
        end = time.monotonic() + params["container_timeout"]
        while not before.container_ready:
            if time.monotonic() >= end:
                seen = "is there, its file .driver-ready is not" if before.container else "is empty or missing"
                raise RdmaError(
                    f"The driver container of this host was not ready within {params['container_timeout']} s: "
                    f"its folder /run/mellanox/drivers {seen}.",
                    planning.CONTAINER_FIX,
                )
            time.sleep(min(POLL_SECONDS, params["container_timeout"]))
            before = read_host(machine, want)
    plan = planning.make_plan(want, before)
    after = before
    if plan.changed and not check_mode:
        apply(module, plan, want, Packages(before.family, machine))
        after = read_host(machine, want)
        if left := [name for name in plan.packages if name not in after.installed]:
            raise RdmaError(
                f"The package manager reported success, but {', '.join(left)} is not installed.",
                "Look at its log on the host. [package_not_installed]",
                missing=left,
            )
        if want.upgrade and (other := planning.differing(want, after)):
            raise RdmaError(
                "The package manager reported success, but "
                + "; ".join(f"{name} is {after.installed[name]}, not {version}" for name, version in other.items()),
                "Look at its log on the host, and whether the repository has that version. [package_version]",
                other=other,
            )
    reasons = list(planning.reboot_reasons(want, after, plan))
    return {
        "changed": plan.changed,
        "packages": list(plan.packages),
        "replaced": dict(plan.replaced),
        "driver": {
            "source": planning.running_source(after),
            "version": after.ofed_version,
            "kernel": after.kernel,
        },
        "notes": list(plan.notes),
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
        "checks": planning.checks_of(want, before, plan),
        "before": {"installed": shown(want, before.installed)},
        "after": {"installed": shown(want, {**dict.fromkeys(plan.packages, ""), **before.installed, **plan.pinned})},
    }


def shown(want: DriverOptions, installed: t.Mapping[str, str]) -> list[str]:
    """Return packages for a person, with the version where one is asked for."""
    return sorted(f"{name} {version}" if name in want.pinned else name for name, version in installed.items())

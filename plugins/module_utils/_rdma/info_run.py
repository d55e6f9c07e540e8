# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA hardware of a host: ask sysfs, the devices and lldpd, and compare with the rails."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

from .._cabling.lldp import ARGV, parse_lldp
from .._errors import RdmaError
from .._files import Sysfs
from .._untouchable import read_untouchable
from .checks import check_rails
from .files import file_checks
from .info import merge_verbs, read_info
from .verbs import Verbs

SPEC = {
    "plan_dir": {"type": "path"},
    "rails": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "interface": {"type": "str", "required": True},
            "pci": {"type": "str"},
            "mtu": {"type": "int"},
        },
    },
    "network": {"type": "str", "choices": ["roce", "infiniband"]},
    "rdma_mode": {"type": "str", "choices": ["shared", "exclusive"]},
    "gids": {"type": "bool", "default": True},
    "part_numbers": {"type": "bool", "default": True},
    "lldp": {"type": "bool", "default": True},
}


def read_lldp(module: AnsibleModule) -> tuple[dict[str, object] | None, str | None]:
    """Ask lldpd; return its neighbours, and what is missing."""
    tool = module.get_bin_path(ARGV[0])
    if tool is None:
        return None, "lldpd is not installed: the switch at the other end is unknown. Install the package lldpd."
    code, out, err = module.run_command([tool, *ARGV[1:]])
    try:
        if code == 0:
            return dict(parse_lldp(out)), None
    except ValueError as exc:
        err = f"its answer is not understood: {exc}"
    return None, f"lldpd does not answer ({err.strip() or f'exit code {code}'}). Start its service."


def run(module: AnsibleModule) -> dict[str, object]:
    """Read everything and compare it with the rails."""
    params, sysfs, verbs = module.params, Sysfs(), Verbs()
    info = read_info(sysfs, gids=params["gids"], part_numbers=params["part_numbers"])
    answers, missing = verbs.read()
    merge_verbs(info, answers)
    if verbs.missing:
        missing.insert(0, verbs.missing)
    try:
        kept = read_untouchable(module, sysfs)
        info["default_interfaces"] = sorted(kept.default | kept.connection)
    except RdmaError as exc:
        missing.append(str(exc))
    info["lldp"] = None
    if params["lldp"]:
        info["lldp"], problem = read_lldp(module)
        if problem:
            missing.append(problem)
    info["missing"] = missing
    rails = params["rails"] or []
    names = {rail["interface"]: sysfs.kernel_name(rail["interface"]) for rail in rails}
    checks = check_rails(info, rails, params["network"], names)
    checks += file_checks(sysfs, info, rails, params["rdma_mode"], names)
    return {"changed": False, "info": info, "checks": checks}

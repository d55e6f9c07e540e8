# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA hardware of a host: query sysfs, the devices and lldpd, and compare with the rails."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._cabling.host import ask_lldpd
from .._cabling.lldp import INSTALL
from .._errors import RdmaError
from .._files import Sysfs
from .._management_network import read_management_network
from .._module import rails_spec
from . import verbs
from .checks import check_rails
from .files import file_checks
from .info import merge_verbs, read_info

SPEC = {
    "plan_dir": {"type": "path"},
    "rails": rails_spec(pci="str", mtu="int"),
    "network": {"type": "str", "choices": ["roce", "infiniband"]},
    "rdma_mode": {"type": "str", "choices": ["shared", "exclusive"]},
    "gids": {"type": "bool", "default": True},
}


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Read everything and compare it with the rails."""
    sysfs = Sysfs()
    info = read_info(sysfs, gids=params["gids"])
    answers, missing = verbs.read()
    merge_verbs(info, answers)
    try:
        network = read_management_network(sysfs)
        info["default_interfaces"] = sorted(network.default | network.connection)
    except RdmaError as exc:
        missing.append(str(exc))
    known, problem = ask_lldpd()
    info["lldp"] = None if problem else dict(known)
    if problem:
        missing.append(f"{problem}: the switch at the other end is unknown. {INSTALL}")
    info["missing"] = missing
    rails = params["rails"] or []
    names = {rail["interface"]: sysfs.kernel_name(rail["interface"]) for rail in rails}
    checks = check_rails(info, rails, params["network"], names)
    checks += file_checks(sysfs, info, rails, params["rdma_mode"], names)
    return {"changed": False, "info": info, "checks": checks}

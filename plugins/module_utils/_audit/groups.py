# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an audit checks on a host, by group: the roles' modules in check mode, and what no role sets.

A group is a list of functions that take the audit's request and return checks and facts. To add one: a function here,
its row in GROUPS and in the module's options, its IDs and its role in plugin_utils/_verdict/ids.py.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .._cabling import host as cabling
from .._card import run as card_run
from .._check import Check, ok, warning
from .._driver import run as driver_run
from .._errors import InputError, Problem
from .._fabric.neighbors import SOFT_LIMIT, thresholds
from .._files import Sysfs
from .._gpudirect import run as gpudirect_run
from .._netns import run as netns_run
from .._persist import run as persist_run
from .._probe import duplicates, health
from .._qos import run as qos_run
from .._qos.leaf import DECLARED, choose
from .._rdma import host_run, info_run
from .._route import path_checks, ping
from .._route import run as route_run
from .._route.path_kernel import PathLookup
from .._route.paths import PathState, targets_of
from .._route.route_options import neighbors_of, parse_options

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

Checks = list[Check]
Facts = dict[str, t.Any]
CheckFunction = t.Callable[["Request"], tuple[Checks, Facts]]
# The keys of a host plan that modules take from it.
HOST_PLAN = ("rails", "out_of_service", "rdma_prefixes", "policy", "network", "sysctls", "rdma_mode")
RUN_KEY = "preflight"
"""The key of the run's own settings."""


@dataclass
class Request:
    """What to check: the module with its parameters, and what one function leaves for another."""

    module: AnsibleModule
    params: dict[str, t.Any]
    warnings: list[str] = field(default_factory=list)
    library_missing: bool = False

    @property
    def settings(self) -> dict[str, dict[str, t.Any]]:
        """The options of the roles' modules, by the module's name."""
        return self.params.get("settings") or {}


def options_of(name: str, spec: dict[str, t.Any], request: Request, documented: str = "") -> dict[str, t.Any]:
    """Return a module's options: its own of the settings, the host plan's where it takes them, and its defaults.

    :param spec: of the module, as AnsibleModule takes it.
    :param documented: the module whose documentation has the options, where it is not `name`.
    :raises InputError: when they do not fit its spec.
    """
    given: dict[str, t.Any] = {"on_conflict": "report"} if "on_conflict" in spec else {}
    for key in HOST_PLAN:
        value = request.params.get(key)
        if key in spec and value is not None:
            known = spec[key].get("options") if key == "rails" else None
            given[key] = [{sub: rail[sub] for sub in known if sub in rail} for rail in value] if known else value
    result = ArgumentSpecValidator(spec).validate(_given({**given, **request.settings.get(name, {})}))
    if result.error_messages:
        fix = (
            f"Correct the role's variables; `ansible-doc railops.rdma.{documented or name}` lists them. [role_options]"
        )
        raise InputError(Problem(f"settings.{name}", f"{text}.", fix) for text in result.error_messages)
    return dict(result.validated_parameters)


def _given(value: t.Any) -> t.Any:
    """Return a value without what is None: an option that the audit's own spec filled in was not given."""
    if isinstance(value, dict):
        return {key: _given(item) for key, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list) else value


def runs_role(request: Request, role: str) -> bool:
    """Whether the run plays a role; the empty name means any role."""
    roles = request.settings.get(RUN_KEY, {}).get("roles")
    return not role or roles is None or role in roles


def compare(name: str, package: t.Any, request: Request) -> dict[str, t.Any]:
    """Return what a role's module reports in check mode.

    :param package: the module's `run` and `SPEC`.
    """
    found: dict[str, t.Any] = package.run(request.module, options_of(name, package.SPEC, request), check_mode=True)
    request.library_missing |= bool(found.get("library_missing"))
    return found


def role_check(name: str, package: t.Any) -> CheckFunction:
    """Return the function that runs a role's module in check mode.

    :param package: the module's `run` and `SPEC`.
    """

    def check(request: Request) -> tuple[Checks, Facts]:
        result = compare(name, package, request)
        request.warnings.extend(result.get("warnings") or ())
        return list(result.get("checks") or ()), {}

    return check


def check_paths(request: Request) -> tuple[Checks, Facts]:
    """Ask the kernel where each rail's packets go."""
    want = parse_options(request.params)
    neighbors = neighbors_of(request.params.get("neighbors") or [])
    with PathLookup() as kernel:
        host, existing = kernel.read(want), kernel.existing_routes(want)
        targets = list(targets_of(want, host, neighbors, request.params.get("addresses") or {}))
        there = [target for target in targets if target.interface in host.snapshot.links]
        state = PathState(host, tuple(kernel.lookups(there, tos_of(request))), existing)
    return [*path_checks.checks_of(want, targets, state), path_checks.existing_routes_check(want, host, existing)], {}


def check_neighbors(request: Request) -> tuple[Checks, Facts]:
    """Compare the kernel's neighbor tables with the other hosts on all rails."""
    count, sysfs = request.settings.get("neighbors", {}).get("count", 0), Sysfs()
    rails = request.params.get("rails") or []
    families = sorted({6 if ":" in item["address"] else 4 for rail in rails for item in rail["addresses"]})
    checks = []
    for family in families if count > SOFT_LIMIT else ():
        planned = thresholds(count, family)
        have = {key: sysfs.text(f"/proc/sys/{key}") or "" for key in planned}
        settings = " ".join(f"{key.replace('/', '.')}={value}" for key, value in planned.items())
        limit = have[list(planned)[1]]
        if limit.isdigit() and int(limit) < count:
            cause = (
                f"The neighbor table of IPv{family} holds {limit} entries, and the rails have up to {count} neighbors."
            )
            fix = f"Set fabric_neighbor_tables: true and plan again, or `sysctl -w {settings}`."
            checks.append(warning("network_neighbors", planned, have, cause, fix, family=family))
        else:
            checks.append(ok("network_neighbors", planned, have, family=family))
    return checks, {}


def tos_of(request: Request) -> int:
    """Return the planned TOS byte of RoCE's packets, 0 where no role sets one."""
    if "qos" not in request.params["checks"]:
        return 0
    policy, source = choose(options_of("roce_qos", qos_run.SPEC, request))
    # The kernel takes no ECN bits in a question.
    return policy.dscp << 2 if source == DECLARED else 0


def check_pings(request: Request) -> tuple[Checks, Facts]:
    """Ask the gateways and the neighbors of the same zone for an echo."""
    neighbors = [host for host in request.params.get("neighbors") or [] if not host.get("zone")]
    options = options_of("ping", ping.SPEC, request, "rail_audit")
    return ping.checks_of_rails(options, neighbors, duplicates.answers_at, tos_of(request)), {}


def rail_check(name: str, function: t.Callable[[t.Any, t.Any], tuple[list[Check], Facts]]) -> CheckFunction:
    """Return the function that checks all rails with another one; its options are the settings of that name.

    `since` is among them: what the last audit found.
    """

    def check(request: Request) -> tuple[Checks, Facts]:
        options = {**(request.settings.get(name) or {}), "since": request.params.get("since")}
        return function(request.params.get("rails") or [], options)

    return check


GROUPS: dict[str, tuple[CheckFunction, ...]] = {
    "driver": (role_check("rdma_driver_info", driver_run),),
    "link_type": (role_check("nic_link_type", card_run),),
    "mode": (role_check("rdma_netns", netns_run), role_check("rdma_host", host_run)),
    "network": (role_check("policy_route", route_run), check_neighbors),
    "persist": (role_check("rail_persist", persist_run),),
    "paths": (check_paths,),
    "duplicates": (rail_check("duplicates", duplicates.check_duplicates),),
    "cabling": (rail_check("cabling", cabling.check_cables),),
    "qos": (role_check("roce_qos", qos_run),),
    "gpudirect": (role_check("gpudirect", gpudirect_run),),
    "devices": (role_check("rdma_info", info_run),),
    # Early signs of failures: counters since the last audit, links, PCIe.
    "counters": (rail_check("counters", health.check_health),),
    "pings": (check_pings,),
}

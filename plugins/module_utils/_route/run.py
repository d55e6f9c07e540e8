# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host network in one transaction: read, decide, start the timer, change or confirm, and report."""

from __future__ import annotations

import contextlib
import typing as t
from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from .._check import conflicting
from .._errors import InputError, RdmaError
from .._files import Sysfs
from .._management_network import ManagementNetwork, read_management_network
from .._pyroute2 import remove_wheel
from . import options
from .icmp import EchoRun
from .kernel import Kernel
from .managed_state import note, read_noted, read_retained
from .ping import checks_of, names_of, targets_of
from .plan import decide
from .rollback import RollbackTimer, arm, armed, confirm, pending, undo
from .route_options import RouteOptions, parse_options, task_options
from .transaction import change

SPEC = options.SPEC
# A rollback timer that is this late has stopped; on a loaded host it may be a little late.
OVERDUE_SECONDS = 60.0
# Until a change that is taken back is confirmed, where no other time is asked for.
UNDO_SECONDS = 60


def converge(
    want: RouteOptions,
    management_network: ManagementNetwork,
    *,
    check_mode: bool,
    timeout: int = 0,
    report: bool = False,
) -> dict[str, t.Any]:
    """Bring the host network to the wanted state and describe what happened.

    :param management_network: what carries the host's own network.
    :param timeout: seconds until the rollback timer takes the change back; 0 is without a rollback timer.
    :param report: whether a rail without an interface is reported, and the others planned.
    """
    token = ""
    with Kernel() as kernel:
        plan = decide(want, kernel.read(want, management_network), report=report)
        waiting = None if check_mode else pending()
        if waiting and not timeout:
            raise pending_error(waiting)
        if timeout and not check_mode and (plan.changed or waiting):
            # What a run that was cut off left unconfirmed is not what was before.
            token = arm(plan.host, waiting.before if waiting else plan.host.snapshot, plan.target, timeout)
            if waiting:
                confirm(waiting.token)
        if want.present and not check_mode:
            note(plan.original, plan.ports)
        if plan.changed and not check_mode:
            try:
                change(kernel, plan.host, plan.target, lambda: armed(token))
            except RdmaError as exc:
                # A rollback timer that has fired needs no confirmation. One with work left stays armed.
                with contextlib.suppress(RdmaError):
                    if token and not waiting and not exc.facts.get("left"):
                        confirm(token)
                raise
    made = {"problems": [asdict(row) for row in plan.unknown]} if plan.unknown else {}
    return {
        **made,
        "changed": plan.changed,
        "before": plan.before,
        "after": plan.after,
        "checks": list(plan.checks),
        "token": token,
        "diff": plan.diff,
    }


def pending_error(timer: RollbackTimer) -> RdmaError:
    """Return the error for a change that is neither confirmed nor rolled back yet."""
    if timer.seconds_left > -OVERDUE_SECONDS:
        text = f"A change of this host's network waits {max(timer.seconds_left, 0):.0f} s for its confirmation."
        fix = f"Confirm it (confirm: {timer.token}), or wait until it is rolled back, and run again. [confirm_pending]"
        return RdmaError(text, fix, token=timer.token)
    return RdmaError(
        "An earlier change of this host's network was never confirmed, and its timer does not run (was it killed?).",
        f"Confirm it to keep it (confirm: {timer.token}), or run with a confirm_timeout, which takes it over. "
        "[confirm_abandoned]",
        token=timer.token,
    )


def confirm_change(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Confirm a change, where the gateways are required only if all of them answer."""
    checks = []
    if params["gateways"] == "require":
        want = parse_options(params)
        targets = list(targets_of(want, names_of(want)))
        checks = checks_of(targets, EchoRun(targets, count=10, timeout=1.0).run())
        silent = [
            f"{target.address} to {target.source} on {target.interface}"
            for target, check in zip(targets, checks)
            if check["status"] == "deviation"
        ]
        if silent:
            text = f"The change is not confirmed, and the rollback timer reverts it. No answer: {'; '.join(silent)}."
            fix = "Look at links, VLANs and the switch's addresses, or do not require the gateways. [gateway_silent]"
            raise RdmaError(text, fix, checks=checks)
    if not check_mode:
        confirm(params["confirm"])
    return {"changed": False, "confirmed": not check_mode, "checks": checks}


def reported(checks: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """Return the result of a check mode run with conflicts."""
    empty: dict[str, t.Any] = {"links": [], "addresses": [], "routes": [], "rules": [], "sysctls": []}
    return {"changed": False, "before": empty, "after": empty, "checks": checks, "token": "", "diff": []}


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Apply the parameters. Check mode may report conflicts instead of failing, for verification."""
    try:
        if params["rollback_token"] and not params["confirm"]:
            token = "" if check_mode else undo(params["rollback_token"], params["confirm_timeout"] or UNDO_SECONDS)
            made = {**reported([]), "changed": True, "token": token}
        elif params["confirm"]:
            made = confirm_change(params, check_mode=check_mode)
        else:
            want, network, timeout = task_options(params), read_management_network(Sysfs()), params["confirm_timeout"]
            report = check_mode and params["on_conflict"] == "report"
            made = converge(want, network, check_mode=check_mode, timeout=timeout, report=report)
        # As long as a rollback timer waits, it needs the library.
        if params["state"] == "absent" and not check_mode and not made.get("token"):
            # rail_persist removes the note after the files that list these addresses.
            note(read_noted() if read_retained().addresses else frozenset(), {})
            remove_wheel()
        return made
    except RdmaError as exc:
        checks = exc.facts.get("checks")
        if checks is None and isinstance(exc, InputError):
            checks = [conflicting("network_preflight", item) for item in exc.problems]
        if checks is None or not check_mode or params["on_conflict"] != "report":
            raise
        problems = exc.facts.get("problems") or [{"place": "host", "problem": exc.problem, "fix": exc.fix}]
        return {**reported(checks), "problems": problems, "library_missing": "library_missing" in exc.facts}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Works out a host's part of the RDMA tests from the plan, and runs the module there."""

from __future__ import annotations

import typing as t

from ..module_utils._check import skipped
from ..module_utils._fabric.shapes import planned_rails
from ..module_utils._probe.schedule import schedule, seconds
from ..modules.rdma_probe import ARGUMENT_SPEC
from ..plugin_utils._accept.endpoints import address_of, tests_of
from ..plugin_utils._arguments import arguments, forks
from ..plugin_utils._host_plan import read_host_plan
from ..plugin_utils._localhost import FabricAction

SPARE_SECONDS = 120


def carried(server: t.Any, port: int) -> float | None:
    """Return the Gb/s that a server expects of the rail of a test; None where its answer has no such number."""
    tests = server.get("tests") if isinstance(server, dict) else None
    for test in tests if isinstance(tests, list) else ():
        if isinstance(test, dict) and test.get("port") == port:
            value = test.get("expected_gbits")
            return float(value) if isinstance(value, (int, float)) and value >= 0 else None
    return None


class ActionModule(FabricAction):
    """The action behind the module rdma_probe."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Work out the tests of this host and run its end."""
        args = arguments(args, ARGUMENT_SPEC)
        if args["plan_dir"] and args["end"] != "none" and (reason := self._plan(args, task_vars)):
            checks = [skipped(f"traffic_{kind}", reason) for kind in args["kinds"]]
            return {"changed": False, "tests": [], "checks": checks if args["end"] == "client" else []}
        for name in ("plan_dir", "hosts", "register", "schedule", "kinds", "peers", "seed", "first_port"):
            args.pop(name)
        # The module's own rules want one of tests and plan_dir: an empty list was answered above.
        sent = {key: value for key, value in args.items() if value is not None}
        return self._execute_module(module_name="railops.rdma.rdma_probe", module_args=sent, task_vars=task_vars)

    def _plan(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> str | None:
        """Fill in this host's tests; return why there are none."""
        host = task_vars["inventory_hostname"]
        own = read_host_plan(args["plan_dir"], host)
        rails = {rail["name"]: rail for rail in own["rails"] if address_of(rail)}
        # Both ends of a test have to number the ports of all rails.
        named = [rail["name"] for rail in planned_rails(own) if address_of(rail)]
        if not named:
            return "the plan gives the rails no addresses (LID only): run perftest with the peers' host names"
        made = schedule(
            args["hosts"],
            named,
            args["kinds"],
            mode=args["schedule"],
            first_port=args["first_port"],
            peers=args["peers"],
            seed=args["seed"],
        )
        pairs = made.pairs_of(host, args["end"])
        if not pairs:
            return "the schedule is none" if args["schedule"] == "none" else "no other host takes part"
        args["network"] = own["network"]
        args["tests"] = tests_of(args["plan_dir"], rails, pairs, args["end"])
        for test in args["tests"] if args["register"] else ():
            known, peer = task_vars["hostvars"], test["peer"]
            test["peer_gbits"] = carried(known[peer].get(args["register"]) if peer in known else None, test["port"])
        if not args["lifetime"]:
            args["lifetime"] = SPARE_SECONDS + seconds(made, args["timeout"], forks(task_vars))
        return None

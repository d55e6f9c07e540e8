# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps which hosts are in the middle of an upgrade, on the controller, and lets pure code decide."""

from __future__ import annotations

import os
import typing as t

from ..module_utils._errors import RdmaError
from ..module_utils._validation import LINK, InvalidData, sanitize, validate
from ..modules.rail_upgrade_info import DOCUMENTATION
from ..plugin_utils._arguments import arguments, documented
from ..plugin_utils._host_plan import read_host_plan, read_plan
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._verdict import files, upgrade
from ..plugin_utils._verdict.intake import answer_in
from ..plugin_utils._verdict.merge import status_of

ARGUMENT_SPEC = documented(DOCUMENTATION)


UNFINISHED = "unfinished"
"""The folder with a file for each host that is in the middle."""


def unfinished(folder: str) -> list[str]:
    """Return the hosts that are in the middle."""
    place = os.path.join(folder, UNFINISHED)
    names = sorted(os.listdir(place)) if os.path.isdir(place) else []
    records = [files.read_json(os.path.join(place, name)) for name in names if name.endswith(".json")]
    return [record["host"] for record in records if record.get("host")]


_DUE = {"replaced": (None, {LINK: str}), "packages": (None, [LINK])}


def due_of(result: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    """Return what rdma_driver would do to a host, in words.

    :raises InvalidData: the host did not answer as rdma_driver does.
    """
    result = {**result, **validate(sanitize({key: result.get(key) for key in _DUE}), _DUE, "the answer")}
    replaced = result["replaced"] or {}
    checks = answer_in({"checks": result.get("checks")}).checks
    planned: t.Any = next((row["planned"] for row in checks if row["id"] == "driver_versions"), None)
    wanted = planned if isinstance(planned, dict) else {}
    new = [name for name in result["packages"] or () if name not in replaced]
    due = [f"{name} {version} -> {wanted.get(name, 'another')}" for name, version in replaced.items()]
    due += [f"install {', '.join(new)}"] if new else []
    return tuple(due)


class ActionModule(FabricAction):
    """The action behind the module rail_upgrade_info."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Order the turns, or begin, compare or end one host's."""
        args = arguments(args, ARGUMENT_SPEC)
        return {"changed": False, **getattr(self, f"_{args['phase']}")(args, task_vars["inventory_hostname"])}

    def _order(self, args: dict[str, t.Any], _host: str) -> dict[str, t.Any]:
        folder, left = args["folder"], unfinished(args["folder"])
        upgrade.refuse_others(left, args["results"], os.path.join(folder, UNFINISHED))
        nodes = read_plan(args["plan_dir"])["nodes"]
        hosts = {}
        for host, result in args["results"].items():
            entry = nodes[read_host_plan(args["plan_dir"], host)["node"]]
            seen = files.read_result(files.result_path(folder, host))
            status = status_of(seen) if seen else "error"
            try:
                due = due_of(result)
            except InvalidData as exc:
                status, due = "error", (f"its answer is refused: {exc}",)
            hosts[host] = upgrade.HostUpgrade(str(entry["zone"]), entry["slot"], due, status, host in left)
        order = upgrade.upgrade_order(hosts, by_zone=args["by_zone"])
        return {"turns": order, "lines": upgrade.lines(hosts, order, drain=args["drain"], reboot=args["reboot"])}

    def _begin(self, args: dict[str, t.Any], host: str) -> dict[str, t.Any]:
        upgrade.refuse_others(unfinished(args["folder"]), args["turn"], os.path.join(args["folder"], UNFINISHED))
        path, seen = files.host_path(args["folder"], UNFINISHED, host), self._take_result(args["folder"], host)
        if record := files.read_json(path):
            return {"boot": record["boot"], "resumed": True}
        if not seen or seen.get("error"):
            raise RdmaError(
                f"The check before the upgrade of {host} failed: {seen.get('error') or 'no result'}."
                " The host is unchanged.",
                "Fix that first (playbook audit), or leave the host out (--limit). [upgrade_precheck_failed]",
            )
        files.write_json(path, {"host": host, "boot": args["boot"], "before": seen})
        return {"boot": args["boot"], "resumed": False}

    def _compare(self, args: dict[str, t.Any], host: str) -> dict[str, t.Any]:
        record = files.read_json(files.host_path(args["folder"], UNFINISHED, host))
        seen = self._take_result(args["folder"], host) or {"checks": [], "error": "no result"}
        rows = upgrade.regressions(record.get("before") or {"checks": []}, seen)
        return {"worse": rows, "sentence": upgrade.sentence(host, rows, drain=args["drain"]) if rows else ""}

    def _end(self, args: dict[str, t.Any], host: str) -> dict[str, t.Any]:
        if os.path.exists(path := files.host_path(args["folder"], UNFINISHED, host)):
            os.unlink(path)
        return {}

    @staticmethod
    def _take_result(folder: str, host: str) -> dict[str, t.Any]:
        """Return what the last look found, once: an old one must not pass for a new one."""
        seen = files.read_result(files.result_path(folder, host))
        files.forget(folder, [host])
        return seen

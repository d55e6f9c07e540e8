# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes one verdict of the verdicts of several runs, on the controller."""

from __future__ import annotations

import glob
import json
import os
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils._errors import InputError
from ..plugin_utils._arguments import arguments
from ..plugin_utils._refusal import Refusal, once
from ..plugin_utils._report.equal import shortened
from ..plugin_utils._slice import HOSTS_FOLDER, read_slice
from ..plugin_utils._verdict import files
from ..plugin_utils._verdict.explain import Place, place_of, with_places
from ..plugin_utils._verdict.finish import finish
from ..plugin_utils._verdict.merge import natural
from ..plugin_utils._verdict.slices import Joined

if t.TYPE_CHECKING:
    from ..module_utils._fabric.shapes import PlanFile

ARGUMENT_SPEC = {
    "plan_dir": {"type": "path", "required": True},
    "verify_dir": {"type": "path", "required": True},
    "verdicts": {"type": "list", "elements": "str", "required": True},
    "fail": {"type": "bool", "default": True},
    "show": {"type": "bool", "default": True},
}
display = Display()


def paths_of(names: t.Iterable[str]) -> t.Iterator[tuple[str, list[str]]]:
    """Yield each name with the verdicts that it stands for: a file, a folder that has one, or a pattern of either."""
    for name in names:
        found = sorted(glob.glob(os.path.expanduser(name)), key=natural)
        yield name, [os.path.join(path, files.VERDICT) if os.path.isdir(path) else path for path in found]


class ActionModule(ActionBase):
    """The action behind the module verdict_merge."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Read the verdicts one by one and put them together."""
        super().run(tmp, task_vars)
        args = arguments(self, ARGUMENT_SPEC)
        plan = files.read_plan(args["plan_dir"])
        joined = Joined(plan.get("digest"))
        for name, paths in paths_of(args["verdicts"]):
            if not paths:
                joined.refuse(name, "there is no such file or folder.", "Name the verdict.json of each slice.")
            for path in paths:
                self._take(joined, path)
        expected, places, rails = self._hosts(args["plan_dir"], plan)
        try:
            verdict = joined.verdict(expected, rails)
        except InputError as exc:
            raise Refusal(f"Nothing was merged. {exc}") from None
        left = [host for host, entry in verdict["hosts"].items() if entry["status"] == "not_verified"]
        result = finish(args, with_places(verdict, places), display)
        if args["fail"] and verdict["status"] == "incomplete":
            # No unreachable host of this run says so by ansible's own exit code.
            fix = "Verify the hosts that have no result, and merge again with what that run writes."
            more = f" No slice had {shortened(left)}." if left else ""
            result |= {"failed": True, "msg": f"{result['summary']}{more} {fix}", "fix": fix}
        return once(self._task, {**result, "not_verified": left})

    @staticmethod
    def _take(joined: Joined, path: str) -> None:
        try:
            with open(path, encoding="utf-8") as file:
                verdict = json.load(file)
        except (OSError, ValueError) as exc:
            joined.refuse(path, f"it cannot be read: {exc}.", "Name the verdict.json of each slice.")
        else:
            joined.take(path, verdict)

    @staticmethod
    def _hosts(plan_dir: str, plan: PlanFile) -> tuple[dict[str, str | None], dict[str, Place], list[str]]:
        """Return the hosts of the plan with their nodes and places, and the rails."""
        expected: dict[str, str | None] = {}
        places: dict[str, Place] = {}
        rails: list[str] = []
        folder = os.path.join(plan_dir, HOSTS_FOLDER)
        for name in sorted(os.listdir(folder) if os.path.isdir(folder) else [], key=natural):
            host, kind = os.path.splitext(name)
            if kind == ".json":
                piece = read_slice(plan_dir, host)
                expected[host] = piece["node"]
                places[host] = place_of(piece, plan)
                rails = rails or [rail["name"] for rail in piece["rails"]]
        return expected, places, rails

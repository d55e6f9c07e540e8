# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks the admission rules about a plan's cluster objects, on the controller."""

from __future__ import annotations

import os
import typing as t
from collections import Counter

import yaml
from ansible.plugins.action import ActionBase

from ..module_utils._check import compared
from ..plugin_utils._admission.admission import check
from ..plugin_utils._admission.strict import strict
from ..plugin_utils._arguments import arguments
from ..plugin_utils._refusal import Refusal
from ..plugin_utils._verdict.files import read_plan

ARGUMENT_SPEC = {"plan_dir": {"type": "path", "required": True}}
# values.yaml holds Helm values; every other file holds objects.
VALUES = "values.yaml"
Loader: t.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_objects(folder: str) -> list[dict[str, t.Any]]:
    """Return all objects of a plan's cluster folder.

    :raises AnsibleActionFail: when it is not there or a file is broken.
    """
    fix = "Run the playbook railops.rdma.plan, so that the plan is whole."
    objects: list[dict[str, t.Any]] = []
    try:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".yaml") and name != VALUES:
                with open(os.path.join(folder, name), "rb") as file:
                    objects += [item for item in yaml.load_all(file, Loader=Loader) if item]
    except (OSError, yaml.YAMLError) as exc:
        raise Refusal(f"The plan's objects in {folder!r} cannot be read: {exc}. {fix}") from None
    return objects


class ActionModule(ActionBase):
    """The action behind the module plan_objects_info."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Read the objects and ask."""
        super().run(tmp, task_vars)
        args = arguments(self, ARGUMENT_SPEC)
        plan = read_plan(args["plan_dir"])
        objects = read_objects(os.path.join(args["plan_dir"], "cluster"))
        nodes = [name for name, state in plan["nodes"].items() if not state["retired"]]
        problems = check(objects) or strict(objects, nodes=nodes)
        count = len(objects)
        found = compared(
            "objects_admission",
            f"{count} objects that admission takes",
            f"{len(problems)} problems: {problems[0]}" if problems else f"{count} of {count}",
            "the plan's files were edited by hand, or another version wrote them",
            "Run the playbook railops.rdma.plan again.",
            good=not problems,
        )
        return {
            "changed": False,
            "counts": dict(sorted(Counter(item["kind"] for item in objects).items())),
            "problems": [{"place": item.place, "problem": item.problem, "fix": item.fix} for item in problems],
            "checks": [found.data()],
        }

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The action in front of modules that work from a host's slice of the plan."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.railops.rdma.plugins.plugin_utils._slice import read_slice

RAIL_KEYS = ("name", "index", "interface", "pci", "mtu", "table", "rule_priority", "addresses")


def options_of(have: dict[str, t.Any], keys: t.Iterable[str]) -> dict[str, t.Any]:
    """Return the module options that a slice gives; of a rail only what the modules know."""
    options = {key: have.get(key) for key in keys}
    rails = have.get("rails")
    if "rails" in options and rails is not None:
        options["rails"] = [{key: rail.get(key) for key in RAIL_KEYS} for rail in rails]
    return options


class SliceAction(ActionBase):
    """Read the host's slice of the plan on the controller and hand it to the module of the same name."""

    SLICE_KEYS: tuple[str, ...] = ()

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module, with the slice's values for all options that are not given."""
        super().run(tmp, task_vars)
        args = dict(self._task.args)
        plan_dir = args.pop("plan_dir", None)
        if plan_dir:
            host = (task_vars or {})["inventory_hostname"]
            have = read_slice(plan_dir, host)
            self.more_args(args, plan_dir, host)
            for key, value in options_of(have, self.SLICE_KEYS).items():
                if args.get(key) is None:
                    args[key] = value
        name = self._task.action.rpartition(".")[2]
        result: dict[str, t.Any] = self._execute_module(
            module_name=f"railops.rdma.{name}", module_args=args, task_vars=task_vars
        )
        return result

    def more_args(self, args: dict[str, t.Any], plan_dir: str, host: str) -> None:
        """Add what else the module takes from the plan."""

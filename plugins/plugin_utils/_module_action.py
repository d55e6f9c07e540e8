# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The action in front of modules: with what the plan has for them, and the library that a host may lack."""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ..module_utils import _pyroute2
from ..module_utils._fabric.shapes import HostPlan
from ._host_plan import read_host_plan
from ._localhost import FabricAction
from ._refusal import fail

LOSSLESS = {"priority": "priority", "dscp": "dscp", "cnp_dscp": "cnp"}
"""The options of roce_qos that the plan has, each with its key of fabric_lossless."""

PORT = ("name", "interface", "pci", "mtu")
ROUTED = (*PORT, "vlan", "index", "table", "rule_priority", "metric", "addresses")
OUT_OF_SERVICE = "out_of_service"
NETWORK = ("rails", OUT_OF_SERVICE, "rdma_prefixes", "policy", "network", "sysctls")
PLAN_OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "nic_link_type": (("rails", OUT_OF_SERVICE, "rdma_prefixes"), ("name", "interface", "pci")),
    "policy_route": (NETWORK, ROUTED),
    "rail_audit": ((*NETWORK, "rdma_mode"), ROUTED),
    "rail_persist": (NETWORK, ROUTED),
    "rdma_host": (("network", "rdma_mode", "rails", OUT_OF_SERVICE, "rdma_prefixes"), PORT),
    "rdma_info": (("network", "rdma_mode", "rails"), PORT),
    "rdma_netns": (("rdma_mode",), ()),
    "roce_qos": (("network", "rails", OUT_OF_SERVICE), ("name", "interface")),
}
"""The parts of the host plan and of a rail that each module gets; other modules read their plan_dir themselves."""
OPTIONS = {("rdma_netns", "rdma_mode"): "mode"}
"""The options that are called otherwise than in the host plan."""

SAFE_PATH = re.compile(r"[\w./~-]+")
WHEEL = str(Path(__file__).parents[2] / "roles/rdma_driver/files/pyroute2-0.9.7-py3-none-any.whl")
"""The library that travels with the collection. No variable names it: a host's could name any file here."""


def lossless_options(have: HostPlan) -> dict[str, int]:
    """Return what a host plan says of lossless RoCE, as options of roce_qos; nothing where the plan says nothing."""
    lossless = have.get("lossless") or {}
    return {option: lossless[key] for option, key in LOSSLESS.items() if key in lossless}


def without_null(args: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the arguments that have a value: before ansible-core 2.19 a null becomes an empty text."""
    return {key: value for key, value in args.items() if value is not None and value != ""}


class ModuleAction(FabricAction):
    """Run the module of the task, with what the host plan has for it."""

    KEEPS_LIBRARY = False
    """Whether the library that the module was sent stays on the host."""

    @property
    def name(self) -> str:
        """The module's name."""
        return str(self._task.action).rpartition(".")[2]

    def options(self, have: HostPlan, folder: str, args: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return the options of the module that the host plan `have` in `folder` gives, beside the arguments `args`."""
        keys, of_rails = PLAN_OPTIONS[self.name]
        options = {OPTIONS.get((self.name, key), key): have[key] for key in keys if key in have}  # type: ignore[literal-required]
        if options.get("rails") is not None:
            options["rails"] = [{key: rail.get(key) for key in of_rails} for rail in have["rails"]]
        if OUT_OF_SERVICE in options:
            options[OUT_OF_SERVICE] = options[OUT_OF_SERVICE]["rails"]
        return options

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module, with the host plan's values for options that are not given."""
        args = without_null(args)
        if plan_dir := args.pop("plan_dir", None) if self.name in PLAN_OPTIONS else None:
            # As the planner reads an option of type path.
            folder = os.path.expanduser(os.path.expandvars(str(plan_dir)))
            options = self.options(read_host_plan(folder, task_vars["inventory_hostname"]), folder, args)
            args = {**options, **args}
        name = f"railops.rdma.{self.name}"
        module: dict[str, t.Any] = {"module_name": name, "module_args": args, "task_vars": task_vars}
        result: dict[str, t.Any] = self._execute_module(**module)
        if result.get("library_missing"):
            before, retained = self._task.environment, self.KEEPS_LIBRARY and not self._task.check_mode
            self._task.environment = [*(before or []), {_pyroute2.KEEP if retained else _pyroute2.SENT: self._send()}]
            try:
                result = self._execute_module(**module)
            finally:
                self._task.environment = before
        if self._task.check_mode and not result.get("failed"):
            before = f"{task_vars.get('inventory_hostname')}: as the host is now, the run would stop at this"
            lines = [f"{before}: {row['problem']} {row['fix']}" for row in result.get("problems", ())]
            result["warnings"] = [*result.get("warnings", ()), *lines]
        return result

    def _send(self) -> str:
        """Send the library to the task's temporary folder on the host, and return its path there."""
        shell = self._connection._shell
        if not shell.tmpdir:
            self._make_tmp_path()
        remote: str = shell.join_path(shell.tmpdir, _pyroute2.WHEEL_NAME)
        if not SAFE_PATH.fullmatch(remote):
            # As a variable of the environment it would be a template.
            fail(
                f"The host's temporary folder is called {shell.tmpdir!r}.",
                "Give it a plain name (remote_tmp). [remote_tmp]",
            )
        if not _pyroute2.wheel_at(WHEEL):
            fail(f"{WHEEL} is missing, or was changed.", "Install the collection again. [collection_damaged]")
        self._transfer_file(WHEEL, remote)  # type: ignore[no-untyped-call]
        self._fixup_perms2((shell.tmpdir, remote))  # type: ignore[no-untyped-call]
        return remote

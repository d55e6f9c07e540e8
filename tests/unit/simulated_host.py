# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host of rail_persist whose programs a test runs: by a function instead of AnsibleModule."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from ansible_collections.railops.rdma.plugins.module_utils._persist.host import PersistHost
from ansible_collections.railops.rdma.plugins.module_utils._persist.run import converge
from ansible_collections.railops.rdma.plugins.module_utils._programs import ProgramResult
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options


def command(argv: list[str]) -> ProgramResult:
    """Run a program."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return ProgramResult(done.returncode, done.stdout, done.stderr)


class SimulatedHost(PersistHost):
    """A host, and what runs its programs: that gets the argument vector."""

    def __init__(self, root: str = "/", run: Callable[[list[str]], ProgramResult] = command) -> None:
        super().__init__(root)
        self._run = run

    def brought(self, want, manager, **options):
        """Bring the files to a plan by rail_persist, and return what it returns."""
        return converge(parse_options(want), self, manager, **options)

    def run(self, argv):
        tool = self.tool(argv[0])
        return self._run([tool, *argv[1:]]) if tool else ProgramResult(127, "", "")

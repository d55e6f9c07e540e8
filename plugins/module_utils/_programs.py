# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs of a host: each is an argv, with an end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import typing as t

from ._errors import RdmaError
from ._files import HostFiles


class ProgramResult(t.NamedTuple):
    """The result of a program: its exit status, standard output and standard error."""

    status: int
    out: str
    err: str

    def reported(self, root: str = "") -> str:
        """Return its output in one line, without the path of a root."""
        text = " ".join(f"{self.err} {self.out}".split())
        return text.replace(root, "") if root else text


NO_ANSWER = 124
"""The status of a program that took too long, as timeout(1) has it."""


def run_program(argv: t.Sequence[str], text: str = "", seconds: float = 15) -> ProgramResult:
    """Run a program of the host without AnsibleModule, with a time limit.

    :param text: its standard input.
    :param seconds: how long it may take: the status is NO_ANSWER after that, and 127 of a program that is not there.
    """
    tool = shutil.which(argv[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if tool is None:
        return ProgramResult(127, "", "")
    streams: dict[str, t.Any] = {"input": text, "text": True, "errors": "replace", "capture_output": True}
    environ = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            [tool, *argv[1:]], check=False, timeout=seconds, env=environ, **streams
        )
    except subprocess.TimeoutExpired as exc:
        return ProgramResult(
            NO_ANSWER, (exc.stdout or b"").decode("utf-8", "replace"), f"no answer in {seconds:g} seconds"
        )
    return ProgramResult(done.returncode, done.stdout, done.stderr)


class Machine(HostFiles):
    """A host: its files, and its programs."""

    def tool(self, name: str) -> str | None:
        """Return the path of a program, or None."""
        return self._module.get_bin_path(name) if self._module else None

    def run(self, argv: t.Sequence[str]) -> ProgramResult:
        """Run a program by its name or path, and wait for its end; the status of one that is not there is 127."""
        tool = self.tool(argv[0])
        if not tool or not self._module:
            return ProgramResult(127, "", "")
        return ProgramResult(*self._module.run_command([tool, *argv[1:]], environ_update={"LC_ALL": "C.UTF-8"}))

    def links(self) -> list[dict[str, t.Any]]:
        """Return what `ip` says of the interfaces; nothing where the host has none.

        :raises RdmaError: when that is not understood.
        """
        done = self.run(["ip", "-json", "-details", "address", "show"])
        try:
            return [link for link in json.loads("[]" if done.status == 127 else done.out) if "ifname" in link]
        except ValueError as exc:
            raise RdmaError(
                f"`ip` does not list the interfaces: {done.reported()}", "Install iproute2. [iproute2_missing]"
            ) from exc

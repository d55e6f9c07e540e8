# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starts, watches and ends perftest processes. Whatever happens to the caller, every process ends in its time.

Servers run in the background under coreutils' `timeout`, so that nothing has to live to end them. Their process numbers
and start times are noted in one folder a token; a number that was given to another process since is not touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import typing as t

from .._errors import RdmaError
from .._files import Sysfs
from .._programs import run_program

FILES = Sysfs()
STATE_FOLDER = "/run/railops-rdma-probe"
TOKEN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")
LISTEN_SECONDS = 15.0


def _start_time(pid: int) -> str | None:
    """Return a process's start time in clock ticks: with its number, its identity."""
    fields = (FILES.text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    # A zombie has ended: field 3 is the state, field 22 the start time (proc(5)).
    return fields[19] if fields and fields[0] != "Z" else None


class Servers:
    """The servers of one token on this host."""

    def __init__(self, token: str, folder: str = STATE_FOLDER) -> None:
        if not TOKEN.fullmatch(token):
            raise RdmaError(
                f"token is {token[:40]!r}, and names a folder: letters, digits, '_', '-' and '.', 64 at most.",
                "Set token to a word such as manual. [token_format]",
            )
        self._folder = os.path.join(folder, token)

    def _log(self, port: int) -> str:
        return os.path.join(self._folder, f"{port}.log")

    def _noted(self) -> list[dict[str, t.Any]]:
        try:
            return list(json.loads(FILES.text(f"{self._folder}/state.json") or "[]"))
        except ValueError:
            return []

    def start(self, commands: t.Mapping[int, t.Sequence[str]], lifetime: int) -> dict[int, str]:
        """Start a server on each port and wait until all listen.

        :param commands: TCP port to command line.
        :param lifetime: seconds after which each of them ends automatically.
        :returns: the output of each that failed, by port.
        """
        self.end()
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        started: dict[int, subprocess.Popen[bytes]] = {}
        running: list[dict[str, t.Any]] = []
        failed = dict.fromkeys(commands & FILES.listening().keys(), "the TCP port is taken: Address already in use")
        for port, command in commands.items():
            if port in failed:
                continue
            with open(self._log(port), "wb") as log:
                # AnsibleModule.run_command waits for the end; a server has to outlive this module.
                started[port] = subprocess.Popen(  # pylint: disable=ansible-bad-function
                    ["timeout", "--kill-after=2", str(lifetime), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    close_fds=True,
                )
            pid = started[port].pid
            running.append({"port": port, "pid": pid, "start": _start_time(pid)})
            # O_EXCL is not needed: a token belongs to one run, which calls its hosts' modules one after the other.
            with open(f"{self._folder}/state.json", "w", encoding="utf-8") as file:
                json.dump(running, file)
        return {**failed, **self._await(started)}

    def _await(self, started: dict[int, subprocess.Popen[bytes]]) -> dict[int, str]:
        waiting, failed = dict(started), {}
        deadline = time.monotonic() + LISTEN_SECONDS + len(started)
        while waiting and time.monotonic() < deadline:
            for port in waiting.keys() & FILES.listening().keys():
                del waiting[port]
            for port, process in list(waiting.items()):
                if process.poll() is not None:
                    failed[port] = self.output(port)
                    del waiting[port]
            if waiting:
                time.sleep(0.05)
        return {**failed, **{port: self.output(port) or "it does not listen" for port in waiting}}

    def output(self, port: int) -> str:
        """Return what a server has printed."""
        return FILES.text(self._log(port)) or ""

    def end(self) -> list[int]:
        """End what runs, and forget it; return the ports of the servers that still ran."""
        noted = (entry for entry in self._noted() if entry["start"])
        alive = [entry for entry in noted if _start_time(entry["pid"]) == entry["start"]]
        for entry in alive:
            # `timeout` and its program are one process group: the session that start_new_session made. At SIGTERM,
            # `timeout` kills in two seconds what does not end.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(entry["pid"], signal.SIGTERM)
        if alive:
            time.sleep(0.2)
        shutil.rmtree(self._folder, ignore_errors=True)
        return sorted(entry["port"] for entry in alive)


def help_text(program: str) -> str:
    """Return a program's help text.

    :raises RdmaError: when it is not installed.
    """
    reported = run_program([program, "--help"], seconds=10)
    if reported.status == 127:
        raise RdmaError(
            f"perftest is not installed: there is no program {program}.",
            "Install the package perftest on the host (role rdma_driver does), or set verify_traffic to ping. "
            "[perftest_missing]",
        )
    return reported.out + reported.err

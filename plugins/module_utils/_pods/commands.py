# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: commands inside of pods, by the API's exec. It decides nothing."""

from __future__ import annotations

import contextlib
import functools
import time
import typing as t
from dataclasses import dataclass

from .._cluster import api_errors, requirements
from .._cluster.client import Cluster
from .._cluster.model import Json
from .._validation import line, parsed

if not requirements.KUBERNETES_ERROR:
    from kubernetes.stream import stream, ws_client
    from websocket import WebSocketException

# Limits of one command in a pod: seconds, and characters of its output.
EXEC_SECONDS = 15
PRINTED = 2**23


class CommandFailed(Exception):
    """A command could not be run in a pod, or ended with an error: the message, and whether it was forbidden."""

    def __init__(self, message: str, *, forbidden: bool = False) -> None:
        super().__init__(message)
        self.forbidden = forbidden


@dataclass(frozen=True)
class CommandResult:
    """The result of a command in a pod: its output, its exit code, and its problem, if any.

    `code` is None where it did not end in its time.
    """

    output: str = ""
    code: int | None = None
    problem: str = ""

    def good(self) -> str:
        """Return what it printed.

        :raises CommandFailed: it did not end well.
        """
        if self.problem:
            raise CommandFailed(self.problem)
        return self.output


class Command:
    """A command that runs in a pod."""

    def __init__(self, opened: t.Any) -> None:
        self._opened = opened

    def close(self) -> None:
        """Close the stream: a command that still runs ends automatically."""
        self._opened.close(timeout=0)

    def over(self) -> bool:
        """Return whether it has ended."""
        with contextlib.suppress(WebSocketException, OSError):
            self._opened.update()
            return not self._opened.is_open()
        return True

    def ended(self, seconds: float) -> CommandResult:
        """Wait so long for its end.

        :raises CommandFailed: when it could not be run.
        """
        opened, until = self._opened, time.monotonic() + seconds
        try:
            while opened.is_open() and time.monotonic() < until and len(opened.peek_stdout()) <= PRINTED:
                opened.update(timeout=min(1.0, seconds))
            out, err = opened.read_channel(ws_client.STDOUT_CHANNEL), opened.read_channel(ws_client.STDERR_CHANNEL)
            if len(out) > PRINTED:
                raise CommandFailed(f"it printed more than {PRINTED:,} characters")
            if opened.is_open():
                return CommandResult(out, None, f"it did not end in {seconds:g} s")
            code, problem = _status(opened.read_channel(ws_client.ERROR_CHANNEL))
        except (WebSocketException, OSError) as exc:
            raise CommandFailed(str(exc)[:300]) from exc
        reported = (line(err or problem) or "")[:300]
        if code is None:
            raise CommandFailed(reported)
        return CommandResult(out, code, reported if code else "")


def _status(text: str) -> tuple[int | None, str]:
    """Return the exit code of the error channel, None where the command was not run, and its message."""
    try:
        status = parsed(text or "{}")
    except ValueError:
        return None, text.strip()
    if not isinstance(status, dict) or status.get("status") == "Success":
        return 0, ""
    problem = str(status.get("message") or "it ended with an error")
    try:
        codes = [int(row["message"]) for row in status["details"]["causes"] if row["reason"] == "ExitCode"]
    except (KeyError, TypeError, ValueError):
        codes = []
    return (codes[0] if codes else None), problem


class CommandCluster(Cluster):
    """A cluster in whose pods commands are run."""

    def start(self, pod: Json, argv: t.Sequence[str]) -> Command:
        """Start a command inside of a pod.

        :raises CommandFailed: when it cannot be run.
        """
        meta = pod["metadata"]
        # For a stream the client changes its transport while it begins: other threads keep theirs.
        api = requirements.client.CoreV1Api(requirements.client.ApiClient(requirements.load(self._params)))
        begin = functools.partial(stream, api.connect_get_namespaced_pod_exec, meta["name"], meta["namespace"])
        wanted = {"command": list(argv), "stdout": True, "stderr": True, "_preload_content": False}
        try:
            opened = api_errors.answered(functools.partial(begin, **wanted))
        except requirements.client.ApiException as exc:
            problem = str(exc.reason or exc).split(" -+-+-", 1)[0].strip()
            raise CommandFailed(problem[:300], forbidden=" 403 " in f" {problem} ") from exc
        return Command(opened)

    def run(self, pod: Json, argv: t.Sequence[str], seconds: float = EXEC_SECONDS) -> CommandResult:
        """Run a command inside of a pod.

        :param seconds: that it may take.
        :raises CommandFailed: when it cannot be run.
        """
        with contextlib.closing(self.start(pod, argv)) as command:
            return command.ended(seconds)

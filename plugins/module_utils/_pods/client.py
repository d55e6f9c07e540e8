# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What looking into pods needs beyond objects: make Jobs, read a log, run a command inside. It decides nothing."""

from __future__ import annotations

import contextlib
import json
import traceback
import typing as t

from .._cluster import access, answers, library
from .._cluster.client import Cluster
from .._cluster.model import Ref
from .._errors import RdmaError
from .._intake import line, parsed

STREAM_ERROR: str | None = None
try:
    from kubernetes.client import CoreV1Api
    from kubernetes.client.exceptions import ApiException
    from kubernetes.stream import stream, ws_client
    from websocket import WebSocketException
except ImportError:
    STREAM_ERROR = traceback.format_exc()

NEEDS = [("kubernetes >= 31", library.KUBERNETES_ERROR or STREAM_ERROR)]
"""The library behind it, for `run_module`."""

if t.TYPE_CHECKING:
    Json = dict[str, t.Any]

# Seconds that one command in a pod may take, and bytes of a log that are read.
EXEC_SECONDS = 15
LOG_BYTES = 65536


class CommandFailed(Exception):
    """A command could not be run in a pod, or ended with an error: the message, and whether it was forbidden."""

    def __init__(self, message: str, *, forbidden: bool = False) -> None:
        super().__init__(message)
        self.forbidden = forbidden


class PodCluster(Cluster):
    """A cluster whose pods are looked into."""

    def __init__(self, given: access.Access, **options: t.Any) -> None:
        super().__init__(given, **options)
        self._access = given

    def nodes(self) -> dict[str, Json]:
        """Return the nodes by name; none when this identity may not list them."""
        try:
            return {node["metadata"]["name"]: node for node in self.listed("v1", "Node")}
        except RdmaError:
            return {}

    def remove(self, body: Json) -> None:
        """Delete an object and what belongs to it, if it is there."""
        resource = self.resource(body["apiVersion"], body["kind"])
        meta = body["metadata"]
        with contextlib.suppress(answers.Gone):
            self.delete(resource, Ref(resource.group, body["kind"], meta["namespace"], meta["name"]))

    def log(
        self, pod: Json, container: str = "", *, tail: int = 0, previous: bool = False, limit: int = LOG_BYTES
    ) -> str:
        """Return the log of a pod's container; nothing when it is gone or never began.

        :param pod: its object.
        :param container: needed where the pod has several.
        :param tail: only that many lines of its end.
        :param previous: of the container's last start.
        :param limit: bytes of its end.
        """
        path = f"{_path(pod)}/log"
        wanted = {"container": container, "tailLines": tail, "previous": "true" if previous else ""}
        query = {name: value for name, value in wanted.items() if value}

        def send() -> bytes:
            end = bytearray()
            try:
                # The API has a limit for the beginning only: what counts, the result, is at the end.
                for part in self._get(path, **query).stream(LOG_BYTES):
                    end += part
                    if len(end) > 2 * limit:
                        del end[:-limit]
                return bytes(end[-limit:])
            except ApiException as exc:
                # 400: its container is still waiting to start, or had no start before.
                if exc.status in (400, 404):
                    return b""
                raise

        raw: bytes = self._tried(send, f"the log of pod {pod['metadata']['namespace']}/{pod['metadata']['name']}")
        return raw.decode(errors="replace")

    def events(self, body: Json) -> list[Json]:
        """Return the events about a pod or Job; none when this identity may not read them."""
        meta = body["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/events"
        try:
            done = self._tried(
                lambda: json.loads(self._get(path, fieldSelector=f"involvedObject.name={meta['name']}").data), "events"
            )
        except (RdmaError, answers.Gone):
            return []
        return list(done.get("items") or ())

    def _get(self, path: str, **query: t.Any) -> t.Any:
        """Read what the dynamic client has no words for."""
        return self._client.request(
            "get",
            path,
            query_params=list(query.items()),
            header_params={"Accept": "*/*"},
            serialize=False,
            _request_timeout=self._timeout,
        )

    def run(self, pod: Json, argv: t.Sequence[str]) -> str:
        """Return what a command inside of a pod prints.

        :raises CommandFailed: when it cannot be run or ends with an error.
        """
        meta = pod["metadata"]
        # For a stream the client changes its transport while it begins: other threads keep theirs.
        api = CoreV1Api(library.ApiClient(access.load(self._access)))
        try:
            opened = stream(
                api.connect_get_namespaced_pod_exec,
                meta["name"],
                meta["namespace"],
                command=list(argv),
                stdout=True,
                stderr=True,
                _preload_content=False,
            )
        except (ApiException, AttributeError) as exc:
            # Releases 32 to 36 stumble over a refusal that has no body.
            said = exc if isinstance(exc, ApiException) else exc.__context__
            if not isinstance(said, ApiException):
                raise
            problem = str(said.reason or said).split(" -+-+-", 1)[0].strip()
            raise CommandFailed(problem[:300], forbidden=" 403 " in f" {problem} ") from exc
        return _output(opened)


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _output(opened: t.Any) -> str:
    """Read a stream to its end."""
    try:
        opened.run_forever(timeout=EXEC_SECONDS)
        if opened.is_open():
            raise CommandFailed(f"it did not end in {EXEC_SECONDS} s")
        out, err = opened.read_stdout() or "", opened.read_stderr() or ""
        problem = _refusal(opened.read_channel(ws_client.ERROR_CHANNEL) or "")
    except (WebSocketException, OSError) as exc:
        raise CommandFailed(str(exc)[:300]) from exc
    finally:
        opened.close()
    if problem:
        raise CommandFailed((line(err or problem) or "")[:300])
    return str(out)


def _refusal(text: str) -> str:
    """Return what the error channel says of a command that did not end well; nothing when it did."""
    try:
        status = parsed(text or "{}")
    except ValueError:
        return text.strip()
    if not isinstance(status, dict) or status.get("status") == "Success":
        return ""
    return str(status.get("message") or "it ended with an error")

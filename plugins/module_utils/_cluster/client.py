# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: the Kubernetes API by the official dynamic client: pages, server-side apply, deletes, retries.

It decides nothing about objects. What the API refuses becomes an RdmaError with a fix, or a FieldConflict.
"""

from __future__ import annotations

import functools
import json
import random
import time
import typing as t
from types import MappingProxyType

from .._errors import RdmaError
from . import api_errors, requirements
from .model import FIELD_MANAGER, Json, Ref

if not requirements.KUBERNETES_ERROR:
    import urllib3.exceptions

C = t.TypeVar("C", bound="Cluster")
PAGE = 500
THREADS = 8
"""How many requests are under way at once."""
APPLY = "application/apply-patch+yaml"
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
_TRUST = (
    "Name the certificate that signed it (certificate-authority in the kubeconfig); an expired one has to be renewed. "
    "[api_certificate]"
)
_REACH = "Check that it runs and that the kubeconfig names it, then run again: the run resumes here. [api_no_answer]"
# Seconds: the longest wait between two tries; to connect, and until one answer is there.
_LONGEST_PAUSE = 5.0
_ANSWER_SECONDS = (5, 60)
_CONNECT_SECONDS = 8.0
# Bytes of a log that are read.
LOG_BYTES = 65536


def _beginning(reported: t.Any) -> str:
    return str(reported)[:300].rstrip(".")


class Cluster:
    """One API, used by several threads.

    :param params: of a module, with those of ACCESS.
    :param retry_seconds: how long one request is tried again while the API answers 429, 409 (stale) or 5xx, or drops.
    """

    def __init__(self, params: t.Mapping[str, t.Any], *, retry_seconds: float = 120) -> None:
        self._params = params
        self._retry_seconds = retry_seconds
        self._timeout = _ANSWER_SECONDS
        made = requirements.load(params)
        made.connection_pool_maxsize = THREADS
        # The client's own retries know neither the method nor the time that is left.
        made.retries = False
        self.host = made.host
        self._client = requirements.dynamic.DynamicClient(
            requirements.client.ApiClient(made), discoverer=requirements.Kinds
        )
        self._met = False

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *dummy: object) -> None:
        """Let go of the connections."""
        self._client.client.rest_client.pool_manager.clear()

    # What there is

    def resource(self, api_version: str, kind: str) -> t.Any:
        """Return the resource of a kind, or None when the API does not serve it."""
        # A wrong address fails without minutes of retries; once connected, the client tolerates an outage of the API.
        seconds = 0.0 if self._met else _CONNECT_SECONDS
        query = functools.partial(self._client.resources.get, api_version=api_version, kind=kind)
        found = self._tried(query, kind, seconds=seconds)
        self._met = True
        return found

    def each(self, api_version: str, kind: str, *, namespace: str = "", selector: str = "") -> t.Iterator[Json]:
        """Yield the objects of a kind, of which a page is held at a time; none when the API does not serve it.

        :param api_version: group and version.
        :param kind: of the objects.
        :param namespace: of the objects; empty for all.
        :param selector: of labels; empty for all.
        :raises RdmaError: also when this identity may not list the kind.
        """
        resource = self.resource(api_version, kind)
        query: dict[str, t.Any] = {"limit": PAGE, **({"label_selector": selector} if selector else {})}
        while resource is not None:
            path = resource.path(namespace=namespace or None)
            page = self._tried(functools.partial(self._send, "get", path, **query), f"list {kind}")
            yield from ({**item, "apiVersion": api_version, "kind": kind} for item in page["items"])
            query["_continue"] = page["metadata"].get("continue")
            if not query["_continue"]:
                return

    def listed(self, api_version: str, kind: str, **which: str) -> list[Json]:
        """Return the objects of a kind, all at once. `which`: namespace, selector."""
        return list(self.each(api_version, kind, **which))

    def one(self, api_version: str, kind: str, name: str, namespace: str = "") -> Json | None:
        """Return the object of a name, or None; also when the API does not serve its kind.

        :param api_version: group and version.
        :param kind: of the object.
        :param name: of the object, and `namespace` its namespace; empty for none.
        """
        return self.get(Ref.to(api_version, kind, name, namespace))

    def get(self, ref: Ref) -> Json | None:
        """Return one object, or None; also when the API does not serve its kind."""
        try:
            return t.cast("Json", self._tried(functools.partial(self._send, "get", self._path(ref)), str(ref)))
        except api_errors.NotFound:
            return None

    def _path(self, ref: Ref) -> str:
        """Return the path of an object.

        :raises NotFound: the API does not serve its kind.
        """
        resource = self.resource(ref.api_version, ref.kind)
        if resource is None:
            raise api_errors.NotFound(str(ref))
        return t.cast("str", resource.path(name=ref.name, namespace=ref.namespace or None))

    # Nodes and pods, for what is reported of them

    def nodes(self) -> dict[str, Json]:
        """Return the nodes by name; none when this identity may not list them."""
        try:
            return {node["metadata"]["name"]: node for node in self.listed("v1", "Node")}
        except RdmaError:
            return {}

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
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log"
        wanted = {"container": container, "tailLines": tail, "previous": "true" if previous else ""}
        # The dynamic client has no words for these.
        how = {"query_params": [(name, value) for name, value in wanted.items() if value], "serialize": False}
        how["header_params"] = {"Accept": "*/*"}

        def send() -> bytes:
            end = bytearray()
            # The API has a limit for the beginning only: what counts, the result, is at the end.
            for part in self._client.request("get", path, _request_timeout=self._timeout, **how).stream(LOG_BYTES):
                end += part
                if len(end) > 2 * limit:
                    del end[:-limit]
            return bytes(end[-limit:])

        try:
            # 400: its container is still waiting to start, or had no start before.
            raw: bytes = self._tried(send, f"the log of pod {meta['name']}", raises={400: api_errors.NotFound})
        except api_errors.NotFound:
            return ""
        return raw.decode(errors="replace")

    def events(self, body: Json) -> list[Json]:
        """Return the events about a pod or Job; none when this identity may not read them."""
        meta = body["metadata"]
        path, which = f"/api/v1/namespaces/{meta['namespace']}/events", f"involvedObject.name={meta['name']}"
        try:
            done = self._tried(lambda: self._send("get", path, field_selector=which), "events")
        except RdmaError:
            return []
        return list(done.get("items") or ())

    # Writing

    def apply(self, body: Json, *, force: bool = False, dry_run: bool = False) -> None:
        """Server-side apply.

        :param body: the whole object as wanted.
        :param force: take fields from their managers.
        :raises FieldConflict: when other managers own fields.
        """
        ref = Ref.of(body)
        path = self._path(ref)
        query = {"force_conflicts": force, **({"dry_run": "All"} if dry_run else {})}
        self._tried(functools.partial(self._send, "patch", path, body, APPLY, **query), str(ref))

    def create(self, body: Json) -> None:
        """Make an object that is not there."""
        ref = Ref.of(body)
        path = self.resource(body["apiVersion"], body["kind"]).path(namespace=ref.namespace or None)

        def send() -> None:
            try:
                self._send("post", path, body)
            except requirements.client.ApiException as exc:
                # The answer to an earlier try was lost: it is there.
                if exc.status != 409 or api_errors.status_of(exc).get("reason") != "AlreadyExists":
                    raise

        self._tried(send, str(ref))

    def delete(self, ref: Ref, *, uid: str = "", version: str = "", dry_run: bool = False) -> None:
        """Delete an object, only if it is still the one that was read.

        :param uid: of the object that was read; empty for any.
        :param version: of it then; empty for any.
        :raises NotFound: when it is not there, or has changed since.
        """
        preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if preconditions:
            body["preconditions"] = preconditions
        if dry_run:
            body["dryRun"] = ["All"]
        send = functools.partial(self._send, "delete", self._path(ref), body)
        self._tried(send, str(ref), raises={409: api_errors.NotFound})

    def patch(self, ref: Ref, patch: Json, *, content: str = "merge-patch", part: str = "") -> Json:
        """Change a few fields of an object that others own, and return it as it is then.

        :param patch: the change; with a version in its metadata, over that version alone.
        :param content: the kind of patch, such as `merge-patch`.
        :param part: a subresource, such as `status`.
        :raises VersionConflict: it is no longer that version: read it again.
        """
        path = self._path(ref) + (f"/{part}" if part else "")
        send = functools.partial(self._send, "patch", path, patch, f"application/{content}+json")
        raises = {409: api_errors.VersionConflict} if "resourceVersion" in patch["metadata"] else {}
        return t.cast("Json", self._tried(send, str(ref), raises=raises))

    # Sending, and trying again

    def _send(
        self, method: str, path: str, body: Json | None = None, content: str | None = None, **query: t.Any
    ) -> Json:
        """Send one request and return the answer; only when that is read is the connection free for the next one.

        :param content: the kind of body; JSON without it.
        :param query: more of it, as the dynamic client calls it.
        """
        if method in ("post", "patch"):
            query["field_manager"] = FIELD_MANAGER
        done = self._client.request(
            method, path, body=body, content_type=content, serialize=False, _request_timeout=self._timeout, **query
        )
        return t.cast("Json", json.loads(done.data))

    def _tried(
        self,
        call: t.Callable[[], t.Any],
        what: str,
        *,
        seconds: float = 0.0,
        raises: t.Mapping[int, type[api_errors.NotFound | api_errors.VersionConflict]] = MappingProxyType({}),
    ) -> t.Any:
        """Do it, and again while that may help and the time is not over.

        :param raises: the error of a status that is not tried again.
        """
        until = time.monotonic() + (seconds or self._retry_seconds)
        pause = 0.1
        while True:
            try:
                return api_errors.answered(call)
            except requirements.client.ApiException as exc:
                if exc.status in raises:
                    raise raises[exc.status](what) from exc
                if UNTRUSTED in str(exc.reason):
                    text = f"The certificate of the API at {self.host} is not trusted: {_beginning(exc.reason)}."
                    raise RdmaError(text, _TRUST, code=0) from exc
                status = api_errors.status_of(exc)
                clashes = api_errors.conflict_fields(status)
                if exc.status == 404:
                    raise api_errors.NotFound(what) from exc
                if clashes:
                    raise api_errors.FieldConflict(what, clashes) from exc
                wait = api_errors.retry_pause(exc, pause)
                if not api_errors.is_retryable(exc.status, status) or time.monotonic() + wait > until:
                    raise api_errors.refused(what, exc.status, status) from exc
            except (urllib3.exceptions.HTTPError, OSError, ValueError, RecursionError) as exc:
                wait = pause
                if time.monotonic() + wait > until:
                    text = f"The API at {self.host} does not answer: {_beginning(exc)}."
                    raise RdmaError(text, _REACH, code=0) from exc
            time.sleep(wait)
            # A thousand requests that failed together must not come again together.
            pause = min(_LONGEST_PAUSE, pause * 2) * random.uniform(0.7, 1.0)

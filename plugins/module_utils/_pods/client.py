# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: what pods need beyond objects: read a log and events. It decides nothing."""

from __future__ import annotations

from .._cluster import api_errors
from .._cluster.client import Cluster
from .._cluster.model import Json
from .._errors import RdmaError

# Bytes of a log that are read.
LOG_BYTES = 65536


class PodCluster(Cluster):
    """A cluster whose pods are checked."""

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

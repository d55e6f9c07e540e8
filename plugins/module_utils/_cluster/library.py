# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is taken of the official Python client: configuration, transport, the dynamic client and its resources.

Its own discovery is not used: it keeps what an API serves in a file that other runs and users share, takes a group that
does not answer for one without kinds, and several threads cannot ask it at once.
"""

from __future__ import annotations

import threading
import traceback
import typing as t

KUBERNETES_ERROR: str | None = None
try:
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.client.exceptions import ApiException
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
    from kubernetes.dynamic import DynamicClient
    from kubernetes.dynamic.resource import Resource
except ImportError:
    KUBERNETES_ERROR = traceback.format_exc()

__all__ = [
    "KUBERNETES_ERROR",
    "ApiClient",
    "ApiException",
    "ConfigException",
    "Configuration",
    "DynamicClient",
    "Kinds",
    "load_incluster_config",
    "load_kube_config",
]
# Seconds to connect, and to answer what is served.
DISCOVERY_SECONDS = (5, 30)


class Kinds:
    """What the API serves, asked group by group and only for what is needed: a discoverer for the dynamic client.

    Several threads ask at the same time for kinds of one group: it is asked once, and none of them may miss its kind.
    """

    def __init__(self, client: t.Any, _cache_file: t.Any = None) -> None:
        self._client = client
        self._found: dict[str, dict[str, t.Any]] = {}
        self._lock = threading.Lock()

    def get(self, *, api_version: str, kind: str) -> t.Any:
        """Return the resource of a kind, or None when it is not served; asked again until it is."""
        with self._lock:
            if kind not in self._found.get(api_version, {}):
                self._found[api_version] = self._served(api_version)
            return self._found[api_version].get(kind)

    def _served(self, api_version: str) -> dict[str, t.Any]:
        group, _slash, version = api_version.rpartition("/")
        prefix = "apis" if group else "api"
        try:
            answer = self._client.request(
                "get",
                f"/{prefix}/{api_version}",
                serializer=lambda _client, said: said,
                _request_timeout=DISCOVERY_SECONDS,
            )
        except ApiException as exc:
            if exc.status == 404:
                return {}
            raise
        return {
            row["kind"]: Resource(
                prefix=prefix,
                group=group,
                api_version=version,
                client=self._client,
                kind=row["kind"],
                name=row["name"],
                namespaced=row["namespaced"],
                verbs=row.get("verbs"),
            )
            for row in answer.get("resources") or ()
            # Subresources are answered among the kinds: pods/eviction is of kind Eviction.
            if "/" not in row["name"]
        }

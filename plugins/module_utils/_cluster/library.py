# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The official client's configuration, transport and dynamic client, without the thousand classes that come with them.

Importing `kubernetes` runs package files that import a class for every kind and call there is: more than half of what a
module spends that finds nothing to change. Those package files run here only when somebody asks for what they bring.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import importlib.util
import json
import sys
import threading
import traceback
import types
import typing as t
from urllib.parse import urlencode, urlsplit

PACKAGES = ("kubernetes", "kubernetes.client", "kubernetes.client.models")
# Seconds to connect, and to answer what is served.
DISCOVERY_SECONDS = (5, 30)
KUBERNETES_ERROR: str | None = None


def defer(name: str) -> types.ModuleType:
    """Put a package in place whose file runs when an attribute is asked for that no submodule gives.

    :raises ImportError: when there is no such package.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"No module named {name!r}", name=name)
    loader = spec.loader
    package = importlib.util.module_from_spec(spec)

    def missing(attribute: str) -> t.Any:
        if attribute.startswith("__") and attribute != "__version__":
            raise AttributeError(attribute)
        if attribute != "__version__":
            with contextlib.suppress(ModuleNotFoundError):
                return importlib.import_module(f"{name}.{attribute}")
        vars(package).pop("__getattr__", None)
        loader.exec_module(package)
        return getattr(package, attribute)

    vars(package)["__getattr__"] = missing
    sys.modules[name] = package
    parent, _dot, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)
    return package


def _prepare() -> None:
    """Let the submodules that we need be imported alone. What is imported already stays as it is."""
    if "kubernetes" in sys.modules:
        return
    try:
        from importlib.metadata import version

        packages = {name: defer(name) for name in PACKAGES}
        # What the submodules take from the packages themselves.
        vars(packages["kubernetes"])["__version__"] = version("kubernetes")
        for module, name in (("configuration", "Configuration"), ("api_client", "ApiClient")):
            made = getattr(importlib.import_module(f"kubernetes.client.{module}"), name)
            setattr(packages["kubernetes.client"], name, made)
    except Exception:  # another release of the client may be built otherwise: then all of it is imported as usual
        for name in [name for name in sys.modules if name.partition(".")[0] == "kubernetes"]:
            del sys.modules[name]


_prepare()
try:
    import urllib3
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration
    from kubernetes.client.exceptions import ApiException
    from kubernetes.client.rest import RESTResponse
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
    "Patches",
    "encoded",
    "load_incluster_config",
    "load_kube_config",
]


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


class Patches:
    """Sends patches over the client's own connections, past the layers that take each request apart and build it anew.

    Those cost the controller a third of a write's processor time, and there are thousands of writes.

    :param client: the client; its certificates, identity, proxy and headers are used.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        manager = client.rest_client.pool_manager
        host = client.configuration.host.rstrip("/")
        url = urlsplit(host)
        self._pool = manager.connection_from_url(host)
        proxy = getattr(manager, "proxy", None)
        # A proxy wants the whole address, unless it only passes bytes on to a server that speaks TLS.
        self._before = host if proxy and url.scheme == "http" else url.path
        self._headers = dict(manager.proxy_headers) if proxy and url.scheme == "http" else {}

    def send(
        self, path: str, body: str, content_type: str, query: t.Mapping[str, str], *, timeout: tuple[float, float]
    ) -> bytes:
        """Patch an object and return what the API answers.

        :param path: of the object, without the server.
        :param content_type: the kind of patch.
        :param query: the parameters behind the path.
        :param body: the patch as the API reads it, see `encoded`.
        :param timeout: seconds to connect, and to wait for the answer.
        :raises ApiException: the API refuses.
        """
        headers = {**self._headers, **self._client.default_headers}
        headers.update({"Accept": "application/json", "Content-Type": content_type})
        self._client.update_params_for_auth(headers, [], ["BearerToken"])
        answer = self._pool.request(
            "PATCH",
            f"{self._before}{path}?{urlencode(query)}",
            body=body,
            headers=headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            timeout=urllib3.Timeout(connect=timeout[0], read=timeout[1]),
        )
        if not 200 <= answer.status <= 299:
            raise ApiException(http_resp=RESTResponse(answer))
        return t.cast("bytes", answer.data)


def encoded(body: t.Any) -> str:
    """Return an object as the API reads it.

    :raises TypeError: it holds a value that YAML knows and JSON does not; the message is that value.
    """
    return json.dumps(body, default=_text)


def _text(value: t.Any) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise TypeError(repr(value))

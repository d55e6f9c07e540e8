# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: what is used of the official Python client: configuration, transport, the dynamic client.

With the options of every module that speaks to a cluster, which say where its API is and who we are.

Its own discovery is not used: it keeps what an API serves in a file that other runs and users share, takes a group that
does not answer for one without kinds, and several threads cannot ask it at once.
"""

from __future__ import annotations

import os
import threading
import traceback
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.common.yaml import yaml_load

from .._errors import RdmaError

__all__ = ["ACCESS", "NEEDS", "Kinds", "client", "dynamic", "load", "spec_of", "yaml"]

KUBERNETES_ERROR: str | None = None
try:
    from kubernetes import client, config, dynamic
except ImportError:
    KUBERNETES_ERROR = traceback.format_exc()

YAML_ERROR = ""
try:
    import yaml
except ImportError as missing:
    YAML_ERROR, yaml = str(missing), None

ACCESS: dict[str, t.Any] = {"kubeconfig": {"type": "path"}, "context": {"type": "str"}}
"""The options of every module; the doc fragment _cluster describes them."""
NEEDS = [("kubernetes >= 31", KUBERNETES_ERROR)]
"""The library behind it, for `run_module`."""
# Seconds to connect, and to answer what is served.
DISCOVERY_SECONDS = (5, 30)


class _WithoutYaml(AnsibleModule):
    """A module that cannot read its documentation: whatever it refuses, this is the reason."""

    def fail_json(self, msg: str, **kwargs: t.Any) -> t.NoReturn:
        """End the module with the missing library."""
        super().fail_json(msg=f"{missing_required_lib('PyYAML')} [library_missing]", exception=YAML_ERROR)


def spec_of(documentation: str, **more: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the argument spec that a module's documentation describes, with ACCESS.

    :param more: what documentation has no key for, such as no_log, by option.
    """
    if YAML_ERROR:
        _WithoutYaml({}).fail_json("PyYAML is missing. [library_missing]")  # type: ignore[no-untyped-call]
    spec = _spec_of(yaml_load(documentation)["options"])
    return {**{name: {**option, **more.get(name, {})} for name, option in spec.items()}, **ACCESS}


def _spec_of(options: dict[str, t.Any]) -> dict[str, t.Any]:
    found = {}
    for name, option in options.items():
        found[name] = {key: value for key, value in option.items() if key not in ("description", "suboptions")}
        if "suboptions" in option:
            found[name]["options"] = _spec_of(option["suboptions"])
    return found


def load(params: t.Mapping[str, t.Any]) -> t.Any:
    """Return the configuration of the client. Nothing given: the usual kubeconfig, else the pod's own identity.

    :param params: of a module, with those of ACCESS.
    :raises RdmaError: when there is no kubeconfig, or it cannot be used.
    """
    made, kubeconfig, context = client.Configuration(), params["kubeconfig"], params["context"]
    try:
        if kubeconfig or context or not os.environ.get("KUBERNETES_SERVICE_HOST"):
            path = os.path.expanduser(kubeconfig) if kubeconfig else None
            config.load_kube_config(path, context, made, persist_config=False)
        else:
            config.load_incluster_config(made)
    except (config.ConfigException, OSError, ValueError, TypeError) as exc:
        named = os.environ.get("KUBECONFIG") or ""
        source = "KUBECONFIG" if named and kubeconfig in (None, named) else "fabric_kubeconfig"
        place = kubeconfig or named or "~/.kube/config"
        there = any(os.path.exists(os.path.expanduser(path)) for path in place.split(os.pathsep))
        why = str(exc).rstrip(".") if there else "the file does not exist"
        fix = f"Correct {source} (and fabric_context), or unset it where there is no cluster. [kubeconfig_not_found]"
        raise RdmaError(f"Cannot load a kubeconfig from {place} ({source}): {why}.", fix) from exc
    return made


class Kinds:
    """What the API serves, asked group by group and only for what is needed: a discoverer for the dynamic client.

    Several threads query kinds of one group at the same time: it is read once, and each thread finds its kind.
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
                serializer=lambda _client, reported: reported,
                _request_timeout=DISCOVERY_SECONDS,
            )
        except client.ApiException as exc:
            if exc.status == 404:
                return {}
            raise
        return {
            row["kind"]: dynamic.Resource(
                **{key: row.get(key) for key in ("kind", "name", "namespaced", "verbs")},
                **{"prefix": prefix, "group": group, "api_version": version, "client": self._client},
            )
            for row in answer.get("resources") or ()
            # Subresources are answered among the kinds: pods/eviction is of kind Eviction.
            if "/" not in row["name"]
        }

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the cluster's API is and who we are: the options of every module that speaks to it, and what they come to."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, fields

from .._errors import RdmaError
from . import library

ACCESS: dict[str, t.Any] = {"kubeconfig": {"type": "path"}, "context": {"type": "str"}}
"""What every module takes; the doc fragment _cluster describes it."""
WHOLE_ACCESS: dict[str, t.Any] = {
    **ACCESS,
    "host": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "ca_cert": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path", "no_log": False},
    "validate_certs": {"type": "bool"},
    "proxy": {"type": "str"},
}
NEEDS = [("kubernetes >= 31", library.KUBERNETES_ERROR)]
"""The library behind it, for `run_module`."""


@dataclass(frozen=True)
class Access:
    """Who we are and where the API is. Nothing set: the usual kubeconfig, else the pod's own identity."""

    kubeconfig: str | None = None
    context: str | None = None
    host: str | None = None
    api_key: str | None = None
    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    validate_certs: bool | None = None
    proxy: str | None = None

    @classmethod
    def of(cls, params: dict[str, t.Any]) -> Access:
        """Return what a module's parameters say."""
        return cls(**{field.name: params.get(field.name) for field in fields(cls)})


def load(access: Access) -> t.Any:
    """Return the configuration of the client.

    :raises RdmaError: when there is no kubeconfig, or it cannot be used.
    """
    made = library.Configuration()
    fix = "Set kubeconfig (and context), or host and api_key, or run inside of a pod with a service account."
    try:
        if access.host:
            made.host = access.host
        elif access.kubeconfig or access.context or not os.environ.get("KUBERNETES_SERVICE_HOST"):
            path = os.path.expanduser(access.kubeconfig) if access.kubeconfig else None
            library.load_kube_config(path, access.context, made, persist_config=False)
        else:
            library.load_incluster_config(made)
    except (library.ConfigException, OSError, ValueError, TypeError) as exc:
        raise RdmaError(f"There is no way to the cluster: {str(exc).rstrip('.')}.", fix) from exc
    if access.api_key:
        # A kubeconfig would put its own token back before every request.
        made.refresh_api_key_hook = None
        # The first since release 36 of the client, the second before.
        made.api_key.update(dict.fromkeys(("BearerToken", "authorization"), f"Bearer {access.api_key}"))
    for option, attribute in (("ca_cert", "ssl_ca_cert"), ("client_cert", "cert_file"), ("client_key", "key_file")):
        if getattr(access, option):
            setattr(made, attribute, os.path.expanduser(getattr(access, option)))
    if access.validate_certs is not None:
        made.verify_ssl = access.validate_certs
    if access.proxy:
        made.proxy = access.proxy
    return made

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the cluster's API is and who we are: the options of every module that speaks to it, and what they come to."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass

from .._errors import RdmaError
from . import library

ACCESS: dict[str, t.Any] = {"kubeconfig": {"type": "path"}, "context": {"type": "str"}}
"""What every module takes; the doc fragment _cluster describes it."""
NEEDS = [("kubernetes >= 31", library.KUBERNETES_ERROR)]
"""The library behind it, for `run_module`."""


@dataclass(frozen=True)
class Access:
    """Who we are and where the API is. Nothing set: the usual kubeconfig, else the pod's own identity."""

    kubeconfig: str | None = None
    context: str | None = None

    @classmethod
    def of(cls, params: dict[str, t.Any]) -> Access:
        """Return what a module's parameters say."""
        return cls(**{name: params[name] for name in ACCESS})


def load(access: Access) -> t.Any:
    """Return the configuration of the client.

    :raises RdmaError: when there is no kubeconfig, or it cannot be used.
    """
    made = library.Configuration()
    try:
        if access.kubeconfig or access.context or not os.environ.get("KUBERNETES_SERVICE_HOST"):
            path = os.path.expanduser(access.kubeconfig) if access.kubeconfig else None
            library.load_kube_config(path, access.context, made, persist_config=False)
        else:
            library.load_incluster_config(made)
    except (library.ConfigException, OSError, ValueError, TypeError) as exc:
        fix = "Set kubeconfig (and context), or run inside of a pod with a service account."
        raise RdmaError(f"There is no way to the cluster: {str(exc).rstrip('.')}.", fix) from exc
    return made

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: keep a webhook's certificate in a Secret of the cluster: the entry point of webhook_tls."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._errors import RdmaError
from . import requirements, tls
from .api_errors import FieldConflict
from .client import Cluster
from .model import Ref

NEEDS = [*requirements.NEEDS, ("cryptography >= 41", tls.CRYPTOGRAPHY_ERROR)]


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Check the Secret, and make and store a certificate where it has no valid one."""
    params = module.params
    with Cluster(params) as cluster:
        found = cluster.one("v1", "Secret", params["name"], params["namespace"])
        data = (found or {}).get("data") or {}
        if reason := tls.fault(data, params["service"], params["namespace"]):
            data = tls.make(params["service"], params["namespace"])
        if reason and not module.check_mode:
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": {name: params[name] for name in ("name", "namespace", "labels")},
                "data": data,
            }
            try:
                cluster.apply(body)
            except FieldConflict as exc:
                owners = ", ".join(sorted({owner for _field, owner in exc.clashes}))
                text = f"{Ref.of(body)} belongs to {owners} and is not usable: {reason}."
                raise RdmaError(text, "Delete it, or correct it at its owner. [webhook_key]") from exc
    values = {"tlsCa": data["ca.crt"], "tlsCert": data["tls.crt"], "tlsKey": data["tls.key"]}
    return {"changed": bool(reason), "reason": reason, "values_for_helm": values}

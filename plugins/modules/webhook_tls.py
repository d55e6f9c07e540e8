# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the certificate of an admission webhook in a Secret of the cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: webhook_tls
short_description: Make the certificate of an admission webhook once and keep it in a Secret
version_added: 0.1.0
author: railops.rdma contributors (@railops)
description:
  - Makes a certificate authority and a server certificate for a service when the Secret is missing, or when its
    certificate is not for the service, does not fit its key, or ends within 60 days. Otherwise nothing changes.
  - Returns what Helm needs as values. Run the task with C(no_log=true), because the key is among them.
options:
  name:
    description: Name of the Secret.
    type: str
    required: true
  namespace:
    description: Namespace of Secret and service.
    type: str
    required: true
  service:
    description: Name of the service behind the webhook.
    type: str
    required: true
  labels:
    description: Labels of the Secret.
    type: dict
    default: {}
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
    details: Makes a certificate in memory, to have values for a preview, and stores nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
  - cryptography
"""

EXAMPLES = r"""
---
- name: Make the webhook's certificate once
  railops.rdma.webhook_tls:
    name: railops-rdma-webhook-tls
    namespace: spiderpool
    service: spiderpool-controller
  register: tls
  no_log: true
"""

RETURN = r"""
reason:
  description: Why the certificate was made, empty when it was kept.
  returned: always
  type: str
  sample: ca.crt, tls.crt, tls.key missing
values_for_helm:
  description: The chart's values below C(spiderpoolController.tls.provided), base64 of PEM.
  returned: always
  type: dict
  sample: {"tlsCa": "...", "tlsCert": "...", "tlsKey": "..."}
"""

import typing as t

from ..module_utils._cluster import client, tls
from ..module_utils._cluster.client import Access, Cluster, FieldConflict
from ..module_utils._cluster.model import Ref
from ..module_utils._errors import RdmaError
from ..module_utils._module import run_module

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "service": {"type": "str", "required": True},
    "labels": {"type": "dict", "default": {}},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}


def run(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Look at the Secret, and make and store a certificate where there is no good one."""
    cluster = Cluster(Access(kubeconfig=params["kubeconfig"], context=params["context"]))
    try:
        resource = cluster.resource("v1", "Secret")
        ref = Ref("", "Secret", params["namespace"], params["name"])
        live = cluster.get(resource, ref) or {}
        texts = tls.decoded(live.get("data") or {})
        reason = tls.fault(texts, params["service"], params["namespace"])
        if reason:
            texts = tls.make(params["service"], params["namespace"])
        data = tls.encoded({key: texts[key] for key in tls.KEYS})
        if reason and not check_mode:
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": {"name": ref.name, "namespace": ref.namespace, "labels": params["labels"]},
                "data": data,
            }
            try:
                cluster.apply(resource, ref, body)
            except FieldConflict as exc:
                owners = ", ".join(sorted({owner for _field, owner in exc.clashes}))
                raise RdmaError(
                    f"{ref} belongs to {owners} and is no good: {reason}.", "Delete it, or mend it at its owner."
                ) from exc
    finally:
        cluster.close()
    values = {"tlsCa": data["ca.crt"], "tlsCert": data["tls.crt"], "tlsKey": data["tls.key"]}
    return {"changed": bool(reason), "reason": reason, "values_for_helm": values}


def main() -> None:
    """Read the parameters, run, and report."""
    needs = [("kubernetes >= 31", client.KUBERNETES_ERROR), ("cryptography", tls.CRYPTOGRAPHY_ERROR)]
    run_module(lambda module: run(module.params, check_mode=module.check_mode), ARGUMENT_SPEC, needs)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the certificate of an admission webhook in a Secret of the cluster.

Kept on purpose: the chart's method `auto` makes a new CA at every upgrade, and `certmanager` needs cert-manager.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: webhook_tls
short_description: Make the certificate of an admission webhook once and keep it in a Secret
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Internal to the playbooks of this collection. It can change in any release.
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
  - cryptography >= 41
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

from ..module_utils._cluster.requirements import spec_of
from ..module_utils._cluster.tls_run import NEEDS, run
from ..module_utils._module import run_module


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION), NEEDS)


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster's copy of plan.json beside the plan: what is in the way, and what the copy is to be."""

from __future__ import annotations

import os
import typing as t

from ..module_utils._errors import InputError, RdmaError
from ..module_utils._fabric.lock import LOCK, read_lock
from ..plugin_utils._plan.lock import parse_lock
from ..plugin_utils._plan.lock_copy import LockCopy
from ..plugin_utils._plan.store import read_text

DOCUMENTATION = r"""
name: lock_copy
short_description: Compare the cluster's copy of plan.json with the plan
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - The playbook C(railops.rdma.cluster) keeps a copy of C(plan.json) in the cluster, a ConfigMap. This filter says why
    the cluster must not be brought from the plan of that copy to this one, and what the ConfigMap is to be.
options:
  _input:
    description: The ConfigMap of that name, as a list; empty where there is none.
    type: list
    elements: dict
    required: true
  plan_dir:
    description: The folder of the plan.
    type: path
    required: true
  fabric:
    description: Name of the fabric.
    type: str
    required: true
  namespace:
    description: Namespace of the ConfigMap.
    type: str
    required: true
  release:
    description: Names of nodes that were released, C(fabric_release).
    type: list
    elements: str
    default: []
  allow_renumber:
    description: Whether nodes may get other addresses, C(fabric_allow_renumber).
    type: bool
    default: false
"""

EXAMPLES = r"""
---
- name: Refuse an older checkout
  ansible.builtin.assert:
    that: compared.problems | length == 0
    fail_msg: "{{ compared.problems | join(' ') }}"
  vars:
    compared: "{{ copy.resources | railops.rdma.lock_copy('plan/fabric', 'fabric', 'spiderpool') }}"
"""

RETURN = r"""
_value:
  description: C(problems), a list of sentences, and C(object), the ConfigMap.
  type: dict
"""


def lock_copy(
    found: t.Iterable[dict[str, t.Any]],
    plan_dir: str,
    fabric: str,
    namespace: str,
    release: t.Iterable[str] = (),
    allow_renumber: bool = False,
) -> dict[str, t.Any]:
    """Return what is in the way, and the ConfigMap.

    :param found: the objects of that name: one, or none.
    :param plan_dir: the folder of plan.json.
    :param namespace: of the ConfigMap.
    :param release: the names in fabric_release.
    :param allow_renumber: whether nodes may get other addresses.
    """
    copy = LockCopy(found, fabric, namespace)
    place = os.path.join(plan_dir, LOCK)
    try:
        read_lock(plan_dir)
        text = read_text(place)
        problems = copy.problems(parse_lock(text, place), release, allow_renumber=allow_renumber)
        wanted = copy.wanted(text)
    except InputError as exc:
        return {"problems": [str(one) for one in exc.problems], "object": {}}
    except RdmaError as exc:
        return {"problems": [str(exc)], "object": {}}
    return {"problems": [str(one) for one in problems], "object": wanted}


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"lock_copy": lock_copy}

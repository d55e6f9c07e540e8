# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which pools lend addresses, and to whom."""

from __future__ import annotations

import typing as t

from ..module_utils._cluster.pools import lent, users

DOCUMENTATION = r"""
name: pool_users
short_description: Tell the IP pools whose addresses pods hold, and the pods
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Returns one line for each SpiderIPPool that lends addresses, with the pods that hold them. Pods of the collection's
    own test application do not count, as they go with it.
options:
  _input:
    description: SpiderIPPools as the API stores them.
    type: list
    elements: dict
    required: true
  application:
    description: Namespace and name of the test application's DaemonSet (V(default/fabric-test)).
    type: str
    default: ""
"""

EXAMPLES = r"""
---
- name: Show who holds addresses
  ansible.builtin.debug:
    msg: "{{ pools.resources | railops.rdma.pool_users('default/fabric-test') }}"
"""

RETURN = r"""
_value:
  description: Lines as V(fabric-rail1-v4-node1 (172.17.0.3 by default/train-0)), sorted.
  type: list
  elements: str
"""


def pool_users(pools: t.Iterable[dict[str, t.Any]], application: str = "") -> list[str]:
    """Return a line for each pool that somebody else uses."""
    return sorted(f"{pool['metadata']['name']}{users(pool)}" for pool in pools if lent(pool, application))


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"pool_users": pool_users}

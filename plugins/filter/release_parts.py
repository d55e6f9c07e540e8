# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a rendered release runs and reads."""

from __future__ import annotations

import typing as t

from ..plugin_utils._release import checksums, custom_kinds, workloads

DOCUMENTATION = r"""
name: release_parts
short_description: Tell the workloads of a rendered Helm release, and the digests of what they read at their start
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Returns the Deployments and DaemonSets, as M(railops.rdma.cluster_wait) takes them, and the Helm values that
    annotate the pods of Spiderpool's parts with the digest of the ConfigMaps that they mount. Laid over the values of
    the release they make a changed configuration restart who reads it.
  - Returns the kinds of objects that only a cluster with their CRDs takes.
options:
  _input:
    description: The objects that C(helm template) prints.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
---
- name: Show what would be waited for
  ansible.builtin.debug:
    msg: "{{ (rendered.stdout | from_yaml_all | list | railops.rdma.release_parts).workloads }}"
"""

RETURN = r"""
_value:
  description: V(workloads), V(values), and V(kinds) that no Kubernetes has by itself.
  type: dict
"""


def release_parts(objects: t.Iterable[dict[str, t.Any] | None]) -> dict[str, t.Any]:
    """Return workloads, values and kinds."""
    rows = [row for row in objects if row]
    return {"workloads": workloads(rows), "values": checksums(rows), "kinds": custom_kinds(rows)}


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"release_parts": release_parts}

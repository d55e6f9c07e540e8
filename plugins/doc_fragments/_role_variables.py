# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This doc fragment is PRIVATE to the collection.

from __future__ import annotations


class ModuleDocFragment:
    """The option of modules that a host role calls."""

    DOCUMENTATION = r"""
options:
  variables_of:
    description:
      - The role whose variables give what the task does not - for an option C(NAME) the host's variable C(ROLE_NAME),
        where that is set. The roles of this collection call their modules so. The controller reads the variables.
    type: str
"""

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a fabric: the documentation of the module ippool_plan says their types, defaults, choices and keys.

The role's argument spec and defaults are made from it too, by tests/docs/options_doc.py.
"""

from __future__ import annotations

import typing as t

import yaml

from ...modules.ippool_plan import DOCUMENTATION

OPTIONS: dict[str, dict[str, t.Any]] = yaml.load(DOCUMENTATION, getattr(yaml, "CSafeLoader", yaml.SafeLoader))[
    "options"
]
"""Each fabric_* variable, by its name without the prefix."""
DEFAULTS: dict[str, t.Any] = {name: option.get("default") for name, option in OPTIONS.items()}
"""None: required, or it follows from another one."""
INJECT_KEYS: list[str] = OPTIONS["inject"]["suboptions"]["key"]["choices"]
RAIL_PREFIX = {4: 24, 6: 64}
NODE_PREFIX = {4: 27, 6: 64}
"""Defaults of the prefix lengths, by family."""

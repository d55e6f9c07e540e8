# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The specs of actions whose modules are documentation alone: no module's own check compares those two."""

from __future__ import annotations

import importlib

import pytest
import yaml

PLUGINS = "ansible_collections.railops.rdma.plugins"
ACTIONS = ("acceptance", "notice", "rail_discover", "rail_upgrade_info", "verdict", "verify_result")


def rows(options):
    """Return of each option what both sides say."""
    keys = ("type", "elements", "required", "choices", "default")
    return {
        name: {"type": "str", **{key: option[key] for key in keys if option.get(key) not in (None, False)}}
        for name, option in options.items()
    }


@pytest.mark.parametrize("name", ACTIONS)
def test_an_actions_spec_is_what_its_documentation_says(name):
    documented = yaml.safe_load(importlib.import_module(f"{PLUGINS}.modules.{name}").DOCUMENTATION)["options"]
    assert rows(importlib.import_module(f"{PLUGINS}.action.{name}").ARGUMENT_SPEC) == rows(documented)

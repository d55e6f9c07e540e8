# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the YAML files of the collection hold, for tests that template it by Ansible itself."""

from __future__ import annotations

import sys
import typing as t
from pathlib import Path

import ansible.template
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader

from ansible_collections.railops.rdma.plugins import filter as filters

CHECKOUT = Path(__file__).resolve().parents[2]
LOADER = DataLoader()
# ansible-core before 2.19 trusts every template and has no such argument.
TRUSTED = {"trusted_as_template": True} if hasattr(ansible.template, "trust_as_template") else {}
FILES: dict[str, t.Any] = {}
init_plugin_loader([])
# Tests import the collection as plain Python: this is what Ansible's own importer would have said of it.
vars(sys.modules["ansible_collections.railops.rdma"])["_collection_meta"] = {}
vars(filters)["__file__"] = str(CHECKOUT / "plugins/filter/__synthetic__")


def content(path: str) -> t.Any:
    """Return what a YAML file of the collection holds."""
    if path not in FILES:
        FILES[path] = LOADER.load_from_file(str(CHECKOUT / path), **TRUSTED)
    return FILES[path]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests hold objects and the device plugin's configuration to."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import INJECT_KEYS
from ansible_collections.railops.rdma.tests.admission.mutate import LABEL_POOL_CIDR

Json = dict[str, t.Any]
RESOURCE_NAME = re.compile(r"[a-zA-Z0-9_]+")
# What each selector may hold; nothing here: any texts.
_SELECTORS: t.Mapping[str, tuple[str, ...]] = {"ifNames": (), "linkTypes": ("ether", "infiniband")}


def server_fields_removed(obj: Json) -> Json:
    """Return the object without what the server adds to it: status, finalizer, its own labels and bookkeeping."""
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key in ("name", "namespace", "labels", "annotations") and value
    }
    labels = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if key not in (LABEL_POOL_CIDR, *INJECT_KEYS)
    }
    metadata.pop("labels", None)
    if labels:
        metadata["labels"] = labels
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def check_device_config(config: t.Any) -> list[str]:
    """Return the places of config.json that the RDMA shared device plugin refuses (k8s-rdma-shared-dev-plugin 1.5.3).

    Devices and the other selectors it takes, and the collection does not write them: they are refused, too.
    """

    def counts(number: t.Any) -> bool:
        return type(number) is int and number >= 0

    wrong = [] if counts(config.get("periodicUpdateInterval", 60)) else ["periodicUpdateInterval"]
    entries = config.get("configList")
    if not isinstance(entries, list) or not entries:
        return [*wrong, "configList"]
    names: set[str] = set()
    for index, entry in enumerate(entries):
        place, name = f"configList[{index}]", entry.get("resourceName")
        # A name is there once, whatever its prefix.
        if not isinstance(name, str) or not RESOURCE_NAME.fullmatch(name) or name in names:
            wrong.append(f"{place}.resourceName")
        names.add(str(name))
        if not counts(entry.get("rdmaHcaMax", 0)):
            wrong.append(f"{place}.rdmaHcaMax")
        if "devices" in entry or not entry.get("selectors"):
            wrong.append(place)
        for key, value in (entry.get("selectors") or {}).items():
            texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
            if not texts or key not in _SELECTORS or not set(value) <= set(_SELECTORS[key] or value):
                wrong.append(f"{place}.selectors.{key}")
    return wrong

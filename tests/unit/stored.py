# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests hold objects and the device plugin's configuration to."""

from __future__ import annotations

import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._errors import Problem
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import INJECT_KEYS
from ansible_collections.railops.rdma.tests.admission.mutate import LABEL_POOL_CIDR
from ansible_collections.railops.rdma.tests.admission.sriov import RESOURCE_NAME

Json = dict[str, t.Any]


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


def check_device_config(config: t.Any) -> list[Problem]:
    """Return what the RDMA shared device plugin would refuse of its config.json (k8s-rdma-shared-dev-plugin 1.5.3)."""
    problems: list[Problem] = []

    def problem(place: str, text: str, fix: str) -> None:
        problems.append(Problem(place, text, fix))

    interval = config.get("periodicUpdateInterval", 60)
    if isinstance(interval, bool) or not isinstance(interval, int) or interval < 0:
        problem("periodicUpdateInterval", f"{interval!r} is no number of seconds.", "Write 0 (off) or more.")
    entries = config.get("configList")
    if not isinstance(entries, list) or not entries:
        problem("configList", "no resources configuration found: the plugin exits.", "List at least one resource.")
        return problems
    names: set[str] = set()
    for index, entry in enumerate(entries):
        place = f"configList[{index}]"
        name = entry.get("resourceName")
        if not isinstance(name, str) or not RESOURCE_NAME.fullmatch(name):
            problem(f"{place}.resourceName", f"{name!r} is no resource name.", "Use letters, digits and underscores.")
        elif name in names:
            problem(f"{place}.resourceName", f"{name!r} is there twice.", "Names are unique whatever their prefix.")
        names.add(str(name))
        maximum = entry.get("rdmaHcaMax", 0)
        if isinstance(maximum, bool) or not isinstance(maximum, int) or maximum < 0:
            problem(f"{place}.rdmaHcaMax", f"{maximum!r} is no number of slots.", "Write 0 or more.")
        if entry.get("devices") and entry.get("selectors"):
            problem(place, "devices and selectors exclude each other.", "Use selectors.ifNames.")
        problems.extend(_selector_problems(entry.get("selectors") or {}, f"{place}.selectors"))
        if not entry.get("devices") and not entry.get("selectors"):
            problem(place, "it selects no device.", "Add selectors.ifNames.")
    return problems


_SELECTORS = ("vendors", "deviceIDs", "drivers", "ifNames", "linkTypes")


def _selector_problems(selectors: Json, place: str) -> list[Problem]:
    problems = []
    for key, value in selectors.items():
        if key not in _SELECTORS:
            problems.append(Problem(f"{place}.{key}", "no such selector.", f"Use one of {', '.join(_SELECTORS)}."))
        elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            problems.append(Problem(f"{place}.{key}", f"{value!r} is no list of strings.", "Write a list."))
        elif key == "linkTypes" and not set(value) <= {"ether", "infiniband"}:
            problems.append(Problem(f"{place}.{key}", f"{value!r} names no link type.", "Use ether or infiniband."))
    return problems

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for people: what a run changes, per node and rail, and the summary that a run ends with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import typing as t

from ...module_utils._fabric.lock import LOCK
from ...module_utils._fabric.numbers import vlan_interface
from ...module_utils._fabric.shapes import HostPlan, out_text
from ...module_utils._formatting import count, group_by, natural, shortened
from ...module_utils._intervals import size
from .._fabric.model import Block, Fabric, FabricPlan, range_text
from .._report.equal import ADDRESS, folded
from .._report.facts import PlanReport
from . import blocks as arithmetic
from .allocation import CHANGES, Allocation
from .lock import Entry
from .store import Change

LISTED = 20
SMALL = 400
"""Lines of a file that is still shown completely in the diff."""

OWN = re.compile(r"\bslot \d+|\bcable .*")

REPEATING = ("cluster/ippools.yaml", "switch/gateways.csv")
"""Files that say only what the lines of nodes and rails, or other files, say already."""


class View:
    """One side of the diff: the blocks of a plan, by zone name, and who is retired."""

    def __init__(self, fabric: Fabric | None, entries: t.Mapping[str, Entry]) -> None:
        self.entries = entries
        self.blocks = arithmetic.named_blocks(fabric) if fabric else {}
        self.pods = fabric is not None and fabric.pods_per_node != 0

    def lines(self, host_plans: t.Iterable[t.Any]) -> dict[str, list[str]]:
        """Write one line per node, and one per node and rail, of the host plans that are given."""
        found: dict[str, list[str]] = {}
        for data in host_plans:
            # An invalid host plan (edited manually) has nothing to show; it is written again.
            with contextlib.suppress(KeyError, TypeError):
                found[data["node"]] = self._node_lines(data)
        return {name: found[name] for name in sorted(found, key=natural)}

    def _node_lines(self, data: t.Mapping[str, t.Any]) -> list[str]:
        name = data["node"]
        zone, slot, _retired = self.entries.get(name, ("", data["slot"], False))
        where = f" of zone {zone}" if zone else ""
        reach = f", {data['policy']} {' '.join(data['rdma_prefixes'])}" if data["rdma_prefixes"] else ""
        mode = f" in RDMA mode {data['rdma_mode']}" if "rdma_mode" in data else ""
        found = [f"{name}: slot {slot}{where}, {data['network']}{mode}{reach}"]
        out = data.get("out_of_service") or {"rails": [], "reason": ""}
        for rail in sorted([*data["rails"], *out["rails"]], key=lambda rail: int(rail["index"])):
            interface = vlan_interface(rail["interface"], rail.get("vlan", 0))
            interface += f" ({rail['pci']})" if rail["pci"] else ""
            words = [f"{name} {rail['name']}: {interface} mtu {rail['mtu']}"]
            for address in rail["addresses"]:
                length = address["subnet"].partition("/")[2]
                words.append(
                    f"{address['address']}/{length}" + (f" by {address['gateway']}" if address["gateway"] else "")
                )
                words.append(self._pods(zone, rail["name"], address["family"], slot))
            cable = (data.get("cables") or {}).get(rail["name"]) or {}
            ends = [cable[key] for key in ("leaf", "port") if cable.get(key)]
            words.append(" ".join(["cable", *ends]) if ends else "")
            words.append(out_text(out["reason"]) if rail in out["rails"] else "")
            found.append(" ".join(word for word in words if word))
        return found

    def _pods(self, zone: str, rail: str, family: int, slot: int) -> str:
        block = self.blocks.get((zone, rail, family))
        return pods_text(block, slot) if self.pods and block is not None and block.per_node else ""

    def shared_lines(self) -> list[str]:
        """Write one line per rail whose pods share a pool, and one per retired slot."""
        found = []
        for (zone, rail, _family), block in self.blocks.items():
            where = f"zone {zone} " if zone else ""
            if not block.per_node:
                found.append(f"{where}{rail}: {block.subnet(0)} {pods_text(block, 0) if self.pods else ''}".rstrip())
        found += [
            f"{name}: slot {slot}" + (f" of zone {zone}" if zone else "") + " retired"
            for name, (zone, slot, retired) in self.entries.items()
            if retired
        ]
        return sorted(found, key=natural)


def pods_text(block: Block, slot: int) -> str:
    """Write the pod addresses of a slot or rail."""
    pods = block.pods(slot)
    return f"pods {','.join(range_text(block.family, span) for span in pods)}" if pods else "no pods"


def diff_of(
    before: View,
    after: View,
    change: Change,
    have: t.Mapping[str, str],
    made: t.Mapping[str, HostPlan],
    *,
    full: bool,
) -> list[dict[str, str]]:
    """Return the readable diff: first nodes and rails, then each small file of cluster/, switch/ and workload/.

    The first part has the names of other files: large ones (the pools say what the nodes' lines say), the report, and
    files that come or go.

    :param have: the present text by path.
    :param made: the new host plans by file name.
    :param full: whether files that come or go, and nodes with an equal change, are shown in full.
    """
    hosts = [path for path in (*change.written, *change.removed) if path.startswith("hosts/")]
    olds = before.lines(_parsed(have[path]) for path in hosts if path in have)
    news = after.lines(made[os.path.basename(path)] for path in hosts if path in change.written)
    # Ansible compares the two sides with difflib, which takes minutes when many equal lines lie between others.
    old, new = _without_equal(*_sides(olds, news, full=full))
    old_shared, new_shared = _without_equal(before.shared_lines(), after.shared_lines())
    others = {*change.written, *change.removed} - set(hosts)
    there = others if full else others & set(have) & set(change.written)
    small = {path for path in there if _is_small(path, have.get(path, ""), change.written.get(path, ""))}
    states = group_by(
        ("new file" if path not in have else "changed file" if path in change.written else "removed file", path)
        for path in sorted(others - small)
    )
    old += old_shared
    new += [*new_shared, *(f"{count(len(paths), state)}: {shortened(paths, 4)}" for state, paths in states.items())]
    texts = [(path, path, have.get(path, ""), change.written.get(path, "")) for path in sorted(small)]
    before_text, after_text = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    texts.insert(0, ("the present plan", "the new plan", before_text, after_text))
    return [dict(zip(("before_header", "after_header", "before", "after"), row, strict=True)) for row in texts]


def _sides(olds: dict[str, list[str]], news: dict[str, list[str]], *, full: bool) -> tuple[list[str], list[str]]:
    """Return the lines of all nodes; of nodes with an equal change the first node's, and one line for the others."""
    groups: dict[t.Any, list[str]] = {}
    for name in sorted({**olds, **news}, key=natural):
        key = name if full else tuple(tuple(_common(name, lines)) for lines in (olds.get(name, ()), news.get(name, ())))
        groups.setdefault(key, []).append(name)
    old: list[str] = []
    new: list[str] = []
    for first, *others in groups.values():
        old += olds.get(first, [])
        new += news.get(first, [])
        more = [f"{folded(others)}: as {first}, each with its own slot and addresses"] if others else []
        new += more if first in news else []
        old += more if first not in news else []
    return old, new


def _common(name: str, lines: t.Iterable[str]) -> t.Iterator[str]:
    """Yield lines of a node without what is its own: name, slot, addresses and cables."""
    for line in lines:
        yield OWN.sub("@", ADDRESS.sub("@", line[len(name) :]))


def _parsed(text: str) -> t.Any:
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return None


def _without_equal(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    same = set(old) & set(new)
    return [line for line in old if line not in same], [line for line in new if line not in same]


def _is_small(path: str, *texts: str) -> bool:
    repeats = path in REPEATING or not path.startswith(("cluster/", "switch/", "workload/"))
    return not repeats and all(text.count("\n") <= SMALL for text in texts)


def summary_of(plan: FabricPlan, allocation: Allocation) -> dict[str, t.Any]:
    """Return what a run did, as data; `text` says it in sentences."""
    fabric, report, pods = plan.fabric, PlanReport(plan), plan.fabric.attached.pods
    lines = [
        f"Fabric {fabric.name}: {count(len(plan.nodes), 'node')}, {count(len(fabric.rails), 'rail')}, "
        f"{f'{fabric.mode}, ' if plan.blocks else ''}{fabric.reached}."
    ]
    if plan.blocks:
        lines.append(f"Networks {shortened([str(prefix) for prefix in report.rdma])}.")
        lines.extend(_shape(block, pods) for block in plan.blocks if block.zone == 0 and block.rail == 0)
        lines.extend([f"{count(report.pools, 'pool')}."] if pods else [])
    else:
        lines.append("No addresses: InfiniBand by LID only.")
    for zone in report.zones:
        used, retired, free, slots = zone.slots
        where = f"Zone {zone.name}: " if zone.name else ""
        and_retired = f" and {retired} retired" if retired else ""
        lines.append(f"{where}{used}{and_retired} of {slots} slots used, room for {free} more.")
    for key, verb in CHANGES.items():
        if names := allocation.changes[key]:
            lines.append(f"{verb}: {(shortened if key in ('renamed', 'moved') else folded)(names, LISTED)}.")
    counts = {"nodes": len(plan.nodes), "rails": len(fabric.rails), "pools": report.pools}
    return {"fabric": fabric.name, **counts, **allocation.changes, "text": lines}


def _shape(block: Block, attached: bool) -> str:
    """Describe the subnets of a block.

    :param attached: whether pods get to the rails.
    """
    where = "and so on, one per node and rail" if block.per_node else f"on the first rail: {count(block.slots, 'node')}"
    if not attached or block.subnet_size == 2:
        return f"{block.subnet(0)} {where}."
    pods = count(size(block.pod_offsets), "pod address", "pod addresses")
    if not block.per_node:
        return f"{block.subnet(0)} {where}, {pods}."
    left = "network, broadcast, gateway and node" if block.gateway_offset is not None else "network, broadcast and node"
    why = f" (of {block.subnet_size}, less {left})" if block.family == 4 else ""
    return f"{block.subnet(0)} {where}: {pods} each{why}."


def changes_text(summary: t.Mapping[str, t.Any], change: Change, *, numbers: bool) -> str:
    """Say in one sentence what a locked plan would have changed.

    :param numbers: whether slots or what decides addresses change, not only how the plan is written.
    """
    parts = [f"{len(summary[key])} {key}" for key in CHANGES if summary[key]]
    files: t.Sequence[str] = sorted([*change.written, *change.removed])
    stays = "no node is renumbered" if parts and not summary["moved"] else "numbers change"
    what = stays if numbers else "no number changes, only files do, as a newer version may write them"
    return f"{what}; nodes: {', '.join(parts) or 'the same'}; files: {shortened(files, 5) or LOCK}"

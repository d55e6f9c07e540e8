# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What marks an object, a node, a route or a file as ours, and what others' programs go by, is spelled once in code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from ansible_collections.railops.rdma.plugins.module_utils._cluster import gate
from ansible_collections.railops.rdma.plugins.module_utils._cluster.nodes import PURPOSES, note_of
from ansible_collections.railops.rdma.plugins.module_utils._fabric import labels, lock, numbers
from ansible_collections.railops.rdma.plugins.module_utils._route.model import PROTOCOL
from ansible_collections.railops.rdma.plugins.plugin_utils import _release
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import INJECT_KEYS
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.files import VERDICT
from ansible_collections.railops.rdma.tests.admission.mutate import LABEL_POOL_CIDR

CHECKOUT = Path(__file__).resolve().parents[2]
PLUGINS = CHECKOUT / "plugins"
MARK = re.compile(r"[a-z0-9.-]*(?:railops|spidernet|cncf|openshift|multus-cni)\.io(?:/[A-Za-z0-9_-]+)?")
# What is no text of its own but the name of a thing that is ours, or a number that is.
WHOLE = {lock.LOCK, VERDICT, numbers.MANAGER, labels.LABEL_MANAGER, labels.HOSTNAME}
OUR_NUMBERS = {PROTOCOL, numbers.TABLES[0], numbers.PRIORITIES[0], numbers.TEST_PORT}
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}

# Marks that only roles make, each in the role's vars/main.yml.
OF_ROLES = {"railops.io/disabled-plugins"}
IN_CODE = {
    *(
        labels.SPIDERPOOL,
        labels.SRIOV,
        labels.LABEL_FABRIC,
        labels.PROBE_LABEL,
        labels.RUN_LABEL,
        labels.RESOURCE,
        labels.NETWORK[0],
        labels.NETWORK_RESOURCE,
    ),
    *(
        labels.POD_NETWORKS,
        labels.POD_STATUS,
        "v1.multus-cni.io/default-network",
        labels.ZONE_LABEL,
        labels.LEAF_LABEL,
        labels.OURS,
    ),
    *(labels.OUR_NODES, labels.RESOURCE_PREFIX, *INJECT_KEYS, gate.NOTE, labels.GATE_TAINT["key"], _release.ANNOTATION),
    *(note_of(purpose) for purpose in (*PURPOSES, "PURPOSE")),
    LABEL_POOL_CIDR,
}
GROUPS = {name.partition("/")[0] for name in (labels.SPIDERPOOL, labels.SRIOV, labels.NETWORK[0])}
# What documents show of a fabric's own names: a resource, a node's label, the webhook's name.
SHOWN = re.compile(
    rf"{re.escape(labels.RESOURCE_PREFIX)}/\w+|{re.escape(labels.OUR_NODES)}/fabric\b|{labels.LEAF_LABEL}?.*|"
    rf"pods\.({'|'.join(map(re.escape, GROUPS))})"
)


def constants(path: Path) -> list[ast.Constant]:
    """Return the constants of a file, without docstrings and without a plugin's documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            said.add(node.value)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in DOCUMENTATION:
            said |= set(ast.walk(node.value))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in said]


def spelled() -> Counter[str]:
    """Return how often code spells each mark, with the files where it does."""
    found: Counter[str] = Counter()
    for path in sorted(PLUGINS.rglob("*.py")):
        for node in constants(path):
            if isinstance(node.value, str):
                found.update({node.value} & WHOLE or MARK.findall(node.value))
            elif isinstance(node.value, int) and {node.value} & OUR_NUMBERS:
                # A range says where it begins twice, on one line.
                found[f"{path.relative_to(PLUGINS)} {node.value}"] = 1
    return found


def test_code_spells_no_mark_twice():
    found = spelled()
    assert {name: times for name, times in found.items() if times > 1} == {}
    homes = {name for name in found if name.rpartition(" ")[2].isdigit()}
    assert sorted(int(home.rpartition(" ")[2]) for home in homes) == sorted(OUR_NUMBERS), homes
    assert found.keys() >= WHOLE


def test_roles_and_documents_spell_marks_as_code_does():
    wrong = {}
    places = (
        "roles/**/*.yml",
        "roles/**/*.j2",
        "playbooks/*.yml",
        "docs/*.md",
        "plugins/**/*.py",
        "plugins/filter/*.yml",
        "README.md",
    )
    for path in (path for place in places for path in CHECKOUT.glob(place)):
        found = {mark.rstrip("-") for mark in MARK.findall(path.read_text(encoding="utf-8"))}
        known = {*IN_CODE, *GROUPS, *(key.partition("/")[0] for key in INJECT_KEYS), *OF_ROLES}
        left = {mark for mark in found - known if not SHOWN.fullmatch(mark)}
        wrong |= {str(path.relative_to(CHECKOUT)): left} if left else {}
    assert wrong == {}


def test_roles_spell_their_own_marks_once():
    texts = {path: path.read_text(encoding="utf-8") for path in (CHECKOUT / "roles").rglob("*.yml")}
    for mark in OF_ROLES:
        assert [text.count(mark) for text in texts.values() if mark in text] == [1]

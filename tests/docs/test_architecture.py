# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/project/architecture.md: its tables have every package, and its rules for imports hold."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PLUGINS = CHECKOUT / "plugins"
PAGE = (CHECKOUT / "docs/project/architecture.md").read_text(encoding="utf-8")
# ansible-core's own place for exceptions from its sanity tests, and what tests leave behind.
NO_PACKAGES = ("tests/sanity", "tests/output")
# Layers whose folders are packages; a file beside the packages serves all of them.
LAYERS = ("module_utils", "plugin_utils")
# The layers that each layer may import; packages of one layer may import each other in one direction.
MAY_IMPORT = {
    "module_utils": {"module_utils"},
    "plugin_utils": {"plugin_utils", "module_utils"},
    "modules": {"module_utils"},
    "callback": {"plugin_utils", "module_utils"},
    "filter": {"plugin_utils", "module_utils"},
    # The specs of modules, to check arguments on the controller.
    "action": {"plugin_utils", "module_utils", "modules"},
    "doc_fragments": set(),
}
# The documentation of a module says the fabric's options, also to the planner.
DOCUMENTED = {(("plugin_utils", "_fabric", "options"), ("modules", "ippool_plan"))}
PURE = (
    "module_utils/_errors.py",
    "module_utils/_validation.py",
    "module_utils/_fabric/n*.py",
    "plugin_utils/_fabric/*.py",
    "module_utils/*/plan.py",
    "module_utils/*/*_plan.py",
    "module_utils/*/model.py",
    "module_utils/*/checks.py",
)
# Libraries that read or change a system; socket is allowed for the numbers of address families.
THIN = {"ansible", "kubernetes", "pyroute2", "requests", "shutil", "subprocess", "urllib"}


def imported(path: Path) -> set[tuple[str, ...]]:
    """Return what a file imports: of the collection the parts of the path below plugins/, of others the top package."""
    here = path.relative_to(PLUGINS).with_suffix("").parts
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(alias.name.split(".")[0],) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert "railops" not in (node.module or ""), f"{path}: imports inside of the collection are relative"
            found.add(((node.module or "").split(".")[0],))
        elif isinstance(node, ast.ImportFrom):
            base = (*here[: -node.level], *(node.module.split(".") if node.module else ()))
            found |= {(*base, alias.name) if PLUGINS.joinpath(*base).is_dir() else base for alias in node.names}
    return found


def package(parts: tuple[str, ...]) -> str:
    """Return the package of a file, by the parts of its path below plugins/: its folder in LAYERS, else its layer."""
    return "/".join(parts[:2]) if parts[0] in LAYERS else parts[0]


FILES = {path.relative_to(PLUGINS).with_suffix("").parts: imported(path) for path in sorted(PLUGINS.rglob("*.py"))}


def test_every_package_is_in_the_tables():
    folders = [path for path in (CHECKOUT / "tests").iterdir() if path.is_dir()]
    names = {str(path.relative_to(CHECKOUT)) for path in folders if path.name != "__pycache__"} - set(NO_PACKAGES)
    assert [name for name in sorted(names) if f"`{name}/" not in PAGE] == []
    assert [name for name in sorted(MAY_IMPORT) if name != "doc_fragments" and f"plugins/{name}/" not in PAGE] == []
    packages = {f"{parts[0]}/{parts[1]}" for parts in FILES if len(parts) == 3 and parts[0] in LAYERS}
    assert [name for name in sorted(packages) if f"`{name.partition('/')[2]}/`" not in PAGE] == []


def test_no_import_goes_upwards():
    wrong = {
        f"{'/'.join(parts)} imports {'/'.join(target)}"
        for parts, targets in FILES.items()
        for target in targets
        if len(target) > 1 and target[0] not in MAY_IMPORT[parts[0]] and (parts, target) not in DOCUMENTED
    }
    assert wrong == set()


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """Return packages that import each other in a circle, or None."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as exc:
        return list(exc.args[1])
    return None


def test_packages_import_each_other_in_one_direction():
    graph: dict[str, set[str]] = {}
    for parts, targets in FILES.items():
        graph.setdefault(package(parts), set()).update(package(target) for target in targets if len(target) > 1)
    for name, targets in graph.items():
        targets.discard(name)
    assert circle(graph) is None
    graph["module_utils/_errors"] = {"modules"}
    assert circle(graph) is not None, "a circle is not found"


def test_files_import_each_other_in_one_direction():
    graph = {
        "/".join(parts): {"/".join(target) for target in targets & FILES.keys()} for parts, targets in FILES.items()
    }
    assert circle(graph) is None


@pytest.mark.parametrize("pattern", PURE)
def test_deciding_code_reads_nothing(pattern):
    found = {path: imported(path) & {(name,) for name in THIN} for path in PLUGINS.glob(pattern)}
    assert found
    assert {str(path): names for path, names in found.items() if names} == {}

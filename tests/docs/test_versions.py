# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One version everywhere, and what says when it was added was released then or will be with this version."""

from __future__ import annotations

import re
import typing as t

import known
from blocks import CHECKOUT

RELEASES: dict[str, t.Any] = known.load(CHECKOUT / "changelogs/changelog.yaml")["releases"]
VERSION: str = known.load(CHECKOUT / "galaxy.yml")["version"]
SAID = re.compile(r"^( *)version_added: *[\"']?([\d.]+)", re.MULTILINE)


def released(name: str, kind: str) -> list[str]:
    """Return the names that a release brought, of the kind `modules`, `filter` or `role`."""
    release = RELEASES[name]
    places = (release, release.get("plugins", {}), release.get("objects", {}))
    return [entry["name"] for place in places for entry in place.get(kind, [])]


def added() -> t.Iterator[tuple[str, str, list[str]]]:
    """Yield kind, name and the versions that each plugin and role says, its own one first."""
    for kind, pattern in (("modules", "plugins/modules/*.py"), ("filter", "plugins/filter/*.yml")):
        for path in sorted(CHECKOUT.glob(pattern)):
            said = [version for _indent, version in SAID.findall(path.read_text(encoding="utf-8"))]
            if not path.name.startswith("_"):
                yield kind, path.stem, said
    for path in sorted(CHECKOUT.glob("roles/*/meta/argument_specs.yml")):
        yield "role", path.parts[-3], [found[1] for found in SAID.findall(path.read_text(encoding="utf-8"))]


def test_every_plugin_and_role_says_the_release_that_brought_it():
    wrong = []
    for kind, name, said in added():
        own = next((release for release in RELEASES if name in released(release, kind)), VERSION)
        if said[:1] != [own]:
            wrong.append(f"{kind} {name} says {said[:1]}, it came with {own}")
        wrong += [f"{kind} {name}: {version}" for version in said if version not in {*RELEASES, VERSION}]
    assert wrong == []


def test_every_file_that_names_the_version_names_this_one():
    wrong = {}
    for name in ("README.md", "execution-environment.yml"):
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        wrong |= {name: set(re.findall(r"railops-rdma-(\d[\w.]*?)\.tar\.gz", text)) - {VERSION}}
    settings = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    wrong["pyproject.toml"] = set(re.findall(r'^version = "(.*)"', settings, re.MULTILINE)) - {VERSION}
    assert {name: found for name, found in wrong.items() if found} == {}

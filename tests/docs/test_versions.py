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
VERSION_ADDED = re.compile(r"^( *)version_added: *[\"']?([\d.]+)", re.MULTILINE)


def added() -> t.Iterator[tuple[str, list[str]]]:
    """Yield each plugin and role with the versions that it says, its own one first."""
    patterns = ("plugins/modules/*.py", "plugins/filter/*.yml", "roles/*/meta/argument_specs.yml")
    for path in sorted(path for pattern in patterns for path in CHECKOUT.glob(pattern)):
        if not path.name.startswith("_"):
            found = VERSION_ADDED.findall(path.read_text(encoding="utf-8"))
            yield str(path.relative_to(CHECKOUT)), [version for _indent, version in found]


def test_every_plugin_and_role_says_a_release_that_brought_it():
    """A new plugin comes with the version of galaxy.yml; one without a version has no documentation."""
    assert [name for name, versions in added() if not versions or not {*versions} <= {*RELEASES, VERSION}] == []


def test_every_file_that_names_the_version_names_this_one():
    wrong = {}
    for name in ("README.md", "execution-environment.yml"):
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        wrong |= {name: set(re.findall(r"railops-rdma-(\d[\w.]*?)\.tar\.gz", text)) - {VERSION}}
    settings = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    wrong["pyproject.toml"] = set(re.findall(r'^version = "(.*)"', settings, re.MULTILINE)) - {VERSION}
    assert {name: found for name, found in wrong.items() if found} == {}

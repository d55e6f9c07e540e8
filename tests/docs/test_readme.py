# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links of README in a checkout and in a build."""

from __future__ import annotations

import re
import shutil

import build
import yaml
from blocks import CHECKOUT

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
AT = "https://git.example/railops/rdma"


def prepared(tmp_path, repository):
    """Return README and galaxy.yml as a build with this repository has them."""
    for name in ("README.md", "galaxy.yml"):
        shutil.copy2(CHECKOUT / name, tmp_path)
    build.prepare(tmp_path, repository)
    return (tmp_path / "README.md").read_text(encoding="utf-8"), yaml.safe_load(
        (tmp_path / "galaxy.yml").read_text(encoding="utf-8")
    )


def test_a_build_without_the_repository_changes_nothing(tmp_path):
    plain, about = prepared(tmp_path, "")
    assert plain == README
    assert "repository" not in about


def test_a_build_with_the_repository_has_absolute_links_to_what_exists(tmp_path):
    assert len(build.relative(README)) > 30
    linked, about = prepared(tmp_path, AT)
    assert build.relative(linked) == []
    assert about["repository"] == AT
    targets = re.findall(rf"\]\({AT}/(?:blob|raw)/{re.escape(about['version'])}/([^)]+)\)", linked)
    assert sorted(targets) == sorted(build.relative(README))
    assert [name for name in targets if not (CHECKOUT / name.partition("#")[0]).exists()] == []
    assert f"({AT}/raw/{about['version']}/docs/images/rails.svg)" in linked


def outline(text):
    """Return what a translation keeps: levels of headings, links in order, and code without comments."""
    code = re.findall(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = [len(found) for found in re.findall(r"^(#+) ", rest, re.MULTILINE)]
    links = sorted(link for link in re.findall(r"\]\(([^)]+)\)", rest) if not link.startswith("README"))
    return headings, links, sorted(set(re.findall(r"`[^`]+`", rest))), [re.sub(r" +# .*", "", block) for block in code]


def test_the_chinese_readme_has_the_same_headings_links_and_commands():
    chinese = (CHECKOUT / "README.zh-CN.md").read_text(encoding="utf-8")
    assert outline(chinese) == outline(README)
    assert len(README.splitlines()) < 180

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The links of README in a checkout and in a build."""

from __future__ import annotations

import re
import shutil

import build
import pytest
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


def test_a_relative_link_that_is_left_ends_the_build(tmp_path):
    shutil.copy2(CHECKOUT / "galaxy.yml", tmp_path)
    (tmp_path / "README.md").write_text('<img src="docs/x.svg">', encoding="utf-8")
    with pytest.raises(SystemExit, match="relative links"):
        build.prepare(tmp_path, AT)


def test_what_is_no_address_of_a_repository_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"REPOSITORY=git\.example"):
        prepared(tmp_path, "git.example")


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

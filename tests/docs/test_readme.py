# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""README where no page lies beside it, its picture, and that nothing is said which only the owner could know."""

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


def test_both_builds_have_no_relative_link(tmp_path):
    assert build.relative(README) == []
    plain, about = prepared(tmp_path, "")
    assert plain == README
    assert "repository" not in about
    linked, about = prepared(tmp_path, AT)
    assert build.relative(linked) == []
    assert about["repository"] == AT


def test_a_build_with_the_repository_links_every_page_that_is_there(tmp_path):
    linked, about = prepared(tmp_path, AT)
    targets = re.findall(rf"\]\({AT}/(?:blob|raw)/{re.escape(about['version'])}/([^)]+)\)", linked)
    assert [name for name in targets if not (CHECKOUT / name).exists()] == []
    assert {f"docs/{path.name}" for path in CHECKOUT.glob("docs/*.md")} <= set(targets)
    assert "docs/images/rails.svg" in targets
    assert not build.PAGE.search(linked), "a page is left as text"


@pytest.mark.parametrize("text", ["see [errors](docs/errors.md)", "![x](docs/x.png)", '<img src="docs/x.svg">'])
def test_a_relative_link_ends_the_build(tmp_path, text):
    shutil.copy2(CHECKOUT / "galaxy.yml", tmp_path)
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="relative links"):
        build.prepare(tmp_path, "")


def test_what_is_no_address_of_a_repository_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"REPOSITORY=git\.example"):
        prepared(tmp_path, "git.example")

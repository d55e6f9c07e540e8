# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages, plugins, roles and playbooks use the field's terms: words.yml lists the words to replace."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from blocks import CHECKOUT

TERMS = yaml.safe_load(Path(__file__).with_name("words.yml").read_text(encoding="utf-8"))
PATTERN = re.compile(rf"(?<![\w`-])({'|'.join(map(re.escape, TERMS))})(?![\w`-])", re.IGNORECASE)
FOLDERS = (".github", "docs", "inventory", "meta", "molecule", "playbooks", "plugins", "roles")
# A program makes these pages of messages and of reports of real runs.
GENERATED = {"docs/reference/errors.md", "docs/reference/checks.md", "docs/project/test-evidence.md"}


def test_pages_plugins_and_roles_use_the_terms_of_the_field():
    paths = [CHECKOUT / "README.md", CHECKOUT / "Makefile"]
    paths += [path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*") if path.is_file()]
    wrong = [
        f"{path.relative_to(CHECKOUT)}:{number}: '{found[0]}': write {TERMS[found[0].lower()]}"
        for path in paths
        if path.suffix in ("", ".j2", ".md", ".py", ".yml") and str(path.relative_to(CHECKOUT)) not in GENERATED
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for found in PATTERN.finditer(line)
    ]
    assert not wrong, "\n".join(wrong)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the tarball into dist/, of what git knows.

    build.py [REPOSITORY]    e.g. https://git.example/railops/rdma

README names pages as text (`docs/errors.md`), since Galaxy shows it where no page lies beside it. With the address of
the repository each becomes a link to the page of this version's tag, the picture is shown, and galaxy.yml gets the
key `repository`. Without it nothing is changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

import env

# Pages and folders that README names in backticks, and the picture, named so on a line of its own.
PAGE = re.compile(r"(?<!\[)`((?:docs|inventory|roles)/[\w./-]+|[A-Z_]+\.md|COPYING)`")
PICTURE = re.compile(r"^(Picture: )`(docs/images/[\w-]+\.svg)`.*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=[\"']([^\"']+)")


def linked(text: str, repository: str, version: str) -> str:
    """Return README with absolute links.

    :param text: README as it lies in the repository.
    :param repository: where the repository can be read, as https://HOST/PATH.
    :param version: the version that is built; its tag is the version itself.
    """
    at = repository.rstrip("/")
    shown = PICTURE.sub(
        lambda found: f"![What a rail is, and what each step changes]({at}/raw/{version}/{found[2]})", text
    )
    return PAGE.sub(lambda found: f"[`{found[1]}`]({at}/blob/{version}/{found[1]})", shown)


def relative(text: str) -> list[str]:
    """Return the links and pictures of a page that lead nowhere but in a checkout."""
    found = ["".join(pair) for pair in LINK.findall(text)]
    return [link for link in found if not link.startswith(("https://", "http://", "mailto:", "#"))]


def prepare(tree: Path, repository: str) -> None:
    """Put the address of the repository into README and galaxy.yml of a copy.

    :raises SystemExit: it is no address, or README still has a relative link.
    """
    readme, about = tree / "README.md", tree / "galaxy.yml"
    text, facts = readme.read_text(encoding="utf-8"), about.read_text(encoding="utf-8")
    version = t.cast("re.Match[str]", re.search(r"^version: (\S+)$", facts, re.MULTILINE))[1]
    if repository and not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[\w.~-]+)+/?", repository):
        sys.exit(f"REPOSITORY={repository} is no address of a repository, such as https://git.example/railops/rdma")
    if repository:
        text = linked(text, repository, version)
        readme.write_text(text, encoding="utf-8")
        about.write_text(f"{facts.rstrip()}\nrepository: {repository}\n", encoding="utf-8")
    if left := relative(text):
        sys.exit(f"README.md has relative links, which break on Galaxy: {', '.join(left)}")


def main() -> None:
    """Copy, prepare, build."""
    repository = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as work:
        tree = env.copy(Path(work))
        prepare(tree, repository)
        galaxy = [str(env.runtime() / "ansible-galaxy"), "collection", "build", "--force"]
        subprocess.run([*galaxy, "--output-path", str(env.CHECKOUT / "dist"), str(tree)], check=True)


if __name__ == "__main__":
    main()

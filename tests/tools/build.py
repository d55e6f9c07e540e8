# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the tarball into dist/, of what git knows.

    build.py [REPOSITORY]    e.g. https://git.example/railops/rdma

README has relative links and pictures, which lead nowhere on Galaxy. With the address of the repository each becomes an
absolute one, to the tag of this version, and galaxy.yml gets the key `repository`. Without it nothing is changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

import env

LINK = re.compile(r"(!?)(\[[^\]]*\])\(([^)\s]+)\)")
ABSOLUTE = ("https://", "http://", "mailto:", "#")


def linked(text: str, repository: str, version: str) -> str:
    """Return README with absolute links.

    :param text: README of the repository.
    :param repository: the repository's address, as https://HOST/PATH.
    :param version: the version that is built; its tag has the same name.
    """

    def absolute(found: re.Match[str]) -> str:
        if found[3].startswith(ABSOLUTE):
            return found[0]
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}{found[2]}({repository.rstrip('/')}/{kind}/{version}/{found[3]})"

    return LINK.sub(absolute, text)


def relative(text: str) -> list[str]:
    """Return the links and pictures of a page that work in a checkout only."""
    found = [found[3] for found in LINK.finditer(text)]
    found += re.findall(r"(?:src|href)=[\"']([^\"']+)", text)
    return [link for link in found if not link.startswith(ABSOLUTE)]


def prepare(tree: Path, repository: str) -> None:
    """Put the address of the repository into README and galaxy.yml of a copy.

    :raises SystemExit: the address is not valid, or README still has a relative link.
    """
    readme, about = tree / "README.md", tree / "galaxy.yml"
    text, facts = readme.read_text(encoding="utf-8"), about.read_text(encoding="utf-8")
    version = t.cast("re.Match[str]", re.search(r"^version: (\S+)$", facts, re.MULTILINE))[1]
    if repository and not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[\w.~-]+)+/?", repository):
        sys.exit(f"REPOSITORY={repository} is no address of a repository, such as https://git.example/railops/rdma")
    if not repository:
        return
    text = linked(text, repository, version)
    if left := relative(text):
        sys.exit(f"README.md has relative links, which break on Galaxy: {', '.join(left)}")
    readme.write_text(text, encoding="utf-8")
    about.write_text(f"{facts.rstrip()}\nrepository: {repository}\n", encoding="utf-8")


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

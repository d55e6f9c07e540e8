# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the documentation site into dist/site: README, docs/ and the reference of roles, modules and filters.

site.py              build it; a warning or a dead internal link is an error
site.py --external   check the links to other sites

The Markdown pages stay as they are in the repository: docs/index.md is also the site's navigation.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import env

OUTPUT = env.CHECKOUT / "dist/site"
PAGES = (
    *("*.md", "docs/*.md", "docs/*/*.md", "docs/images/*", "docs/monitoring/*", "docs/*/*.json"),
    *("docs/example-plan/fabric/report.md", "inventory/README.md", "COPYING"),
)
PLUGINS = "docs/plugins"
# antsibull-docs writes of each plugin where Galaxy has the collection; it is not there.
NOTE = re.compile(r"\.\. Collection note\n.*?(?=\.\. version_added)", re.DOTALL)
# Labels of Ansible's own documentation, which is not asked for them.
FOREIGN = re.compile(
    r":ref:`(?!ansible_collections\.railops)([^`<]+?)(?:\s*<(?!ansible_collections\.railops)[^`>]+>)?`"
)
STYLE = """td, th { min-width: 6rem; } .table-wrapper { overflow-x: auto; } img { max-width: 100%; }
@media (max-width: 30rem) { h1 { font-size: 2rem; } }
"""


def sections(index: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the sections of docs/index.md, each with title and path of its pages."""
    parts = re.split(r"^## (.+)$", index, flags=re.MULTILINE)[1:]
    found = zip(parts[::2], parts[1::2], strict=True)
    return [(title, re.findall(r"^- \[(.+)\]\((\S+\.md)\)", body, re.MULTILINE)) for title, body in found]


def tree(caption: str, paths: t.Iterable[str]) -> str:
    """Return the navigation of one section."""
    lines = "\n".join(path.removesuffix(".md") for path in paths)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"


def plugins(folder: Path, programs: Path) -> list[str]:
    """Write the pages of roles, modules and filters; return their names."""
    folder.mkdir(parents=True)
    words = ["collection", "--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(folder)]
    settings = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(env.tree()),
    }
    subprocess.run([programs / "antsibull-docs", *words, "railops.rdma"], env=settings, check=True)
    for name in ("index", "changelog", "environment_variables"):
        (folder / f"{name}.rst").unlink(missing_ok=True)
    for page in folder.glob("*.rst"):
        text = page.read_text(encoding="utf-8").replace(":orphan:\n", "")
        text = re.sub(r"\.\. contents::\n( +:.*\n)+", "", text)
        page.write_text(FOREIGN.sub(r"\1", NOTE.sub("", text)), encoding="utf-8")
    kinds = ("role", "module", "callback", "filter")
    return [page.stem for kind in kinds for page in sorted(folder.glob(f"*_{kind}.rst"))]


def source(folder: Path, programs: Path) -> list[tuple[str, str]]:
    """Copy the pages with their paths, README as the first one; return title and path of all that docs/index.md has."""
    for name in env.files(*(f":(glob){pattern}" for pattern in PAGES)):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(env.CHECKOUT / name, target)
    (folder / "static").mkdir()
    (folder / "static/site.css").write_text(STYLE, encoding="utf-8")
    # A role's page of the site has the table of its README.
    for page in folder.rglob("*.md"):
        text = re.sub(r"[./]*roles/(\w+)/README\.md", rf"/{PLUGINS}/\1_role.rst", page.read_text(encoding="utf-8"))
        page.write_text(re.sub(r"\]\((\.\./)*README\.md", "](/index.md", text), encoding="utf-8")
    listed = sections((folder / "docs/index.md").read_text(encoding="utf-8"))
    trees = [tree(title, (f"docs/{path}" for _name, path in pages)) for title, pages in listed]
    trees.append(tree("Roles, modules, filters", (f"{PLUGINS}/{name}" for name in plugins(folder / PLUGINS, programs))))
    others = [str(path.relative_to(folder)) for path in folder.glob("*.md") if path.stem != "README"]
    extra = ["docs/index.md", "inventory/README.md", "docs/example-plan/fabric/report.md"]
    trees.append(tree("More", [*extra, *sorted(others)]))
    first = folder / "README.md"
    (folder / "index.md").write_text(first.read_text(encoding="utf-8") + "".join(trees), encoding="utf-8")
    first.unlink()
    return [(title, f"docs/{path}") for _section, pages in listed for title, path in pages]


def llms(folder: Path, pages: list[tuple[str, str]]) -> str:
    """Return llms.txt: each page with the first sentence of its text."""
    lines = ["# railops.rdma", "", "> Plan, configure and verify the RDMA networks of a GPU cluster with Ansible.", ""]
    for title, path in pages:
        body = (folder / path).read_text(encoding="utf-8").partition("\n\n")[2]
        first = re.split(r"(?<=\.)\s", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", body), maxsplit=1)[0]
        lines.append(f"- [{title}]({path.removesuffix('.md')}.html): {' '.join(first.split())}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Build the site, or check its links to other sites."""
    external = sys.argv[1:] == ["--external"]
    programs = env.site()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "source"
        pages = source(folder, programs)
        builder = ["-b", "linkcheck"] if external else ["-b", "html", "-W", "--keep-going"]
        shutil.rmtree(OUTPUT, ignore_errors=True)
        output = Path(work) / "links" if external else OUTPUT
        words = ["-q", "-j", "2", "-c", str(Path(__file__).parent), "-D", f"html_static_path={folder / 'static'}"]
        argv = [programs / "python", "-m", "sphinx", *builder, *words, str(folder), str(output)]
        done = subprocess.run(argv, check=False)
        if done.returncode:
            sys.exit(done.returncode)
        if not external:
            (OUTPUT / "llms.txt").write_text(llms(folder, pages), encoding="utf-8")
            print(f"{OUTPUT / 'index.html'}")


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the documentation holds: code blocks by language, commands, and `code` within sentences."""

from __future__ import annotations

import re
import shlex
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
# Commands, and what people see: text is never run.
COMMANDS = ("console", "sh")
LANGUAGES = (*COMMANDS, "text", "yaml")
# They are made from the code.
GENERATED = ("docs/reference/errors.md", "docs/reference/checks.md", "docs/project/test-evidence.md")
SHELL_WORDS = ("for", "while", "if", "case")
HERE_DOCUMENT = "<<'END'"
# Programs whose `code` within a sentence is a command too.
OWN_PROGRAMS = ("ansible", "ansible-doc", "ansible-playbook", "make", "molecule", "python3", "sudo")


@dataclass(frozen=True)
class Part:
    """A part of a page."""

    path: str
    line: int

    @property
    def place(self) -> str:
        """Return where it begins."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Block(Part):
    """One fenced block."""

    language: str
    text: str


@dataclass(frozen=True)
class Command(Part):
    """One command as a reader types it: a line, or a loop of several."""

    text: str


@dataclass
class Document:
    """One page."""

    path: str
    blocks: list[Block] = field(default_factory=list)
    spans: list[tuple[int, str]] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)

    def commands(self) -> list[Command]:
        """Return the commands of the page's blocks, and those within its sentences."""
        found = [command for block in self.blocks if block.language in COMMANDS for command in commands_of(block)]
        for line, span in self.spans:
            words = span.split()
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                words.pop(0)
            if len(words) > 1 and words[0] in OWN_PROGRAMS:
                found.append(Command(self.path, line, span.replace("\\|", "|")))
        return sorted(found, key=lambda command: command.line)


def commands_of(block: Block) -> t.Iterator[Command]:
    """Yield the commands of one block; in a console they follow a dollar sign, the rest is output.

    A file that is written in place (`cat > FILE <<'END'`) is one command of several lines.
    """
    lines = block.text.splitlines()
    if lines[0].split()[0] in SHELL_WORDS:
        yield Command(block.path, block.line + 1, block.text)
        return
    held: list[str] = []
    for offset, line in enumerate(lines, start=1):
        text = line.strip()
        if held or text.endswith(HERE_DOCUMENT):
            held.append(line)
            if text == "END":
                yield Command(block.path, block.line + offset - len(held) + 1, "\n".join(held))
                held = []
            continue
        if block.language == "console":
            if not text.startswith("$ "):
                continue
            text = text[2:]
        if text and not text.startswith("#"):
            yield Command(block.path, block.line + offset, text)


def read(path: Path) -> Document:
    """Read one page."""
    name = str(path.relative_to(CHECKOUT))
    document = Document(name)
    started, language, held = 0, "", list[str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.fullmatch(r"\s*```(.*)", line)
        if fence and started:
            document.blocks.append(Block(name, started, language, "\n".join(held)))
            started, held = 0, []
        elif fence:
            started, language = number, fence.group(1)
        elif started:
            held.append(line)
        else:
            document.spans += [(number, span) for span in re.findall(r"`([^`]+)`", line)]
            document.links += [(number, link) for link in re.findall(r"\]\(([^)\s]+)\)", line)]
    return document


def documents() -> list[Document]:
    """Read every page that people read."""
    patterns = ("README.md", "docs/*.md", "docs/[!e]*/*.md", "roles/*/README.md", "inventory/**/*.md")
    paths = sorted({path for pattern in patterns for path in CHECKOUT.glob(pattern)})
    return [read(path) for path in paths if str(path.relative_to(CHECKOUT)) not in GENERATED]


def split(text: str) -> list[list[str]]:
    """Return the simple commands of a line, each as words, without its comment."""
    lexer = shlex.shlex(re.sub(r"(^|\s)#\s.*", "", text), posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;"):
            found.append([])
        else:
            found[-1].append(word)
    return [words for words in found if words]

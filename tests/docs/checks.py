# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be said of a command without running it: everything that it names has to be there."""

from __future__ import annotations

import argparse
import re
import shlex
import typing as t
from pathlib import Path

import bare
import known
import lab
import yaml
from ansible.cli.adhoc import AdHocCLI
from ansible.cli.doc import DocCLI
from ansible.cli.playbook import PlaybookCLI
from ansible.parsing.splitter import parse_kv
from blocks import CHECKOUT, HERE_DOCUMENT, split

# Files that a command before makes.
MADE = ("hosts.ini", "discover/fabric/proposal.yml", "discover/fabric/cables.yml")
# Where the pages' checkout is.
OWN_CHECKOUTS = ("$HOME/rdma/", "~/rdma/")


class Context:
    """What earlier commands of a page made: folders copied, shell variables, files shown as a snippet."""

    def __init__(self, files: t.Iterable[str] = ()) -> None:
        self.copies: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.files = set(files)

    def expand(self, text: str) -> str:
        """Put the page's own shell variables in, and take note of new ones."""
        for name, value in self.values.items():
            text = re.sub(rf"\${name}\b", lambda found, put=value: put, text)
        return text

    def path(self, name: str) -> Path:
        """Return where a file of the documentation lies in the checkout."""
        name = self.copies.get(name, name)
        for checkout in OWN_CHECKOUTS:
            name = name.removeprefix(checkout)
        return CHECKOUT / name


def missing_inventories(sources: t.Sequence[str] | None, context: Context) -> list[str]:
    """Say which inventories are not there."""
    problems = []
    for source in sources or []:
        path = context.path(source)
        if not source.startswith("$ANSIBLE") and source not in MADE and not (path / "hosts").is_file():
            problems.append(f"there is no inventory {source}")
    return problems


def parsed(cli: t.Any, words: list[str]) -> argparse.Namespace | str:
    """Parse a command line with the parser of the program itself."""
    program = cli(words)
    program.init_parser()
    problems: list[str] = []

    def error(message: str) -> t.NoReturn:
        problems.append(message)
        raise SystemExit

    program.parser.error = error
    try:
        return t.cast("argparse.Namespace", program.parser.parse_args(words[1:]))
    except SystemExit:
        return f"{words[0]}: {problems}"


def hosts_missing(pattern: str, sources: t.Sequence[str] | None, context: Context) -> list[str]:
    """Say which parts of a host pattern match no host."""
    examples = [source for source in sources or [] if source not in MADE and not source.startswith("$")]
    manager = known.inventory(
        str(context.path(examples[0]).relative_to(CHECKOUT)) if examples else "inventory/exclusive"
    )
    parts = [part for part in pattern.split(",") if part not in ("HOST", "localhost")]
    return [f"{part} is in no example inventory" for part in parts if not manager.get_hosts(part)]


def playbook(words: list[str], context: Context) -> list[str]:
    """Check a run of ansible-playbook."""
    args = parsed(PlaybookCLI, words)
    if isinstance(args, str):
        return [args]
    problems = missing_inventories(args.inventory, context)
    for name in args.args:
        short = name.removeprefix(known.NAMESPACE).removeprefix("playbooks/").removesuffix(".yml")
        if name in context.files:
            continue
        if short not in known.playbooks() or not name.startswith((known.NAMESPACE, "playbooks/")):
            problems.append(f"there is no playbook {name}")
            continue
        tags = {tag for text in args.tags + args.skip_tags for tag in text.split(",")} - {"all"}
        problems += [f"{name} has no tag {tag}" for tag in sorted(tags - known.playbooks()[short])]
    if args.subset:
        problems += hosts_missing(args.subset, args.inventory, context)
    for text in args.extra_vars:
        values = {key: value for key, value in parse_kv(text).items() if key != "_raw_params"}
        problems += known.wrong_values(values, known.variables(), "-e")
    return problems


def adhoc(words: list[str], context: Context) -> list[str]:
    """Check a run of ansible with one module."""
    args = parsed(AdHocCLI, words)
    if isinstance(args, str):
        return [args]
    problems = missing_inventories(args.inventory, context) + hosts_missing(args.args, args.inventory, context)
    short = args.module_name.removeprefix(known.NAMESPACE)
    if args.module_name.startswith(known.NAMESPACE):
        if short not in known.modules():
            return [*problems, f"there is no module {args.module_name}"]
        values = {key: value for key, value in parse_kv(args.module_args or "").items() if key != "_raw_params"}
        problems += known.wrong_values(values, known.modules()[short], short)
    elif short not in ("ping", "ansible.builtin.ping", "reboot", "ansible.builtin.reboot"):
        problems.append(f"the module {short} is not among those of the docs")
    return problems


def documentation(words: list[str], context: Context) -> list[str]:
    """Check a run of ansible-doc."""
    args = parsed(DocCLI, words)
    if isinstance(args, str):
        return [args]
    there = known.roles() if args.type == "role" else known.modules()
    return [f"there is no {args.type} {name}" for name in args.args if name.removeprefix(known.NAMESPACE) not in there]


def make(words: list[str], context: Context) -> list[str]:
    """Check the targets of make, and what CHECK and ONLY name."""
    targets = re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    names = re.findall(r'Step\(\s*"([a-z-]+)"', (CHECKOUT / "tests/tools/check.py").read_text(encoding="utf-8"))
    problems = []
    for word in words[1:]:
        if word.startswith("CHECK="):
            problems += [f"there is no check {name}" for name in word[6:].split() if name not in names]
        elif word.startswith("ONLY="):
            problems += [] if (CHECKOUT / word[5:]).exists() else [f"there is no {word[5:]}"]
        elif not word.startswith("REPOSITORY=https://") and word not in targets:
            problems.append(f"the Makefile has no target {word}")
    return problems


def python(words: list[str], context: Context) -> list[str]:
    """Check a Python program of the checkout; the lab's by its own parser."""
    if words[1] in ("-c", "-m"):
        return [] if words[1] == "-m" or compile(words[2], "docs", "exec") else ["it does not parse"]
    path = context.path(words[1])
    if not path.is_file():
        return [f"there is no file {words[1]}"]
    if path.name == "lab.py":
        return lab_command(words[2:], context)
    if path.name == "bare.py":
        return simple(bare.parser().parse_args(words[2:]).words, context)
    text = path.read_text(encoding="utf-8")
    return [f"{path.name} has no {word}" for word in words[2:] if f'"{word}"' not in text and word != "DIR"]


def lab_command(words: list[str], context: Context) -> list[str]:
    """Check a command of the lab, and the one that it runs."""
    cut = words.index("--") if "--" in words else len(words)
    try:
        lab.parser().parse_args(words[:cut])
    except SystemExit:
        return [f"the lab does not understand: {shlex.join(words)}"]
    return simple(words[cut + 1 :], context) if words[cut + 1 :] else []


def shell(words: list[str], context: Context) -> list[str]:
    """Check what a shell is reported to run."""
    return line(words[2], context) if words[1] == "-c" else [f"not understood: {shlex.join(words)}"]


def copy(words: list[str], context: Context) -> list[str]:
    """Check what is copied, and remember the copy."""
    context.copies[words[-1]] = words[-2]
    return [] if context.path(words[-2]).exists() else [f"there is no {words[-2]}"]


def galaxy(words: list[str], context: Context) -> list[str]:
    """Check the name of what is installed or downloaded against galaxy.yml."""
    about = known.load(CHECKOUT / "galaxy.yml")
    if words[1:3] == ["collection", "download"]:
        needed = [f"{name}:{versions}" for name, versions in about["dependencies"].items()]
        return [] if words[-1] in needed else [f"what it needs is {needed}"]
    if words[1:] in (["--version"], ["collection", "list", known.NAMESPACE.rstrip(".")]):
        return []
    tarball = f"dist/{about['namespace']}-{about['name']}-{about['version']}.tar.gz"
    if "--offline" in words:  # the tarballs were copied without their folder
        tarball = tarball.removeprefix("dist/")
    return [] if words[1:3] == ["collection", "install"] and words[-1] == tarball else [f"the tarball is {tarball}"]


def written(text: str, context: Context) -> list[str]:
    """Check a file that a page writes in place: YAML that the collection takes."""
    first, *body = text.splitlines()[:-1]
    name, inner = first.split()[2], "\n".join(body)
    if name.endswith(".yml"):
        return known.wrong_values(yaml.safe_load(inner), known.variables(), name)
    return []


def fine(words: list[str], context: Context) -> list[str]:
    """Say nothing: the program is not part of the collection."""
    return []


PROGRAMS: dict[str, t.Callable[[list[str], Context], list[str]]] = {
    "ansible": adhoc,
    "ansible-doc": documentation,
    "ansible-galaxy": galaxy,
    "ansible-playbook": playbook,
    "cp": copy,
    "make": make,
    "python3": python,
    "sh": shell,
}


def simple(words: list[str], context: Context) -> list[str]:
    """Check one simple command."""
    while words and (words[0] in ("sudo", "env") or re.match(r"^\w+=", words[0])):
        if "=" in words[0]:
            name, value = words[0].split("=", 1)
            context.values[name] = value
        words = words[1:]
    return PROGRAMS.get(words[0], fine)(words, context) if words else []


def line(text: str, context: Context) -> list[str]:
    """Check everything that a line runs."""
    if text.partition("\n")[0].endswith(HERE_DOCUMENT):
        return written(text, context)
    if "\n" in text:
        return []
    return [problem for words in split(context.expand(text)) for problem in simple(words, context)]

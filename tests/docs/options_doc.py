# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the options and defaults of the role fabric from the documentation of the module ippool_plan.

python3 tests/docs/options_doc.py           write them
python3 tests/docs/options_doc.py --check   say whether they are as the module has them
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import typing as t
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
MODULE = CHECKOUT / "plugins/modules/ippool_plan.py"
ROLE = CHECKOUT / "roles/fabric"
MADE = "Made by python3 tests/docs/options_doc.py from the documentation of the module ippool_plan."
MODULE_ONLY = ("nodes", "preview_dir")
WIDTH = 120
# The playbook site sets it where nobody else does.
BY_SITE = """\
# The playbook site sets the second: locked where a plan.json exists.
fabric_plan_locked: "{{ __site_locked | default(false) }}"
"""
Docs = dict[str, dict[str, t.Any]]


def documented() -> Docs:
    """Return the module's options that are variables of the role."""
    text = MODULE.read_text(encoding="utf-8").partition('DOCUMENTATION = r"""')[2].partition('"""')[0]
    return {key: value for key, value in yaml.safe_load(text)["options"].items() if key not in MODULE_ONLY}


def value(data: t.Any) -> str:
    """Return a value in YAML's flow style, as people write it."""
    if isinstance(data, list):
        return f"[{', '.join(str(item) for item in data)}]"
    return data if isinstance(data, str) else json.dumps(data)


def option(name: str, docs: dict[str, t.Any], indent: int) -> list[str]:
    """Return the lines of one option, or of one key of its dictionaries.

    :param indent: how far its name stands from the left.
    """
    texts = docs["description"] if isinstance(docs["description"], list) else [docs["description"]]
    # The planner itself says what is missing, with all else that is wrong.
    needed = bool(docs.get("required"))
    of_role = name.startswith("fabric_")
    texts = [re.sub(r"\bO\((\w)", r"O(fabric_\1", text) for text in texts]
    if needed and of_role:
        texts[-1] += " Required."
    lines = [f"{name}:", "  description:"]
    for text in texts:
        lines += textwrap.wrap(
            text,
            WIDTH - indent,
            initial_indent="    - ",
            subsequent_indent="      ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    for key in ("type", "elements", "required", "choices", "default", "version_added"):
        if key in docs and not (key == "required" and of_role):
            lines.append(f"  {key}: {value(docs[key])}")
    lines = [" " * indent + line for line in lines]
    if docs.get("suboptions"):
        lines.append(" " * indent + "  options:")
        for key, about in docs["suboptions"].items():
            lines += option(key, about, indent + 4)
    return lines


def spec(docs: Docs, old: str) -> str:
    """Return the role's argument specs; what stands above the options is written by hand."""
    head = old.partition("    options:\n")[0].removesuffix(f"    # {MADE}\n")
    lines = [line for key, about in docs.items() for line in option(f"fabric_{key}", about, 6)]
    return f"{head}    # {MADE}\n    options:\n" + "\n".join(lines) + "\n"


def defaults(docs: Docs, old: str) -> str:
    """Return the role's defaults; the head is that of the file."""
    head, rule, _rest = old.partition("\n---\n")
    lines = []
    for key, about in docs.items():
        if key == "plan_locked":
            lines.append(BY_SITE)
        elif "default" in about:
            lines.append(f"fabric_{key}: {value(about['default'])}\n")
    required = [f"fabric_{key}" for key, about in docs.items() if about.get("required")]
    other = [f"fabric_{key}" for key, about in docs.items() if "default" not in about and not about.get("required")]
    notes = (f"Required: {', '.join(required)}.", f"Following from others, or not needed: {', '.join(other)}.")
    comments = [f"# {line}\n" for note in notes for line in textwrap.wrap(note, WIDTH - 2)]
    return f"{head}{rule}# {MADE}\n" + "".join([*lines, *comments])


def main() -> None:
    """Write both files or compare them."""
    docs = documented()
    for path, made in ((ROLE / "meta/argument_specs.yml", spec), (ROLE / "defaults/main.yml", defaults)):
        old = path.read_text(encoding="utf-8")
        new = made(docs, old)
        if "--check" not in sys.argv[1:]:
            path.write_text(new, encoding="utf-8")
        elif old != new:
            sys.exit(f"{path.relative_to(CHECKOUT)} is older than the module. Run: python3 tests/docs/options_doc.py")


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write what roles say of their variables from the documentation of their modules, and the tables in their READMEs.

Role fabric: all options and defaults are those of the module ippool_plan. Host roles: an option of their modules that
the role's spec does not have yet is added to it; of one that it has, type and choices follow the module, and text and
default are the role's own. All roles: what has a default in the spec and none in defaults/main.yml gets it there, and
README.md has a table of the variables, made of the spec.

python3 tests/docs/options_doc.py           write them
python3 tests/docs/options_doc.py --check   say whether they are as the modules have them
"""

from __future__ import annotations

import json
import re
import textwrap
import typing as t
from pathlib import Path

import yaml
from generated import CHECKOUT, main

ROLES = CHECKOUT / "roles"
PLANNED, PLANNER = "fabric", "ippool_plan"
MADE = "Made by python3 tests/docs/options_doc.py from the documentation of the module ippool_plan."
TABLE = "<!-- Made by python3 tests/docs/options_doc.py from meta/argument_specs.yml. -->\n\n"
WIDTH = 120
REQUIRED = " Required."
MANAGED, MESSAGE = "railops.rdma.", "railops.rdma.message"
HOST_ROLES = sorted(
    path.parents[1].name for path in ROLES.glob("*/tasks/settings.yml") if path.parents[1].name != "verify"
)
UNAUDITED = ("plan_dir", "upgrade", "rollback_token")
AUDITED = """\
# Made by python3 tests/docs/options_doc.py from the tasks of the host roles: the options of their modules.
# One template, as each costs the controller time for each host.
"""
# The playbook site sets it as the default.
BY_SITE = """\
# The playbook site sets the second option: locked where a plan.json exists.
fabric_plan_locked: "{{ __site_locked | default(false) }}"
"""
Docs = dict[str, dict[str, t.Any]]


def documented(module: str) -> Docs:
    """Return a module's options."""
    text = (CHECKOUT / f"plugins/modules/{module}.py").read_text(encoding="utf-8")
    found: Docs = yaml.safe_load(text.partition('DOCUMENTATION = r"""')[2].partition('"""')[0]).get("options") or {}
    return found


def tasks_of(role: str) -> t.Iterator[tuple[str, dict[str, t.Any]]]:
    """Yield the modules that a host role's tasks call, each with its arguments."""
    folder = ROLES / role / "tasks"
    found = yaml.safe_load((folder / "main.yml").read_text(encoding="utf-8"))
    for task in found:
        found += [row for key in ("block", "rescue", "always") for row in task.get(key, ())]
        if name := task.get("ansible.builtin.import_tasks"):
            found += yaml.safe_load((folder / name).read_text(encoding="utf-8"))
        yield from (
            (key.removeprefix(MANAGED), args)
            for key, args in task.items()
            if key.startswith(MANAGED) and key != MESSAGE
        )


def of_role(role: str) -> Docs:
    """Return the options of the modules that a host role's tasks give its variables to, by variable."""
    found: Docs = {}
    for module, args in tasks_of(role):
        for option_name, text in args.items():
            name = re.match(rf"\{{\{{ ({role}_\w+)", str(text))
            if name and option_name != "plan_dir":
                found.setdefault(name[1], documented(module)[option_name])
    return found


def audited(old: str) -> str:
    """Return the variables of the role verify with the options by which an audit compares a host.

    They are what the tasks of the host roles set to a variable, and to nothing that they work out.
    """
    modules: dict[str, dict[str, str]] = {}
    for role in HOST_ROLES:
        for module, args in tasks_of(role):
            plain = {
                option_name: name[1]
                for option_name, text in args.items()
                if (name := re.fullmatch(r"\{\{ ((?!__)\w+( \| default\([^()]*\))?) \}\}", str(text)))
                and option_name not in UNAUDITED
            }
            modules.setdefault(module, plain)
    rows = []
    for module, plain in modules.items():
        items = ", ".join(f"'{key}':\0{name}".replace(" ", "\0") for key, name in plain.items())
        rows += textwrap.wrap(
            f"'{module}': {{{items}}},",
            WIDTH - 5,
            initial_indent=" " * 5,
            subsequent_indent=" " * 6,
            break_long_words=False,
        )
    body = "\n".join(rows).replace("\0", " ").lstrip().rstrip(",")
    return f"{old.partition(AUDITED)[0]}{AUDITED}__verify_host_roles: >-\n  {{{{ {{{body}}} }}}}\n"


def value(data: t.Any) -> str:
    """Return a value in YAML's flow style, as people write it."""
    if isinstance(data, list):
        return f"[{', '.join(str(item) for item in data)}]"
    return (data or '""') if isinstance(data, str) else json.dumps(data)


def option(name: str, docs: dict[str, t.Any], indent: int, prefix: str) -> list[str]:
    """Return the lines of one option, or of one key of its dictionaries.

    :param indent: how far its name stands from the left.
    :param prefix: of the role's variables.
    """
    texts = docs["description"] if isinstance(docs["description"], list) else [docs["description"]]
    # The planner itself says what is missing, with all else that is wrong.
    needed = bool(docs.get("required"))
    of_role = name.startswith(prefix)
    texts = [re.sub(r"\bO\((\w)", rf"O({prefix}\1", text) for text in texts]
    if needed and of_role:
        texts[-1] += REQUIRED
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
            lines += option(key, about, indent + 4, prefix)
    return lines


def spec(docs: Docs, old: str) -> str:
    """Return the argument specs of the role fabric; the text above the options is written manually."""
    head = old.partition("    options:\n")[0].removesuffix(f"    # {MADE}\n")
    lines = [line for key, about in docs.items() for line in option(f"fabric_{key}", about, 6, "fabric_")]
    return f"{head}    # {MADE}\n    options:\n" + "\n".join(lines) + "\n"


def defaults(docs: Docs, old: str) -> str:
    """Return the defaults of the role fabric; the head is that of the file."""
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


def completed(role: str, docs: Docs, old: str) -> str:
    """Return the argument specs of a host role with what its modules have more."""
    text, missing = old, []
    for name, about in docs.items():
        found = re.search(rf"^      {name}:\n((?: {{8}}.*\n)*)", text, re.MULTILINE)
        if not found:
            missing += option(name, about, 6, f"{role}_")
            continue
        body = found[1]
        for key in ("type", "elements", "choices"):
            if key in about:
                body = re.sub(rf"^ {{8}}{key}: .*", f"        {key}: {value(about[key])}", body, flags=re.MULTILINE)
        text = text[: found.start(1)] + body + text[found.end(1) :]
    # The options of main end where the next entry point begins.
    end = re.search(r"^    options:\n(?: {6}.*\n)*", text, re.MULTILINE)
    assert end, f"{role} has no options"
    return text[: end.end()] + "".join(f"{line}\n" for line in missing) + text[end.end() :]


def variables(specs: t.Mapping[str, t.Any]) -> Docs:
    """Return the options of all entry points of a role."""
    return {name: about for entry in specs.values() for name, about in (entry.get("options") or {}).items()}


def with_defaults(specs: t.Mapping[str, t.Any], unset: t.Container[str], old: str) -> str:
    """Return a role's defaults with those of its spec that they lack.

    :param unset: variables that a task reads, which are null without a default.
    """
    known = yaml.safe_load(old) or {}
    fresh = {name: about for name, about in variables(specs).items() if name not in known}
    return old + "".join(
        f"{name}: {value(about.get('default'))}\n"
        for name, about in fresh.items()
        if "default" in about or (name in unset and "choices" not in about)
    )


def plain(texts: t.Any) -> str:
    """Return a description as Markdown for a cell."""
    text = " ".join(texts if isinstance(texts, list) else [texts])
    text = re.sub(r"\b[CEOV]\(([^)]*)\)", r"`\1`", text)
    text = re.sub(r"\bP\(([\w.]+)#\w+\)|\bM\(([\w.]+)\)", lambda found: f"`{found[1] or found[2]}`", text)
    return text.replace("|", "\\|")


def default_of(name: str, about: t.Mapping[str, t.Any], values: t.Mapping[str, t.Any]) -> str:
    """Return the default of a role's variable as Markdown.

    :param values: the role's defaults.
    """
    if about.get("required") or plain(about["description"]).endswith(REQUIRED):
        return "required"
    have = about.get("default", values.get(name))
    if "{{" in str(have):
        other = re.fullmatch(r"\{\{ (\w+)(?: \| default\([^{}]*\))? \}\}", str(have))
        return f"`{other[1]}`" if other else "computed"
    return "unset" if have is None else f"`{value(have)}`"


def readme(specs: t.Mapping[str, t.Any], values: t.Mapping[str, t.Any], old: str) -> str:
    """Return a README with the table of the role's variables at its end.

    :param values: the role's defaults.
    """
    lines = ["\n## Variables\n\n", TABLE, "| variable | type | default | description |\n| --- | --- | --- | --- |\n"]
    for name, about in variables(specs).items():
        kind = f"{about['type']} of {about['elements']}" if "elements" in about else about.get("type", "str")
        default = default_of(name, about, values).replace("|", "\\|")
        choices = f" One of {', '.join(f'`{value(one)}`' for one in about['choices'])}." if "choices" in about else ""
        lines.append(f"| `{name}` | {kind} | {default} | {plain(about['description'])}{choices} |\n")
    return old.partition("\n## Variables\n")[0] + "".join(lines)


def pages() -> t.Iterator[tuple[Path, str]]:
    """Give each file that is made or completed, with its text."""
    for folder in sorted(path.parent.parent for path in ROLES.glob("*/meta/argument_specs.yml")):
        role, specs = folder.name, folder / "meta/argument_specs.yml"
        text = before = specs.read_text(encoding="utf-8")
        values = (folder / "defaults/main.yml").read_text(encoding="utf-8")
        if role == PLANNED:
            text, values = spec(documented(PLANNER), before), defaults(documented(PLANNER), values)
        elif role in HOST_ROLES:
            text = completed(role, of_role(role), before)
        made = yaml.safe_load(text)["argument_specs"]
        yield specs, text
        values = with_defaults(made, of_role(role) if role in HOST_ROLES else (), values)
        yield folder / "defaults/main.yml", values
        yield (
            folder / "README.md",
            readme(made, yaml.safe_load(values) or {}, (folder / "README.md").read_text(encoding="utf-8")),
        )
    audits = ROLES / "verify/vars/main.yml"
    yield audits, audited(audits.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(pages())

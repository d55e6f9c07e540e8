# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What there is, as the code has it: playbooks, their tags and variables, options of roles and modules, inventories."""

from __future__ import annotations

import re
import typing as t
from functools import cache
from pathlib import Path

import yaml
from ansible.inventory.manager import InventoryManager
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader

CHECKOUT = Path(__file__).resolve().parents[2]
NAMESPACE = "railops.rdma."
# Variables that playbooks read without being options of a role.
PLAYBOOK_VARIABLE = re.compile(
    r"(?<![\w'])(?:audit|discover|fabric|merge|site|teardown)_[a-z_]+\b|\bcluster_components\b"
)
# What the planner reads of a single host; the role's specification describes them in words.
HOST_VARIABLES: dict[str, dict[str, t.Any]] = {
    "fabric_node_name": {"type": "str"},
    "fabric_cables": {"type": "dict"},
    "fabric_interfaces": {"type": "dict"},
    "fabric_slot": {"type": "int"},
}
SPEC_KEYS = ("type", "elements", "choices", "required", "default")

Spec = dict[str, dict[str, t.Any]]


@cache
def load(path: Path) -> t.Any:
    """Parse a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def spec_of(options: t.Mapping[str, t.Any]) -> Spec:
    """Turn documented options into an argument spec: nothing is required, since docs show a part."""
    found: Spec = {}
    for name, option in options.items():
        found[name] = {key: option[key] for key in SPEC_KEYS if key in option and key not in ("required", "default")}
        if option.get("options"):
            found[name]["options"] = spec_of(option["options"])
    return found


@cache
def roles() -> dict[str, dict[str, Spec]]:
    """Return the options of every role by its entry points."""
    found: dict[str, dict[str, Spec]] = {}
    for path in sorted(CHECKOUT.glob("roles/*/meta/argument_specs.yml")):
        entries = load(path)["argument_specs"]
        found[path.parts[-3]] = {entry: spec_of(about.get("options") or {}) for entry, about in entries.items()}
    return found


@cache
def modules() -> dict[str, Spec]:
    """Return the options of every module, by its short name."""
    found = {}
    for path in sorted(CHECKOUT.glob("plugins/modules/*.py")):
        text = path.read_text(encoding="utf-8")
        documentation = yaml.safe_load(re.search(r'DOCUMENTATION = r?"""\n(.*?)"""', text, re.DOTALL).group(1))
        options = dict(documentation.get("options") or {})
        for fragment in documentation.get("extends_documentation_fragment", []):
            options.update(fragment_options(fragment))
        found[path.stem] = spec_of(options)
    return found


def fragment_options(name: str) -> dict[str, t.Any]:
    """Return the options of one of the collection's documentation fragments."""
    words = name.removeprefix(NAMESPACE).split(".")
    if not name.startswith(NAMESPACE):
        return {}
    text = (CHECKOUT / f"plugins/doc_fragments/{words[0]}.py").read_text(encoding="utf-8")
    wanted = words[1].upper() if len(words) > 1 else "DOCUMENTATION"
    found = re.search(rf'\b{wanted} = r?"""\n?(.*?)"""', text, re.DOTALL)
    return dict((yaml.safe_load(found.group(1)) or {}).get("options") or {}) if found else {}


@cache
def playbook_text(name: str) -> str:
    """Return a playbook's text together with that of the playbooks it imports."""
    text = (CHECKOUT / f"playbooks/{name}.yml").read_text(encoding="utf-8")
    imported = re.findall(r"import_playbook: (\w+)\.yml", text)
    return "\n".join([text, *(playbook_text(other) for other in imported)])


@cache
def playbooks() -> dict[str, set[str]]:
    """Return the tags of every playbook that people start."""
    found = {}
    for path in CHECKOUT.glob("playbooks/*.yml"):
        if "\n# Part of " in path.read_text(encoding="utf-8"):
            continue
        text = playbook_text(path.stem)
        used = set(re.findall(r"name: railops\.rdma\.(\w+)", text))
        text += "".join(
            file.read_text(encoding="utf-8") for role in used for file in CHECKOUT.glob(f"roles/{role}/tasks/*.yml")
        )
        lists = re.findall(r"\btags: \[([^\]]*)\]", text)
        found[path.stem] = {tag.strip() for tags in lists for tag in tags.split(",")} | {"all", "always"}
    return found


@cache
def variables() -> Spec:
    """Return every variable that an inventory or -e may set."""
    found: Spec = dict(HOST_VARIABLES)
    texts = [path.read_text(encoding="utf-8") for path in CHECKOUT.glob("playbooks/*.yml")]
    texts += [path.read_text(encoding="utf-8") for path in CHECKOUT.glob("roles/*/defaults/main.yml")]
    for text in texts:
        found.update({name: {"type": "raw"} for name in PLAYBOOK_VARIABLE.findall(text)})
    for entries in roles().values():
        for spec in entries.values():
            found.update(spec)
    return found


@cache
def inventory(name: str) -> InventoryManager:
    """Load an example inventory."""
    return InventoryManager(loader=DataLoader(), sources=[str(CHECKOUT / name)])


def wrong_values(values: t.Mapping[str, t.Any], spec: Spec, what: str) -> list[str]:
    """Say which names do not exist and which values are refused."""
    problems = [f"{what} has no {name}" for name in values if name not in spec]
    known = {name: value for name, value in values.items() if name in spec}
    result = ArgumentSpecValidator({name: spec[name] for name in known}).validate(known)
    return problems + [f"{what}: {message}" for message in result.error_messages]

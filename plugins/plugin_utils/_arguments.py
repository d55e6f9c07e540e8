# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Typed access to what ansible-core offers an action plugin without types."""

from __future__ import annotations

import os
import shlex
import typing as t

from ansible import constants, context
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load
from ansible.utils import color

settings: t.Any = constants
SPEC_KEYS = ("type", "elements", "required", "choices", "default")


def documented(text: str) -> dict[str, t.Any]:
    """Return the argument spec of a module that is an action alone: its documentation says it, and nothing else does.

    Ansible imports an action in the process that forks, so a task does not read it again.
    """
    options = yaml_load(text)["options"]
    return {name: {key: option[key] for key in SPEC_KEYS if key in option} for name, option in options.items()}


def arguments(given: dict[str, t.Any], spec: dict[str, t.Any], one_of: list[str] | None = None) -> dict[str, t.Any]:
    """Return a task's arguments, checked against a module's argument spec and with its defaults.

    :param one_of: options of which exactly one is given.
    :raises AnsibleActionFail: naming what is wrong.
    """
    rules = {"mutually_exclusive": [one_of], "required_one_of": [one_of]} if one_of else {}
    validator: t.Any = ArgumentSpecValidator(spec, **rules)
    found = validator.validate(given)
    if found.error_messages:
        raise AnsibleActionFail(f"Wrong arguments: {'; '.join(found.error_messages)}. Correct the task. [arguments]")
    validated: dict[str, t.Any] = found.validated_parameters
    return validated


def forks(task_vars: dict[str, t.Any]) -> int:
    """Return how many hosts a task works on at once."""
    return int(task_vars.get("ansible_forks") or settings.DEFAULT_FORKS)


def has_color() -> bool:
    """Whether output to the terminal may have colors: as Ansible found when it started, with the terminal at hand."""
    return bool(color.ANSIBLE_COLOR)


def for_this_run(text: str) -> str:
    """Return a text whose printed commands have the inventories of this run, but for those of ansible.cfg.

    Its heading reminds of the -e options, whose values may be secrets.
    """
    given: t.Any = context.CLIARGS.get("inventory") or ()
    sources = [] if list(given) == settings.DEFAULT_HOST_LIST else given
    options = "".join(f" -i {shlex.quote(source.removeprefix(f'{os.getcwd()}/'))}" for source in sources)
    heading = "Do this, with the -e options of this run:" if context.CLIARGS.get("extra_vars") else "Do this:"
    return text.replace("ansible-playbook railops.", f"ansible-playbook{options} railops.").replace("Do this:", heading)


def without_omitted(value: t.Any, omitted: t.Any) -> t.Any:
    """Return a value without its omitted items, which are placeholder strings before ansible-core 2.19."""
    if isinstance(value, dict):
        return {key: without_omitted(item, omitted) for key, item in value.items() if item != omitted}
    if isinstance(value, list):
        return [without_omitted(item, omitted) for item in value if item != omitted]
    return None if value == omitted else value

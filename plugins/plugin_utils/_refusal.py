# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Failures of action plugins whose sentence a person reads once."""

from __future__ import annotations

import typing as t

from ansible import constants
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.utils.display import Display
from ansible.utils.unsafe_proxy import wrap_var

REPEATED = ("fix", "problems", "summary")
"""Keys of a failure that its message holds already."""


class Refusal(AnsibleActionFail):
    """A failure with its one sentence: what is wrong, and what to do.

    ansible-core from 2.19 on shows a failure by an error of its own and then by the result; here the result is enough.
    Before 2.19 it takes the texts of what is raised for templates: some of them are what hosts say.
    """

    omit_exception_key = True

    def __init__(self, message: str, result: dict[str, t.Any] | None = None) -> None:
        more = {key: value for key, value in (result or {}).items() if key not in REPEATED}
        super().__init__(wrap_var(message), result=wrap_var(more))  # type: ignore[no-untyped-call]
        # Before 2.19 the result carries the traceback instead, with the sentence in it.
        vars(self).get("result", {}).pop("exception", None)


class HostUnreachable(AnsibleConnectionFailure):
    """An unreachable host; the cause is ssh's output, which the host controls: Ansible must not template it."""

    def __str__(self) -> str:
        return str(wrap_var(super().__str__()))


def show(text: str, *, error: bool = False) -> None:
    """Show lines as they are: a result would show them as one line of JSON."""
    settings, display = t.cast("t.Any", constants), t.cast("t.Any", Display())
    display.display(text, color=settings.COLOR_ERROR if error else None, stderr=error)


def refuse(task: t.Any, message: str, result: dict[str, t.Any] | None = None) -> t.NoReturn:
    """Fail the task. A message of several lines is displayed line by line, and the result has only the first.

    :raises Refusal: always; with the complete message where the play handles the failure, or where it is one line.
    """
    first, _newline, more = message.partition("\n")
    if not more or is_handled(task):
        raise Refusal(message, result)
    show(f"\n{message}", error=True)
    raise Refusal(f"{first.rstrip(':')}, as listed above.", result)


def is_handled(task: t.Any) -> bool:
    """Whether something looks at the task's failure: itself, or a rescue."""
    if task.failed_when or task.until or task.retries or task.ignore_errors:
        return True
    while task := getattr(task, "_parent", None):
        if getattr(task, "rescue", None):
            return True
    return False


def fail(problem: str, fix: str) -> t.NoReturn:
    """Fail the task with what is wrong and what to do."""
    # A controller plugin has no fail_json: the result carries the fix as a module's failure does.
    raise Refusal(f"{problem} {fix}")


def once(task: t.Any, result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return what a module or an action has to say; also a failure, where the task itself judges it.

    :raises Refusal: it failed with a sentence of ours, which has a fix; what crashed is shown by ansible-core.
    """
    # What is raised comes neither to failed_when nor to another try.
    if result.get("failed") and "fix" in result and not (task.failed_when or task.until or task.retries):
        raise Refusal(str(result["msg"]), result)
    return result

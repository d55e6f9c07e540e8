# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The exceptions that modules turn into a failure. Everything below main() raises these and nothing else."""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass

from ._formatting import group_by


class RdmaError(Exception):
    """A failure that the user can act on: what is wrong, and what to do about it.

    `problem` names the object, the value seen and the limit; `fix` is one sentence in the imperative;
    `facts` are machine-readable keys of the module's result.
    """

    def __init__(self, problem: str, fix: str, **facts: t.Any) -> None:
        super().__init__(f"{problem}{fix}" if problem.endswith("\n") else f"{problem} {fix}")
        self.problem = problem
        self.fix = fix
        self.facts = facts


@dataclass(frozen=True, order=True)
class Problem:
    """One problem of the input: its place (`fabric_rails[2].subnets`), what is wrong, and the fix."""

    place: str
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem} {self.fix}"


def with_id(fix: str, error_id: str) -> str:
    """Return a fix that ends with an ID: its own, or this one."""
    return fix if fix.endswith("]") else f"{fix} [{error_id}]".lstrip()


def grouped(rows: t.Iterable[tuple[str, str]]) -> list[str]:
    """Return a text for each fix: what it is for, a line each, and then the fix, once.

    :param rows: what is wrong, with its place, and what to do.
    """
    by_fix = group_by((fix or wrong, wrong) for wrong, fix in rows)
    return [("\n    " if len(lines) > 1 else " ").join(dict.fromkeys([*lines, fix])) for fix, lines in by_fix.items()]


class InputError(RdmaError):
    """All the things wrong with the input at once."""

    def __init__(self, problems: t.Iterable[Problem], **facts: t.Any) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        heading = "1 problem in the input:" if count == 1 else f"{count} problems in the input:"
        lines = grouped((f"{problem.place}: {problem.problem}", problem.fix) for problem in self.problems)
        super().__init__(
            "\n".join([heading, *(f"  - {line}" for line in lines), ""]),
            "Nothing was changed. Fix what is listed and run again.",
            problems=[asdict(problem) for problem in self.problems],
            **facts,
        )

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validates checks and results of hosts: known IDs and rails, JSON's types, a size limit. Pure.

Invalid parts of a host's answer are an error of that host. The rest of the answer and the other hosts stay complete.
"""

from __future__ import annotations

import re
import typing as t
from numbers import Real
from operator import itemgetter

from ...module_utils._check import DEVIATION, OK, SKIPPED, UNPLANNED_ADDRESSES, WARNING, Check
from ...module_utils._validation import (
    DEPTH,
    INTERFACE,
    LABEL,
    LETTERS,
    VALUES,
    InvalidData,
    excerpt,
    line,
    sanitize,
    validate,
)
from .fixes import with_known_fix
from .ids import IDS
from .outliers import COMPARED

KINDS = (OK, DEVIATION, WARNING, SKIPPED)
# Overall and per host, the worst first.
STATUSES = ("error", "deviation", "incomplete", "pass")
UNREACHABLE, NOT_VERIFIED = "unreachable", "not_verified"
FIX = "Check what answers there: it is not this collection, or another version of it."

Json = dict[str, t.Any]

TEXTS = ("planned", "observed", "cause", "fix")
KEYS = ("id", "rail", "status", *TEXTS)
_CHECK: Json = {"status": frozenset(KINDS), "family": (None, int), "peers": (None, [str])}
_CHECK |= dict.fromkeys(("cause", "fix", "object", "node"), (None, str))
_CHECK_KEYS = tuple(dict.fromkeys((*KEYS, *_CHECK)))
# Every unlike port repeats what its peers have.
_SHORT_TEXT = re.compile(r"[ -~]{0,100}")
_PORT = {key: (None, Real if key == "speed" else _SHORT_TEXT) for key in COMPARED}
_FACTS: Json = {UNPLANNED_ADDRESSES: (None, [str])}
_RESULT = dict.fromkeys(("node", "plan_digest", "error"), (None, str))
_MAX_TEXT = 1000
_texts = itemgetter(*TEXTS)


class Answer(t.NamedTuple):
    """What came in; `wrong` is what of it is nonsense, by check and rail."""

    checks: list[Check]
    facts: Json
    wrong: list[str]

    @property
    def error(self) -> str:
        """The error of who says this, with what to do; empty when there is none."""
        more = f" ({len(self.wrong) - 1:,} more like it)" if len(self.wrong) > 1 else ""
        return f"The answer is refused: {self.wrong[0]}{more}. {FIX}" if self.wrong else ""


def answer_in(nested: t.Any, rails: t.Collection[str] = (), hosts: int | None = None) -> Answer:
    """Return the checks and facts in an answer.

    A dictionary with `checks` gives these, and its facts; a check is known by its `id` and `status`.

    :param nested: results of modules, lists and dictionaries of them, lists of checks.
    :param rails: the plan's; without them checks may be of any rail, and facts are of none.
    :param hosts: of an answer about the cluster: what it says of its nodes grows with them. None: one host says it.
    """
    answer, left = Answer([], {}, []), [VALUES + 1000 * (hosts or 0), LETTERS + 40_000 * (hosts or 0)]
    # Each check of the host and of each rail, for two families.
    most = 2 * len(IDS) * (1 + len(rails)) if rails else VALUES

    def walk(value: t.Any, depth: int) -> None:
        if not depth:
            raise InvalidData(f"nested more than {DEPTH} deep")
        if not isinstance(value, dict):
            inner: t.Collection[t.Any] = value if isinstance(value, (list, tuple)) else ()
        elif "checks" in value:
            inner = (value["checks"],)
        elif "id" in value and "status" in value:
            answer.checks.append(_check(value, rails, left))
            return
        else:
            inner = value.values()
        for item in inner:
            left[0] -= 1
            try:
                if isinstance(item, dict) and _is_plain(item, rails, left):
                    answer.checks.append(t.cast("Check", item))
                else:
                    walk(item, depth - 1)
            except InvalidData as exc:
                answer.wrong.append(str(exc))
            if min(left) < 0:
                raise InvalidData(f"more than {VALUES:,} values or {LETTERS:,} characters")
            if len(answer.checks) > most:
                raise InvalidData(f"more than {most:,} checks")
        if isinstance(value, dict) and value.get("facts") and "checks" in value:
            answer.facts.update(_facts(sanitize(value["facts"], left), frozenset(rails)))

    try:
        walk([nested], DEPTH)
    except InvalidData as exc:
        answer.wrong.append(str(exc))
    if hosts is None:
        answer.checks[:] = map(with_known_fix, answer.checks)
    return answer


def _facts(facts: t.Any, rails: frozenset[str]) -> Json:
    """Return the facts of a host, which has facts of the plan's rails only.

    :raises InvalidData: they are none.
    """
    validate(facts, _FACTS, "the facts")
    if not rails:
        return {key: facts[key] for key in _FACTS if key in facts}
    shape = {"health": (None, {"rails": (None, {rails: _PORT})}), "macs": (None, {rails: INTERFACE})}
    return t.cast("Json", validate(facts, shape, "the facts"))


def _is_plain(row: t.Mapping[str, t.Any], rails: t.Collection[str], left: list[int]) -> bool:
    """Whether a check is as `_check` would make it, and measured here: most are, and a fleet has millions."""
    try:
        text = "".join(_texts(row))
        plain = row["id"] in IDS and row["status"] in KINDS and _is_rail(row["rail"], rails)
    except (KeyError, TypeError):
        return False
    if not plain or len(row) != len(KEYS) or len(text) > _MAX_TEXT or not text.isprintable():
        return False
    left[0] -= len(KEYS)
    left[1] -= len(text)
    return True


def _is_rail(rail: t.Any, rails: t.Collection[str]) -> bool:
    return rail is None or (isinstance(rail, str) and bool(rail in rails if rails else LABEL.fullmatch(rail)))


def _check(row: t.Mapping[str, t.Any], rails: t.Collection[str], left: list[int]) -> Check:
    """Return a check with the contract's keys.

    :raises InvalidData: it is none, by id and rail as far as these are known.
    """
    name, rail = row["id"], row.get("rail")
    if not isinstance(name, str) or name not in IDS:
        raise InvalidData(f"{excerpt(name)} is no id of a check")
    if not _is_rail(rail, rails):
        raise InvalidData(f"{excerpt(rail)} is no rail (check {name})")
    what = f"{name} of {rail or 'the host'}"
    try:
        made = sanitize({key: row.get(key) for key in _CHECK_KEYS}, left)
    except InvalidData as exc:
        raise InvalidData(f"{what} is {exc}") from None
    validate(made, _CHECK, what)
    return t.cast("Check", {key: value for key, value in made.items() if value is not None or key in KEYS})


def result_in(result: t.Mapping[str, t.Any], rails: t.Collection[str] = ()) -> Json:
    """Return the result of one host, whose error says what of it is nonsense.

    :param rails: the plan's.
    """
    parts = {"checks": result.get("checks"), "facts": result.get("facts")}
    checks, facts, wrong = answer = answer_in(parts, rails)
    head = dict.fromkeys(_RESULT)
    try:
        head = validate(sanitize({key: result.get(key) for key in head}), _RESULT, "the result")
    except InvalidData as exc:
        wrong.append(str(exc))
    error = line(head["error"], answer.error)
    return {**head, "host": result["host"], "error": error, "checks": checks, "facts": facts}

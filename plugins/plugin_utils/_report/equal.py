# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Folds what is equal on many hosts: names, diffs, planned and observed values. Pure."""

from __future__ import annotations

import json
import re
import typing as t

from ...module_utils._check import SKIPPED
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._formatting import count, group_by, natural, shortened
from ...module_utils._intervals import merge

# IPv4, IPv6 and MAC addresses, with their prefix lengths: each host has its own.
ADDRESS = re.compile(
    r"\b\d+(?:\.\d+){3}(?:/\d+)?\b|(?<![\w:])[0-9a-f]*(?::[0-9a-f]*){2,}(?:/\d+)?(?![\w:])", re.IGNORECASE
)


# A line of a diff that comes or goes; it may have a color.
CHANGE = re.compile(r"^(?:\033\[[\d;]*m)?(?:\+(?!\+\+ )|-(?!-- ))", re.MULTILINE)
SECTIONS: tuple[t.Literal["plan", "cluster"], ...] = ("plan", "cluster")


# A name, its last number, and what follows that.
NUMBERED = re.compile(r"(.*?)(\d*)(\D*)", re.DOTALL)


def folded(names: t.Iterable[str], limit: int = 8) -> str:
    """Return names in one line, numbers as ranges: `gpu-[033-064,070], login1`."""
    parts = [NUMBERED.fullmatch(name).groups() for name in dict.fromkeys(names)]  # type: ignore[union-attr]
    groups = group_by(((head, tail), number) for head, number, tail in parts)
    return shortened([text for key, numbers in groups.items() for text in number_ranges(*key, numbers)], limit)


class DiffGroup(t.NamedTuple):
    """Hosts whose diffs are equal, apart from their names and addresses."""

    hosts: tuple[str, ...]
    identical: bool
    """Whether these are equal, too."""
    changes: int
    """Lines of the first host's diff that come or go."""

    def lines(self, *, shown: bool) -> list[str]:
        """Return what changes on which hosts.

        :param shown: whether the first host's diff is above.
        """
        first, *others = self.hosts
        if not self.changes:
            return [f"[{folded(self.hosts)}]"]
        many = count(self.changes, "change")
        if not shown:
            return [f"[{folded(self.hosts)}]: {many} more (shown with -v)"]
        own = "" if self.identical else ", each with its own addresses"
        return [f"[{first}]", *([f"[{folded(others)}]: the same {many} as {first}{own}"] if others else [])]


def group_diffs(diffs: t.Mapping[str, str]) -> list[DiffGroup]:
    """Return the hosts whose diffs are equal apart from their names and addresses, large groups first."""
    texts = {host: re.sub(rf"\b{re.escape(host)}\b", "@", diffs[host]) for host in sorted(diffs, key=natural)}
    groups = group_by((ADDRESS.sub("@", text), host) for host, text in texts.items())
    found = [
        DiffGroup(tuple(hosts), len({diffs[host] for host in hosts}) == 1, len(CHANGE.findall(text)))
        for text, hosts in groups.items()
    ]
    return sorted(found, key=lambda group: -len(group.hosts))


def number_ranges(head: str, tail: str, numbers: t.Sequence[str]) -> t.Iterator[str]:
    """Yield names that differ by a number as ranges; numbers with leading zeros keep their width."""
    filled = any(number.startswith("0") for number in numbers)
    for width in sorted({len(number) if filled else 1 for number in numbers}):
        own = [int(text) for text in numbers if text and (not filled or width == len(text))]
        runs = merge((number, number) for number in own)
        texts = ["-".join(f"{end:0{width}}" for end in dict.fromkeys(run)) for run in runs]
        inside = f"[{','.join(texts)}]" if len(texts) > 1 or "-" in "".join(texts) else "".join(texts)
        yield f"{head}{inside}{tail}"


def differing(planned: t.Any, observed: t.Any) -> tuple[t.Any, t.Any]:
    """Return planned and observed, of two lists or two objects only what differs."""
    if isinstance(planned, dict) and isinstance(observed, dict):
        keys = [key for key in {**planned, **observed} if planned.get(key) != observed.get(key)]
        return tuple({key: side[key] for key in keys if key in side} for side in (planned, observed))  # type: ignore[return-value]
    if isinstance(planned, (list, tuple)) and isinstance(observed, (list, tuple)):
        # By their JSON: both may be long, and not every item can be in a set.
        here, there = (
            {json.dumps(item, sort_keys=True, default=str): item for item in side} for side in (planned, observed)
        )
        left = [item for key, item in here.items() if key not in there]
        right = [item for key, item in there.items() if key not in here]
        return (left, right) if left or right else (planned, observed)
    return planned, observed


def skipped_section(reason: str) -> dict[str, t.Any]:
    """Return the verdict's section of checks that did not run."""
    return {"status": SKIPPED, "checks": [], "reason": reason}


def entries(verdict: Verdict) -> t.Iterator[tuple[str, t.Mapping[str, t.Any]]]:
    """Yield hosts and sections by name."""
    yield from verdict["hosts"].items()
    yield from ((name, verdict[name]) for name in SECTIONS)

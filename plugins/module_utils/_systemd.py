# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of systemd: their sections, and whether a [Match] is for a device. Pure; systemd.link(5) and .network(5)."""

from __future__ import annotations

import fnmatch
import re
import typing as t

Pairs = list[tuple[str, str]]
Section = tuple[str, Pairs]
# A name in one of them hides it in those after it; people write into the first two.
FOLDERS = ("/etc/systemd/network", "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network")


def named(paths: t.Iterable[str], folders: t.Sequence[str]) -> dict[str, str]:
    """Return the path that counts of each name in these folders, by the name, sorted; systemd's and modprobe's order.

    :param paths: of files below the folders.
    :param folders: a name in one of them hides it in those after it.
    """
    found: dict[str, str] = {}
    paths = list(paths)
    for folder in reversed(folders):
        found.update({path[len(folder) + 1 :]: path for path in paths if path.startswith(f"{folder}/")})
    return dict(sorted(found.items()))


def sections(text: str) -> list[Section]:
    """Return the sections of a file of systemd or NetworkManager, with their pairs of key and value."""
    found: list[Section] = []
    for line in map(str.strip, text.replace("\\\n", " ").splitlines()):
        if line.startswith("[") and line.endswith("]"):
            found.append((line[1:-1], []))
        elif found and "=" in line and line[0] not in "#;":
            key, _equals, value = line.partition("=")
            found[-1][1].append((key.strip(), value.strip()))
    return found


def effective(rows: t.Iterable[Section], *names: str) -> Pairs:
    """Return the effective settings of the sections with these names: an empty value resets earlier values."""
    found: Pairs = []
    for pair in (pair for name, pairs in rows if name in names for pair in pairs):
        found = [*found, pair] if pair[1] else [item for item in found if item[0] != pair[0]]
    return found


def fits(match: Pairs, known: t.Mapping[str, t.Iterable[str]]) -> bool | None:
    """Whether a [Match] is met; None when it has a key of unknown value.

    :param match: what still counts of it.
    :param known: the values of a device, by key.
    """
    wanted: dict[str, list[str]] = {}
    for key, value in match:
        wanted.setdefault(key, []).extend(value.split())
    answers = [_matches(key, words, known[key]) if key in known else None for key, words in wanted.items()]
    return False if False in answers else None if None in answers else True


def _matches(key: str, words: list[str], values: t.Iterable[str]) -> bool:
    inverted = words[0].startswith("!")
    words = [word.lstrip("!") for word in words]
    if key.endswith("MACAddress"):
        # With colons, dashes or dots.
        words, values = ([re.sub("[^0-9a-f]", "", item.lower()) for item in items] for items in (words, values))
    return inverted != any(fnmatch.fnmatchcase(value, word) for value in values for word in words)

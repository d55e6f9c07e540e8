# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Precedence of sysctl.d files. Pure; sysctl.d(5)."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from .._route.model import equivalent
from .._systemd import named

if t.TYPE_CHECKING:
    from .._route.route_options import RouteOptions
    from .model import Texts

# A name in one of them hides it in those after it.
FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d")
SWAPPED = str.maketrans("./", "/.")


def last_words(texts: Texts) -> dict[str, tuple[str, str]]:
    """Return the file and the value that count at boot, by the setting in slash notation.

    Only for settings that are spelled whole: such a one outranks all globs, wherever they stand.
    """
    found = {}
    for name, path in named(texts, FOLDERS).items():
        for line in map(str.strip, texts[path].splitlines() if name.endswith(".conf") else ()):
            key, equals, value = line.lstrip("-").partition("=")
            key = key.strip()
            if equals and line[0] not in "#;":
                # The first separator says which of the two notations it is.
                first = next((sign for sign in key if sign in "./"), "/")
                found[key if first == "/" else key.translate(SWAPPED)] = (path, value.strip())
    return found


def without_served(want: RouteOptions, texts: Texts) -> RouteOptions:
    """Return the want without settings for which others' files have another value that serves, as a larger table."""
    last = {key: value for key, (_path, value) in last_words(texts).items()}
    served = {key for key, value in want.sysctls if last.get(key, value) != value and equivalent(key, last[key], value)}
    return replace(want, sysctls=tuple(row for row in want.sysctls if row[0] not in served))

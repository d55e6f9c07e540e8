# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file of sysctl.d has the last word about a setting. Pure; sysctl.d(5)."""

from __future__ import annotations

import typing as t

from .._systemd import named

if t.TYPE_CHECKING:
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

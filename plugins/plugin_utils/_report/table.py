# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables in Markdown. Pure."""

from __future__ import annotations

import re
import typing as t

from ...module_utils._validation import shown


def plain(value: t.Any) -> str:
    """Return a value as one line: it comes from hosts."""
    if value is None or value == "":
        return ""
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(plain, value)) or "nothing"
    elif isinstance(value, dict):
        value = ", ".join(f"{key}={plain(item)}" for key, item in value.items())
    return shown(str(value))


def md(value: t.Any) -> str:
    """Escape text for a Markdown table: no markup, no HTML, no line end."""
    text = shown(" ".join(str(value).splitlines()))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", text)


def md_table(titles: t.Sequence[str], rows: t.Iterable[t.Sequence[t.Any]], code: t.Sequence[str] = ()) -> list[str]:
    """Return the lines of a Markdown table, the last one empty.

    :param titles: of the columns.
    :param rows: of any values.
    :param code: titles of columns of names that machines read.
    """

    def show(title: str, value: t.Any) -> str:
        return f"`{value}`" if title in code and value and "`" not in str(value) else md(value)

    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    lines += ("| " + " | ".join(show(*pair) for pair in zip(titles, row, strict=False)) + " |" for row in rows)
    return [*lines, ""]

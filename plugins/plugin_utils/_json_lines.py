# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The layout of the JSON files that this collection writes on the controller."""

from __future__ import annotations

import json
import typing as t


def json_lines(value: t.Any, depth: int, margin: str = "\n") -> str:
    """Return JSON with one line for each entry down to a depth, and each deeper value on one line.

    The encoder's own layout is Python code, which takes minutes for the verdict of a large fleet.

    :param margin: the line end and the indentation of the value's own line.
    """
    inner = f"{margin}  "
    if depth and value and isinstance(value, dict):
        rows = [f"{json.dumps(str(key))}: {json_lines(item, depth - 1, inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(rows)}{margin}}}"
    if depth and value and isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(json_lines(item, depth - 1, inner) for item in value)}{margin}]"
    return json.dumps(value, ensure_ascii=False, default=str)

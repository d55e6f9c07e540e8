# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What programs said, without what nobody may see: JSON by keys, text by whole lines, errors by the known messages."""

from __future__ import annotations

import json
import re
import typing as t

from .._cabling.lldp import ARGV, reduced
from .._card.mlxconfig import FAULTS
from .._untouchable import lists
from .sources import LINES, VERSIONS

if t.TYPE_CHECKING:
    from .allow import Allow

ERRORS = ("not supported", *(pattern for pattern, _meaning, _fix in FAULTS))


def answer(argv: t.Sequence[str], out: str, allow: Allow) -> str | None:
    """Return what a program said as far as it is known; None where it is not understood.

    :param out: all that it said.
    """
    if " ".join(argv) in VERSIONS:
        version = re.search(r"(?<![\w.])\d+(?:\.\d+)+(?:-\d+)*", out)
        return f"{argv[0]} {version[0]}\n" if version else None
    if argv[0] == "ip" or "-j" in argv or tuple(argv) == ARGV:
        try:
            found = [reduced(out)] if tuple(argv) == ARGV else [item for item in lists(out) if isinstance(item, list)]
            rows = [json.dumps(allow.data(item, "unknown-tlvs"), separators=(",", ":")) for item in found]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return "".join(f"{row}\n" for row in rows) if rows or not out.strip() else None
    return "".join(f"{line}\n" for line in out.splitlines() if re.fullmatch(LINES.get(argv[0], ""), line))


def error(text: str) -> str:
    """Return the known messages in what a program complained of."""
    found = (re.search(pattern, text) for pattern in ERRORS)
    return "; ".join(match[0] for match in found if match)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a program makes of the code: written, or compared where the program is called with --check."""

from __future__ import annotations

import sys
import typing as t
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def main(files: t.Iterable[tuple[Path, str]]) -> None:
    """Write files with their texts, or end with the first one that is another."""
    for path, text in files:
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            program = Path(sys.argv[0]).resolve().relative_to(CHECKOUT)
            sys.exit(f"{path.relative_to(CHECKOUT)} is older than what it is made of. Run: python3 {program}")

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the table of docs/porting.md, of all that went or got another name, from the one table in the code.

python3 tests/docs/porting_doc.py           write it
python3 tests/docs/porting_doc.py --check   say whether it is as the code has it
"""

from __future__ import annotations

import importlib.util
import typing as t

from made import CHECKOUT, main

DOCUMENT = CHECKOUT / "docs/porting.md"
HEAD = "\n| what went | instead |\n| --- | --- |\n"


def rows() -> t.Iterator[str]:
    """Yield a line for each row of the code's table; several names of one row share it."""
    spec = importlib.util.spec_from_file_location("_former", CHECKOUT / "plugins/plugin_utils/_former.py")
    former = importlib.util.module_from_spec(t.cast("importlib.machinery.ModuleSpec", spec))
    spec.loader.exec_module(former)
    for row in former.FORMER:
        names = ", ".join("{} `{}`".format(*name.rsplit(" ", 1)) for name in row.names)
        why = row.problem.partition(": ")[2]
        yield f"| {names} | {why[:1].upper()}{why[1:]}{' ' if why else ''}{row.fix} |\n"


def page() -> str:
    """Return the page with the table as the code has it."""
    return DOCUMENT.read_text(encoding="utf-8").partition(HEAD)[0] + HEAD + "".join(rows())


if __name__ == "__main__":
    main([(DOCUMENT, page())])

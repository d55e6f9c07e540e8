# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Acts as a host's Python: answers each module with what a file says, and keeps what the controller sent.

Called by the path of an executable link to this file; `answers.json` beside it has the answers of that name by module,
those of any module under `*`. An answer that is a text says how much nonsense is sent: `deep`, `large` or `bytes`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

# All that an answer of a module may be asked for.
ANSWER = {
    "changed": False,
    "checks": [],
    "facts": {},
    "tests": [],
    "work": [],
    "pods": [],
    "machine_id": "",
    "boot_id": "b1",
    "kubelet": "",
    "emptied": "",
    "token": None,
    "changes": [],
    "notes": [],
    "disruptions": [],
    "switch": [],
    "packages": [],
    "steps": [],
    "replaced": {},
    "skipped_cards": [],
    "reboot_required": False,
    "reboot_reasons": [],
}
NONSENSE = {
    "deep": lambda: '{"changed": false, "checks": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "large": lambda: json.dumps({"changed": False, "checks": [], "msg": "A" * 50_000_000}),
    "bytes": lambda: "\x1b]0;gone\x07\x1b[2J no json at all \x9b31m",
}


def main() -> int:
    """Answer one module."""
    own = Path(sys.argv[0])
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        return 0
    sent = Path(sys.argv[1])
    module = re.sub(r"^AnsiballZ_|\.py$", "", sent.name)
    kept = own.parent / "sent" / own.name
    kept.mkdir(parents=True, exist_ok=True)
    number = len(list(kept.iterdir()))
    shutil.copytree(sent.parent, kept / f"{number:03}-{module}")
    answers = json.loads((own.parent / "answers.json").read_text(encoding="utf-8"))[own.name]
    answer = answers.get(module, answers["*"])
    sys.stdout.write(NONSENSE[answer]() if isinstance(answer, str) else json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

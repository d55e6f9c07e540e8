# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure all rows of rows.yml in one round and write docs/project/performance.md.

    make bench                                          the whole round; what is measured so far lies in the cache
    make bench BENCH="--pairs 1 host"                   a few rows, printed: those of host.py
    make bench BENCH="audit.start audit.fleet"          those of two measurements

Run it on an idle machine; the page has its load. Each measurement runs in a process of its own.
What cannot run here says why in its rows.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(CHECKOUT / "tests" / name) for name in ("tools", "cluster", "report")]

import browser
import env
import programs
import real_api
from machine import machine
from page import GROUPS, Result, page

PAGE = CHECKOUT / "docs/project/performance.md"
LIMIT = 1200  # seconds of one measurement


def why_not(needs: str) -> str:
    """Return why something cannot be measured here; nothing if it can.

    :param needs: what a measurement needs, as rows.yml has it.
    """
    if needs == "browser":
        return browser.MISSING
    if needs and os.geteuid():
        return "it needs root"
    return real_api.why_not().partition(";")[0] if needs == "api" else ""


def measured(name: str, pairs: int, log: Path) -> Result:
    """Let a process of its own measure.

    :param name: of the measurement.
    :param pairs: how many of each row.
    :param log: where its words on stderr go.
    """
    argv = [sys.executable, __file__, "--pairs", str(pairs), "--measure", name]
    if GROUPS[name].get("needs") == "api":
        argv = [sys.executable, real_api.__file__, "--bare", *argv]
    with (
        log.open("w+", encoding="utf-8") as words,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=words) as child,
    ):
        try:
            out = child.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            out = child.communicate(timeout=LIMIT)[0]
            words.write(f"\nits {LIMIT // 60} minutes were over\n")
        words.seek(0)
        lines = [line for line in words.read().splitlines() if line.strip()]
    why = re.sub(r"(/[^\s/:]+){2,}", "a file", lines[-1] if lines else "no word") if child.returncode else ""
    return Result([json.loads(line) for line in out.splitlines()], why)


def measure(name: str, pairs: int) -> None:
    """Print the pairs of a measurement as they come."""
    file, _dot, function = name.partition(".")
    with contextlib.closing(getattr(importlib.import_module(file), function)()) as source:
        for found in itertools.islice(source, pairs):
            print(json.dumps(found), flush=True)


def main() -> None:
    """Read what is asked, and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="files or measurements; the page is printed then, not written")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.pairs)
    else:
        play(options)


def play(options: argparse.Namespace) -> None:
    """Measure one row after the other, and write the page as they end."""
    names = [name for name in GROUPS if not options.names or {name, name.partition(".")[0]} & set(options.names)]
    folder = env.cache() / "bench"
    folder.mkdir(exist_ok=True)
    results, about, load = {}, {"date": "", **machine()}, 0.0
    if not why_not("api"):
        about["versions"] += f", kube-apiserver {programs.version(programs.SERVER)}"
    began = time.gmtime()
    for name in names:
        started = time.monotonic()
        load = max(load, os.getloadavg()[0])
        why = why_not(GROUPS[name].get("needs", ""))
        results[name] = Result((), why) if why else measured(name, options.pairs, folder / f"{name}.log")
        about["date"] = f"{time.strftime('%Y-%m-%d, %H:%M', began)} to {time.strftime('%H:%M', time.gmtime())} UTC"
        about["when a row began"] = f"load at most {load:.1f} (the rows before are in it)"
        text = page(about, results, options.pairs)
        (folder / "performance.md").write_text(text, encoding="utf-8")
        took = time.monotonic() - started
        print(f"{name}: {results[name].why or 'done'}, {took:.0f} s", file=sys.stderr, flush=True)
    if options.names:
        print("\n".join(line for line in text.splitlines() if "not yet" not in line))
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

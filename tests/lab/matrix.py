# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The full matrix on guests: each case has its own lab and limit. The results are in the test evidence.

matrix.py                 run all cases and write the result; those that passed on the same files are not run again
matrix.py CASE ...        run these, and keep the results of the others
matrix.py --list          name them
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cluster_cases
import env
import host_cases
from fleet import CHECKOUT, LAB, Case, CaseError, Fleet

RESULTS = Path(__file__).with_name("results.json")
PASSED = CHECKOUT / "tests/output/matrix/passed.json"
# What lab.py ends with when packages or programs cannot be had.
EXIT_SKIPPED = 77


CASES = (
    Case("networkd", "hosts only, systemd-networkd", 3600, host_cases.network_manager, "networkd"),
    Case("netplan", "hosts only, netplan", 3600, host_cases.network_manager, "netplan"),
    Case("networkmanager", "hosts only, NetworkManager", 3600, host_cases.network_manager, "networkmanager"),
    Case("jammy", "hosts only, Ubuntu 22.04, netplan", 3600, host_cases.network_manager, "netplan", suite="jammy"),
    Case("noble", "hosts only, Ubuntu 24.04, netplan", 3600, host_cases.network_manager, "netplan", suite="noble"),
    Case("host-modules", "RDMA modules on a kernel with ib_core", 3600, host_cases.host_modules, nodes=1),
    Case("upgrade", "a driver upgrade with reboots, stopped by a node made worse", 3600, host_cases.upgrade),
    Case("accept", "acceptance: pairs to the whole lab, culprits named", 5400, host_cases.accept, nodes=3),
    Case("site-exclusive", "whole path, exclusive fabric", 3600, host_cases.site_exclusive),
    Case(
        "cluster-shared",
        "bare guests to pods on a real cluster, a reboot, a pool in use",
        5400,
        cluster_cases.shared,
        cluster=True,
    ),
    Case("cluster-broken", "MPI over pods, a cut rail, on a real cluster", 5400, cluster_cases.broken, cluster=True),
)


def run_one(case: Case, rails: int) -> str:
    """Run a case in this process; return what it showed."""
    fleet = Fleet(case, rails)
    fleet.down()
    try:
        return case.function(fleet)
    finally:
        fleet.down()


@dataclass(frozen=True)
class Result:
    """How a case ended."""

    case: Case
    status: str  # passed, failed, skipped
    seconds: float
    detail: str
    day: str

    def row(self) -> dict[str, str | int]:
        """Return the result as data; it names no place of one machine."""
        detail = self.detail.replace(f"{CHECKOUT}/", "").replace(str(Path.home()), "~").replace("|", "/")
        row = {"case": self.case.name, "shows": self.case.shows, "result": self.status, "seconds": round(self.seconds)}
        return {**row, "date": self.day, "detail": " ".join(detail.split())}


def today() -> str:
    """Return the date as results have it."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def attempt(case: Case, rails: int) -> Result:
    """Run a case in a process group of its own, ended when its time is over."""
    started = time.monotonic()
    with subprocess.Popen(
        [sys.executable, __file__, "--rails", str(rails), "--inside", case.name],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            text = process.communicate(timeout=case.limit)[0]
        except BaseException as exc:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            subprocess.run([*LAB, "down", f"mx-{case.name}"[:20]], capture_output=True, check=False)
            if not isinstance(exc, subprocess.TimeoutExpired):
                raise
            text = f"did not end within {case.limit} s"
    detail = f"{rails} rails; {text.strip()}"
    status = "passed" if process.returncode == 0 else "failed"
    return Result(case, status, time.monotonic() - started, detail, today())


def build_image(*words: str) -> str:
    """Build an image before the first case, so that no case pays for it; return why it cannot be had here."""
    done = subprocess.run(
        [*LAB, "image", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, EXIT_SKIPPED):
        sys.exit(done.stderr)
    return "" if done.returncode == 0 else done.stderr.strip()


def write_results(results: list[Result]) -> None:
    """Put the results into results.json; those of cases that did not run stay."""
    rows = {row["case"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))}
    rows |= {result.case.name: result.row() for result in results}
    known = [rows[case.name] for case in CASES if case.name in rows]
    RESULTS.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    subprocess.run([sys.executable, str(CHECKOUT / "tests/docs/evidence_doc.py")], check=True)


def passed() -> dict[str, str]:
    """Return the cases that passed, each with the digest of the files it passed on and its number of rails."""
    return json.loads(PASSED.read_text(encoding="utf-8")) if PASSED.exists() else {}


def inside(name: str, rails: int) -> None:
    """Run one case and print how it ended on stdout."""
    case = next(case for case in CASES if case.name == name)
    try:
        print(run_one(case, rails))
    except CaseError as exc:
        print(exc)
        sys.exit(1)


def main() -> None:
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-write", action="store_true", help="leave results.json and the test evidence as they are")
    parser.add_argument(
        "--rails", type=int, default=8, choices=range(3, 9), help="fewer for a slow machine (default 8)"
    )
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args.inside, args.rails)
    if args.list:
        return print("\n".join(f"{case.name:<16} {case.shows} (at most {case.limit // 60} minutes)" for case in CASES))
    if unknown := set(args.cases) - {case.name for case in CASES}:
        sys.exit(f"There is no case {', '.join(sorted(unknown))}: matrix.py --list names them.")
    if os.geteuid():
        sys.exit("The matrix starts guests in network namespaces, which needs root: sudo make lab-test")
    # Ended from outside, it takes its guests down.
    signal.signal(signal.SIGTERM, lambda *dummy: sys.exit(143))
    chosen = [case for case in CASES if not args.cases or case.name in args.cases]
    wanted = {(case.cluster, case.suite) for case in chosen}
    why_not = {(node, suite): build_image("--suite", suite, *["--cluster"][:node]) for node, suite in wanted}
    results = []
    written = ("tests/lab/results.json", "docs/project/test-evidence.md")
    now = f"{env.contents(but=written)} {args.rails} rails"
    for case in chosen:
        if not args.cases and passed().get(case.name) == now:
            print(f"{case.name}: passed on the same files; `matrix.py {case.name}` runs it again")
            continue
        print(f"{case.name}: {case.shows} ...", flush=True)
        if reason := why_not[case.cluster, case.suite]:
            results.append(Result(case, "skipped", 0.0, reason, today()))
        else:
            results.append(attempt(case, args.rails))
        print(f"  {results[-1].status.upper()} in {results[-1].seconds:.0f} s: {results[-1].detail}")
        if results[-1].status == "passed":
            PASSED.write_text(json.dumps({**passed(), case.name: now}), encoding="utf-8")
        if not args.no_write:
            write_results(results)
    if any(result.status == "failed" for result in results):
        sys.exit(1)
    return None


if __name__ == "__main__":
    main()

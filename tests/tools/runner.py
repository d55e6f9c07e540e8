# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run checks, as many at a time as two cores have room for, with output at least every ten seconds."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import typing as t
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import env
import packages
import progress
from progress import paint, say

Argv = t.Sequence[str]
LOGS = env.CHECKOUT / "tests/output/logs"
PROCESSOR = Path(__file__).with_name("processor.py")
# A busy machine is slow, and that is no failure: a command is ended when it hangs, however long it has run.
SILENT = 1800  # seconds without a line of output
GRACE = 60  # seconds for commands to take down what they made after SIGTERM
SILENCE_SECONDS = 8  # without output before a line is printed
SHOWN = 15  # lines of a failed check's log: those that name errors, and the last ones
ROOM = 4  # processes that work at a time on two cores: half of them wait for something else


@dataclass(frozen=True)
class Step:
    """One check: its commands run in order, the first failure ends it.

    :param workers: how many of its processes work at a time.
    :param root: it needs root and namespaces.
    :param rest: it belongs to `make test-all`.
    :param by_name: it is run only where it is named.
    :param weekly: it runs where RAILOPS_WEEKLY or a name asks for it.
    :param shows: the paths that it tests; if given, it runs when one of them has changed since it passed.
    :param prepare: makes what the cache lacks for it; done before all checks, so that none of them pays for it.
    """

    name: str
    about: str
    commands: t.Callable[[], t.Iterable[Argv]]
    workers: int = 1
    root: bool = False
    rest: bool = False
    by_name: bool = False
    weekly: bool = False
    shows: tuple[str, ...] = ()
    prepare: t.Callable[[], object] | None = None


class SkipStep(Exception):
    """This machine cannot run a check: why, and what would let it."""


@dataclass(frozen=True)
class Result:
    """How one check ended."""

    step: Step
    status: str  # passed, failed, skipped
    seconds: float
    detail: str

    @property
    def log(self) -> Path:
        """Where its output is."""
        return LOGS / f"{self.step.name}.log"

    @property
    def text(self) -> str:
        """Its output, without colors."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return re.sub(r"\x1b\[[\d;]*m", "", text)

    @property
    def cpu(self) -> float:
        """The seconds of a processor that it used (processor.py)."""
        return sum(map(float, re.findall(r"^processor: ([\d.]+) s$", self.text, re.MULTILINE)))


REST, ALL = "--rest", "--all"
# Weekly and before a release: everything, whether or not it has changed.
WEEKLY = os.environ.get("RAILOPS_WEEKLY") == "1"


def command_line_names() -> list[str]:
    """Return the names on the command line."""
    return [word for word in sys.argv[1:] if word not in (REST, ALL)]


def required() -> list[str]:
    """Return the checks that must not be skipped."""
    return os.environ.get("RAILOPS_REQUIRE", "").split()


def chosen(steps: t.Sequence[Step]) -> list[Step]:
    """Return the checks to run."""
    if names := command_line_names():
        return [step for step in steps if step.name in names]
    group = (True, False) if ALL in sys.argv[1:] else (REST in sys.argv[1:],)
    return [step for step in steps if step.rest in group and (step.name in required() or not step.by_name)]


def record(step: Step) -> Path:
    """Return the file of the cache that exists once a check has passed on the present content of its paths."""
    return env.cache() / f"passed-{step.name}-{env.contents(*step.shows)}"


def skip_reason(step: Step) -> str | None:
    """Return why a check need not run now; that also satisfies RAILOPS_REQUIRE."""
    if WEEKLY or step.name in command_line_names():
        return None
    if step.weekly and step.name not in required():
        return "left to the weekly run; RAILOPS_WEEKLY=1 runs it"
    return "unchanged since it passed; RAILOPS_WEEKLY=1 runs it" if step.shows and record(step).exists() else None


def missing(step: Step) -> str | None:
    """Say what a check needs that this machine lacks, and the remedy."""
    if step.root and (why := packages.no_namespaces()):
        return why
    if lacking := [item for item in packages.lacking(step.name) if not item.few]:
        return f"not found: {', '.join(item.gives for item in lacking)}; run: {packages.manual(lacking)}"
    return None


@dataclass
class Runner:
    """Runs checks and knows what is running."""

    environ: t.Callable[[], dict[str, str]]
    started: dict[str, float] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ending: threading.Event = field(default_factory=threading.Event)

    def run(self, step: Step) -> Result:
        """Run one check with its output in its own log file."""
        start = self.started[step.name] = time.monotonic()
        log = LOGS / f"{step.name}.log"
        reason = skip_reason(step)

        def result(status: str, detail: str) -> Result:
            del self.started[step.name]
            if status == "skipped":
                with log.open("a", encoding="utf-8") as file:
                    file.write(f"{detail}\n")
                if step.name in required() and detail != reason:
                    status, detail = "failed", f"RAILOPS_REQUIRE names it, and it was skipped: {detail}"
            return Result(step, status, time.monotonic() - start, detail)

        log.write_text("", encoding="utf-8")
        passed = record(step) if step.shows else None
        if why := reason or missing(step):
            return result("skipped", why)
        try:
            # What could not be made before is the failure of this check alone.
            if step.prepare:
                step.prepare()
            for command in step.commands():
                code = self._command(step.name, command, log)
                if code is None:
                    return result("failed", "it hung and was ended")
                if code:
                    return result("failed", f"exit code {code}")
        except SkipStep as why_not:
            return result("skipped", str(why_not))
        except progress.Failure as exc:
            log.write_text(f"ERROR {exc.what} {exc.why}\n{exc}\n", encoding="utf-8")
            return result("failed", exc.what)
        if passed:
            passed.touch()
        return result("passed", closing_line(log))

    def _command(self, name: str, argv: Argv, log: Path) -> int | None:
        """Run one command in a group of processes of its own; return its exit code, or None when it hung."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, str(PROCESSOR), *argv],
                cwd=env.CHECKOUT,
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes[name] = process
        if self.ending.is_set():
            end(process)
        try:
            return await_end(process, log)
        finally:
            del self.processes[name]

    def end(self) -> None:
        """End what runs."""
        self.ending.set()
        end(*self.processes.values())

    def running(self) -> str:
        """Say what runs, for how long, and how far it is."""
        now = time.monotonic()
        parts = []
        for name, started in list(self.started.items()):
            log = LOGS / f"{name}.log"
            # Its first command opens the log; on a busy machine that takes a while.
            text = log.read_text(encoding="utf-8", errors="replace")[-4000:] if log.exists() else ""
            found = re.findall(r"\[ *(\d+%)\]", text)
            parts.append(f"{name} {now - started:.0f} s{f' {found[-1]}' if found else ''}")
        return ", ".join(parts)

    def all(self, steps: t.Sequence[Step]) -> t.Generator[Result, None, None]:
        """Run the checks in this order, as many at a time as there is room for; give each as it ends."""
        waiting = list(steps)
        started: dict[Future[Result], Step] = {}
        with ThreadPoolExecutor(max_workers=ROOM) as pool:
            last = time.monotonic()
            try:
                while waiting or started:
                    for step in list(waiting):
                        if not started or sum(other.workers for other in started.values()) + step.workers <= ROOM:
                            waiting.remove(step)
                            started[pool.submit(self.run, step)] = step
                    done, _left = wait(started, timeout=1, return_when=FIRST_COMPLETED)
                    for future in done:
                        del started[future]
                        yield future.result()
                    if not done and time.monotonic() - last > SILENCE_SECONDS:
                        say(f"         ... {self.running()}")
                        last = time.monotonic()
            except BaseException:
                self.end()
                raise


def await_end(process: subprocess.Popen[bytes], log: Path) -> int | None:
    """Wait for a command as long as it prints; return its exit code, or None when it hung and was ended."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(10)
        if time.time() - log.stat().st_mtime > SILENT:
            end(process)
            return None


def end(*processes: subprocess.Popen[bytes]) -> None:
    """End groups of processes by SIGTERM, so that tests take down what they made, and after GRACE by SIGKILL."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sent)
        deadline = time.monotonic() + GRACE
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, deadline - time.monotonic()))


def closing_line(log: Path) -> str:
    """Return the line in which a test runner adds up, or nothing."""
    found = re.findall(r"^=* ?(\d+ passed.*?) ?=*$", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return found[-1] if found else ""


def causes(text: str) -> list[str]:
    """Return the lines of a log in which a tool says what was wrong; Molecule puts a bar before them."""
    return [line for line in text.splitlines() if re.match(r"(  │ )?(ERROR|FAILED|E  |fatal:|\[ERROR\])", line)]


def skips(result: Result) -> dict[str, int]:
    """Return what was skipped within a check that passed: how many tests for each reason."""
    found: dict[str, int] = {}
    if result.status == "passed":
        for count, reason in re.findall(r"^SKIPPED \[(\d+)\] \S+: (.*)$", result.text, re.MULTILINE):
            found[reason] = found.get(reason, 0) + int(count)
    return found


def show(result: Result) -> None:
    """Print one result; of a failure the end of its log, of a pass what was skipped in it."""
    word = paint(f"{result.status:8}", {"passed": "32", "failed": "31"}.get(result.status, "33"))
    say(f"{word} {result.step.name:13} {result.seconds:6.1f} s, processor {result.cpu:5.0f} s  {result.detail}")
    if result.status == "failed":
        lines = result.text.splitlines()
        for line in dict.fromkeys([*causes(result.text)[:SHOWN], *lines[-SHOWN:]]):
            say(f"    {line}")
    for reason, count in skips(result).items():
        say(f"    skipped {count} of its tests: {reason}")


def briefly(reason: str) -> str:
    """Return why without what to do about it."""
    return re.split(r"[;:(]", reason)[0].strip()


def summary(results: t.Sequence[Result]) -> str:
    """Count what passed, failed and was skipped, also within the checks that passed, and say why."""
    counts = {status: sum(result.status == status for result in results) for status in ("passed", "failed", "skipped")}
    whole = [f"{result.step.name}: {briefly(result.detail)}" for result in results if result.status != "passed"]
    within: dict[str, int] = {}
    for result in results:
        for reason, count in skips(result).items():
            within[briefly(reason)] = within.get(briefly(reason), 0) + count
    why = f" ({'; '.join(whole)})" if whole else ""
    if within:
        each = "; ".join(f"{count}: {reason}" for reason, count in sorted(within.items(), key=lambda row: -row[1]))
        why += f", and {sum(within.values())} tests within those that passed ({each})"
    return f"checks: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped{why}"


def slowest(results: t.Sequence[Result]) -> list[str]:
    """Return the files of tests whose slow tests took longest, as the logs say it (pytest's --durations)."""
    files: dict[str, float] = {}
    for result in results:
        for seconds, file in re.findall(r"^([\d.]+)s (?:call|setup|teardown) +([^\s:]+)::", result.text, re.MULTILINE):
            files[file] = files.get(file, 0) + float(seconds)
    return [f"{seconds:6.0f} s  {file}" for file, seconds in sorted(files.items(), key=lambda row: -row[1])[:SHOWN]]


def announce(steps: t.Sequence[Step]) -> None:
    """Say what is about to happen."""
    many = f"{len(steps)} checks" if len(steps) > 1 else f"the check {steps[0].name}"
    say(f"railops.rdma: {many}.")
    say(f"What this machine cannot run is skipped, with the reason. Logs: {LOGS.relative_to(env.CHECKOUT)}")


def show_all(steps: t.Sequence[Step]) -> None:
    """Print the checks' names and what each is for."""
    for step in steps:
        where = "only by name" if step.by_name else "make test-all" if step.rest else "make test"
        say(f"{step.name:13} {where:13} {step.about}")


def ended(*_dummy: object) -> t.NoReturn:
    """Exit on SIGTERM; a second one does not cut off the end of what runs."""
    signal.signal(signal.SIGTERM, lambda *_dummy: None)
    sys.exit(143)


def main(steps: t.Sequence[Step], environ: t.Callable[[], dict[str, str]]) -> None:
    """Run the checks that were asked for."""
    known = [step.name for step in steps]
    if unknown := [name for name in (*command_line_names(), *required()) if name not in known]:
        sys.exit(f"No such check: {', '.join(unknown)}. See: check.py --list")
    signal.signal(signal.SIGTERM, ended)
    todo = chosen(steps)
    env.stream = sys.stdout
    announce(todo)
    results = []
    try:
        env.emptied(LOGS)
        env.trust_checkout()
        packages.provide(*(step.name for step in todo))
        env.environment(None)
        env.tree()
        env.old_pyroute2()
        for step in todo:
            if step.prepare and not skip_reason(step) and not missing(step):
                with contextlib.suppress(progress.Failure):
                    step.prepare()
        with contextlib.closing(Runner(environ).all(todo)) as found:
            for result in found:
                results.append(result)
                show(result)
    except progress.Failure as exc:
        sys.exit(f"\n{exc}")
    except KeyboardInterrupt:
        sys.exit(130)
    if rows := slowest(results):
        say("\n".join(["where tests of five seconds and more took longest, by file:", *rows]))
    say(f"processor: {sum(result.cpu for result in results):.0f} s, user and system, of all checks")
    say(summary(results))
    sys.exit(any(result.status == "failed" for result in results))

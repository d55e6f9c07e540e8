# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test command itself: what it counts, what it ends with, and what a person reads of a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
SLOW = TOOLS.parent / "slow.txt"

import packages
import progress
import runner
from runner import SkipStep, Step


def python(text):
    return [sys.executable, "-c", text]


def runs(*commands):
    return lambda: iter(commands)


def refuse():
    raise SkipStep("no such thing here; run: apt-get install thing")


def cannot():
    yield refuse()


GOOD = Step("good", "", runs(python("print('SKIPPED [2] a.py:1: no root'); print('3 passed, 2 skipped in 0.1s')")), 1)
BAD = Step("bad", "", runs(python("print('FAILED a.py::b - it broke'); raise SystemExit(3)")), 1, workers=2)
UNABLE = Step("unable", "", cannot, 1)
RARE = Step("rare", "", runs(python("pass")), 1, by_name=True)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function: run these checks; give the exit code and what was printed."""
    monkeypatch.setattr(runner, "LOGS", runner.env.CHECKOUT / "tests/output" / f"logs-of-tests-{os.getpid()}")
    for name in ("environment", "tree", "old_pyroute2"):
        monkeypatch.setattr(runner.env, name, lambda *dummy: None)
    monkeypatch.setattr(packages, "provide", lambda *dummy: None)
    monkeypatch.setattr(packages, "lacking", lambda *dummy: [])
    monkeypatch.delenv("RAILOPS_REQUIRE", raising=False)

    def start(*steps, words=(), require=""):
        monkeypatch.setattr(sys, "argv", ["check.py", *words])
        if require:
            monkeypatch.setenv("RAILOPS_REQUIRE", require)
        with pytest.raises(SystemExit) as caught:
            runner.main(steps, lambda: dict(os.environ))
        return caught.value.code, capsys.readouterr().out

    yield start
    for path in runner.LOGS.glob("*"):
        path.unlink()
    if runner.LOGS.exists():
        runner.LOGS.rmdir()


def test_skips_do_not_fail_a_run_and_are_counted_in_its_last_line(run):
    code, said = run(GOOD, UNABLE)
    assert code == 0
    last = "checks: 1 passed, 0 failed, 1 skipped (unable: no such thing here), and 2 tests within those that passed"
    assert said.splitlines()[-1] == f"{last} (2: no root)"
    assert "no such thing here; run: apt-get install thing" in said
    assert "2 checks, about a minute on two cores" in said.splitlines()[0]


def test_a_required_check_that_is_skipped_is_red(run):
    code, said = run(GOOD, UNABLE, require="good unable")
    assert code == 1
    assert "RAILOPS_REQUIRE names it, and it was skipped: no such thing here" in said
    assert said.splitlines()[-1].startswith("checks: 1 passed, 1 failed, 0 skipped")


def test_a_failure_ends_with_what_why_what_to_do_and_the_log(run):
    code, said = run(GOOD, BAD)
    assert code == 1
    what, why, fix, log, empty, count = said.splitlines()[-6:]
    assert what == "what:  The check bad failed: exit code 3."
    assert why == "why:   FAILED a.py::b - it broke"
    assert fix == "to do: Mend it, then: make test CHECK=bad"
    assert Path(log.removeprefix("log:   ")).name == "bad.log"
    assert empty == ""
    assert count.startswith("checks: 1 passed, 1 failed, 0 skipped")


def test_checks_that_are_run_by_name_only(run):
    assert "rare" not in run(GOOD, RARE)[1]
    assert "passed   rare" in run(GOOD, RARE, words=["rare"])[1]
    assert "good" not in run(GOOD, RARE, words=["rare"], require="good")[1].splitlines()[2]
    assert "passed   rare" in run(GOOD, RARE, require="rare")[1]


@pytest.mark.parametrize("more", [{"words": ["nonsense"]}, {"require": "nonsense"}])
def test_an_unknown_check_is_refused(run, more):
    code, _said = run(GOOD, **more)
    assert str(code).startswith("No such check: nonsense.")


def test_a_long_check_is_never_silent(run, monkeypatch):
    monkeypatch.setattr(runner, "QUIET", 1)
    slow = Step("slow", "", runs(python("import time; print('...... [ 40%]', flush=True); time.sleep(4)")), 1)
    _code, said = run(slow)
    assert "... slow" in said
    assert "40%" in said


def test_as_many_at_a_time_as_there_is_room_for(run, tmp_path):
    text = f"""
import os, time
open("{tmp_path}/{{0}}", "w").close()
time.sleep(0.5)
print(len(os.listdir("{tmp_path}")), "passed")
os.unlink("{tmp_path}/{{0}}")
"""
    steps = [Step(f"pair{number}", "", runs(python(text.format(number))), 5, workers=2) for number in range(3)]
    whole = Step("whole", "", runs(python(text.format("whole"))), 9, workers=runner.ROOM + 1)
    code, said = run(*steps, whole)
    assert code == 0
    ends = [line.split()[1:5:3] for line in said.splitlines() if line.startswith("passed")]
    # The longest is the first, and what is too large for all of it runs by itself.
    assert ends[0] == ["whole", "1"]
    assert max(int(count) for _name, count in ends) == 2


def test_the_rest_is_a_command_of_its_own(run):
    late, newest = Step("late", "", runs(python("pass")), 1, rest=True), Step("newest", "", runs(python("1/0")), 1)
    assert "late" not in run(GOOD, late)[1]
    code, said = run(GOOD, late, RARE, words=["--rest"])
    assert (code, "passed   late" in said, "good" in said, "rare" in said) == (0, True, False, False)
    assert "passed   late" in run(GOOD, late, words=["late"])[1]
    # What others release may be red where nobody requires it.
    soft = replace(newest, soft=True)
    assert "skipped  newest" in run(soft)[1]
    assert run(newest)[0] == run(soft, require="newest")[0] == 1


def test_the_times_are_told_by_file(run):
    text = "12.00s call     tests/a.py::one\\n 1.00s call tests/b.py::x\\n6.40s setup    tests/a.py::two"
    code, said = run(Step("timed", "", runs(python(f"print('{text}')")), 1))
    assert code == 0
    assert "    18 s  tests/a.py" in said


@pytest.mark.parametrize("gets_on", ["print('.', flush=True); time.sleep(.2)", "sum(range(10**6))"])
def test_a_check_that_gets_on_is_never_ended(run, monkeypatch, gets_on):
    monkeypatch.setattr(runner, "IDLE", 3)
    text = f"import time\nuntil = time.monotonic() + 5\nwhile time.monotonic() < until: {gets_on}"
    assert run(Step("slow", "", runs(python(text)), 1))[0] == 0


def test_a_check_that_stands_still_is_ended_with_its_children(run, monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "IDLE", 1)
    monkeypatch.setattr(runner, "GRACE", 1)
    text = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    code, said = run(Step("stuck", "", runs(["sh", "-c", text]), 1))
    assert code == 1
    assert "it stood still and was ended" in said
    until = time.monotonic() + 120
    child = Path("/proc", (tmp_path / "pid").read_text(encoding="utf-8").strip(), "stat")
    while child.exists() and " Z " not in child.read_text(encoding="utf-8") and time.monotonic() < until:
        time.sleep(0.1)
    assert not child.exists() or " Z " in child.read_text(encoding="utf-8")


def test_ended_from_outside_it_ends_what_it_started(tmp_path):
    """As `timeout make test` does: the checks are ended too."""
    text = f"""
import os, sys
sys.path.insert(0, {str(TOOLS)!r})
import runner, packages
os.environ.pop("RAILOPS_REQUIRE", None)
runner.env.environment = runner.env.tree = runner.env.old_pyroute2 = lambda *dummy: None
packages.provide = lambda *dummy: None
command = ["sh", "-c", "echo $$ > {tmp_path}/pid; exec sleep 60"]
sys.argv = ["check.py"]
runner.LOGS = runner.env.CHECKOUT / "tests/output/logs-of-tests-{os.getpid()}"
runner.main([runner.Step("stuck", "", lambda: iter([command]), 1)], lambda: dict(os.environ))
"""
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not (tmp_path / "pid").exists() and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143
    number = (tmp_path / "pid").read_text(encoding="utf-8").strip()
    assert not Path("/proc", number).exists()


class TestPackages:
    @pytest.mark.parametrize(
        ("release", "known"),
        [
            ('ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n', True),
            ('ID=debian\nVERSION_ID="11"\nPRETTY_NAME="Debian GNU/Linux 11 (bullseye)"\n', False),
            ("ID=debian\nPRETTY_NAME=sid\n", True),
            ('ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"\n', True),
            ('ID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04"\n', False),
            ('ID=ubuntu\nVERSION_ID="26.04"\nPRETTY_NAME="Ubuntu 26.04"\n', True),
            ('ID=fedora\nVERSION_ID=44\nPRETTY_NAME="Fedora Linux 44"\n', False),
            ("", False),
        ],
    )
    def test_where_packages_can_be_installed(self, release, known, tmp_path, monkeypatch):
        path = tmp_path / "os-release"
        path.write_text(release, encoding="utf-8")
        monkeypatch.setattr(packages, "RELEASE", path)
        assert packages.release()[1] is known

    def test_elsewhere_one_line_says_what_is_missing(self, tmp_path, monkeypatch, capsys):
        path = tmp_path / "os-release"
        path.write_text('ID=fedora\nVERSION_ID=44\nPRETTY_NAME="Fedora Linux 44"\n', encoding="utf-8")
        monkeypatch.setattr(packages, "RELEASE", path)
        monkeypatch.delenv("RAILOPS_INSTALL", raising=False)
        monkeypatch.setattr(packages, "lacking", lambda *names: [packages.IP])
        packages.provide("demo")
        (line,) = capsys.readouterr().out.splitlines()
        assert "Missing here: iproute2. Nothing is installed: this is Fedora Linux 44" in line

    def test_it_can_be_forbidden(self, monkeypatch):
        monkeypatch.setenv("RAILOPS_INSTALL", "0")
        monkeypatch.setattr(packages, "release", lambda: ("Debian", True))
        assert packages.forbidden() == "RAILOPS_INSTALL=0" or not packages.shutil.which("apt-get")

    @pytest.mark.parametrize("name", ["network-manager", "netplan.io", "ifupdown", "systemd-resolved", "snapd", "dbus"])
    def test_what_would_change_the_machine_s_network_is_never_installed(self, name, monkeypatch):
        def asked(argv, **dummy):
            return subprocess.CompletedProcess(argv, 0, f"Inst harmless (1)\nInst {name} (2)\n", "")

        called = []
        monkeypatch.setattr(packages.subprocess, "run", asked)
        monkeypatch.setattr(packages.progress, "step", lambda title, *dummy, **more: called.append(title))
        with pytest.raises(progress.Failure, match="were not installed") as caught:
            packages.install(["thing"])
        assert name in caught.value.why
        assert called == ["apt-get update"]

    def test_every_need_is_a_check_or_the_demo(self):
        import check

        assert set(packages.NEEDS) - {step.name for step in check.STEPS} == {"demo"}


def test_every_row_of_slow_tests_is_there():
    rows = [row for row in SLOW.read_text(encoding="utf-8").split("\n") if row and row[0] != "#"]
    for path, _colons, name in (row.partition("::") for row in rows):
        text = (SLOW.parent.parent / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text, f"{path} has no {name}"
    assert rows == sorted(rows)


class TestProgress:
    def test_a_step_shows_its_title_dots_and_time_and_keeps_the_output(self, tmp_path, capsys):
        done = progress.step("look", python("import time; print('seen'); time.sleep(2.5)"), log=tmp_path / "log")
        assert (done.code, done.output) == (0, "seen\n")
        shown = capsys.readouterr().out
        assert shown.startswith("  look ..")
        assert len(shown.partition(" done ")[0]) == progress.WIDTH
        assert "seen" in (tmp_path / "log").read_text(encoding="utf-8")

    def test_what_is_not_there_or_does_not_end_is_a_failure(self, tmp_path, capsys):
        assert progress.step("look", ["/no/such/thing"], log=tmp_path / "log").code == progress.NOT_STARTED
        assert progress.step("look", ["sleep", "9"], log=tmp_path / "log", timeout=1).code == progress.TIMED_OUT
        assert capsys.readouterr().out.count("failed") == 2

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test command itself: what it counts, what it ends with, and what a person reads of a failure."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"

import packages
import progress
import runner
from runner import Step


def python(text):
    return [sys.executable, "-c", text]


def runs(*commands):
    return lambda: iter(commands)


GOOD = Step("good", "", runs(python("print('SKIPPED [2] a.py:1: no root'); print('3 passed, 2 skipped in 0.1s')")))
BAD = Step("bad", "", runs(python("print('FAILED a.py::b - it broke'); raise SystemExit(3)")), workers=2)


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


def test_a_check_with_paths_runs_when_one_of_them_has_changed_since_it_passed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("RAILOPS_CACHE", str(tmp_path / "cache"))
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "init", "-q", checkout], check=True)
    monkeypatch.setattr(runner.env, "CHECKOUT", checkout)
    monkeypatch.setattr(runner, "LOGS", checkout / "tests/output/logs")
    for name in ("own", "other"):
        (checkout / name).write_text("1", encoding="utf-8")
    good = replace(GOOD, shows=("own",))
    bad = replace(BAD, name="good", shows=("own",))
    assert run(bad)[0] == 1
    assert "passed   good" in run(good)[1]
    (checkout / "other").write_text("2", encoding="utf-8")
    code, text = run(good, require="good")
    assert code == 0
    assert "1 skipped (good: unchanged since it passed)" in text.splitlines()[-1]
    assert "passed   good" in run(good, words=["good"])[1]
    (checkout / "own").write_text("2", encoding="utf-8")
    assert run(bad)[0] == 1
    assert "passed   good" in run(good)[1]


def test_a_failed_check_prints_the_failed_tasks_of_molecule(run):
    task = "  \x1b[2m\x1b[31m│\x1b[0m \x1b[0;31mfatal: [node1]: FAILED! => no address\x1b[0m"
    bad = replace(BAD, commands=runs(python(f"print({task!r}); print('rest\\n' * 40); raise SystemExit(2)")))
    assert "      │ fatal: [node1]: FAILED! => no address\n" in run(bad)[1]


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
runner.main([runner.Step("stuck", "", lambda: iter([command]))], lambda: dict(os.environ))
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


def test_each_row_of_slow_txt_names_tests():
    rows = [
        row for row in (TOOLS.parent / "slow.txt").read_text(encoding="utf-8").splitlines() if row and row[0] != "#"
    ]
    wrong = []
    for row in rows:
        file, _, test = row.partition("::")
        path = TOOLS.parents[1] / file
        if not path.is_file() or (f"def {test}(" if test else "def test_") not in path.read_text(encoding="utf-8"):
            wrong.append(row)
    assert wrong == []


@pytest.mark.parametrize("words", [[], ["-n", "1"]], ids=["one process", "a worker"])
def test_ended_from_outside_pytest_takes_down_what_its_fixtures_made(words):
    folder = runner.env.CHECKOUT / f"tests/output/ended-{os.getpid()}"
    folder.mkdir(parents=True)
    made, file = folder / "made", folder / "test_it.py"
    file.write_text(
        f"""
import pathlib, pytest, time
MADE = pathlib.Path({str(made)!r})
@pytest.fixture
def lab():
    MADE.touch()
    yield
    # Longer than execnet waits for a worker before it interrupts it.
    time.sleep(7)
    MADE.unlink()
def test_it(lab):
    time.sleep(600)
""",
        encoding="utf-8",
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, str(file)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 120
    while not made.exists() and time.monotonic() < until:
        time.sleep(0.1)
    runner.end(process)
    left = made.exists()
    shutil.rmtree(folder)
    assert not left


class TestPackages:
    @pytest.mark.parametrize("name", ["network-manager", "netplan.io", "ifupdown", "systemd-resolved", "snapd", "dbus"])
    def test_network_packages_are_never_installed(self, name, monkeypatch):
        def refused_run(argv, **dummy):
            return subprocess.CompletedProcess(argv, 0, f"Inst harmless (1)\nInst {name} (2)\n", "")

        called = []
        monkeypatch.setattr(packages.subprocess, "run", refused_run)
        monkeypatch.setattr(packages.progress, "step", lambda title, *dummy, **more: called.append(title))
        with pytest.raises(progress.Failure, match="were not installed") as caught:
            packages.install(["thing"])
        assert name in caught.value.why
        assert called == ["apt-get update"]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for all tests: SIGTERM takes down what they made; rare faults that take minutes, and draws by chance, are
left to the check `long`.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# Tests lay out machines of a thousand files: in memory that takes a fifth of the processor time. A container may have
# little of it, or mount it noexec: tests run programs that they write.
MEMORY = "/dev/shm"
if os.path.isdir(MEMORY) and os.access(MEMORY, os.W_OK):
    memory = os.statvfs(MEMORY)
    if memory.f_bavail * memory.f_frsize > 4 << 30 and not memory.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
HERE = Path(__file__).resolve().parent
# `ansible-test units` reads no pyproject.toml.
sys.path.append(str(HERE / "tools"))


def in_a_plain_clone() -> bool:
    """Return whether Python does not find this collection by its name."""
    try:
        return importlib.util.find_spec("ansible_collections.railops.rdma.plugins") is None
    except ModuleNotFoundError:
        return True


if in_a_plain_clone():
    # For this process, and for the programs that tests start.
    COLLECTIONS = tempfile.TemporaryDirectory(prefix="railops-rdma-")
    link = Path(COLLECTIONS.name) / "ansible_collections/railops/rdma"
    link.parent.mkdir(parents=True)
    link.symlink_to(HERE.parent)
    for name in ("ANSIBLE_COLLECTIONS_PATH", "PYTHONPATH"):
        os.environ[name] = ":".join(filter(None, (COLLECTIONS.name, os.environ.get(name))))
    sys.path.insert(0, COLLECTIONS.name)
    importlib.invalidate_caches()

LONG = bool(os.environ.get("RAILOPS_TEST_LONG"))
# On each push the same examples, on every machine.
settings.register_profile("push", derandomize=True, deadline=None)
settings.register_profile("long", print_blob=True, deadline=None)
settings.load_profile("long" if LONG else "push")


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGTERM end a run as Ctrl-C does, with the teardown of its fixtures, which no later signal cuts off."""
    leads = bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")

    def end(*_dummy: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_dummy: None)
        if not leads:
            raise KeyboardInterrupt
        # Workers of xdist end first; their controller then ends by their answers.
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
            os.kill(int(pid), signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


@pytest.fixture
def seed(record_property):
    """Give a function: what a test's draws begin with, which is printed: a variable's value, or by chance, or fixed."""

    def chosen(variable):
        found = int(os.environ.get(variable) or (random.SystemRandom().randrange(1 << 30) if LONG else 1))
        record_property(variable, found)
        return found

    return chosen


def pytest_terminal_summary(terminalreporter):
    """Print the seeds."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    for name, value in sorted({row for report in reports for row in getattr(report, "user_properties", ())}):
        terminalreporter.write_line(f"{name}={value}")


# A row is a file, or a file and a test (tests/slow.txt).
SLOW = [row for row in (HERE / "slow.txt").read_text(encoding="utf-8").split("\n") if row and row[0] != "#"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to `make test-all`, and skip what takes minutes, unless it is asked for."""
    for item in items:
        path = item.path.relative_to(HERE.parent).as_posix()
        if {path, f"{path}::{item.name.partition('[')[0]}"} & set(SLOW):
            item.add_marker(pytest.mark.slow)
    if not LONG:
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes; run: make test CHECK=long"))

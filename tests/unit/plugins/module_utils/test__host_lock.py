# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who changes a host: the file there, over a clock that is played."""

from __future__ import annotations

import fcntl
import os
import time

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _host_lock
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError

MANAGED = "ann@ctl1, process 7:70"
EARLIER = "ann@ctl1, process 3:30"
THEIRS = "bob@ctl2, process 7:70"


class Clock:
    """A clock that moves during a sleep; meanwhile other holders may renew."""

    def __init__(self, path: str) -> None:
        self.now = time.time()
        self.slept = 0.0
        self.path = path
        self.comes_again = False
        self.jump = 0.0  # once, during a sleep

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        if self.comes_again:
            os.utime(self.path, (self.now + 1, self.now + 1))
        self.now += seconds + self.jump
        self.jump = 0.0


@pytest.fixture
def clock(tmp_path, monkeypatch):
    made = Clock(str(tmp_path / "run"))
    monkeypatch.setattr(_host_lock, "time", made)
    return made


def hold_lock(clock, by):
    with open(clock.path, "w", encoding="utf-8") as stream:
        stream.write(by)
    os.utime(clock.path, (clock.now, clock.now))


def holder(clock):
    with open(clock.path, encoding="utf-8") as stream:
        return stream.read()


def test_a_free_host_is_taken_and_kept_without_waiting(clock):
    _host_lock.acquire_host_lock(MANAGED, clock.path)
    _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert (holder(clock), clock.slept) == (MANAGED, 0)


def test_another_controllers_run_that_comes_again_is_named(clock):
    hold_lock(clock, THEIRS)
    clock.comes_again = True
    with pytest.raises(RdmaError, match=f"Another run is under way: {THEIRS}.*run again"):
        _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert holder(clock) == THEIRS


def test_another_controllers_run_that_does_not_come_again_is_waited_out(clock):
    hold_lock(clock, THEIRS)
    _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert holder(clock) == MANAGED
    assert 59 < clock.slept <= 60
    clock.now += 61
    hold_lock(clock, THEIRS)
    clock.now += 61
    slept = clock.slept
    _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert clock.slept == slept


def test_a_run_of_the_own_controller_is_known_to_be_over(clock):
    hold_lock(clock, EARLIER)
    _host_lock.acquire_host_lock(f"{MANAGED}|7:70,8:80", clock.path)
    assert (holder(clock), clock.slept) == (MANAGED, 0)


@pytest.mark.parametrize("run", [f"{MANAGED}|3:30,7:70", MANAGED], ids=["it lives", "unknown"])
def test_a_run_of_the_own_controller_that_may_live_is_not(clock, run):
    hold_lock(clock, EARLIER)
    clock.comes_again = True
    with pytest.raises(RdmaError, match="Another run is under way"):
        _host_lock.acquire_host_lock(run, clock.path)


def test_lock_holder_timeout(clock):
    hold_lock(clock, "")
    with open(clock.path, encoding="utf-8") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RdmaError, match=f"keeps {clock.path} locked.*fuser"):
            _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert clock.slept < 11


def test_only_root_can_read_and_so_lock_the_file(clock):
    _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert os.stat(clock.path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("jump", "waited"), [(-86400, 0), (-61, 0), (-30, 90), (30, 30), (61, 0), (86400, 0)], ids="{}".format
)
def test_a_clock_that_jumped_keeps_no_run_away(clock, jump, waited):
    hold_lock(clock, THEIRS)
    clock.now += jump
    _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert holder(clock) == MANAGED
    assert clock.slept == pytest.approx(waited, abs=1)


@pytest.mark.parametrize("jump", [-86400, -30, 30, 86400])
def test_nor_does_one_that_jumps_while_another_run_is_waited_out(clock, jump):
    hold_lock(clock, THEIRS)
    clock.jump = jump
    _host_lock.acquire_host_lock(MANAGED, clock.path)
    assert holder(clock) == MANAGED
    assert clock.slept < 121


def test_user_without_write_permission_changes_no_host(clock, tmp_path):
    os.symlink("/nonexistent", tmp_path / "link")
    _host_lock.acquire_host_lock(MANAGED, str(tmp_path / "link"))
    _host_lock.acquire_host_lock(MANAGED, str(tmp_path / "no/such/folder"))
    assert not os.path.exists("/nonexistent")

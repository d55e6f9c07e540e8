# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The API's server or Spiderpool's controller is killed while a playbook runs, beside the real ones.

The run ends well, or with one sentence that names what was killed; the next one completes, and after that there is
nothing to do. Both are started again as kubelets do it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
import typing as t
from pathlib import Path

import pytest
from conftest import Live, Playbook
from kubernetes.client.exceptions import ApiException
from plays import RAIL_OBJECTS, SPIDERPOOL, from_, releases, use
from urllib3.exceptions import HTTPError

# Each takes a minute or more.
pytestmark = [pytest.mark.usefixtures("spiderpool"), pytest.mark.long]

Json = dict[str, t.Any]
# What a sentence may call each of them.
NAMED = {"kube-apiserver": r"\bAPI\b", "spiderpool-controller": r"spiderpool-controller|webhook"}


def kill(program: str) -> None:
    """End a program of this process namespace, which is the tests' own, without a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        words = path.read_bytes().split(b"\0") if path.exists() else []
        if words[0].decode(errors="replace").rpartition("/")[2] == program:
            found.append(int(path.parent.name))
    assert found, f"{program} does not run"
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def asked(question: t.Callable[[], t.Any]) -> t.Any:
    """Return the answer; nothing while there is no API."""
    try:
        return question()
    except (ApiException, HTTPError, OSError):
        return None


def cut_off(playbook: Playbook, play: list[Json], program: str, now: t.Callable[[], bool]) -> tuple[int, list[str]]:
    """Start a play, kill a program when it is time; return how the play ended and the messages of its failures."""
    running = playbook.start(play)
    try:
        while not now():
            assert running.poll() is None, "the play ended before it was time"
            time.sleep(0.05)
        kill(program)
        code = running.wait(600)
    finally:
        running.kill()
    said = (playbook.folder / "said").read_text(encoding="utf-8")
    print(said[-3000:])
    told = [json.loads(row) for row in re.findall(r"^fatal: \[localhost\]: FAILED! => (\{.*\})$", said, re.MULTILINE)]
    return code, [str(row.get("msg", row)) for row in told]


@pytest.mark.parametrize("program", NAMED)
def test_killed_while_pools_are_written(
    playbook: Playbook, live: Live, plans: t.Callable[[str], Path], program: str
) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    # What nodes offer is the device plugin's, which is not what is killed here.
    playbook.values.update({"rail_objects_retry_seconds": 30, "rail_objects_nodes_required": False})
    play = [RAIL_OBJECTS]
    try:
        code, told = cut_off(playbook, play, program, lambda: len(live.ours("SpiderIPPool")) > 4)
        assert code == 0 or (len(told) == 1 and re.search(NAMED[program], told[0])), told
        live.until(lambda: asked(lambda: len(live.ours("SpiderIPPool"))) is not None)
        playbook.run(play)
        assert (len(live.ours("SpiderIPPool")), len(live.ours("SpiderMultusConfig"))) == (64, 8)
        assert playbook.run(play).changed_tasks() == []
    finally:
        playbook.run([from_("rail_objects", "remove")])


@pytest.mark.parametrize(("program", "interval"), list(zip(NAMED, (61, 62), strict=True)))
def test_killed_while_the_release_changes(
    playbook: Playbook, live: Live, plans: t.Callable[[str], Path], program: str, interval: int
) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    # Another value, so that there is something to do. What was cut off is somebody else's for the timeout.
    plugin = {"deviceConfig": {"periodicUpdateInterval": interval}}
    values = {"spiderpool_values": {"rdma": {"rdmaSharedDevicePlugin": plugin}}, "spiderpool_timeout": 20}
    play = [{**SPIDERPOOL, "vars": values}]
    code, told = cut_off(playbook, play, program, lambda: "pending-upgrade" in releases(live))
    assert code == 0 or (len(told) == 1 and re.search(NAMED[program], told[0])), told
    live.until(lambda: asked(lambda: releases(live)) is not None)
    time.sleep(0 if code == 0 else 20)
    playbook.run(play)
    assert set(releases(live)) <= {"deployed", "failed", "superseded"}
    assert playbook.run(play).changed_tasks() == []

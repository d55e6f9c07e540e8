# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan folder on a real disk: what is written, what is left alone, and what a kill, a full disk or a lock leave."""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import itertools
import os
import pickle
import shutil
import signal

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import verified
from ansible_collections.railops.rdma.plugins.plugin_utils._host_plan import read_host_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import store as store_module
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.store import PlanStore
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, rails


@pytest.fixture(autouse=True)
def no_sync(request, monkeypatch):
    """On a busy machine a sync takes seconds, and a process that dies needs none; one test has the real one."""
    if "real_sync" not in request.fixturenames:
        monkeypatch.setattr(store_module, "sync_filesystem", lambda folder: None)
        monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def real_sync():
    """Leave the sync as it is."""


def raw(folder, **more):
    return {**exclusive(rails=rails(2), plan_dir=str(folder)), **more}


def tree(folder):
    """Every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def make(folder, count=3, **more):
    return run(raw(folder, **more), hosts(count), check_mode=False)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_stale_files_go_and_strangers_stay(tmp_path):
    make(tmp_path, 3)
    folder = tmp_path / "fabric"
    (folder / "hosts/notes.txt").write_text("mine")
    (folder / "hosts/ghost.json").write_text("{}")
    (folder / "cluster/extra.yaml").write_text("mine: true")
    (folder / "README").write_text("mine")

    run(raw(tmp_path, retire=["node3"]), hosts(2), check_mode=False)

    left = set(tree(folder))
    assert {"hosts/notes.txt", "cluster/extra.yaml", "README"} <= left
    assert not {"hosts/ghost.json", "hosts/node3.json"} & left


def test_check_mode_writes_nothing_and_predicts_the_run(tmp_path):
    predicted = run(raw(tmp_path / "new"), hosts(2), check_mode=True, diff=True)
    assert [(row["id"], row["status"]) for row in predicted["checks"]] == [("plan_inventory", "deviation")]

    assert not (tmp_path / "new").exists()
    done = run(raw(tmp_path / "new"), hosts(2), check_mode=False, diff=True)
    assert (predicted["changed"], predicted["diff"], predicted["digest"]) == (True, done["diff"], done["digest"])


def test_check_mode_says_whether_the_inventory_gives_the_same_plan(tmp_path):
    make(tmp_path, 2)
    before = tree(tmp_path / "fabric")
    for count, status in ((3, "deviation"), (2, "ok")):
        result = run(raw(tmp_path), hosts(count), check_mode=True)
        assert [(row["id"], row["status"]) for row in result["checks"]] == [("plan_inventory", status)]
        assert result["plan_dir"] == str(tmp_path / "fabric")
    assert tree(tmp_path / "fabric") == before


def test_a_locked_plan_fails_when_it_would_change_and_passes_when_not(tmp_path):
    make(tmp_path, 2)
    before = tree(tmp_path)

    assert not make(tmp_path, 2, plan_locked=True)["changed"]
    with pytest.raises(
        RdmaError, match=r"\(no node is renumbered; nodes: 1 added; files: cluster/ippools.yaml.*Run r"
    ) as reported:
        make(tmp_path, 3, plan_locked=True)
    assert "only files" not in str(reported.value)
    with pytest.raises(RdmaError, match=r"no number changes, only files do.*nodes: the same; files: .*Run railops"):
        make(tmp_path, 2, plan_locked=True, mtu=9000)
    with pytest.raises(RdmaError, match=r"\(numbers change; nodes: the same"):
        make(tmp_path, 2, plan_locked=True, reserved=["172.17.0.30"])
    assert tree(tmp_path) == before


def test_readers_notice_a_changed_missing_or_additional_file(tmp_path):
    made = make(tmp_path, 2)
    folder = tmp_path / "fabric"
    assert verified(str(folder), "cluster")[0] == made["digest"]
    pools = folder / "cluster/ippools.yaml"
    text = pools.read_text()
    for spoil in (lambda: pools.write_text(text + "#"), pools.unlink):
        spoil()
        with pytest.raises(RdmaError, match=r"not those that plan\.json was written with"):
            verified(str(folder), "cluster")
    make(tmp_path, 2)
    assert pools.read_text() == text
    (folder / "hosts/node9.json").write_text("{}")
    with pytest.raises(RdmaError, match="hosts files"):
        verified(str(folder), "hosts")
    shutil.rmtree(folder)
    with pytest.raises(RdmaError, match="There is no plan"):
        verified(str(folder), "cluster")


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_folder_of_the_layout_that_is_a_link_is_refused(tmp_path):
    make(tmp_path)
    outside = tmp_path / "outside"
    shutil.move(tmp_path / "fabric/hosts", outside)
    (tmp_path / "fabric/hosts").symlink_to(outside)

    with pytest.raises(RdmaError, match="hosts' is a link"):
        make(tmp_path, 2, retire=["node3"])
    assert len(list(outside.iterdir())) == 3


def test_a_second_planner_is_kept_out(tmp_path):
    make(tmp_path)
    handle = os.open(tmp_path / "fabric", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(RdmaError, match="Another run is writing"):
        make(tmp_path, 4)
    os.close(handle)
    assert make(tmp_path, 4)["changed"]


def test_a_planner_that_was_overtaken_writes_nothing(tmp_path, monkeypatch):
    make(tmp_path, 1)
    apply = PlanStore.apply

    def overtaken(self, change, old):
        monkeypatch.setattr(PlanStore, "apply", apply)
        run(raw(tmp_path), hosts(2), check_mode=False)
        apply(self, change, old)

    monkeypatch.setattr(PlanStore, "apply", overtaken)
    with pytest.raises(RdmaError, match="meanwhile") as caught:
        run(raw(tmp_path), [*hosts(1), {"host": "node9", "groups": []}], check_mode=False)
    assert "Plan again" in caught.value.fix
    # Slot 1 belongs to who came first.
    assert read_host_plan(str(tmp_path / "fabric"), "node2")["slot"] == 1
    assert sorted((tmp_path / "fabric/hosts").iterdir())[-1].name == "node2.json"


def as_child(action):
    """Run in a forked child, so that it can lose its rights or its life; give back what it returned, or its death."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer = action()
        except RdmaError as exc:
            answer = exc.problem, exc.fix
        except BaseException as exc:
            answer = repr(exc)
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(answer, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    _pid, status = os.waitpid(child, 0)
    return pickle.loads(data) if data else os.WTERMSIG(status)


@pytest.mark.parametrize("part", [".", "fabric", "fabric/hosts"])
def test_a_read_only_folder_is_one_clear_error_and_nothing_half_done(tmp_path, part):
    os.chmod(tmp_path, 0o755)
    for parent in [tmp_path.parent, tmp_path.parent.parent]:
        os.chmod(parent, 0o755)
    if part != ".":
        make(tmp_path)
    if os.geteuid() == 0:
        for path in [tmp_path, *tmp_path.rglob("*")]:
            os.chown(path, 65534, 65534)
    os.chmod(tmp_path / part, 0o555)
    before = tree(tmp_path)

    def attempt():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        make(tmp_path, 4)

    problem, fix = as_child(attempt)
    os.chmod(tmp_path / part, 0o755)

    assert "cannot be used: Permission denied" in problem
    assert fix.startswith("Nothing was half done: correct that, or set fabric_plan_dir")
    assert tree(tmp_path) == before


class Trap:
    """Counts what the store does to the disk and stops it, by death or by error, at the n-th operation."""

    def __init__(self, monkey, stop, *, error=None):
        self.count = 0
        self.stop = stop
        self.error = error
        for name in ("replace", "unlink", "mkdir", "makedirs", "rmdir", "fsync"):
            monkey(os, name, self._wrap(getattr(os, name)))
        monkey(store_module, "sync_filesystem", self._wrap(store_module.sync_filesystem))
        monkey(store_module, "open", self._open)

    def _hit(self):
        self.count += 1
        if self.count == self.stop:
            if self.error:
                raise OSError(self.error, os.strerror(self.error))
            os.kill(os.getpid(), signal.SIGKILL)

    def _wrap(self, function):
        def wrapped(*args, **kwargs):
            self._hit()
            return function(*args, **kwargs)

        return wrapped

    def _open(self, path, mode="r", **kwargs):
        stream = builtins.open(path, mode, **kwargs)  # noqa: SIM115
        if "w" in mode:
            self._hit()
            write = stream.write

            def half(text):
                write(text[: len(text) // 2])
                stream.flush()
                self._hit()
                return write(text[len(text) // 2 :])

            stream.write = half
        return stream


def trapped(folder, stop, **kwargs):
    """Run the changing run with a trap in a child."""

    def action():
        trap = Trap(setattr, stop, **kwargs)
        change(folder)
        return trap.count

    return as_child(action)


def change(folder):
    """A run that adds, rewrites and removes files: a new MTU for all, a new node, a retired one."""
    nodes = [{"host": name} for name in ("node1", "node3", "node4")]
    return run(raw(folder, mtu=9000, retire=["node2"]), nodes, check_mode=False)


def state(folder, names=("node1", "node2", "node3", "node4")):
    """What the readers say of the plan: the host plans that they accept, and the cluster's files."""
    seen = {}
    for name in names:
        with contextlib.suppress(AnsibleActionFail):
            seen[name] = read_host_plan(str(folder), name)
    with contextlib.suppress(RdmaError):
        verified(str(folder), "cluster")
        seen["cluster"] = {path: text for path, text in tree(folder).items() if path.startswith("cluster/")}
    return seen


@pytest.mark.parametrize("before", ["nothing", "a plan"])
def test_kill_9_at_every_write_leaves_a_complete_plan_or_one_that_readers_refuse(tmp_path, before):
    base, done = tmp_path / "base", tmp_path / "done"
    base.mkdir()
    if before == "a plan":
        make(base, 3)
    shutil.copytree(base, done)
    change(done)
    new, old = tree(done), tree(base)
    complete = [state(done / "fabric"), state(base / "fabric"), {}]

    seen = []
    for stop in itertools.count(1):
        folder = tmp_path / f"run{stop}"
        shutil.copytree(base, folder)
        answer = trapped(folder, stop)
        if answer != signal.SIGKILL:
            assert isinstance(answer, int), answer
            break
        after = state(folder / "fabric")
        assert after in complete, f"killed at operation {stop}: a mixture"
        seen.append(complete.index(after))
        change(folder)
        assert tree(folder) == new, f"killed at operation {stop}: the next run did not finish"
        shutil.rmtree(folder)

    assert stop > 40
    assert seen == sorted(seen, key=[1, 2, 0].index)
    assert set(seen) == ({0, 1, 2} if old else {0, 1})


def test_an_error_at_every_write_changes_nothing_or_marks_the_plan(tmp_path):
    base = tmp_path / "base"
    make(base, 3)
    before = tree(base)
    complete = state(base / "fabric")
    kinds = set()
    for stop in itertools.count(3, 3):
        folder = tmp_path / f"run{stop}"
        shutil.copytree(base, folder)
        answer = trapped(folder, stop, error=errno.ENOSPC)
        if isinstance(answer, int):
            if answer < stop:
                break
            continue  # of a folder that is there already, or of what may be left behind
        problem, fix = answer
        assert "No space left on device" in problem
        kinds.add(fix.partition(":")[0])
        if fix.startswith("Nothing was half done"):
            assert tree(folder) == before
            assert state(folder / "fabric") == complete
        else:
            after = state(folder / "fabric")
            change(folder)
            # The first rename itself may be what fails: then the old plan is still the whole one.
            assert after in ({}, complete, state(folder / "fabric"))
        shutil.rmtree(folder)
    assert len(kinds) == 2

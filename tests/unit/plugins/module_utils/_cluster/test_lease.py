# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lease of a fabric over an API that keeps what it is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _host_lock
from ansible_collections.railops.rdma.plugins.module_utils._cluster import lease as leases
from ansible_collections.railops.rdma.plugins.module_utils._cluster.api_errors import NotFound, VersionConflict
from ansible_collections.railops.rdma.plugins.module_utils._cluster.lease import Lease
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles
from ansible_collections.railops.rdma.tests.unit.machines import put, stand_for_the_host

MANAGED, THEIRS = "ann@ctl1, process 7", "bob@ctl2, process 9"


class Api:
    """Namespaces and one lease; a clock that moves during a sleep, and what happens then."""

    def __init__(self) -> None:
        self.namespaces = {"kube-system"}
        self.lease = None
        self.version = 0
        self.now = 0.0
        self.meanwhile = []

    def get(self, _ref):
        return json.loads(json.dumps(self.lease))

    def one(self, _api_version, _kind, name):
        return {"metadata": {"name": name}} if name in self.namespaces else None

    def create(self, body):
        if body["kind"] == "Namespace":
            self.namespaces.add(body["metadata"]["name"])
            return
        assert body["metadata"]["namespace"] in self.namespaces
        if self.lease is None:
            self.put(body["spec"], body["metadata"]["name"])

    def put(self, spec, uid="u"):
        self.version += 1
        self.lease = {"metadata": {"uid": uid, "resourceVersion": str(self.version)}, "spec": spec}

    def patch(self, ref, patch):
        assert ref.namespace == "spiderpool"
        if patch["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise VersionConflict("lease")
        self.put({**self.lease["spec"], **patch["spec"]})

    def delete(self, _ref, *, version):
        if version != self.lease["metadata"]["resourceVersion"]:
            raise NotFound("lease")
        self.lease = None

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        if self.meanwhile:
            self.meanwhile.pop(0)()


@pytest.fixture
def api(monkeypatch):
    made = Api()
    monkeypatch.setattr(leases, "time", made)
    return made


def lease(api, holder=MANAGED):
    return Lease(api, "spiderpool", "fabric", holder)


def holder(api):
    return api.lease["spec"]["holderIdentity"]


def test_it_is_made_with_its_namespace_renewed_and_released(api):
    lease(api).acquire(print)
    assert api.namespaces == {"kube-system", "spiderpool"}
    first = api.lease["spec"]
    assert first["leaseDurationSeconds"] == 60
    lease(api).renew()
    assert api.lease["spec"]["acquireTime"] == first["acquireTime"]
    assert api.lease["spec"]["renewTime"] > first["renewTime"]
    lease(api).acquire(print)
    lease(api).release()
    assert (api.lease, api.now) == (None, 0)
    lease(api).release()
    lease(api).renew()
    assert api.lease is None


def test_one_that_is_renewed_is_refused_with_the_holders_name(api):
    lease(api, THEIRS).acquire(print)
    api.meanwhile = [lambda: None, lambda: lease(api, THEIRS).renew()]
    messages = []
    with pytest.raises(RdmaError, match=f"Another run is under way: {THEIRS}.*Wait until that run has ended"):
        lease(api).acquire(messages.append)
    assert holder(api) == THEIRS
    assert api.now <= 15
    assert THEIRS in messages[0]


def test_one_that_is_not_renewed_is_taken_after_its_time(api):
    lease(api, THEIRS).acquire(print)
    lease(api).acquire(print)
    assert (holder(api), api.now) == (MANAGED, 60)
    lease(api, THEIRS).renew()
    lease(api, THEIRS).release()
    assert holder(api) == MANAGED


def test_one_that_is_released_meanwhile_is_taken_at_once(api):
    lease(api, THEIRS).acquire(print)
    api.meanwhile = [lambda: lease(api, THEIRS).release()]
    lease(api).acquire(print)
    assert (holder(api), api.now) == (MANAGED, 5)


def test_of_two_that_wait_for_a_dead_one_the_second_is_refused(api):
    lease(api, "dead").acquire(print)
    api.meanwhile = [lambda: None] * 11 + [lambda: lease(api, THEIRS)._write(api.lease)]
    with pytest.raises(RdmaError, match=THEIRS):
        lease(api).acquire(print)


def test_of_two_that_make_it_at_once_one_has_it(api, monkeypatch):
    create = api.create

    def first(body):
        if body["kind"] == "Lease" and api.lease is None:
            api.meanwhile = [lambda: lease(api, THEIRS).renew()]
            api.put({**body["spec"], "holderIdentity": THEIRS})
        create(body)

    monkeypatch.setattr(api, "create", first)
    with pytest.raises(RdmaError, match=THEIRS):
        lease(api).acquire(print)


@pytest.fixture
def dead(api):
    """An API with the lease of a run that died."""
    lease(api, THEIRS).acquire(print)
    return api


def test_one_whose_answer_was_lost_was_taken(dead, monkeypatch):
    """The client tries again, and learns that the lease is no longer that version."""
    patch = dead.patch

    def lost(ref, body):
        patch(ref, body)
        patch(ref, body)

    monkeypatch.setattr(dead, "patch", lost)
    assert lease(dead).acquire(print) is True
    assert holder(dead) == MANAGED
    assert lease(dead).acquire(print) is False


def test_it_was_taken_also_where_it_cannot_be_renewed_at_once(dead, monkeypatch):
    patch = dead.patch

    def away(ref, body):
        if holder(dead) == MANAGED:
            raise RdmaError("The API does not answer.", "Look. [api_no_answer]", code=0)
        patch(ref, body)

    monkeypatch.setattr(dead, "patch", away)
    monkeypatch.setattr(leases, "Cluster", lambda params, **_more: nullcontext(dead))
    monkeypatch.setattr(leases.requirements, "KUBERNETES_ERROR", None)
    place = ("spiderpool", "fabric", MANAGED)
    assert leases.acquire({}, place, print) is True
    assert leases.acquire({}, place, print) is False


def test_an_expired_lease_of_the_same_run_is_acquired_again(api):
    """The process that renews it was killed: the run needs another one."""
    lease(api).acquire(print)
    api.lease["spec"]["renewTime"] = "2020-01-01T00:00:00.000000Z"
    assert lease(api).acquire(print) is True
    assert api.lease["spec"]["renewTime"] > "2026"
    assert (lease(api).acquire(print), api.now) == (False, 0)


class Controllers:
    """Controllers with one user and one name; each run is process 7, and each call is one of its modules."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.monkeypatch = monkeypatch
        self.lock = str(root / "lock")
        self.params = {"namespace": "spiderpool", "fabric": "fabric", "cluster": False, "progress_file": None}
        self.params["run"] = {"user": "ann@ctl1", "pid": 7}

    def begin(self, start, namespace="pid:[1]", boot="6d0c1a52-3b84"):
        """Begin a run on a controller and return what identifies it."""
        root = self.root / f"{boot} {namespace} {start}"
        put(root, "/proc/sys/kernel/random/boot_id", f"{boot}\n")
        put(root, "/proc/7/stat", f"7 (a) b ( c) S {' '.join(map(str, range(4, 22)))} {start} 23 24\n")
        put(root, "/proc/7/cmdline", "python3\0ansible-playbook\0")
        (root / "proc/self/ns").mkdir(parents=True)
        (root / "proc/self/ns/pid").symlink_to(namespace)
        (root / "proc/self/cmdline").symlink_to("../7/cmdline")
        stand_for_the_host(self.monkeypatch, root)
        found = leases.run(SimpleNamespace(params=self.params, check_mode=False))["run"]
        assert leases.run(SimpleNamespace(params=self.params, check_mode=False))["run"] == found
        return found

    def held_by(self, run):
        """Let a run hold the lock of a host."""
        with open(self.lock, "w", encoding="utf-8") as stream:
            stream.write(run.partition("|")[0])


@pytest.fixture
def controllers(tmp_path, monkeypatch):
    return Controllers(tmp_path, monkeypatch)


def test_a_later_run_with_the_same_pid_is_another_holder(controllers, api):
    first = controllers.begin(100).partition("|")[0]
    later = controllers.begin(900)
    holder_of_later = later.partition("|")[0]
    assert first == "ann@ctl1 (boot 6d0c1a52, pid:[1]), process 7:100"
    assert later == "ann@ctl1 (boot 6d0c1a52, pid:[1]), process 7:900|7:900"
    lease(api, first).acquire(print)
    assert lease(api, holder_of_later).acquire(print) is True
    assert (holder(api), api.now) == (holder_of_later, 60)
    # The earlier run has ended: its processes are not in the later run's list.
    controllers.held_by(first)
    _host_lock.acquire_host_lock(later, controllers.lock)


@pytest.mark.parametrize("other", [{"namespace": "pid:[2]"}, {"boot": "0e11b2aa-9d01"}], ids=["container", "machine"])
def test_a_controller_that_does_not_see_the_process_knows_nothing_of_its_end(controllers, monkeypatch, other):
    controllers.held_by(controllers.begin(100))
    run = controllers.begin(200, **other)
    waits = []

    def renewed(seconds):
        waits.append(seconds)
        os.utime(controllers.lock, (1, os.stat(controllers.lock).st_mtime + 1))

    monkeypatch.setattr(_host_lock.time, "sleep", renewed)
    with pytest.raises(RdmaError, match=r"under way: ann@ctl1 \(boot 6d0c1a52, pid:\[1\]\), process 7:100"):
        _host_lock.acquire_host_lock(run, controllers.lock)
    assert len(waits) == 1


def test_the_live_processes_of_ansible_are_listed():
    argv = [sys.executable, "-c", "print(flush=True); input()", "ansible-playbook"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        live = leases.process_identity(HostFiles(), other.pid)
        assert live in leases.live_runs()[0].split(",")
        other.kill()
    assert live not in "".join(leases.live_runs()).split(",")


def test_a_process_that_ends_is_seen():
    done = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not leases.ended(done.pid, 0)
    done.kill()
    assert leases.ended(done.pid, 20)
    done.wait(20)
    done.stdin.close()
    assert leases.ended(done.pid, 20)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lease of a fabric over an API that keeps what it is given, and the register of runs on a controller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster import lease as leases
from ansible_collections.railops.rdma.plugins.module_utils._cluster.api_errors import NotFound, VersionConflict
from ansible_collections.railops.rdma.plugins.module_utils._cluster.lease import Lease, registered
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError

OURS, THEIRS = "ann@ctl1, process 7", "bob@ctl2, process 9"


class Api:
    """Namespaces and one lease; a clock that moves when somebody sleeps, and what happens then."""

    def __init__(self) -> None:
        self.namespaces = {"kube-system"}
        self.lease = None
        self.version = 0
        self.now = 0.0
        self.meanwhile = []

    def get(self, _ref):
        return json.loads(json.dumps(self.lease))

    def namespace_phase(self, name):
        return "Active" if name in self.namespaces else "Missing"

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


def lease(api, holder=OURS):
    return Lease(api, "spiderpool", "fabric", holder)


def holder(api):
    return api.lease["spec"]["holderIdentity"]


def test_it_is_made_with_its_namespace_renewed_and_given_back(api):
    lease(api).take(print)
    assert api.namespaces == {"kube-system", "spiderpool"}
    first = api.lease["spec"]
    assert first["leaseDurationSeconds"] == 60
    lease(api).renew()
    assert api.lease["spec"]["acquireTime"] == first["acquireTime"]
    assert api.lease["spec"]["renewTime"] > first["renewTime"]
    lease(api).take(print)
    lease(api).give_back()
    assert (api.lease, api.now) == (None, 0)
    lease(api).give_back()
    lease(api).renew()
    assert api.lease is None


def test_one_that_is_renewed_is_refused_with_the_holders_name(api):
    lease(api, THEIRS).take(print)
    api.meanwhile = [lambda: None, lambda: lease(api, THEIRS).renew()]
    said = []
    with pytest.raises(RdmaError, match=f"Another run is under way: {THEIRS}.*Wait until that run has ended"):
        lease(api).take(said.append)
    assert holder(api) == THEIRS
    assert api.now <= 15
    assert THEIRS in said[0]


def test_one_that_nobody_renews_is_taken_after_its_time(api):
    lease(api, THEIRS).take(print)
    lease(api).take(print)
    assert (holder(api), api.now) == (OURS, 60)
    lease(api, THEIRS).renew()
    lease(api, THEIRS).give_back()
    assert holder(api) == OURS


def test_one_that_is_given_back_meanwhile_is_taken_at_once(api):
    lease(api, THEIRS).take(print)
    api.meanwhile = [lambda: lease(api, THEIRS).give_back()]
    lease(api).take(print)
    assert (holder(api), api.now) == (OURS, 5)


def test_of_two_that_wait_for_a_dead_one_the_second_is_refused(api):
    lease(api, "dead").take(print)
    api.meanwhile = [lambda: None] * 11 + [lambda: lease(api, THEIRS)._write(api.lease)]
    with pytest.raises(RdmaError, match=THEIRS):
        lease(api).take(print)


def test_of_two_that_make_it_at_once_one_has_it(api, monkeypatch):
    create = api.create

    def first(body):
        if body["kind"] == "Lease" and api.lease is None:
            api.meanwhile = [lambda: lease(api, THEIRS).renew()]
            api.put({**body["spec"], "holderIdentity": THEIRS})
        create(body)

    monkeypatch.setattr(api, "create", first)
    with pytest.raises(RdmaError, match=THEIRS):
        lease(api).take(print)


@pytest.fixture
def dead(api):
    """An API with the lease of a run that died."""
    lease(api, THEIRS).take(print)
    return api


def test_one_whose_answer_was_lost_was_taken(dead, monkeypatch):
    """The client tries again, and is told that the lease is no longer that version."""
    patch = dead.patch

    def lost(ref, body):
        patch(ref, body)
        patch(ref, body)

    monkeypatch.setattr(dead, "patch", lost)
    assert lease(dead).take(print) is True
    assert holder(dead) == OURS
    assert lease(dead).take(print) is False


def test_it_was_taken_also_where_it_cannot_be_renewed_at_once(dead, monkeypatch):
    patch = dead.patch

    def away(ref, body):
        if holder(dead) == OURS:
            raise RdmaError("The API does not answer.", "Look. [api_no_answer]", code=0)
        patch(ref, body)

    monkeypatch.setattr(dead, "patch", away)
    monkeypatch.setattr(leases, "Cluster", lambda params, **_more: nullcontext(dead))
    monkeypatch.setattr(leases.requirements, "KUBERNETES_ERROR", None)
    place = ("spiderpool", "fabric", OURS)
    assert leases._take({}, place, print) is True
    assert leases._take({}, place, print) is False


# --- the runs of a controller -----------------------------------------------------------------------------------------

OTHER = """
import os, sys
from ansible_collections.railops.rdma.plugins.module_utils._cluster.lease import registered
print(registered("ann@ctl1", int(sys.argv[1]))[1], flush=True)
sys.stdin.read()
"""


def test_a_controller_knows_which_of_its_runs_live(tmp_path, monkeypatch):
    monkeypatch.setattr(leases.tempfile, "gettempdir", lambda: str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", OTHER, "1"]
    other = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    name = other.stdout.readline().strip()
    assert name.startswith("ann@ctl1, process 1 since 20")

    handle, mine, live = registered("ann@ctl1", 2)
    assert live == [name]
    assert mine > name
    assert registered("ann@ctl1", 2) == (None, mine, [name])
    other.kill()
    other.wait(20)
    other.stdin.close()
    other.stdout.close()
    assert registered("ann@ctl1", 2) == (None, mine, [])
    os.close(handle)
    assert registered("ann@ctl1", 3)[2] == []


@pytest.mark.parametrize("planted", ["a file", "a link", "a folder for all"])
def test_who_makes_the_folder_of_that_name_first_stops_nobody(tmp_path, monkeypatch, planted):
    monkeypatch.setattr(leases.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(leases.tempfile, "tempdir", str(tmp_path))
    usual = tmp_path / f"railops-rdma-{os.getuid()}"
    if planted == "a file":
        usual.write_text("x")
    elif planted == "a link":
        (tmp_path / "theirs").mkdir()
        usual.symlink_to(tmp_path / "theirs")
    else:
        usual.mkdir()
        usual.chmod(0o777)
    handle, mine, _live = registered("ann@ctl1", 2)
    other, _name, live = registered("ann@ctl1", 3)
    assert live == [mine]
    assert not (tmp_path / "theirs").exists() or not [*(tmp_path / "theirs").iterdir()]
    os.close(handle)
    os.close(other)


def test_a_process_that_ends_is_seen():
    done = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not leases.ended(done.pid, 0)
    done.kill()
    assert leases.ended(done.pid, 20)
    done.wait(20)
    done.stdin.close()
    assert leases.ended(done.pid, 20)

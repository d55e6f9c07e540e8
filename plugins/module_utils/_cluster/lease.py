# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: one run at a time on a fabric, by a Lease that a process of the run renews and releases.

The process ends with the run, however that ends. A lease without a renewal for 60 s is free. Without a reachable
cluster, host locks exclude other runs (`_host_lock`).
"""

from __future__ import annotations

import contextlib
import os
import select
import time
import typing as t
from datetime import datetime, timedelta, timezone

from ansible.module_utils.basic import AnsibleModule

from .._detach import detach
from .._errors import RdmaError
from .._files import HostFiles
from .._host_lock import SECONDS, lock_held
from . import requirements
from .api_errors import NotFound, VersionConflict
from .client import Cluster
from .model import Json, Ref
from .progress import reporter

Place = tuple[str, str, str]

RENEW_SECONDS = 15.0
LOOK_SECONDS = 5.0
API = "coordination.k8s.io/v1"


class Lease:
    """The Lease of a fabric, as one run sees it."""

    def __init__(self, cluster: Cluster, namespace: str, name: str, holder: str) -> None:
        self._cluster = cluster
        self._ref = Ref.to(API, "Lease", name, namespace)
        self._holder = holder

    def acquire(self, report: t.Callable[[str], None]) -> bool:
        """Acquire the lease; wait until another run's lease expires. Return whether this run must begin to renew it.

        :raises RdmaError: the other run renewed it meanwhile.
        """
        seen: tuple[t.Any, ...] | None = None
        until = 0.0
        taken_now = False
        while True:
            found, spec = self._read()
            other = spec.get("holderIdentity")
            if other == self._holder and (taken_now or (spec.get("renewTime") or "") >= _stamp(-SECONDS)):
                return taken_now
            if found and other and other != self._holder:
                mark = (other, spec.get("renewTime"), found["metadata"]["uid"])
                if seen not in (None, mark):
                    raise lock_held(other)
                if seen is None:
                    seen, until = mark, time.monotonic() + SECONDS
                    free = f"it becomes free if that run does not renew it within {SECONDS:.0f} s"
                    report(f"{other} holds the lock of this fabric; {free}")
                if (left := until - time.monotonic()) > 0:
                    time.sleep(min(LOOK_SECONDS, left))
                    continue
            # Two may try at once, and the answer to a write may be lost: what is read back says whose it is.
            taken_now = True
            with contextlib.suppress(VersionConflict):
                self._write(found)

    def renew(self) -> None:
        """Renew it where it is still ours."""
        found, spec = self._read()
        if spec.get("holderIdentity") == self._holder:
            with contextlib.suppress(VersionConflict):
                self._write(found)

    def release(self) -> None:
        """Let the next run begin at once."""
        found, spec = self._read()
        if found and spec.get("holderIdentity") == self._holder:
            with contextlib.suppress(NotFound):
                self._cluster.delete(self._ref, version=found["metadata"]["resourceVersion"])

    def _read(self) -> tuple[Json | None, Json]:
        found = self._cluster.get(self._ref)
        return found, (found or {}).get("spec") or {}

    def _write(self, found: Json | None) -> None:
        now = _stamp()
        spec = {"holderIdentity": self._holder, "leaseDurationSeconds": int(SECONDS), "renewTime": now}
        place = {"name": self._ref.name, "namespace": self._ref.namespace}
        if found is None:
            body: Json = {"apiVersion": API, "kind": "Lease", "metadata": place, "spec": {**spec, "acquireTime": now}}
            if self._cluster.one("v1", "Namespace", self._ref.namespace) is None:
                meta = {"name": place["namespace"]}
                self._cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
            self._cluster.create(body)
        else:
            patch = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "spec": spec}
            self._cluster.patch(self._ref, patch)


def _stamp(seconds: float = 0.0) -> str:
    """Return the time in so many seconds, as a Lease has it."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Acquire the lease, and start a process that renews it as long as the run lives."""
    params = module.params
    result: dict[str, t.Any] = {"changed": False, "lease": False, "run": "", "warnings": []}
    if module.check_mode:
        return result
    pid, host = params["run"]["pid"], HostFiles()
    # Containers may share a name and PIDs. The list of live runs has the processes of this namespace only.
    where = f"boot {host.boot_id[:8]}, {host.link('/proc/self/ns/pid')}"
    holder = f"{params['run']['user']} ({where}), process {process_identity(host, pid)}"
    place = (params["namespace"], params["fabric"], holder)
    if params["cluster"]:
        try:
            # An earlier part of the run has a process already, unless the API was away then.
            if acquire(params, place, reporter(params["progress_file"])):
                detach(lambda: keep(params, place, pid))
            return {**result, "lease": True}
        except RdmaError as exc:
            # The playbook repairs hosts also while the API is down, or denies leases to this user.
            if "code" not in exc.facts:
                raise
            result["warnings"].append(f"Only files on the hosts lock out other runs, and no Lease does. {exc}")
    return {**result, "run": "|".join([holder, *live_runs()])}


def process_identity(host: HostFiles, pid: object) -> str:
    """Return "PID:start". PIDs repeat; the start is in clock ticks since the boot, and empty without /proc."""
    fields = (host.text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return f"{pid}:{fields[19] if fields else ''}"


def live_runs() -> list[str]:
    """Return the processes of Ansible on this controller, comma-separated; nothing where no /proc shows them."""
    host = HostFiles()
    pids = [pid for pid in host.names("/proc") if pid.isdigit()]
    found = [process_identity(host, pid) for pid in pids if "ansible" in (host.text(f"/proc/{pid}/cmdline") or "")]
    return [",".join(found)] if found else []


def acquire(params: t.Mapping[str, t.Any], place: Place, report: t.Callable[[str], None]) -> bool:
    """Acquire the lease; return whether this run did not hold it before."""
    if requirements.KUBERNETES_ERROR:
        text = "The Python library kubernetes is missing."
        raise RdmaError(text, "Install it for the controller. [kubernetes_missing]", code=0)
    with Cluster(params, retry_seconds=LOOK_SECONDS) as cluster:
        lease = Lease(cluster, *place)
        now = lease.acquire(report)
        # What the process will need is imported by now: the files that it comes from go with the module.
        with contextlib.suppress(RdmaError):
            lease.renew()
        return now


def keep(params: t.Mapping[str, t.Any], place: Place, pid: int) -> None:
    """Renew the lease as long as the run lives, then release it: the work of the run's own process."""
    over = False
    while not over:
        over = ended(pid, RENEW_SECONDS)
        with contextlib.suppress(RdmaError), Cluster(params, retry_seconds=RENEW_SECONDS) as cluster:
            lease = Lease(cluster, *place)
            if over:
                lease.release()
            else:
                lease.renew()


def ended(pid: int, seconds: float) -> bool:
    """Wait for a process; return whether it has ended."""
    try:
        with open(os.pidfd_open(pid), "rb", buffering=0) as handle:
            return bool(select.select([handle], [], [], seconds)[0])
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):  # not Linux, or an old one
        time.sleep(seconds)
    try:
        os.kill(pid, 0)
    except OSError as exc:
        return isinstance(exc, ProcessLookupError)
    return False

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The copy of plan.json in the cluster: what it is, whether this plan follows from it, and how to plan from it.

It is the text of the plan that the cluster was last brought to, so a checkout that is older than the cluster shows.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import typing as t
import zlib
from dataclasses import replace

from ...module_utils._errors import InputError, Problem, RdmaError
from ...module_utils._fabric.labels import labels
from ...module_utils._fabric.lock import NEWER
from ...module_utils._formatting import natural, shortened
from .lock import Lock, parse_lock
from .moves import SHOWN, Moves

Json = dict[str, t.Any]

KEY = "plan.json.gz"
MOST_BYTES = 64 << 20
"""Of a plan's text: a hundred times what 10,000 nodes take. More is no plan."""


def name_of(fabric: str) -> str:
    """Return the name of the ConfigMap."""
    return f"railops-{fabric}-lock"


class LockCopy:
    """A fabric's ConfigMap, as the cluster has it now.

    :param found: the objects of that name: one, or none.
    """

    def __init__(self, found: t.Iterable[Json], fabric: str, namespace: str) -> None:
        self.place = f"ConfigMap {namespace}/{name_of(fabric)}"
        self._fabric = fabric
        self._namespace = namespace
        self._found = next(iter(found), None)

    def text(self) -> str | None:
        """Return the copy of plan.json; None where there is none.

        :raises InputError: an object of others, or one that holds no plan.
        """
        if self._found is None:
            return None
        have = self._found["metadata"].get("labels") or {}
        if any(have.get(name) != value for name, value in labels(self._fabric).items()):
            fix = "Give it another name, or give the fabric another one (fabric_name). [copy_other_fabric]"
            raise InputError([Problem(self.place, "It is not of this fabric: it lacks the managed labels.", fix)])
        try:
            packed = base64.b64decode((self._found.get("binaryData") or {})[KEY], validate=True)
            with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
                text = stream.read(MOST_BYTES + 1).decode()
        except (KeyError, binascii.Error, OSError, EOFError, zlib.error, UnicodeDecodeError):
            raise InputError([Problem(self.place, f"Its {KEY} is missing or no compressed text.", self._fix)]) from None
        if len(text) > MOST_BYTES:
            raise InputError([Problem(self.place, f"Its {KEY} has more than {MOST_BYTES:,} bytes.", self._fix)])
        return text

    def lock(self) -> Lock | None:
        """Return what the copy says; None where there is none.

        :raises InputError: as `text` does, and for a lock of a newer version or one that was changed.
        """
        text = self.text()
        try:
            return None if text is None else parse_lock(text, self.place)
        except InputError as exc:
            old = [one if NEWER in (one.fix, one.problem) else replace(one, fix=self._fix) for one in exc.problems]
            raise InputError(old) from None

    @property
    def _fix(self) -> str:
        return f"Delete it once you know that your plan.json is the newest: kubectl -n {self._namespace} delete " + (
            f"configmap {name_of(self._fabric)}. The playbook railops.rdma.cluster makes it again. [copy_damaged]"
        )

    def configmap(self, text: str) -> Json:
        """Return the ConfigMap that has this plan.json. Compressors differ: the same text keeps the bytes it has."""
        same = self._found is not None and self.text() == text
        packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        place = {"name": name_of(self._fabric), "namespace": self._namespace, "labels": labels(self._fabric)}
        data = self._found["binaryData"] if self._found and same else {KEY: packed}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "binaryData": data}

    def problems(self, lock: Lock, released: t.Iterable[str], *, allow_renumber: bool) -> list[Problem]:
        """Return why the cluster must not be brought from the copy's plan to this one.

        :param released: the names in fabric_release; plan.json itself forgets a node that was released.
        """
        copied = self.lock()
        if copied is None:
            return []
        found = []
        known = {*lock.nodes, *released}
        if missing := sorted((name for name in copied.nodes if name not in known), key=natural):
            text = f"The cluster was brought to a plan with {len(missing)} node(s) that this one does not know: "
            text += f"{shortened(missing, SHOWN)}."
            fix = (
                "Your checkout is older than the cluster: update it, or plan with -e fabric_plan_from_cluster=true. "
                "Of nodes that were released or renamed, keep the names in fabric_release or fabric_rename until the "
                "cluster was brought to that plan. [checkout_outdated]"
            )
            found.append(Problem(self.place, text, fix))
        zones = {zone.name: index for index, zone in enumerate(lock.fabric.zones)}
        slots = {name: (zones[entry.zone], entry.slot) for name, entry in lock.nodes.items()}
        count, moved = Moves(lock.fabric, copied).moved(slots)
        if moved and not allow_renumber:
            text = f"The cluster was brought to a plan with other addresses of {count} node(s). {' | '.join(moved)}."
            fix = (
                "Your checkout is older than the cluster, or its plan.json was created again: restore it, or plan with "
                "-e fabric_plan_from_cluster=true. To renumber on purpose, set fabric_allow_renumber=true. [renumbered]"
            )
            found.append(Problem(self.place, text, fix))
        return found

    def start(self, here: Lock | None, path: str) -> Lock:
        """Return the lock file to plan from, instead of the local one.

        :param path: of the local plan.json.
        :raises RdmaError: no copy, or one that is older than the local file.
        """
        copied = self.lock()
        if copied is None:
            raise RdmaError(
                f"The cluster has no copy of plan.json: {self.place} does not exist.",
                "Plan without fabric_plan_from_cluster. The playbook cluster writes the copy. [copy_missing]",
            )
        entries = here.nodes if here else {}
        ahead = [
            name
            for name, entry in entries.items()
            if name not in copied.nodes
            or copied.nodes[name]._replace(retired=entry.retired) != entry
            or (entry.retired and not copied.nodes[name].retired)
        ]
        if ahead:
            raise RdmaError(
                f"{path!r} is not older than the copy in the cluster: the copy lacks its changes of "
                f"{', '.join(sorted(ahead, key=natural)[:SHOWN])}. Nothing was changed.",
                "Plan without fabric_plan_from_cluster, or move that file away if it is the wrong one. [copy_newer]",
            )
        return copied

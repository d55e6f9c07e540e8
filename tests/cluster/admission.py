# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plug the collection's admission validator into the double, where Spiderpool's webhooks stand in a cluster."""

from __future__ import annotations

from api_kinds import Kind
from api_store import Json, Refused, Store

from ansible_collections.railops.rdma.tests.admission.admission import Admission, AdmissionError

GROUPS = ("spiderpool.spidernet.io", "sriovnetwork.openshift.io")


class Webhooks:
    """Admission over the objects of a store: what is stored is loaded, what is asked is a dry run."""

    def __init__(self) -> None:
        # The double itself checks types alone, also where the CRDs are upstream's.
        self._set = Admission()

    def watch(self, store: Store) -> None:
        """Follow what is stored."""
        self._store = store
        store.after.append(self._after)

    def _after(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        if kind.group not in GROUPS:
            return
        meta = (new or old or {})["metadata"]
        there = self._store.table(kind).get((meta.get("namespace", ""), meta["name"]))
        if there is not None:
            # A controller's hook may have been faster: what counts is what is stored now.
            self._set.load(there)
        elif old is not None:
            self._set.delete(old)

    def __call__(self, operation: str, kind: Kind, old: Json | None, new: Json) -> Json:
        """Return the object as the webhook mutates it.

        :raises Refused: what it refuses.
        """
        if kind.group not in GROUPS or kind.kind == "SriovNetworkNodeState":
            return new
        obj = {**new, "apiVersion": kind.api_version, "kind": kind.kind}
        try:
            if operation == "CREATE":
                return self._set.create(obj, dry_run=True)
            return self._set.update(old, obj, dry_run=True)
        except AdmissionError as exc:
            hook = f"{kind.kind.lower()}.{kind.group}"
            raise Refused(
                exc.code, str(exc.reason), f'admission webhook "{hook}" denied the request: {exc.message}'
            ) from exc

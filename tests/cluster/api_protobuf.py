# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the few protobuf messages that helm sends: Secrets (its release records) and DeleteOptions.

The field numbers are those of Kubernetes' generated.proto files; the envelope is `k8s\\0` and runtime.Unknown.
"""

from __future__ import annotations

import base64
import typing as t

Json = dict[str, t.Any]
MAGIC = b"k8s\x00"


def fields(data: bytes) -> t.Iterator[tuple[int, t.Any]]:
    """Give (number, value) of a message: an int for varints, bytes for the rest."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError("a number of fixed size in protobuf")


def texts(pairs: t.Iterable[bytes]) -> dict[str, bytes]:
    """Return a map of the entries of a map field."""
    found = {}
    for pair in pairs:
        row = dict(fields(pair))
        found[row.get(1, b"").decode()] = row.get(2, b"")
    return found


def grouped(data: bytes) -> dict[int, list[t.Any]]:
    """Return the values of a message by field number."""
    found: dict[int, list[t.Any]] = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def object_meta(data: bytes) -> Json:
    """Return an ObjectMeta: names, version, labels and annotations."""
    rows = grouped(data)
    meta: Json = {}
    for number, name in ((1, "name"), (2, "generateName"), (3, "namespace"), (5, "uid"), (6, "resourceVersion")):
        if rows.get(number, [b""])[0]:
            meta[name] = rows[number][0].decode()
    for number, name in ((11, "labels"), (12, "annotations")):
        if number in rows:
            meta[name] = {key: value.decode() for key, value in texts(rows[number]).items()}
    return meta


def secret(rows: dict[int, list[t.Any]]) -> Json:
    """Return a Secret."""
    data = {key: base64.b64encode(value).decode() for key, value in texts(rows.get(2, [])).items()}
    kind = rows.get(3, [b"Opaque"])[0].decode()
    return {"metadata": object_meta(rows.get(1, [b""])[0]), "data": data, "type": kind or "Opaque"}


def delete_options(rows: dict[int, list[t.Any]]) -> Json:
    """Return DeleteOptions: helm deletes what is there, whatever its version, and not for a try."""
    if rows.keys() & {2, 5}:
        raise ValueError("DeleteOptions with preconditions or a dry run in protobuf")
    return {}


def decode(data: bytes) -> Json:
    """Return what an envelope holds.

    :raises ValueError: for a kind that this does not know.
    """
    if not data.startswith(MAGIC):
        raise ValueError("not Kubernetes protobuf")
    envelope = grouped(data[len(MAGIC) :])
    types = grouped(envelope[1][0])
    api_version, kind = types.get(1, [b""])[0].decode(), types.get(2, [b""])[0].decode()
    rows = grouped(envelope.get(2, [b""])[0])
    known: dict[str, t.Callable[[dict[int, list[t.Any]]], Json]] = {
        "Secret": secret,
        "DeleteOptions": delete_options,
        "Namespace": lambda found: {"metadata": object_meta(found.get(1, [b""])[0])},
    }
    if kind not in known:
        raise ValueError(f"{kind} in protobuf")
    return {"apiVersion": api_version, "kind": kind, **known[kind](rows)}

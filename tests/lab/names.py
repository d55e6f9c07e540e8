# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster's DNS: IPv4 addresses of pods by the names that headless Services give them.

What a pod is called comes from the server's own EndpointSlices, as every cluster DNS has it (Kubernetes DNS-Based
Service Discovery, 2.4.1). The form of messages is that of RFC 1035, 4.1.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import struct
import threading
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ADDRESS = "10.96.0.10"
DOMAIN = ("svc", "cluster", "local")
IPV4, INTERNET = 1, 1
NO_SUCH_NAME = 3
SECONDS = 5
"""How long an answer may be kept."""


def question(message: bytes) -> tuple[list[str], int, bytes]:
    """Return the labels, the type and the octets of a message's question."""
    labels, at = [], 12
    while size := message[at]:
        labels.append(message[at + 1 : at + 1 + size].decode("ascii").lower())
        at += 1 + size
    return labels, struct.unpack_from("!H", message, at + 1)[0], message[12 : at + 5]


def answer(message: bytes, found: Callable[[str, str, str], Sequence[str]]) -> bytes:
    """Return the answer to a message.

    :param found: the addresses of a pod by its hostname, Service and namespace.
    """
    labels, kind, request = question(message)
    addresses: Sequence[str] = ()
    if len(labels) == 6 and tuple(labels[3:]) == DOMAIN:
        addresses = found(*labels[:3])
    reported = addresses if kind == IPV4 else ()
    # A response with authority, to a question that wants recursion or not.
    flags = 0x8400 | (message[2] & 1) << 8 | (0 if addresses else NO_SUCH_NAME)
    head = message[:2] + struct.pack("!HHHHH", flags, 1, len(reported), 0, 0)
    # The name of a record points to the one of the question, which begins after the head.
    rows = [
        struct.pack("!HHHIH", 0xC000 | len(head), IPV4, INTERNET, SECONDS, 4) + ipaddress.IPv4Address(address).packed
        for address in reported
    ]
    return head + request + b"".join(rows)


def addresses_of(slices: Sequence[dict[str, t.Any]], hostname: str) -> list[str]:
    """Return the addresses that EndpointSlices have for a hostname; they say who counts as ready."""
    return [
        address
        for one in slices
        if one["addressType"] == "IPv4"
        for endpoint in one.get("endpoints") or ()
        if endpoint.get("hostname") == hostname and (endpoint.get("conditions") or {}).get("ready", True)
        for address in endpoint["addresses"]
    ]


class Names(threading.Thread):
    """Answers until the process ends.

    :param ask: returns what the API says at a path.
    """

    def __init__(self, ask: Callable[[str], bytes]) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((ADDRESS, 53))

    def run(self) -> None:
        """Answer."""
        while True:
            message, asker = self._socket.recvfrom(512)
            # False messages and requests without an API get no answer: the client retries.
            with contextlib.suppress(OSError, ValueError, IndexError, struct.error):
                self._socket.sendto(answer(message, self._found), asker)

    def _found(self, hostname: str, service: str, namespace: str) -> list[str]:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        listed = json.loads(self._ask(f"{path}?labelSelector=kubernetes.io%2Fservice-name%3D{service}"))
        return addresses_of(listed["items"], hostname)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many raw sockets, and one wait for all of them."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
import typing as t

from ._errors import RdmaError

# Of a packet socket. Protocol 0: no frame comes in before it is bound.
PACKETS = (socket.AF_PACKET, socket.SOCK_RAW, 0)
# What comes in there of frames for others, and of those that this host sends.
PACKET_OTHERHOST, PACKET_OUTGOING = 3, 4
K = t.TypeVar("K", bound=t.Hashable)


class Sockets(t.Generic[K]):
    """Open sockets, each with a key of the caller's; all are closed at the end of a `with`.

    :param what: what they are for, as the beginning of a sentence about who may not open them.
    """

    def __init__(self, what: str) -> None:
        self.of: dict[K, socket.socket] = {}
        self._what = what
        self._keys: dict[int, K] = {}
        self._poller = select.poll()

    def __enter__(self) -> Sockets[K]:
        return self

    def __exit__(self, *_exc: object) -> None:
        for sock in self.of.values():
            sock.close()

    def open(self, key: K, kind: tuple[int, int, int], prepare: t.Callable[[socket.socket], object]) -> str:
        """Open one; return why that failed, empty where it is open.

        :param key: what it is called.
        :param kind: family, type and protocol.
        :param prepare: sets its options and binds it.
        :raises RdmaError: when the process may not.
        """
        try:
            sock = socket.socket(*kind)
        except PermissionError as exc:
            raise RdmaError(f"{self._what}.", "Run the task with become: true (CAP_NET_RAW). [raw_socket]") from exc
        try:
            prepare(sock)
            sock.setblocking(False)
        except OSError as exc:
            sock.close()
            return os.strerror(exc.errno or 0)
        self.of[key], self._keys[sock.fileno()] = sock, key
        self._poller.register(sock, select.POLLIN)
        return ""

    def received(
        self, end: float, done: t.Callable[[], bool] = bool, late: float = 0.0
    ) -> t.Iterator[tuple[K, bytes, t.Any]]:
        """Yield what comes in until a time of time.monotonic(): the socket's key, the data and who sent them.

        :param done: whether nothing more is waited for.
        :param late: what came while this process itself had to wait has come in time, for so many seconds.
        """
        while self.of and not done():
            left = end - time.monotonic()
            found = self._poller.poll(max(left, 0) * 1000)
            if (left <= 0 and not found) or left < -late:
                return
            for key in (self._keys[descriptor] for descriptor, _event in found):
                with contextlib.suppress(OSError):  # an error that the network reported: nothing has come
                    yield (key, *self.of[key].recvfrom(65535))

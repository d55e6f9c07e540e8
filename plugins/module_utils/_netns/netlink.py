# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA subsystem's netlink family, on pyroute2's socket (0.7.2 to 0.9).

Numbers from include/uapi/rdma/rdma_netlink.h: the type of a message is (client << 10) + command.
"""

from __future__ import annotations

import errno
import functools
import traceback
import typing as t

from .._errors import RdmaError
from .._library import provide

if t.TYPE_CHECKING:
    from types import TracebackType

NETLINK_RDMA = 20
RDMA_NL_NLDEV = 5
SYS_GET = (RDMA_NL_NLDEV << 10) + 6
SYS_SET = (RDMA_NL_NLDEV << 10) + 7
SYS_ATTR_NETNS_MODE = 66
EXCLUSIVE, SHARED = 0, 1
REQUEST_AND_ACK = 0x5

# What kernels before 5.2 answer to a command or an attribute that they do not know.
UNKNOWN_TO_THE_KERNEL = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP})


class MissingPyroute2(Exception):
    """The library is needed and not there; the text is the traceback of its import."""


class Library(t.NamedTuple):
    """What is used of pyroute2."""

    socket: t.Any
    error: type[Exception]
    message: t.Any


@functools.cache
def library() -> Library:
    """Import pyroute2 when it is needed: that takes longer than all the rest of a run that changes nothing."""
    try:
        provide()
        from pyroute2.netlink import nlmsg
        from pyroute2.netlink.exceptions import NetlinkError
        from pyroute2.netlink.nlsocket import NetlinkSocket
    except ImportError as exc:
        raise MissingPyroute2(traceback.format_exc()) from exc

    class NlDev(nlmsg):  # type: ignore[misc]
        """A message of the client NLDEV: attributes only, no header of its own."""

        prefix = "RDMA_NLDEV_"
        nla_map = ((SYS_ATTR_NETNS_MODE, "RDMA_NLDEV_SYS_ATTR_NETNS_MODE", "uint8"),)

    return Library(NetlinkSocket, NetlinkError, NlDev)


class NetnsModeUnknown(Exception):
    """The kernel's RDMA subsystem is too old to have a network namespace mode."""


class RdmaNetlink:
    """Asks and tells the RDMA subsystem over one netlink socket.

    Opening it makes the kernel load ib_core where that is a module: look whether it is loaded first.
    """

    def __init__(self) -> None:
        self._socket: t.Any = None

    def __enter__(self) -> RdmaNetlink:
        try:
            self._socket = library().socket(family=NETLINK_RDMA)
            self._socket.bind()
        except OSError as exc:
            if exc.errno == errno.EPROTONOSUPPORT:
                raise RdmaError(
                    "This kernel has no RDMA netlink family (EPROTONOSUPPORT): ib_core is not loaded or not there.",
                    "Install the kernel's RDMA modules or the vendor's driver (role rdma_driver), then run again.",
                    errno=exc.errno,
                ) from exc
            raise RdmaError(
                f"The RDMA netlink socket cannot be opened: {exc}.",
                "Run the task with become: true.",
                errno=exc.errno,
            ) from exc
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def netns_mode(self) -> int:
        """Return the mode in force: EXCLUSIVE or SHARED."""
        for answer in self._ask(SYS_GET):
            if (value := answer.get_attr("RDMA_NLDEV_SYS_ATTR_NETNS_MODE")) is not None:
                return int(value)
        raise NetnsModeUnknown

    def set_netns_mode(self, mode: int) -> bool:
        """Set the mode at once. Return False when other network namespaces forbid it (EBUSY)."""
        try:
            self._ask(SYS_SET, [["RDMA_NLDEV_SYS_ATTR_NETNS_MODE", mode]])
        except RdmaError as exc:
            if exc.facts.get("errno") == errno.EBUSY:
                return False
            raise
        return True

    def _ask(self, kind: int, attributes: list[list[object]] | None = None) -> list[t.Any]:
        message = library().message()
        message["header"]["type"] = kind
        message["header"]["flags"] = REQUEST_AND_ACK
        message["attrs"] = attributes or []
        self._socket.marshal.msg_map[kind] = library().message
        try:
            # Not nlm_request(): pyroute2 0.7 repeats it for nine seconds when the kernel says EBUSY.
            return list(self._socket.nlm_request_batch([message]))
        except library().error as error:
            exc: t.Any = error
            if exc.code in UNKNOWN_TO_THE_KERNEL:
                raise NetnsModeUnknown from exc
            fix = (
                "Run the task with become: true; setting the mode needs CAP_NET_ADMIN."
                if exc.code in (errno.EPERM, errno.EACCES)
                else "Read the kernel's log (dmesg) for the reason."
            )
            raise RdmaError(f"The kernel refused RDMA netlink command {kind}: {exc}.", fix, errno=exc.code) from exc

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies a change of the host network completely or not at all."""

from __future__ import annotations

import contextlib
import signal
import typing as t
from dataclasses import replace

from .._errors import RdmaError
from .change import Op, Phase, steps, toward
from .kernel import Kernel, KernelRejected
from .model import Link, RouteHost, Snapshot
from .route_options import IPOIB_GROUP

# The kernel drops dependent entries itself, so that a second pass may be needed; more would be a fight with a manager.
ROUNDS = 4


def settle(kernel: Kernel, host: RouteHost, target: Snapshot, armed: t.Callable[[], bool]) -> None:
    """Lead the host to where `target` differs from what was read of it; read again until nothing is left to do.

    :param armed: whether the rollback timer has not fired.
    """
    now = host.snapshot
    for _round in range(ROUNDS):
        left = steps(now, toward(now, host.snapshot, target))
        if not left:
            return
        if kernel.apply(_while_armed(left, armed)) and not any(_has_side_effects(op) for phase in left for op in phase):
            # Every message was acknowledged: there is nothing that a second look could show.
            return
        now = kernel.again(host)
        refuse_held(left, now)
    if left := steps(now, toward(now, host.snapshot, target)):
        raise RdmaError(
            f"The host network does not settle: after {ROUNDS} rounds `{left[0][0]}` is still to do.",
            "Look for another program that manages these interfaces (networkd, NetworkManager, a DHCP client). "
            "[network_not_converging]",
        )


def _while_armed(phases: tuple[Phase, ...], armed: t.Callable[[], bool]) -> t.Iterator[Phase]:
    """Yield the phases as long as the rollback timer has not fired: a run that hangs past its time stops writing."""
    for phase in (*phases, ()):
        if not armed():
            raise RdmaError(
                "The change took longer than the rollback timer waits, and is rolled back.",
                "Find out what held this host up (`dmesg`, its load), or set a longer confirm_timeout"
                " (rail_network_confirm_timeout), and run again. [rollback_too_late]",
            )
        yield phase


def refuse_held(done: tuple[Phase, ...], now: Snapshot) -> None:
    """Refuse an MTU that the kernel took and did not set: IPoIB has that of its multicast group at most."""
    for link in (op.what for phase in done for op in phase if isinstance(op.what, Link) and op.verb == "set"):
        have = now.links.get(link.name, link)
        if have.kind == "infiniband" and have.mtu < link.mtu:
            text = f"{have.name} does not take an MTU of {link.mtu}: the subnet manager's IPoIB group has {have.mtu}."
            raise RdmaError(text, IPOIB_GROUP)


def _has_side_effects(op: Op) -> bool:
    """Whether a second look may show more to do.

    The kernel drops routes and secondaries with an address, and all with a link; and the same rule or route can be
    there twice, of our protocol and of a network manager's, of which one message takes away one.
    """
    if isinstance(op.what, Link):
        return op.verb != "set" or not op.what.up or op.what.kind == "infiniband"
    return op.verb == "delete"


def change(kernel: Kernel, host: RouteHost, target: Snapshot, armed: t.Callable[[], bool]) -> None:
    """Lead the host from what was read of it to `target`, or leave it as it was.

    :param armed: whether the rollback timer has not fired: after that, nothing more is written.
    """
    try:
        with _signals_raise():
            settle(kernel, host, target, armed)
    except BaseException as exc:
        left = revert(kernel, host, host.snapshot, target)
        if isinstance(exc, OSError):
            text = f"The host network cannot be read after a change: {exc}."
            exc = RdmaError(text, "Check the kernel's log (`dmesg`) and run again. [network_unreadable]")
        if isinstance(exc, RdmaError):
            exc.facts["rolled_back"] = not left
            if left:
                exc.facts["left"] = left
        raise exc


def revert(kernel: Kernel, host: RouteHost, before: Snapshot, after: Snapshot) -> list[str]:
    """Undo a change; return what could not be undone, as text."""
    for tries in range(ROUNDS, -1, -1):
        left = revert_operations(kernel, host, before, after)
        if not left or not tries:
            break
        for op in left:
            # One thing that cannot be undone must not keep the others from it.
            with contextlib.suppress(KernelRejected):
                kernel.apply(((op,),))
    return [str(op) for op in left]


def revert_operations(kernel: Kernel, host: RouteHost, before: Snapshot, after: Snapshot) -> list[Op]:
    """Return what is still to do until a change is revert_operations; all of the change where the host cannot be read.

    :param before: what was there before the change, and `after` what it led to.
    """
    # An address that was not usable yet is restored as usable; one with a lifetime is restored with its lifetime.
    addresses = frozenset(replace(item, usable=item.usable or not item.ends) for item in before.addresses)
    try:
        now = kernel.again(host)
    except OSError:
        now = after
    return [op for phase in steps(now, toward(now, after, replace(before, addresses=addresses))) for op in phase]


@contextlib.contextmanager
def _signals_raise() -> t.Iterator[None]:
    def stop(number: int, _frame: t.Any) -> None:
        text = f"The change was interrupted by {signal.Signals(number).name} and rolled back."
        raise RdmaError(text, "Run the task again. [change_interrupted]")

    old = {}
    with contextlib.suppress(ValueError):  # not the main thread
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            old[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)

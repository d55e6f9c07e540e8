# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read latency between pods: pairs of pods, the commands in them, and the results from their output. Pure.

A test is over one rail, by two commands in pods of the test application: the server's, then the client's. Each ends
with `timeout`, whatever happens to the controller.
"""

from __future__ import annotations

import random
import re
import signal
import typing as t
from dataclasses import dataclass

from .._formatting import group_by
from .._probe.perftest import explain, parse, threshold_failure
from .._probe.schedule import HostPair, schedule
from .._validation import ADDRESS, INTERFACE, line
from .checks import PodNode, check, pod_rails, skipped_check
from .scheduling import DOWN, fix_of

if t.TYPE_CHECKING:
    from .._check import Check
    from .commands import CommandResult

TEST = "read_lat"
CHECK = "pod_read_lat"

# Runs in the image of the test application, which has perftest, iproute2, coreutils and a shell: `SCRIPT iterations
# seconds port interface [server]`, the server's address where this is the client. The RDMA device and the GID index are
# found by the rail's address: they are other ones in each pod. On InfiniBand the LID is enough.
SCRIPT = r"""
exec 2>&1
iterations=$1 seconds=$2 port=$3 net=$4 peer=$5
say() { echo "railops: $*"; }
command -v ib_read_lat >/dev/null || { say "the image has no ib_read_lat"; exit 3; }
own= gid=
while read -r _ _ family address _; do
  [ "$family" = inet ] || [ "$family" = inet6 ] || continue
  own=${address%%/*}
  [ "$family" = inet ] && break
done <<END
$(ip -o address show dev "$net" scope global)
END
case $own in
  *:*)
    while read -r digits _ _ scope _ name; do
      [ "$name" = "$net" ] && [ "$scope" = 00 ] && gid=$(echo "$digits" | sed 's/..../&:/g; s/:$//')
    done </proc/net/if_inet6 ;;
  ?*)
    IFS=.; set -- $own; unset IFS
    gid=0000:0000:0000:0000:0000:ffff:$(printf '%02x%02x:%02x%02x' "$1" "$2" "$3" "$4") ;;
esac
device= index=
for path in /sys/class/net/$net/device/infiniband/*; do
  [ -e "$path" ] && [ "$(cat "$path/ports/1/link_layer")" = InfiniBand ] && device=${path##*/}
done
if [ -z "$device" ] && [ -n "$gid" ]; then
  # One process for all: a device has up to 1024 entries.
  for path in $(grep -lsx "$gid" /sys/class/infiniband/*/ports/1/gids/*); do
    [ "$(cat "${path%/gids/*}/gid_attrs/types/${path##*/}" 2>/dev/null)" = "RoCE v2" ] || continue
    device=${path#/sys/class/infiniband/} device=${device%%/*} index=${path##*/}
    break
  done
fi
[ -n "$device" ] || { say "no RDMA device has the address ${own:-of $net}"; exit 4; }
set -- ib_read_lat -F -d "$device" -p "$port" -n "$iterations" ${index:+-x "$index"}
help=$(ib_read_lat --help 2>&1)
if [ -n "$own" ]; then
  case $help in
    *--bind_source_ip*) set -- "$@" "--bind_source_ip=$own" ;;
    *--source_ip*) set -- "$@" "--source_ip=$own" ;;
  esac
  case $own in *:*) case $help in *--ipv6-addr*) set -- "$@" --ipv6-addr ;; esac ;; esac
fi
exec timeout "$seconds" "$@" ${peer:+"$peer"}
"""
# What `timeout` ends with when the time is up: that of coreutils, and that of busybox.
_TIME_UP = (124, 128 + signal.SIGTERM)

_TAKEN = "Couldn't listen to port"
# Without iproute2 the address is not found either.
_NO_PROGRAM = re.compile(r"the image has no (\S+)|(timeout|ip): not found")
_IMAGE_FIX = "Give an image with perftest, iproute2 and coreutils (rail_objects_test_image)."
_NO_DEVICE = "no RDMA device has the address"
_NO_DEVICE_FIX = (
    "Compare rdma link show in a pod with the node's namespace mode: shared for macvlan, ipvlan and ipoib, exclusive "
    "for sriov and ib-sriov; the GID comes with the address of net1."
)
_NO_RESULT_FIX = (
    "Run the test manually as docs/guides/test-application.md shows, with an image that has perftest 4.4 or newer."
)
_NO_ADDRESS_FIX = "Look at the log of the Spiderpool agent on the node, and at kubectl get spiderippools."
_NOT_YET = re.compile("onnect to |onnection refused")


@dataclass(frozen=True)
class LatencyOutcome:
    """The result of a test: the latency, or the cause of a missing or bad one.

    `skipped`: that is no fault of the rail or of the other end, so nothing was measured.
    """

    pair: HostPair
    latency_us: float | None = None
    cause: str = ""
    fix: str = ""
    skipped: bool = False


def sample_nodes(nodes: t.Iterable[str], count: int, seed: int) -> list[str]:
    """Return the nodes that take part: all, or `count` of them drawn with a seed; 0 takes all."""
    order = sorted(set(nodes))
    return order if count < 1 or len(order) <= count else sorted(random.Random(seed).sample(order, max(2, count)))


def tests(nodes: t.Mapping[str, PodNode], chosen: t.Sequence[str], mode: str, peers: int, seed: int) -> list[HostPair]:
    """Return the tests, over each rail that both nodes have; no two in a pod have the same port.

    :param chosen: the nodes that take part.
    :param mode: and `peers`: see `schedule`.
    """
    have = {(name, network.rail) for name in chosen for network in nodes[name].networks}
    rails = list(dict.fromkeys(network.rail for name in chosen for network in nodes[name].networks))
    made = schedule(chosen, rails, [TEST], mode=mode, peers=peers, seed=seed)
    every = (pair for name in made.hosts for pair in made.pairs_of(name))
    return [pair for pair in every if {(pair.client, pair.rail), (pair.server, pair.rail)} <= have]


def rounds(todo: t.Iterable[HostPair], most: int) -> t.Iterator[list[list[HostPair]]]:
    """Yield the tests in rounds, those of two nodes together, which come one after the other.

    No node is twice in a round, so no rail has two tests at once.

    :param most: pairs of nodes in a round.
    """
    left = group_by(((pair.client, pair.server), pair) for pair in todo)
    while left:
        busy: set[str] = set()
        now: list[list[HostPair]] = []
        for ends in list(left):
            if len(now) < most and not busy.intersection(ends):
                busy.update(ends)
                now.append(left.pop(ends))
        yield now


def place_of(node: PodNode, rail: str, pod: t.Mapping[str, t.Any]) -> tuple[str, str]:
    """Return the interface of a rail in a pod, and its address for a client: where rails have none, the pod's own.

    Both are empty where the pod lacks one of them.
    """
    have = pod_rails(node, pod).get(rail)
    if have is None or not INTERFACE.fullmatch(have.interface):
        return "", ""
    addresses = [address for address in have.ips if ADDRESS.fullmatch(address)]
    if not have.network.subnets:
        addresses = [str((pod.get("status") or {}).get("podIP") or "")]
    address = min(addresses, key=lambda address: ":" in address, default="")
    return (have.interface, address) if address else ("", "")


def command(pair: HostPair, iterations: int, seconds: int, interface: str, server: str = "") -> list[str]:
    """Return one end of a test as a command.

    :param iterations: exchanges.
    :param seconds: that it may take.
    :param interface: of the rail in its pod.
    :param server: its address, where this is the client's end.
    """
    words = [str(iterations), str(seconds), str(pair.port), interface]
    return ["sh", "-c", SCRIPT, "railops", *words, *([server] if server else [])]


def server_missing(client: CommandResult) -> bool:
    """Return whether a client did not find its server, which may still be on its way to its port."""
    return client.code != 0 and _NOT_YET.search(client.output) is not None


def read(pair: HostPair, client: CommandResult, server: CommandResult, max_latency_us: float) -> LatencyOutcome:
    """Return what a test's two ends say.

    :param server: has the cause when it failed first.
    :param max_latency_us: the latency that passes; 0: any.
    """
    if (measured := parse(TEST, client.output)) is not None and client.code == 0:
        slow = threshold_failure(TEST, measured, {"max_latency_us": max_latency_us})
        return LatencyOutcome(pair, measured["latency_us"], *((slow.cause, slow.fix) if slow else ()))
    both = f"{client.output}\n{server.output}"
    if lacking := _NO_PROGRAM.search(both):
        name = lacking[1] or lacking[2]
        cause = f"the image of the test application has no {name}"
        return LatencyOutcome(pair, None, cause, _IMAGE_FIX, skipped=name == "timeout")
    # Another process listens on a port in use: if the client does not reach it, the rail is at fault.
    if _TAKEN in both and not server_missing(client):
        cause = "another run tests in the same pods"
        return LatencyOutcome(pair, None, cause, "Run again when that has ended.", skipped=True)
    if _NO_DEVICE in both:
        cause = "no RDMA device in the pod has a RoCE v2 GID of the rail's address"
        return LatencyOutcome(pair, None, cause, _NO_DEVICE_FIX)
    code = None if client.code in _TIME_UP else client.code
    failure = explain(client.output, code)
    if code == 0 or (code is not None and not failure.line):
        shown = next((row for text in reversed(client.output.splitlines()) if (row := line(text))), "nothing")
        cause = f"ib_read_lat ended with exit code {code}, and its output holds no result (last line: {shown[:120]})"
        return LatencyOutcome(pair, None, cause, _NO_RESULT_FIX)
    return LatencyOutcome(pair, None, failure.cause, failure.fix)


def without_address(pair: HostPair, end: str) -> LatencyOutcome:
    """Return a test that has no address to begin with.

    :param end: `client` or `server`.
    """
    cause = f"the {end}'s pod on {getattr(pair, end)} has no address on {pair.rail}"
    return LatencyOutcome(pair, None, cause, _NO_ADDRESS_FIX)


def failed_command(pair: HostPair, node: str, problem: str) -> LatencyOutcome:
    """Return a test of which one end could not be run: that says nothing of the other end."""
    cause = f"no command can be run in the pod on {node}: {problem}"
    return LatencyOutcome(pair, None, cause, f"Look at the kubelet of {node} and at the pod.", skipped=True)


def without_lost_nodes(outcome: LatencyOutcome, down: t.Collection[str]) -> LatencyOutcome:
    """Return an outcome; a failure with a node that is down by now is none, but not measured."""
    name = next((name for name in (outcome.pair.client, outcome.pair.server) if name in down), "")
    if not name or not outcome.cause:
        return outcome
    return LatencyOutcome(outcome.pair, None, f"{name} {DOWN}", fix_of(DOWN), skipped=True)


def latency_checks(outcomes: t.Sequence[LatencyOutcome], name: str = CHECK) -> list[Check]:
    """Return one check for each client's node and rail: its servers together, the failed ones named.

    :param name: the check's id.
    """
    groups = group_by(((outcome.pair.client, outcome.pair.rail), outcome) for outcome in outcomes)
    checks = []
    for (node, rail), every in groups.items():
        for why in dict.fromkeys((item.cause, item.fix) for item in every if item.skipped):
            checks.append(skipped_check(name, node, *why, rail))
        if not (members := [item for item in every if not item.skipped]):
            continue
        bad = [item for item in members if item.cause]
        peers = ", ".join(dict.fromkeys(item.pair.server for item in members))
        shown = "; ".join(
            f"{item.latency_us:g} us with a pod on {item.pair.server}"
            if item.latency_us is not None
            else f"nothing from {item.pair.server}"
            for item in (bad or members)[:4]
        )
        cause, fix = (bad[0].cause, bad[0].fix) if bad else ("", "")
        ends = tuple(dict.fromkeys(item.pair.server for item in bad))
        planned = f"a pod on {peers} answers {'RDMA reads' if name == CHECK else 'pings'}"
        checks.append(check(name, node, rail, planned, shown, cause, fix, ends))
    return checks

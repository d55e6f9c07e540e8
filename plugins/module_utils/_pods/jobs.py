# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read latency between pods: which pairs, their Jobs, and what the logs of these mean. Pure.

A pair is a server's and a client's Job, each one pod with all rails that both nodes have, as a workload's, pinned to
its node. Where such a pod does not start, the pair is tested again rail by rail, which names the rail. Kubernetes ends
Jobs by itself (activeDeadlineSeconds) and removes them (ttlSecondsAfterFinished), whatever becomes of the controller.
"""

from __future__ import annotations

import hashlib
import random
import re
import typing as t
from collections import Counter
from dataclasses import dataclass

from .._fabric.labels import OURS, POD_DEFAULT, POD_NETWORKS, PROBE_LABEL, RUN_LABEL
from .._fabric.labels import labels as labels_of
from .._fabric.labels import selector as selector_of
from .._fabric.numbers import TEST_PORT
from .._intake import ADDRESS, line
from .._probe.perftest import Failure, explain, judge, parse
from .._probe.schedule import schedule
from .checks import Json, Network, PodNode, check, left_out
from .place import by_name, fix_of, off_text, with_gate

if t.TYPE_CHECKING:
    from .._check import CheckData

TEST = "read_lat"
CHECK = "pod_read_lat"
PORT = TEST_PORT
PROBE = "read-latency"
# Seconds that a Job may outlive its test, and seconds that Kubernetes keeps it when nobody removed it.
MARGIN = 60
KEPT = 300
CONTAINER = "probe"

# Runs in the image of the test application, which has perftest, iproute2 and a shell: `SCRIPT iterations seconds port
# server...`, a server's address for each interface net1, net2, ..., or `-` where this is the server. Each line of a
# test begins with its interface. The RDMA device and the GID index are found by the rail's address: they are other ones
# in each pod. On InfiniBand the LID is enough.
SCRIPT = r"""
say() { echo "railops: $*"; }
command -v ib_read_lat >/dev/null || { say "the image has no ib_read_lat"; exit 3; }
measure() {
  net=$1 port=$2 peer=$3 tries=20
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
  say "device $device gid ${index:-none} address ${own:-none}"
  set -- ib_read_lat -F -d "$device" -p "$port" -n "$iterations" ${index:+-x "$index"}
  help=$(ib_read_lat --help 2>&1)
  if [ -n "$own" ]; then
    case $help in
      *--bind_source_ip*) set -- "$@" "--bind_source_ip=$own" ;;
      *--source_ip*) set -- "$@" "--source_ip=$own" ;;
    esac
    case $own:$help in *:*:*--ipv6-addr*) set -- "$@" --ipv6-addr ;; esac
  fi
  [ "$peer" != - ] || exec "$@"
  # One rail that says nothing leaves the others their time.
  command -v timeout >/dev/null && set -- timeout "$seconds" "$@"
  while :; do
    output=$("$@" "$peer" 2>&1); code=$?
    tries=$((tries - 1))
    [ "$code" -ne 0 ] && [ "$tries" -gt 0 ] || break
    # The server may still be on its way to its port.
    case $output in *"onnect to $peer"* | *"onnection refused"*) sleep 1 ;; *) break ;; esac
  done
  echo "$output"
  exit $code
}
tell() {
  { (measure "$@" 2>&1); say "exit $?"; } | {
    while IFS= read -r line; do echo "$1: $line"; last=$line; done
    [ "$last" = "railops: exit 0" ]
  }
}
iterations=$1 seconds=$2 port=$3 number=0 worst=0
shift 3
for server; do
  number=$((number + 1))
  set -- "net$number" $((port + number - 1)) "$server"
  # All servers wait at the same time; a client measures one rail after the other.
  if [ "$server" = - ]; then tell "$@" & else tell "$@" || worst=1; fi
done
wait
exit $worst
"""
# The script's own messages, with cause and fix.
_MESSAGES: tuple[tuple[str, str, str], ...] = (
    (
        "the image has no ib_read_lat",
        "the image of the test application has no ib_read_lat",
        "Give an image with perftest (rail_objects_test_image).",
    ),
    (
        "no RDMA device has the address",
        "no RDMA device in the pod has a RoCE v2 GID of the rail's address",
        "Compare rdma link show in a pod with the node's namespace mode: shared for macvlan, ipvlan and ipoib, "
        "exclusive for sriov and ib-sriov; the GID comes with the address of net1.",
    ),
    (
        "ip: not found",
        "the image of the test application has no ip",
        "Give an image with iproute2 (rail_objects_test_image).",
    ),
)
# With these exit codes the script has come to its end.
_WHOLE = (0, 1)
_ROTATED_FIX = "Run again; see containerLogMaxSize in the kubelet's configuration."
_NO_RESULT_FIX = (
    "Run the test by hand as docs/test-application.md shows, and see that the image's perftest is 4.4 or newer."
)


@dataclass(frozen=True)
class PodPair:
    """Tests between pods on two nodes over rails that both have."""

    rails: tuple[str, ...]
    client: str
    server: str

    def singles(self) -> list[PodPair]:
        """Return the same, each rail for itself."""
        return [PodPair((rail,), self.client, self.server) for rail in self.rails]


@dataclass(frozen=True)
class JobModel:
    """What a Job's pod takes over from the test application."""

    fabric: str
    namespace: str
    image: str
    template: Json

    @property
    def tolerations(self) -> list[Json]:
        """Return the tolerations of the Jobs' pods."""
        return with_gate((self.template.get("spec") or {}).get("tolerations") or ())


@dataclass(frozen=True)
class Limits:
    """How long one test may take, how many exchanges it makes, and what latency passes (0: any)."""

    timeout: int = 60
    iterations: int = 1000
    max_latency_us: float = 0.0


@dataclass(frozen=True)
class LatencyOutcome:
    """What came of a pair over one rail: the latency, why there is none, or why nothing was measured."""

    rail: str
    pair: PodPair
    latency_us: float | None = None
    failure: Failure | None = None
    unmeasured: str = ""
    fix: str = ""
    """About what was not measured."""


def draw(nodes: t.Sequence[str], count: int, seed: int) -> list[str]:
    """Return the nodes that take part: all, or `count` of them drawn with a seed; 0 takes all."""
    order = sorted(set(nodes))
    return order if count < 1 or len(order) <= count else sorted(random.Random(seed).sample(order, max(2, count)))


def pairs(nodes: t.Mapping[str, PodNode], chosen: t.Sequence[str], mode: str, peers: int, seed: int) -> list[PodPair]:
    """Return the pairs, each with the rails that both nodes have.

    :param chosen: the nodes that take part.
    :param mode: and `peers`: see `schedule`.
    """
    rails = list(dict.fromkeys(network.rail for name in chosen for network in nodes[name].networks))
    have = {(name, network.rail) for name in chosen for network in nodes[name].networks}
    made = schedule(chosen, ["all"], [TEST], mode=mode, peers=peers, seed=seed)
    ends = [(pair.client, pair.server) for name in made.hosts for pair in made.pairs_of(name)]
    found = [
        PodPair(tuple(rail for rail in rails if {(one, rail), (other, rail)} <= have), one, other)
        for one, other in ends
    ]
    return [pair for pair in found if pair.rails]


def networks_over(node: PodNode, rails: t.Sequence[str]) -> list[Network]:
    """Return a node's networks of rails, in their order."""
    return [next(network for network in node.networks if network.rail == rail) for rail in rails]


def job_name(fabric: str, run: str, pair: PodPair, end: str) -> str:
    """Return the name of a Job: a DNS label, different for each pair of each run.

    :param run: distinguishes this run's Jobs from others'.
    :param end: `client` or `server`.
    """
    digest = hashlib.sha256(repr((run, pair)).encode()).hexdigest()[:10]
    return f"{fabric[:30].rstrip('-')}-latency-{digest}-{end}"


def selector(fabric: str, run: str = "") -> str:
    """Return the label selector of the probe's Jobs and pods, of one run or of all."""
    return selector_of({**labels_of(fabric), PROBE_LABEL: PROBE, **({RUN_LABEL: run} if run else {})})


def model_of(daemon_set: t.Mapping[str, t.Any], fabric: str, image: str = "") -> JobModel:
    """Return what the Jobs take over from the test application's DaemonSet."""
    meta, template = daemon_set["metadata"], daemon_set["spec"]["template"]
    containers = (template.get("spec") or {}).get("containers") or [{}]
    return JobModel(
        fabric,
        str(meta.get("namespace") or "default"),
        image or str(containers[0].get("image") or ""),
        template,
    )


def job(model: JobModel, run: str, pair: PodPair, node: PodNode, limits: Limits, servers: t.Sequence[str] = ()) -> Json:
    """Return one end of a pair as a Job: the server's, or with the server's addresses the client's.

    :param run: distinguishes this run's Jobs from others'.
    :param servers: its addresses, rail by rail; empty: this is the server.
    :param node: where it runs.
    """
    name = job_name(model.fabric, run, pair, "client" if servers else "server")
    networks = networks_over(node, pair.rails)
    labels = {**labels_of(model.fabric), PROBE_LABEL: PROBE, RUN_LABEL: run}
    ends = {
        f"{OURS}/rails": ",".join(pair.rails),
        f"{OURS}/client": pair.client,
        f"{OURS}/server": pair.server,
    }
    taken = model.template.get("spec") or {}
    first = (taken.get("containers") or [{}])[0]
    numbers = [str(number) for number in (limits.iterations, limits.timeout, PORT)]
    container: Json = {
        "name": CONTAINER,
        "image": model.image,
        "imagePullPolicy": first.get("imagePullPolicy") or "IfNotPresent",
        "command": ["sh", "-c", SCRIPT, "railops", *numbers, *(servers or "-" * len(networks))],
        "securityContext": first.get("securityContext") or {"capabilities": {"add": ["IPC_LOCK"]}},
    }
    if wanted := Counter(network.resource for network in networks if network.resource):
        container["resources"] = {"limits": {resource: str(count) for resource, count in wanted.items()}}
    spec: Json = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        # The scheduler counts the resource; nodeName would go past it, and the kubelet would refuse the pod.
        "affinity": by_name([node.name]),
        "tolerations": model.tolerations,
        "containers": [container],
    }
    if taken.get("imagePullSecrets"):
        spec["imagePullSecrets"] = taken["imagePullSecrets"]
    notes = {POD_NETWORKS: ",".join(network.name for network in networks), **ends}
    own = (model.template.get("metadata") or {}).get("annotations") or {}
    # A rail in place of the cluster's own network is among them already.
    if own.get(POD_DEFAULT) and own[POD_DEFAULT] not in {network.name for network in networks}:
        notes[POD_DEFAULT] = own[POD_DEFAULT]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": model.namespace, "labels": labels, "annotations": ends},
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": (2 + len(networks)) * limits.timeout + MARGIN,
            "ttlSecondsAfterFinished": KEPT,
            "template": {"metadata": {"labels": labels, "annotations": notes}, "spec": spec},
        },
    }


def server_address(attached: t.Mapping[str, Json], network: Network, pod: t.Mapping[str, t.Any]) -> str:
    """Return where a client finds the server's pod: its rail address; its pod address where rails have none."""
    ips = [address for address in (attached.get(network.name) or {}).get("ips") or () if ADDRESS.fullmatch(address)]
    ips.sort(key=lambda address: ":" in address)
    if network.subnets:
        return ips[0] if ips else ""
    return str((pod.get("status") or {}).get("podIP") or "")


def exit_code(pod: t.Mapping[str, t.Any]) -> int | None:
    """Return the exit code of a pod's container, None while it has none."""
    for row in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (row.get("state") or {}).get("terminated") or {}
        if "exitCode" in ended:
            return int(ended["exitCode"])
    return None


def finished(pod: t.Mapping[str, t.Any]) -> bool:
    """Return whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def parts(log: str, count: int, code: int | None) -> list[tuple[str, int | None, bool]]:
    """Split a pod's log by its interfaces net1, net2, ...: each test's text, its exit code, and if it printed that.

    :param log: what the pod printed; lines of no interface belong to each.
    :param code: the pod's exit code, which counts where a test does not say its own; None when its time was up.
    """
    texts: list[list[str]] = [[] for dummy in range(count)]
    codes = [code] * count
    ended = [False] * count
    for row in log.splitlines():
        found = re.match(r"net(\d{1,9}): (?:railops: exit (\d{1,9})$)?", row)
        if not found or not 0 < int(found[1]) <= count:
            for text in texts:
                text.append(row)
        elif found[2]:
            # As of `timeout`.
            codes[int(found[1]) - 1] = None if found[2] == "124" else int(found[2])
            ended[int(found[1]) - 1] = True
        else:
            texts[int(found[1]) - 1].append(row[found.end() :])
    return [("\n".join(text), own, printed) for text, own, printed in zip(texts, codes, ended)]


def read_logs(pair: PodPair, log: str, code: int | None, limits: Limits, server_log: str = "") -> list[LatencyOutcome]:
    """Return what the client's log says of each rail.

    :param log: what the client's pod printed.
    :param code: its exit code; None when its time was up.
    :param server_log: has the cause when the server failed first.
    """
    count = len(pair.rails)
    others = [text for text, _code, _ended in parts(server_log, count, None)]
    ends = zip(pair.rails, parts(log, count, code), others)
    return [_read(rail, pair, *part, limits, other) for rail, part, other in ends]


def _read(
    rail: str, pair: PodPair, log: str, code: int | None, ended: bool, limits: Limits, server_log: str
) -> LatencyOutcome:
    if (measured := parse(TEST, log)) is not None and not code:
        failure = judge(TEST, measured, {"max_latency_us": limits.max_latency_us})
        return LatencyOutcome(rail, pair, measured["latency_us"], failure)
    if known := next((Failure(*row) for text in (log, server_log) for row in _MESSAGES if row[0] in text), None):
        return LatencyOutcome(rail, pair, None, known)
    if code in _WHOLE and not (ended and "railops: " in log):
        # The script says of each test which device it takes, and before it ends itself, how the test ended.
        cause = f"the log of the client's pod on {pair.client} is not whole: the kubelet rotated it away"
        return LatencyOutcome(rail, pair, unmeasured=cause, fix=_ROTATED_FIX)
    failure = explain(log, code)
    if code == 0:
        shown = next((row for text in reversed(log.splitlines()) if (row := line(text))), "nothing")
        cause = f"the log of the client's pod holds no result of ib_read_lat (last line: {shown[:120]})"
        failure = Failure(shown, cause, _NO_RESULT_FIX)
    elif not failure.line and code is not None:
        failure = Failure("", f"ib_read_lat ended with exit code {code} and printed nothing", _NO_RESULT_FIX)
    return LatencyOutcome(rail, pair, None, failure)


def failed(pair: PodPair, cause: str, fix: str) -> list[LatencyOutcome]:
    """Return a pair whose tests were not run to their end."""
    return [LatencyOutcome(rail, pair, None, Failure("", cause, fix)) for rail in pair.rails]


def excused(outcome: LatencyOutcome, off: t.Mapping[str, str]) -> LatencyOutcome:
    """Return an outcome; a failure with a node that takes no pods is none, but not measured.

    :param off: why nodes take no pods.
    """
    pair = outcome.pair
    name = next((name for name in (pair.client, pair.server) if name in off), "")
    if not name or outcome.failure is None:
        return outcome
    return LatencyOutcome(outcome.rail, pair, unmeasured=off_text(name, off[name]), fix=fix_of(off[name]))


def latency_checks(outcomes: t.Sequence[LatencyOutcome]) -> list[CheckData]:
    """Return one check for each client's node and rail: its servers together, the failed ones named."""
    groups: dict[tuple[str, str], list[LatencyOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.pair.client, outcome.rail), []).append(outcome)
    checks = []
    for (node, rail), every in groups.items():
        for why, fix in dict.fromkeys((item.unmeasured, item.fix) for item in every if item.unmeasured):
            checks.append(left_out(CHECK, node, why, fix, rail))
        if not (members := [item for item in every if not item.unmeasured]):
            continue
        bad = [item for item in members if item.failure is not None]
        peers = ", ".join(dict.fromkeys(item.pair.server for item in members))
        shown = "; ".join(
            f"{item.latency_us:g} us with a pod on {item.pair.server}"
            if item.latency_us is not None
            else f"nothing from {item.pair.server}"
            for item in (bad or members)[:4]
        )
        failure = bad[0].failure if bad else None
        cause_and_fix = (failure.cause, failure.fix) if failure else ("", "")
        ends = tuple(dict.fromkeys(item.pair.server for item in bad))
        checks.append(
            check(CHECK, node, rail, f"a pod on {peers} answers RDMA reads", shown, *cause_and_fix, peers=ends)
        )
    return checks

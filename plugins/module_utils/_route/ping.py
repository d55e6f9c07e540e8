# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether gateways and neighbors answer each rail, at its full size too, and what is lost: questions and checks."""

from __future__ import annotations

import typing as t

from .._check import NOT_CHECKED, Check, deviation, ok, skipped, warning
from .._files import Sysfs
from .._formatting import count
from . import tcp
from .desired import inside
from .icmp import EchoOutcome, EchoRun, EchoTarget
from .options import host_plan_spec
from .rail_isolation import CHECK, isolation_checks, sample
from .route_options import Neighbor, RouteOptions, neighbors_of, parse_options

if t.TYPE_CHECKING:
    from .route_options import Wire

SILENT = 3
OWN_ECHO = "network_echo"
NO_ECHO = "no echo"
"""The observed value of a gateway that is up and answers no echo requests: no sign of a fault of the rail."""

SPEC = {
    **host_plan_spec(),
    "full_size": {"type": "bool", "default": True},
    "cross_rail_pairs": {"type": "int", "default": 0},
    "rails_reachable": {"type": "bool"},
    "seed": {"type": "int", "default": 0},
    "count": {"type": "int", "default": 10},
    "timeout": {"type": "float", "default": 1.0},
    "loss_percent": {"type": "float", "default": 0},
}


def targets_of(
    want: RouteOptions, names: t.Mapping[str, str], neighbors: t.Collection[Neighbor] = (), *, full_size: bool = False
) -> t.Iterator[EchoTarget]:
    """Yield the targets: each rail's gateways, and the neighbors' addresses on the same rail and family.

    :param full_size: whether packets as large as the MTU are sent too.
    :param names: the interface name of each rail.
    """
    for rail in want.rails:
        name = names[rail.name]
        for item in rail.addresses:
            others = [("gateway", item.gateway, "", "")] if item.gateway else []
            others += [
                ("neighbor", there.address, there.host, "" if inside(there.address, item.subnet) else item.gateway)
                for there in neighbors
                if (there.rail, there.family) == (rail.name, item.family)
            ]
            for kind, address, peer, via in others:
                for size in [0, rail.mtu] if full_size and rail.mtu else [0]:
                    check = f"ping_{kind}_mtu" if size else f"ping_{kind}"
                    yield EchoTarget(check, rail.name, name, item.address, address, size, peer, via=via)


def names_of(want: RouteOptions, sysfs: Sysfs | None = None) -> dict[str, str]:
    """Return the interface name of each rail; of one named by PCI address alone, what the kernel calls it."""
    files = sysfs or Sysfs()
    return {
        rail.name: rail.device if rail.interface else next(iter(files.pci_interfaces(rail.pci)), rail.pci)
        for rail in want.rails
    }


def checks_of(
    targets: list[EchoTarget], outcomes: list[EchoOutcome], loss_percent: float = 0, wire: Wire | None = None
) -> list[Check]:
    """Return one check per target.

    A gateway without an echo is judged by what it does: it forwards to a neighbor, or it answers ARP or ND.

    :param loss_percent: how much may be lost between hosts; of a gateway's answers, which leaves police, any may.
    """
    received = {(one.rail, one.address, bool(one.size)) for one, got in zip(targets, outcomes) if got.answered}
    forwards = {
        (one.rail, one.via, bool(one.size)): one.address
        for one, got in zip(targets, outcomes)
        if one.via and got.answered
    }
    silent = {
        one
        for one, got in zip(targets, outcomes)
        if one.check.startswith("ping_gateway")
        and not got.answered
        and not got.error
        # One of full size alone is a matter of the MTU.
        and (
            not one.size or (one.rail, one.address, False) not in received or (one.rail, one.address, True) in forwards
        )
    }
    unproven = {(one.interface, one.address) for one in silent if (one.rail, one.address, False) not in forwards}
    there = wire(unproven) if unproven and wire else {}
    checks = []
    for target, outcome in zip(targets, outcomes):
        check = _check(target, outcome, loss_percent)
        key = (target.interface, target.address)
        if target in silent and (by := forwards.get((target.rail, target.address, bool(target.size)))):
            check = ok(target.check, check["planned"], f"{NO_ECHO}; forwards to {by}", rail=target.rail)
        elif target in silent and (key in there or key not in unproven):
            how = f"It answers {'ND' if target.family == 6 else 'ARP'} and no echo requests" if key in there else ""
            how = how or "It forwards small packets, and answers no echo requests"
            if target.size:
                check = skipped(target.check, f"{how}, which shows no size.", rail=target.rail)
            else:
                cause = f"{how}. No neighbor beyond it was reached."
                check = warning(target.check, check["planned"], NO_ECHO, cause, ALLOW, rail=target.rail)
        checks.append(check)
    return checks


def _check(target: EchoTarget, outcome: EchoOutcome, loss_percent: float) -> Check:
    size = f" with {target.size} bytes unfragmented" if target.size else ""
    planned = f"{target.address} answers {target.source} on {target.interface}{size}"
    where: dict[str, t.Any] = {"rail": target.rail}
    peers = (target.peer,) if target.peer else ()
    if not outcome.answered:
        cause = outcome.error or f"no answer to {count(outcome.knocks, 'echo request')}{size}"
        return deviation(target.check, planned, "no answer", cause, _fix(target), peers=peers, **where)
    observed = f"answer in {outcome.best * 1000:.1f} ms"
    if not outcome.lost:
        return ok(target.check, planned, observed, **where)
    observed += f", {outcome.lost} of {outcome.sent} lost"
    cause = f"{outcome.lost} of {outcome.sent} echo requests{size} to {target.address} were lost"
    cause += f": {outcome.error}" if outcome.error else ""
    if target.check.startswith("ping_gateway"):
        return warning(target.check, planned, observed, f"{cause}; leaves police ICMP to themselves", POLICED, **where)
    if outcome.lost * 100 <= loss_percent * outcome.sent:
        return ok(target.check, planned, observed, **where)
    return deviation(target.check, planned, observed, cause, LOSSY, peers=peers, **where)


ALLOW = "Nothing, where the switch drops echo requests on purpose; else look at its control plane policing."
POLICED = "Nothing, where the same rail of other hosts answers without loss; else look at cable and port."
LOSSY = (
    "Look at the error and discard counters of both ends, their switch ports and the links between the leaves; allow"
    " intended loss with audit_loss_percent or verify_loss_percent."
)


def not_sent(want: RouteOptions, params: t.Mapping[str, t.Any], targets: t.Sequence[EchoTarget]) -> list[Check]:
    """Return the checks that are switched off, or that the plan gives nothing for, by name."""
    full = {(target.check, target.rail) for target in targets if target.size}
    why = "the plan has no MTU for the rail" if params["full_size"] else "full_size is off (verify_full_size)"
    lacking = {
        (f"{target.check}_mtu", target.rail): why
        for target in targets
        if not target.size and (f"{target.check}_mtu", target.rail) not in full
    }
    off = [skipped(name, reason, observed=NOT_CHECKED, rail=rail) for (name, rail), reason in sorted(lacking.items())]
    if not params["cross_rail_pairs"] and want.network != "infiniband":
        off.append(skipped(CHECK, "no other rail is checked (verify_cross_rail_pairs)", observed=NOT_CHECKED))
    return off


def _fix(target: EchoTarget) -> str:
    if target.size:
        return "Compare the MTU of host, switch port and gateway interface; the switch needs the host's MTU or more."
    if target.check == "ping_gateway":
        return f"Look at link, VLAN and address of the switch's side: `ip neighbor show dev {target.interface}`."
    return "Look at the routes between the leaves, and at the neighbor's own checks."


# The ICMP type of an echo reply, and where its settings are below /proc/sys.
REPLIES = {4: (0, "net/ipv4/icmp_"), 6: (129, "net/ipv6/icmp/")}


def own_echo(families: t.Iterable[int], sysfs: Sysfs) -> t.Iterator[Check]:
    """Yield whether this host's own settings let it answer the echo requests of others."""
    for family in families:
        number, folder = REPLIES[family]
        mask = sysfs.text(f"/proc/sys/{folder}ratemask") or "0"
        ranges = [part.partition("-") for part in mask.split(",") if part]
        listed = any(int(low) <= number <= int(high or low) for low, _dash, high in ranges)
        # IPv4 has bits, IPv6 a list of ranges.
        limited = listed if family == 6 else int(mask) >> number & 1
        keys = ["echo_ignore_all", *(["ratelimit"] if limited else [])]
        found = {f"{folder}{key}".replace("/", "."): sysfs.number(f"/proc/sys/{folder}{key}") for key in keys}
        wrong = {key: value for key, value in found.items() if value}
        planned, text = dict.fromkeys(found, 0), ", ".join(f"{key}={value}" for key, value in wrong.items())
        if wrong:
            cause = f"This host drops echo requests of its neighbors or limits its replies: {text}."
            settings = " ".join(f"{key}=0" for key in wrong)
            fix = f"Run `sysctl -w {settings}`, and correct it where sysctl.d sets it."
            yield deviation(OWN_ECHO, planned, found, cause, fix, family=family)
        else:
            yield ok(OWN_ECHO, planned, found, family=family)


def checks_of_rails(
    params: dict[str, t.Any], hosts: t.Iterable[t.Mapping[str, t.Any]], wire: Wire, tos: int = 0
) -> list[Check]:
    """Send echo requests from every rail, and return the checks of what answered.

    :param params: those of SPEC.
    :param hosts: the neighbors with their rails.
    :param wire: queries interfaces for these addresses, for silent gateways and isolated rails without a gateway.
        There, an IPv6 echo request never leaves by a rail towards another rail, even where the two are connected. An
        IPv4 one does, since the kernel takes a destination without a route to be on the link that the socket is bound
        to.
    :param tos: the planned TOS byte of RoCE's packets, in which echo requests travel too.
    """
    want, neighbors = parse_options(params), neighbors_of(hosts)
    names = names_of(want)
    targets = list(targets_of(want, names, neighbors, full_size=params["full_size"]))
    crossing, meet = _across(want, params, names, neighbors)
    # What must not answer is not waited for as long as what should.
    sweep = EchoRun(targets + (crossing if meet else []), params["count"], params["timeout"], tos)
    outcomes = sweep.run(params["count"])
    if crossing and not meet:
        outcomes += EchoRun(crossing, min(params["count"], SILENT), params["timeout"], tos).run()
    checks = checks_of(targets, outcomes[: len(targets)], params["loss_percent"], wire)
    near = [target for target in targets if target.check == "ping_neighbor"]
    alive = [target for target, outcome in zip(targets, outcomes) if target in near and outcome.answered]
    checks += tcp.checks_of(near, tcp.connect(alive))
    checks += not_sent(want, params, targets)
    answered = dict(zip(crossing, (outcome.answered for outcome in outcomes[len(targets) :])))
    if not meet:
        routed = {(rail.name, item.family) for rail in want.rails for item in rail.addresses if item.gateway}
        linked = [pair for pair in answered if (pair.rail, pair.family) not in routed]
        found = wire({(pair.interface, pair.address) for pair in linked})
        answered.update({pair: answered[pair] or (pair.interface, pair.address) in found for pair in linked})
    crossed = isolation_checks(answered, alive, bool(meet), params["rails_reachable"] is not None)
    families = sorted({item.family for rail in want.rails for item in rail.addresses})
    return [*checks, *crossed, *own_echo(families, Sysfs())]


def _across(
    want: RouteOptions, params: dict[str, t.Any], names: t.Mapping[str, str], neighbors: list[Neighbor]
) -> tuple[list[EchoTarget], bool | None]:
    """Return the pairs of rails to test, of one family, and whether they are routed; no pair where that is unknown.

    :param names: the interface name of each rail.
    """
    meet = params["rails_reachable"]
    if meet is None and params["network"] != "infiniband":
        meet = any(item.gateway for rail in want.rails for item in rail.addresses)
    own = [(rail.name, item) for rail in want.rails for item in rail.addresses]
    pairs = [
        EchoTarget(CHECK, name, names[name], item.address, there.address, other=there.rail)
        for name, item in own
        for there in neighbors
        if meet is not None and there.rail != name and there.family == item.family
    ]
    host = " ".join(item.address for _name, item in own)
    return sample(pairs, params["cross_rail_pairs"], params["seed"], host), meet

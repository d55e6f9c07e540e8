# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Narrows a failure to node and rail, by runs with fewer nodes and rails. Pure.

A run passes or fails; the procedure uses nothing else of it. The procedure is linear and requests runs: `RunsMissing`
leaves it where a run is missing, the caller makes the runs, and the procedure starts again with their results. The
results are therefore its only state.

It tests each rail separately where the command selects rails, then halves of the nodes, until a few suspects are left.
It accuses a suspect only if the suspect fails with a node that passed elsewhere, and with a second such node where
there is one. A fault of a path is therefore no fault of a node. A group that fails while both its halves pass has its
fault between them (the same rule as in NVIDIA's cluster-readiness-engine, its ADRs 029, 055 and 056).
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

Names = tuple[str, ...]

SMALL = 3
"""The largest group that is not halved: one half would be a single node, which has no peer."""
SHIFTS = 8
"""Rounds in which suspects are paired with each other while no node is known to be healthy."""

NODE, BETWEEN, TOGETHER, UNCLEAR = "node", "between", "together", "unclear"


@dataclass(frozen=True)
class Run:
    """One run: what is run, by which hosts at once, over which rails at once."""

    kind: str
    hosts: Names
    rails: Names

    @property
    def key(self) -> str:
        """Return its name in the file of results."""
        return f"{self.kind} {','.join(self.rails)} {' '.join(self.hosts)}"


@dataclass(frozen=True)
class Finding:
    """A conclusion from the runs.

    :param what: NODE (each of `hosts` is at fault), BETWEEN (each is healthy, and the path between `hosts` and `others`
        is not), TOGETHER (the parts pass and the complete group does not), UNCLEAR (one or several of `hosts`: no
        healthy node was available for a comparison).
    :param rails: the rail; several where it fails only with all of them at once.
    :param run: the run that shows it best.
    """

    what: str
    hosts: Names
    rails: Names
    run: Run
    peers: Names = ()


class RunsMissing(Exception):
    """The runs that have to be made before it can go on."""

    def __init__(self, runs: t.Sequence[Run]) -> None:
        super().__init__(f"{len(runs)} runs")
        self.runs = list(runs)


@dataclass
class RunRequest:
    """Answers whether runs pass, and remembers who passed.

    :param passes: run -> whether it passed; None: it was not made.
    """

    passes: t.Callable[[Run], bool | None]
    passed: dict[Run, None] = field(default_factory=dict)

    def __call__(self, runs: t.Iterable[Run]) -> list[bool]:
        """Return whether each passed.

        :raises RunsMissing: with those that were not made yet.
        """
        wanted = list(runs)
        answers = [(run, self.passes(run)) for run in wanted]
        if missing := [run for run, answer in answers if answer is None]:
            raise RunsMissing(list(dict.fromkeys(missing)))
        self.passed |= {run: None for run, answer in answers if answer}
        return [bool(answer) for _run, answer in answers]

    def healthy_hosts(self, kind: str, rails: Names) -> dict[str, None]:
        """Return the hosts that passed with these rails, or with these and others at once."""
        runs = [run for run in self.passed if run.kind == kind and set(rails) <= set(run.rails)]
        return dict.fromkeys(host for run in runs for host in run.hosts)


def _halves(hosts: Names) -> tuple[Names, Names]:
    middle = len(hosts) // 2
    return hosts[:middle], hosts[middle:]


class Bisection:
    """The narrowing of one kind of run.

    :param leaves: the hosts in the order of the topology, each with its leaves: partners of a suspect are sought on the
        same ones first.
    """

    def __init__(self, passes: RunRequest, kind: str, leaves: t.Mapping[str, t.Any]) -> None:
        self._passes = passes
        self._kind = kind
        self._leaves = leaves
        self._place = {host: place for place, host in enumerate(leaves)}

    def _run(self, hosts: Names, rails: Names) -> Run:
        # One order for all: what was run before is not run again.
        return Run(self._kind, tuple(sorted(hosts, key=self._place.__getitem__)), rails)

    def groups(self, failed: list[Run], *, by_rail: bool = True) -> list[Finding]:
        """Return what is behind groups that failed, hosts in the order of the topology.

        :param by_rail: whether a run can be limited to one rail.
        """
        return self._halve(self._by_rail(failed) if by_rail else failed)

    def _by_rail(self, failed: list[Run]) -> list[Run]:
        single = [(bad, [self._run(bad.hosts, (rail,)) for rail in bad.rails]) for bad in failed]
        tried = [run for _bad, parts in single for run in parts]
        good = dict(zip(tried, self._passes(tried), strict=True))
        found: list[Run] = []
        for bad, parts in single:
            # What fails only with all rails at once is a matter of the whole node.
            found += [run for run in parts if not good[run]] or [bad]
        return found

    def _halve(self, groups: list[Run]) -> list[Finding]:
        small: list[Run] = []
        between: list[tuple[Names, Names, Names]] = []
        while groups:
            small += [bad for bad in groups if len(bad.hosts) <= SMALL]
            split = [
                [self._run(half, bad.rails) for half in _halves(bad.hosts)] for bad in groups if len(bad.hosts) > SMALL
            ]
            good = iter(self._passes(half for halves in split for half in halves))
            groups = []
            for one, other in split:
                failed = [half for half in (one, other) if not next(good)]
                if not failed:
                    between.append((one.hosts, other.hosts, one.rails))
                groups += failed
        return [*self.pairs(small), *self._between(between)]

    def pairs(self, failed: t.Iterable[Run]) -> list[Finding]:
        """Return what is behind small groups that failed: pairs, mostly.

        Everything that passed before counts: its hosts are healthy.
        """
        left = list(failed)
        self._find_healthy(left)
        healthy = {bad.rails: self._passes.healthy_hosts(self._kind, bad.rails) for bad in left}
        suspects = dict.fromkeys(
            (host, bad.rails) for bad in left for host in bad.hosts if host not in healthy[bad.rails]
        )
        accused, paths = self._confirm([one for one in suspects if healthy[one[1]]])
        findings = list(accused.values())
        for rails, known in healthy.items():
            if not known:
                same = [bad for bad in left if bad.rails == rails]
                hosts = dict.fromkeys(host for bad in same for host in bad.hosts)
                findings.append(Finding(UNCLEAR, tuple(hosts), rails, self._run(same[0].hosts, rails)))
        for bad in left:
            if healthy[bad.rails] and not any((host, bad.rails) in accused for host in bad.hosts):
                first, rest = bad.hosts[:1], bad.hosts[1:]
                what = BETWEEN if len(bad.hosts) == 2 else TOGETHER
                findings.append(Finding(what, first, bad.rails, self._run(bad.hosts, bad.rails), rest))
        return list({finding.run: finding for finding in [*findings, *paths]}.values())

    def _find_healthy(self, failed: list[Run]) -> None:
        """Pair suspects with each other where no node is known to be healthy."""
        for rails in dict.fromkeys(bad.rails for bad in failed):
            hosts = tuple(dict.fromkeys(host for bad in failed if bad.rails == rails for host in bad.hosts))
            for shift in range(1, min(SHIFTS, len(hosts) // 2) + 1):
                if self._passes.healthy_hosts(self._kind, rails):
                    break
                self._passes(self._run(pair, rails) for pair in ring(hosts, shift))

    def _confirm(self, suspects: list[tuple[str, Names]]) -> tuple[dict[tuple[str, Names], Finding], list[Finding]]:
        """Let each suspect run with up to two healthy partners, of its own leaf first."""
        paths: list[Finding] = []
        failed: dict[tuple[str, Names], list[str]] = {one: [] for one in suspects}
        for _turn in (0, 1):
            # Of two suspects one may be healthy by now.
            healthy = {rails: self._passes.healthy_hosts(self._kind, rails) for _host, rails in failed}
            tried = {one: self._partner(one, number, failed[one], healthy[one[1]]) for number, one in enumerate(failed)}
            pairs = {one: self._run((one[0], partner), one[1]) for one, partner in tried.items() if partner}
            for one, good in zip(pairs, self._passes(pairs.values()), strict=True):
                if not good:
                    failed[one].append(str(tried[one]))
                elif before := failed.pop(one):
                    # It fails with one healthy partner and passes with another.
                    paths.append(self._path_finding(one, before[0]))
        accused = {}
        for one, partners in failed.items():
            same_leaf = [other for other in partners if self._leaves[other] == self._leaves[one[0]]]
            if same_leaf or len({self._leaves[other] for other in partners}) > 1:
                accused[one] = Finding(NODE, one[:1], one[1], self._run((one[0], partners[0]), one[1]))
            else:
                # No partner on its own leaf was available: the fault may be the path between two leaves.
                paths.append(self._path_finding(one, partners[0]))
        return accused, paths

    def _path_finding(self, suspect: tuple[str, Names], partner: str) -> Finding:
        host, rails = suspect
        return Finding(BETWEEN, (host,), rails, self._run((host, partner), rails), (partner,))

    def _partner(
        self, suspect: tuple[str, Names], number: int, before: t.Sequence[str], healthy: t.Mapping[str, None]
    ) -> str | None:
        """Return a partner: of the same leaf, else of a leaf that was not asked yet."""
        host = suspect[0]
        left = [other for other in healthy if other not in before]
        same_leaf = [other for other in left if self._leaves[other] == self._leaves[host]]
        tried = {self._leaves[other] for other in before}
        choice = same_leaf or [other for other in left if self._leaves[other] not in tried]
        # Suspects take different partners, so that their runs can be made at once.
        return choice[number % len(choice)] if choice else None

    def _between(self, pairs: list[tuple[Names, Names, Names]]) -> list[Finding]:
        """Narrow what fails though both sides pass: keep one side and halve the other, while one half shows it."""
        found: list[Finding] = []
        while pairs:
            done = [(one, other, rails) for one, other, rails in pairs if len(one) == len(other) == 1]
            found += [Finding(BETWEEN, one, rails, self._run(one + other, rails), other) for one, other, rails in done]
            left = [pair for pair in pairs if pair not in done]
            split = []
            for one, other, rails in left:
                fixed, wide = (other, one) if len(one) >= len(other) else (one, other)
                split.append((fixed, _halves(wide), rails))
            good = iter(self._passes(self._run(half + fixed, rails) for fixed, both, rails in split for half in both))
            pairs = []
            for fixed, both, rails in split:
                bad = [half for half in both if not next(good)]
                both_halves = both[0] + both[1]
                if len(bad) == 1:
                    pairs.append((bad[0], fixed, rails))
                else:
                    what = BETWEEN if bad else TOGETHER
                    found.append(Finding(what, both_halves, rails, self._run(both_halves + fixed, rails), fixed))
        return found


def ring(hosts: Names, shift: int = 1) -> list[Names]:
    """Return each host with the one that is `shift` after it, each pair once, in the hosts' order."""
    count = len(hosts)
    pairs = {tuple(sorted((place, (place + shift) % count))): None for place in range(count)} if count > 1 else {}
    return [(hosts[one], hosts[other]) for one, other in pairs]

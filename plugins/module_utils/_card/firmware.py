# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Queries the cards of a host, and applies their plans. Each card separately: a failed one does not stop the rest."""

from __future__ import annotations

import json
import typing as t
from dataclasses import asdict, replace

from .._errors import RdmaError
from . import mlxconfig
from . import plan as planning
from .plan import CardPlan, CardStep, Marker

if t.TYPE_CHECKING:
    from .._programs import Machine
    from .model import Card, CardOptions

MARKERS = "/var/lib/railops-rdma/nic_link_type.json"
TOOLS = ("mstconfig", "mlxconfig")
MISSING_FIX = "Install the package mstflint on the managed node (role rdma_driver does), or MFT. [mstflint_missing]"


class LinkTypeHost:
    """The cards of one host behind the vendor's tool, and the note of what waits for a reboot."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._tool = next(filter(None, map(machine.tool, TOOLS)), None)
        self._boot = machine.boot_id

    def plan(self, cards: t.Sequence[Card], selected: dict[str, CardOptions]) -> t.Iterator[CardPlan]:
        """Query each selected card and plan its changes."""
        markers = self._markers()
        for card in (card for card in cards if card.name in selected):
            options = selected[card.name]
            try:
                yield self._query(card, options, markers.get(card.name))
            except RdmaError as exc:
                yield planning.without_tool(card, options, exc)

    def apply(self, plan: CardPlan) -> CardPlan:
        """Write one card; return its plan as it turned out, read back from the card."""
        try:
            return self._write(plan) if plan.writes else plan
        except RdmaError as exc:
            return replace(plan, step=CardStep.FAILED, note=exc.problem, fix=exc.fix)

    def remember(self, plans: t.Sequence[CardPlan]) -> None:
        """Record the cards that wait for a reboot, and since which boot. Drop the records of all cards as planned."""
        before = self._markers()
        answered = {plan.card.name for plan in plans if plan.step is not CardStep.FAILED}
        # The other cards are unchanged: another call may select them, or they answer next time.
        after = {name: marker for name, marker in before.items() if name not in answered}
        for plan in plans:
            if plan.step not in (CardStep.PENDING, CardStep.POWER_CYCLE):
                continue
            old = before.get(plan.card.name)
            known = old is not None and old.values == plan.desired_values and not plan.was_written
            boot = old.boot if old is not None and known else self._boot
            after[plan.card.name] = Marker(boot, plan.desired_values, plan.power_cycle)
        if after == before:
            return
        text = json.dumps({name: asdict(marker) for name, marker in sorted(after.items())}, indent=1) + "\n"
        self._machine.put(MARKERS, text if after else None)

    def _write(self, plan: CardPlan) -> CardPlan:
        """Write values for the next boot, all in one call."""
        words = (f"{name}={value}" for name, value in plan.writes.items())
        power_cycle = "power cycle" in " ".join(self._call(plan.card.address, "-y", "set", *words).lower().split())
        # The link layers were those before; the firmware's own word counts now.
        after = replace(self._query(plan.card, plan.options, None), was_written=True)
        if missing := [value.name for value in after.values if not value.written]:
            raise RdmaError(
                f"the card does not have what the tool reported as written: {', '.join(missing)}",
                "Run again; if it stays, update the card's firmware. [firmware_not_kept]",
            )
        if after.step is CardStep.DONE:
            return after
        why = "the tool requests a power cycle" if power_cycle else "written, waits for a reset or a reboot"
        return replace(after, step=CardStep.PENDING, power_cycle=power_cycle, note=planning.not_in_force(after, why))

    def _query(self, card: Card, options: CardOptions, marker: Marker | None) -> CardPlan:
        """Query a card's default, current and next values, where its firmware reports them, and plan its changes."""
        configuration = mlxconfig.parse_text(self._call(card.address, "-e", "q"))
        return planning.decide(card, options, configuration, marker, self._boot)

    def _call(self, address: str, *words: str) -> str:
        if self._tool is None:
            raise RdmaError("Neither mstconfig nor mlxconfig is on this host.", MISSING_FIX, kind="no_tool")
        argv = [self._tool, "-d", address, *words]
        done = self._machine.run(argv)
        if done.status:
            raise mlxconfig.failure(argv, done.status, done.out or done.err, address)
        return done.out

    def _markers(self) -> dict[str, Marker]:
        return {name: Marker(**row) for name, row in json.loads(self._machine.read(MARKERS) or "{}").items()}

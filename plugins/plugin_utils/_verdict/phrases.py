# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One sentence for a deviation, in an operator's words. Pure."""

from __future__ import annotations

import re
import typing as t

from ...module_utils._formatting import shortened
from .._report.equal import ADDRESS, differing

Checked = t.Mapping[str, t.Any]
LONGEST = 200
_LINKS = {
    "missing": "the interface is missing",
    "down": "the interface is down",
    "no carrier": "the link has no carrier",
    "dormant": "the port is dormant",
    "ARP off": "ARP is off",
}


class Phrase(t.NamedTuple):
    """The problem in words, for one check and for several, and the common part of the causes on one card."""

    one: str
    many: str
    same: str = ""

    @property
    def key(self) -> str:
        """What equal causes have in common."""
        return self.same or self.many


def _listed(noun: str, name: t.Callable[[str], str] = str, more: str = "s") -> t.Callable[[Checked], Phrase | None]:
    def made(check: Checked) -> Phrase | None:
        planned, observed = check["planned"], check["observed"]
        if not isinstance(planned, list) or not isinstance(observed, list):
            return None
        lost = [name(str(item)) for item in planned if item not in observed]
        if not lost:
            return None
        one = f"{noun} {lost[0]} is missing" if len(lost) == 1 else f"{noun}{more} {shortened(lost, 2)} are missing"
        return Phrase(one, f"{noun}{more} are missing")

    return made


def _link(check: Checked) -> Phrase | None:
    text = _LINKS.get(str(check["observed"]))
    return Phrase(text, text) if text else None


def _value(noun: str) -> t.Callable[[Checked], Phrase | None]:
    def made(check: Checked) -> Phrase | None:
        text = f"{noun} is {check['observed']}, not {check['planned']}"
        return Phrase(text, text)

    return made


def _sysctls(check: Checked) -> Phrase | None:
    planned, observed = differing(check["planned"], check["observed"])
    if not isinstance(planned, dict) or not isinstance(observed, dict):
        return None
    rows = [f"{key.replace('/', '.')} is {observed.get(key) or 'unset'}, not {value}" for key, value in planned.items()]
    noun = "kernel setting" if len(rows) == 1 else "kernel settings"
    return Phrase(f"{noun} {shortened(rows, 2)}", "kernel settings differ") if rows else None


def _stale(check: Checked) -> Phrase | None:
    rows = check["observed"] if isinstance(check["observed"], list) else [check["observed"]]
    verb = "is" if len(rows) == 1 else "are"
    return Phrase(f"{shortened([*map(str, rows)], 2)} {verb} of an earlier plan", "entries of an earlier plan are left")


def _path(check: Checked) -> Phrase | None:
    # "to ADDRESS (what), ... and 9 more: why; to ...": see module_utils/_route/path_checks.py.
    found = re.match(r"to .*?(?:\)| more): (.*?)(?:; to |$)", str(check["cause"]))
    text = found[1].replace("it leaves", "traffic leaves", 1) if found else ""
    return Phrase(text, f"{text} (and others like it)", ADDRESS.sub("@", text)) if text else None


def _object(check: Checked) -> Phrase | None:
    observed = str(check["observed"])
    state = "missing" if observed == "not there" else observed
    return Phrase(f"{check['planned']} is {state}", "objects are not as planned") if check["planned"] else None


def _no_answer(who: str, what: str = "") -> t.Callable[[Checked], Phrase | None]:
    def made(check: Checked) -> Phrase | None:
        if check["observed"] != "no answer":
            return None
        end = who or shortened(check.get("peers") or ["another host"], 3)
        return Phrase(f"{end} does not answer{what}", f"{who or 'other hosts'} do not answer{what}")

    return made


PHRASES: dict[str, t.Callable[[Checked], Phrase | None]] = {
    "fleet_mac": lambda check: Phrase(f"both report the MAC address {check['observed']}", "equal MAC addresses"),
    "network_addresses": _listed("address", lambda text: text.partition(" dev ")[0], "es"),
    "network_exclusion_rule": lambda check: Phrase("the exclusion rule is missing", "the exclusion rule is missing"),
    "network_link": _link,
    "network_mtu": _value("the MTU"),
    "network_routes": _listed("route", lambda text: " ".join(text.split()[:3])),
    "network_rules": _listed("policy rule", lambda text: text.partition(":")[0]),
    "network_sysctls": _sysctls,
    "network_stale": _stale,
    "object_state": _object,
    "persist_file": lambda check: Phrase(
        f"file {check['planned']} for the next boot is {check['observed']}", "files for the next boot are wrong"
    ),
    "persist_stale": _stale,
    "ping_gateway": _no_answer("the gateway"),
    "ping_gateway_mtu": _no_answer("the gateway", " packets of full size"),
    "ping_neighbor": _no_answer(""),
    "ping_neighbor_mtu": _no_answer("", " packets of full size"),
    "route_path": _path,
    "rdma_mtu": _value("the MTU of the RDMA port"),
}


def phrase_of(check: Checked) -> Phrase:
    """Return what is wrong, as a person would say it: by the check's ID, else by its cause."""
    made = PHRASES.get(str(check["id"]))
    if made and (found := made(check)):
        return found
    planned, observed = differing(check["planned"], check["observed"])
    text = str(check["cause"] or "").rstrip(".") or f"{check['id']}: planned {planned}, observed {observed}"
    same = re.sub(r"\d+", "#", ADDRESS.sub("@", text))
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return Phrase(text, f"{text} (and others like it)", same)

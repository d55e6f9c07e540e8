# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Decide which hosts take part in a run, by the problems of all of them: who stops it, who is left out. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field
from types import MappingProxyType

from ...module_utils._check import DEVIATION, Check
from ...module_utils._errors import grouped, with_id
from ...module_utils._formatting import group_by
from ...module_utils._validation import line
from .._report.equal import folded
from .intake import Answer

DECLARATION, BROKEN, RAIL, BUSY = "declaration", "broken", "rail", "busy"
"""Stops the run; leaves the host out; leaves one rail of it out; puts the host off to a later run."""
DECLARED = """
address_renumbered gateway_outside host_plan_stale interface_not_found localhost_differs node_drain
node_name_differs plan_missing rail_duplicate retired role_options ssh_over_fabric
"""
KINDS = {"host_in_use": BUSY, "interface_lost": RAIL, **dict.fromkeys(DECLARED.split(), DECLARATION)}
"""The kind of a problem, by the ID of its error, or of its check where that has none. All others: a broken host."""
MIN_SHARING_HOSTS = 3
"""Hosts that share a declaration and a problem: one or two may be broken by chance."""
_ID = re.compile(r"\[([a-z][a-z0-9_]+)\]")


class Trouble(t.NamedTuple):
    """A problem of one host."""

    key: str
    """The ID of its error, or of its check."""
    rail: str | None
    text: str
    fix: str = ""

    @property
    def kind(self) -> str:
        """The consequence for the run."""
        return KINDS.get(self.key, BROKEN)

    @property
    def sentence(self) -> str:
        """The problem and its fix."""
        return f"{self.text} {self.fix}".strip()


class HostPlace(t.NamedTuple):
    """A host's planned place, which it shares with other hosts: its zone, empty in a fabric without zones."""

    zone: str = ""
    leaves: t.Mapping[str, str] = MappingProxyType({})
    """By rail, as the interfaces."""
    interfaces: t.Mapping[str, str] = MappingProxyType({})


@dataclass
class HostSelection:
    """The hosts of a run by their treatment."""

    stop: list[str] = field(default_factory=list)
    excluded: dict[str, str] = field(default_factory=dict)
    rails: dict[str, list[str]] = field(default_factory=dict)
    deferred: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """For people: the hosts and rails that are left out."""
    waiting: list[str] = field(default_factory=list)
    """The same of busy hosts."""


UNREACHABLE = Trouble(
    "hosts_unreachable", None, "It does not answer.", "Repair it, or leave it out with --limit. [hosts_unreachable]"
)
_REASONS = (
    ("Could not resolve", "Its name is not known to the controller.", "Set its ansible_host."),
    ("IDENTIFICATION HAS CHANGED", "Its SSH host key has changed.", "Verify the new one, then run ssh-keygen -R."),
    ("Host key verification failed", "Its SSH host key is not known.", "Add it to known_hosts (ssh-keyscan)."),
    ("Permission denied", "SSH refuses the login.", "Check ansible_user and its key."),
    ("Connection refused", "No SSH server answers.", "Check sshd and ansible_port."),
    ("timed out|[Nn]o route|unreachable", "It does not answer.", "Check that it runs, its address and the firewall."),
)
_BECOME = re.compile(
    r"(Missing|Incorrect) \w+ password|waiting for (become success|password prompt)|password is required|"
    r"not in the sudoers file|sudo: [^\n]*"
)


def unreachable_reason(text: str, group: str, *, connected: bool) -> tuple[str, str]:
    """Return why Ansible does not reach a host, and the fix; empty where it is another error.

    :param text: what Ansible or the host says.
    :param connected: whether there is a connection.
    """
    ping = f"Test it: `ansible {group}{{}} -m ansible.builtin.ping`."
    if found := _BECOME.search(text):
        fix = "Check ansible_become_method and the password (-K)."
        return f"Ansible cannot become root: {line(found[0])}.", f"{fix} {ping.format(' -b')} [become_failed]"
    if connected:
        return "", ""
    other = f"It cannot be reached: {line(text.strip().rpartition(chr(10))[2]) or 'no reason is given'}.", ""
    problem, fix = next((row[1:] for row in _REASONS if re.search(row[0], text)), other)
    return problem, f"{fix} {ping.format('')} [hosts_unreachable]".strip()


def trouble_of(check: Check) -> Trouble:
    """Return a check that deviates as a problem of its host."""
    text, fix, rail = str(check["cause"]).rstrip("."), with_id(str(check["fix"] or ""), check["id"]), check["rail"]
    place = f"{rail}: " if rail and rail not in text else ""
    return Trouble((_ID.findall(fix) or [check["id"]])[-1], rail, f"{place}{text}.", fix)


def troubles_of(result: t.Mapping[str, t.Any], answer: Answer) -> list[Trouble]:
    """Return the problems in what rail_audit returned of a host.

    :param answer: what of it was taken in.
    """
    found = [trouble_of(check) for check in answer.checks if check["status"] == DEVIATION]
    message = line(result.get("msg")) or "no answer"
    failed = "" if "checks" in result else message if result.get("lost") else f"rail_audit: {message}"
    errors = result.get("errors")
    texts = [failed, *(errors if isinstance(errors, list) else ()), answer.error]
    for text in filter(None, map(line, texts)):
        named = [name for name in _ID.findall(text) if name in KINDS]
        found.append(
            Trouble(named[0] if named else "host_result_unreadable", None, with_id(text, "host_result_unreadable"))
        )
    return found


def kind_troubles(facts: t.Any, attachment: str, network: str) -> t.Iterator[Trouble]:
    """Find that a host does not fit the kind of the fabric.

    :param facts: what core's facts say of it; nothing where they were not gathered.
    :param attachment: by which pods get a device of their own, or nothing.
    """
    if not isinstance(facts, dict):
        return
    if attachment and facts.get("virtualization_role") == "guest":
        yield Trouble(
            "guests",
            None,
            f"It is a virtual machine or container ({facts.get('virtualization_type')}), and attachment {attachment} "
            "is for bare metal.",
            "Use macvlan (RoCE) or ipoib, or, if guests have physical functions with SR-IOV, set site_sriov_guests to "
            "true. [guests]",
        )
    # Whether a default route leaves by something that is not InfiniBand, with an address.
    routes = [facts.get(f"default_ipv{family}") or {} for family in (4, 6)]
    if network == "infiniband" and not any(
        row.get("address") and row.get("type") != "infiniband" for row in routes if isinstance(row, dict)
    ):
        yield Trouble(
            "management_missing",
            None,
            "It has no Ethernet interface with a default route and an address.",
            "Kubernetes and Spiderpool's agents cannot use InfiniBand. Add a management address. [management_missing]",
        )


def max_excluded(most: object, hosts: int) -> int:
    """Return how many hosts of a run may be left out.

    :param most: site_max_excluded. A percentage is rounded down, and is one host at least from three hosts on.
    """
    number, percent, _rest = str(most).partition("%")
    if not percent:
        return int(number)
    return max(hosts * int(number) // 100, int(hosts >= MIN_SHARING_HOSTS and int(number) > 0))


def select_hosts(
    found: t.Mapping[str, t.Sequence[Trouble]],
    lost: t.Collection[str],
    places: t.Mapping[str, HostPlace],
    groups: t.Mapping[str, t.Collection[str]],
    most: object,
) -> HostSelection:
    """Return what becomes of the hosts of a run.

    :param found: the problems of each host that answered, and `lost` those that did not.
    :param places: of all hosts of the fabric, those that are not in this run too.
    :param groups: of the inventory.
    :param most: site_max_excluded.
    """
    made = HostSelection()
    rows = [(trouble, host) for host, troubles in found.items() for trouble in troubles]
    having = {key: {*hosts} for key, hosts in group_by(((one.key, one.rail), host) for one, host in rows).items()}
    shared = {key: _shared_by(key[1], hosts, set(lost), places, groups) for key, hosts in having.items()}
    unread = having.get(("host_result_unreadable", None), set())
    stop: dict[tuple[str, str, str], list[str]] = {}
    left_out = [(UNREACHABLE, host) for host in lost]
    lacking: list[tuple[Trouble, str]] = []
    busy: list[tuple[Trouble, str]] = []
    for trouble, host in rows:
        key = trouble.key, trouble.rail
        by = shared[key] if trouble.kind in (BROKEN, RAIL) else ""
        if trouble.kind == DECLARATION or by:
            reason = f"The same on every host {by}" if by else "Declaration"
            fix = _fix_for_all(trouble, places) if having[key] | unread == {*found} else trouble.fix
            stop.setdefault((reason, trouble.text, fix), []).append(host)
        elif trouble.kind == RAIL:
            made.rails.setdefault(host, []).append(str(trouble.rail))
            lacking.append((trouble, host))
        else:
            (left_out if trouble.kind == BROKEN else busy).append((trouble, host))
    broken = group_by((host, trouble.sentence) for trouble, host in left_out[len(lost) :])
    made.stop = grouped(
        (f"{reason}: {folded(dict.fromkeys(hosts))}: {text}", fix) for (reason, text, fix), hosts in stop.items()
    )
    made.stop += _out_of_service(found, having, places)
    number, total = len(broken) + len(lost), len(found) + len(lost)
    if number > (limit := max_excluded(most, total)):
        problem = f"Broken hosts: {number} of {total:,}. site_max_excluded allows {limit}."
        fix = "Repair them, leave them out with --limit, or raise site_max_excluded. [too_many_broken]"
        made.stop += [Trouble("too_many_broken", None, problem, fix).sentence, *sentences_by_hosts(left_out)]
    made.excluded = {host: " ".join(sentences) for host, sentences in broken.items()}
    busy = [(trouble, host) for trouble, host in busy if host not in broken]
    made.deferred = {host: trouble.sentence for trouble, host in busy}
    made.missing = sentences_by_hosts([*left_out, *lacking])
    made.waiting = sentences_by_hosts(busy)
    return made


def _out_of_service(
    found: t.Mapping[str, t.Sequence[Trouble]],
    having: t.Mapping[tuple[str, str | None], t.Collection[str]],
    places: t.Mapping[str, HostPlace],
) -> list[str]:
    """Return the lines that take rails without an interface out of service, unless every host lacks the same one."""
    lines = []
    for host, troubles in found.items():
        keys = {
            (trouble.key, trouble.rail)
            for trouble in troubles
            if trouble.key in ("interface_not_found", "interface_lost")
        }
        rails = [rail for key, rail in sorted(keys, key=str) if rail and len(having[key, rail]) < max(2, len(found))]
        if any(key == "interface_not_found" for key, rail in keys if rail in rails):
            entire = {*rails} == {*places.get(host, HostPlace()).interfaces}
            lines.append(f"{host}: {{rails: {'all' if entire else '[' + ', '.join(rails) + ']'}}}")
    problem = f"Where the card is dead, add to group_vars/all and plan: fabric_out_of_service: {{{', '.join(lines)}}}"
    return [problem] if lines else []


def _fix_for_all(trouble: Trouble, places: t.Mapping[str, HostPlace]) -> str:
    """Return the fix of a problem that all hosts have."""
    rails = [*next(iter(places.values()), HostPlace()).interfaces]
    if trouble.key != "interface_not_found" or trouble.rail not in rails:
        return trouble.fix
    at = f"fabric_rails[{rails.index(trouble.rail)}].interface"
    return f"Look with `ip -br link`, correct {at} in group_vars/all, and plan. [interface_not_found]"


def sentences_by_hosts(rows: t.Iterable[tuple[Trouble, str]]) -> list[str]:
    """Return problems for people, equal ones once with all their hosts."""
    hosts = group_by(((trouble.text, trouble.fix), host) for trouble, host in rows)
    return grouped((f"{folded(dict.fromkeys(names))}: {text}", fix) for (text, fix), names in hosts.items())


def _shared_by(
    rail: str | None,
    hosts: t.Collection[str],
    lost: t.Collection[str],
    places: t.Mapping[str, HostPlace],
    groups: t.Mapping[str, t.Collection[str]],
) -> str:
    """Return what all these hosts, and no other, share by declaration; empty where chance explains it."""
    if len(hosts) < MIN_SHARING_HOSTS:
        return ""
    sharing: dict[str, set[str]] = {}
    for host, place in places.items():
        if rail and place.interfaces.get(rail):
            sharing.setdefault(f"with {place.interfaces[rail]} as {rail}", set()).add(host)
        sharing.setdefault(f"of zone {place.zone}" if place.zone else "of the fabric", set()).add(host)
    sharing.update({f"of group {name}": {*members} & {*places} for name, members in groups.items()})
    for what, members in sharing.items():
        if len(members - {*lost}) >= MIN_SHARING_HOSTS and {*hosts} >= members - {*lost}:
            return what
    return ""


def batches(
    hosts: t.Sequence[str], degraded: t.Collection[str], places: t.Mapping[str, HostPlace], serial: t.Any
) -> tuple[list[str], list[t.Any]]:
    """Return hosts in the order of their batches, and the sizes of these: the canary batch is first.

    It has the first host of each zone and interface profile; where these are most of the hosts, only the first of all.

    :param hosts: that take part.
    :param degraded: of these the hosts that lack a rail.
    :param serial: site_serial, or nothing.
    """
    first: dict[t.Any, str] = {}
    for host in sorted(hosts, key=lambda host: host in degraded):
        place = places.get(host, HostPlace())
        first.setdefault((place.zone, *sorted(place.interfaces.items())), host)
    canaries = [*first.values()]
    if len(canaries) * 2 > len(hosts):
        canaries = canaries[:1]
    sizes = serial or [len(canaries) or 1, "20%"]
    return canaries + [host for host in hosts if host not in {*canaries}], sizes if isinstance(sizes, list) else [sizes]

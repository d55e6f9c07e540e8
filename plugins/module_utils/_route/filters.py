# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the rules of a host's own filters that name RoCE's UDP port and drop it.

They are read as nft or iptables-save print them, and not simulated: a default policy, a named set, tc and XDP stay
unseen. A card's own packets pass no filter of the kernel; those of programs and of soft-RoCE do.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t
from fnmatch import fnmatchcase

from .paths import PORT

if t.TYPE_CHECKING:
    # argv in; exit code, output and complaint out. 127 is a program that is not there.
    Ask = t.Callable[[list[str]], tuple[int, str, str]]

NFT = ["nft", "-nns", "list", "ruleset"]
SAVES = (["iptables-save"], ["ip6tables-save"])
FAMILIES = {"ip": (4,), "ip6": (6,), "inet": (4, 6), "netdev": (4, 6)}
PORTS = re.compile(r"(?<!! --)\bdports? (?:\{ )?(\d+(?:(?:[-:]|, ?)\d+)*)")
TABLE = re.compile(r"table (\w+) \S+ \{|\*(\w+)$")
DROPS = re.compile(r" (?:drop|reject)\b|-j (?:DROP|REJECT)\b")
COMMENT = re.compile(r'comment "[^"]*"')
INTERFACES = re.compile(r'(?:\b[io]if(?:name)?|\bdevices?(?: =)?|-[io]) (!= )?((?:\{ )?"?[^"\s]+"?(?:, "[^"]+")*)')
FAR = re.compile(r"\btcp dport\b|l4proto (?:6|tcp) |-p tcp\b|\bhook forward\b|-A FORWARD\b")


class Drop(t.NamedTuple):
    """A rule as it is printed, behind the chain's own line where nft has one, and where it stands."""

    families: tuple[int, ...]
    place: str
    rule: str
    text: str

    def hits(self, interface: str, family: int, prefixes: t.Iterable[str]) -> bool:
        """Say whether it may hit a rail: by its family, and by the interfaces and addresses that it names.

        :param prefixes: the RDMA prefixes of that family.
        """
        for inverted, names in INTERFACES.findall(self.text):
            named = [name.replace("+", "*") for name in re.findall(r"[^{}\",\s]+", names)]
            if any(fnmatchcase(interface, name) for name in named) == bool(inverted):
                return False
        there = [] if "!" in self.rule else [found for word in self.rule.split() if (found := _network(word))]
        near = any(one.version == family and one.overlaps(_network(own)) for one in there for own in prefixes)
        return family in self.families and (near or not there)


def _network(word: str) -> t.Any:
    """Return the address or prefix that a word is, else None; a number alone is none."""
    try:
        return ipaddress.ip_network(word.strip("{},"), strict=False) if re.search("[.:]", word) else None
    except ValueError:
        return None


def drops_in(text: str, program: str, families: tuple[int, ...] = ()) -> t.Iterator[Drop]:
    """Yield the rules that drop UDP to RoCE's port, of what a program prints.

    :param text: its output.
    :param families: of all its rules, where its tables do not say.
    """
    table, chain, head = "", "", ""
    for line in map(str.strip, text.splitlines()):
        if found := TABLE.match(line):
            table, head = found[0].rstrip(" {"), ""
            families = FAMILIES.get(found[1], ()) if found[1] else families
        elif line.startswith("chain "):
            chain, head = line.split()[1], ""
        elif line.startswith("type "):
            head = line
        elif DROPS.search(COMMENT.sub("", line)) and _has_port(line) and not FAR.search(f"{head} {line}"):
            place = f"{table}{f', chain {chain}' if chain else ''} ({program})"
            yield Drop(families, place, line, f"{head} {line}")


def _has_port(line: str) -> bool:
    spans = [re.split("[-:]", span) for found in PORTS.findall(line) for span in found.split(",")]
    return any(int(span[0]) <= PORT <= int(span[-1]) for span in spans)


def read(ask: Ask, asleep: bool = False, old: bool = False) -> tuple[list[Drop], str]:
    """Return the rules that drop RoCE's port, and why nobody knows, empty where they were read.

    :param ask: runs a program that the host has.
    :param asleep: the kernel's nf_tables is a module that nobody has loaded: asking would load it, and has no rule.
    :param old: the kernel has tables of iptables beside.
    """
    code, out, err = (0, "", "") if asleep else ask(NFT)
    found = list(drops_in(out, NFT[0]))
    if old or code == 127:
        answers = [(ask(argv), argv[0], (family,)) for argv, family in zip(SAVES, (4, 6))]
        found += [drop for (_code, out, _err), name, families in answers for drop in drops_in(out, name, families)]
    return found, f"nft says: {err.strip()}" if code not in (0, 127) else ""

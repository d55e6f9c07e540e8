# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts whose own network runs in many ways: how to make each on a real kernel, what is right, and what `ip` said.

Each begins with eth0 (198.51.100.1, the default route by 198.51.100.254) and two rails, ens1np0 and ens2np0.
data/management_network.json is the output of iproute2 6.1 for them, recorded by
tests/kernel/test_management_network.py. The kernel had no VLAN and no bond: those two are recorded with a macvlan
and a bridge in their place, of which `ip` says
the same (`link` and `master`).
"""

from __future__ import annotations

import json
import typing as t
from collections.abc import Set
from pathlib import Path

from ansible_collections.railops.rdma.tests.unit.machines import program

RECORDED = Path(__file__).parent / "data/management_network.json"
UP = ["link set ens1np0 up", "address add 203.0.113.5/24 dev ens1np0"]
UP6 = ["link set ens1np0 up", "-6 address add 2001:db8:2::5/64 dev ens1np0 nodad"]
AWAY = "route replace default via 203.0.113.1"


class Case(t.NamedTuple):
    """A host: the `ip` commands that make it, its SSH_CONNECTION, and which interfaces must not be touched."""

    make: list[str]
    default: Set[str]
    connection: Set[str] = frozenset()
    ssh: str = ""

    @property
    def guarded(self) -> bool:
        """Whether ens1np0 must not be touched. ens2np0 always may."""
        return "ens1np0" in self.default | self.connection


def over(upper: str) -> list[str]:
    """Return the commands that put the default route on an interface that is stacked on ens1np0."""
    return [f"link set {upper} up", f"address add 203.0.113.5/24 dev {upper}", AWAY]


BRIDGE = ["link add br0 type bridge", "link set ens1np0 master br0", "link set ens1np0 up", *over("br0")]
FROM = "rule add from {} lookup 500 priority 100"
IN_500 = "route add default via 203.0.113.1 table 500"
CASES = {
    "no-rail": Case([], {"eth0"}),
    "default-route": Case([*UP, AWAY], {"ens1np0"}),
    "multipath": Case(
        [*UP, "route replace default nexthop via 198.51.100.254 nexthop via 203.0.113.1"], {"eth0", "ens1np0"}
    ),
    "multipath-ipv6": Case(
        [
            *UP6,
            "-6 address add 2001:db8:1::5/64 dev eth0 nodad",
            "-6 route add default nexthop via 2001:db8:1::1 nexthop via 2001:db8:2::1",
        ],
        {"eth0", "ens1np0"},
    ),
    "ipv6-only": Case(
        ["route del default", "address flush dev eth0", *UP6, "-6 route add default via 2001:db8:2::1"],
        {"ens1np0"},
        {"ens1np0"},
        "2001:db8:9::9 50000 2001:db8:2::5 22",
    ),
    "half-routes": Case(
        [*UP, "route add 0.0.0.0/1 via 203.0.113.1", "route add 128.0.0.0/1 via 203.0.113.1"], {"eth0", "ens1np0"}
    ),
    "a-network-beyond": Case([*UP, "route add 240.0.0.0/8 via 203.0.113.1"], {"eth0"}),
    "macvlan": Case(
        ["link add link ens1np0 name upper type macvlan", "link set ens1np0 up", *over("upper")], {"ens1np0", "upper"}
    ),
    "vlan": Case(
        ["link add link ens1np0 name upper type vlan id 7", "link set ens1np0 up", *over("upper")], {"ens1np0", "upper"}
    ),
    "bridge": Case(BRIDGE, {"ens1np0", "br0"}),
    "bond": Case([BRIDGE[0].replace("bridge", "bond"), *BRIDGE[1:]], {"ens1np0", "br0"}),
    "port-with-an-address": Case(
        [*UP, AWAY, "link add br0 type bridge", "link set ens1np0 master br0"], {"ens1np0", "br0"}
    ),
    "table-for-all": Case([*UP, FROM.format("all"), IN_500], {"eth0", "ens1np0"}),
    "table-of-a-rail": Case([*UP, FROM.format("203.0.113.5"), IN_500], {"eth0"}),
    "table-of-the-connection": Case(
        [*UP, FROM.format("198.51.100.0/24"), IN_500],
        {"eth0", "ens1np0"},
        {"eth0"},
        "198.51.100.9 50000 198.51.100.1 22",
    ),
    "table-for-one-network": Case([*UP, "rule add to 192.0.2.0/24 lookup 500 priority 100", IN_500], {"eth0"}),
    "table-for-forwarded": Case([*UP, "rule add iif ens2np0 lookup 500 priority 100", IN_500], {"eth0"}),
    "connection": Case(UP, {"eth0"}, {"ens1np0"}, "203.0.113.77 50000 203.0.113.5 22"),
    "connection-by-a-proxy": Case(
        [*UP, "route add 192.0.2.0/24 via 203.0.113.1"],
        {"eth0"},
        {"eth0", "ens1np0"},
        "192.0.2.77 50000 198.51.100.1 22",
    ),
    "no-way-out": Case(["route replace unreachable default", "-6 route add unreachable default"], set()),
}


PROGRAM = """\
#!/bin/sh
case "$*" in
    "-4 -json -force -batch -"|"-6 -json -force -batch -") /bin/cat > /dev/null; exec /bin/cat "{folder}/ip$1" ;;
    "-j route get "*) exec /bin/cat "{folder}/ip-get" ;;
esac
echo "not asked of the real one: $*" >&2
exit 255
"""


def install(folder: Path, answers: dict[str, str], got: str = "[]") -> None:
    """Put an `ip` into a folder that answers what modules ask of the real one.

    :param said: its answers by family.
    :param got: its answer to `ip -j route get`.
    """
    for name, text in {**answers, "get": got}.items():
        (folder / f"ip-{name}").write_text(text, encoding="utf-8")
    program(folder / "ip", PROGRAM.format(folder=folder))


def recorded(name: str) -> dict[str, str]:
    """Return what the real `ip` said of a host of the table."""
    found: dict[str, str] = json.loads(RECORDED.read_text(encoding="utf-8"))[name]
    return found


def plain(default: str, stands: dict[str, dict[str, str]] | None = None, **addresses: str) -> dict[str, str]:
    """Return what `ip` says of a host with a default route, in the shape of what was recorded.

    :param stands: `link` or `master` of interfaces.
    :param addresses: the address of an interface.
    """
    names = {default, *(stands or {}), *addresses}
    links = [{"ifname": name, **(stands or {}).get(name, {})} for name in sorted(names)]
    held = [{"ifname": name, "addr_info": [{"family": "inet", "local": text}]} for name, text in addresses.items()]
    rules = [{"priority": 32766, "src": "all", "table": "main"}]
    routes = [{"dst": "default", "gateway": "172.16.0.1", "dev": default, "flags": []}]
    lines = {"4": [links, held, rules, routes], "6": [links, [], rules, []]}
    return {family: "\n".join(json.dumps(line) for line in found) for family, found in lines.items()}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of a verdict, run as printed, repair the planted causes: the next audit shows none of them.

Commands for devices: test_other_hardware.py; cluster: test_site_cluster.py. The tests share one fleet and run in
their order.
"""

from __future__ import annotations

import itertools
import json
import random
import typing as t

import pytest

from ansible_collections.railops.rdma.tests.site.conftest import Fleet, commit, started

HOSTS, RAILS = ("node1", "node2", "node3", "node4"), 3
FILES, SYSCTLS = "/etc/systemd/network", "/etc/sysctl.d/90-railops-rails.conf"


class Cause(t.NamedTuple):
    """What a shell runs, and the checks that show it, the first cause first. `{}`: fields of rail and address.

    :param tags: those of the command; None where no command repairs it.
    :param undo: what repairs it then. With `{port}` both run at the leaf.
    """

    checks: str
    script: str
    tags: str | None = " --tags rail_network"
    undo: str = ""


Place = tuple[str, int]
Planted = dict[Place, str]


FLUSH = (
    "ip address flush dev {interface}; ip route flush dev {interface} table {table}; ip rule del pref {rule_priority}"
)
CAUSES = {
    "rule": Cause("network_rules", "ip rule del pref {rule_priority}"),
    "rule of IPv6": Cause("network_rules", "ip -6 rule del pref {rule_priority}"),
    "rules of both": Cause("network_rules", "ip rule del pref {rule_priority}; ip -6 rule del pref {rule_priority}"),
    "table": Cause("network_routes", "ip route flush table {table}"),
    "table of IPv6": Cause("network_routes", "ip -6 route flush table {table}"),
    "main table": Cause("network_routes", "ip route flush dev {interface} proto 143"),
    "default route": Cause("network_routes", "ip route del default table {table}"),
    # Without a gateway the replies would wait for ARP, and fill the ICMP socket that all namespaces share.
    "MTU of a route": Cause(
        "network_routes", "ip route change default via {gateway} dev {interface} table {table} proto 143 mtu 1400"
    ),
    "addresses": Cause("network_addresses", "ip address flush dev {interface}"),
    "address": Cause("network_addresses", "ip address del {address}/27 dev {interface}"),
    "address with other length": Cause(
        "network_addresses", "ip address del {address}/27 dev {interface}; ip address add {address}/32 dev {interface}"
    ),
    "complete rail": Cause("network_addresses network_rules", FLUSH),
    "link": Cause("network_link", "ip link set {interface} down"),
    "link without IPv6": Cause(
        "network_addresses network_sysctls", "echo 1 > /proc/sys/net/ipv6/conf/{interface}/disable_ipv6"
    ),
    "MTU": Cause("network_mtu", "ip link set {interface} mtu 1500"),
    "rp_filter": Cause("network_sysctls", "echo 1 > /proc/sys/net/ipv4/conf/{interface}/rp_filter"),
    "arp_ignore": Cause("network_sysctls", "echo 0 > /proc/sys/net/ipv4/conf/{interface}/arp_ignore"),
    "accept_ra": Cause("network_sysctls", "echo 1 > /proc/sys/net/ipv6/conf/{interface}/accept_ra"),
    "exclusion rule": Cause("network_exclusion_rule", "ip rule del pref 2000"),
    "rule of an earlier plan": Cause(
        "network_stale", "ip rule add from 172.17.0.99 lookup 1007 pref 10007 protocol 143"
    ),
    "route of an earlier plan": Cause(
        "network_stale", "ip route add 198.51.100.0/24 dev {interface} table {table} proto 143"
    ),
    "file": Cause("persist_file", f"rm {FILES}/0-railops-{{interface}}.network"),
    "file with other text": Cause("persist_file", f"echo >> {FILES}/0-railops-{{interface}}.network"),
    "mode of a file": Cause("persist_file", f"chmod 600 {FILES}/0-railops-{{interface}}.network"),
    "file of sysctl": Cause("persist_file", f"rm {SYSCTLS}"),
    "file of an earlier plan": Cause(
        "persist_stale", f"cp {FILES}/0-railops-{{interface}}.network {FILES}/0-railops-old0.network"
    ),
    "ARP off": Cause("network_link", "ip link set {interface} arp off", None, "ip link set {interface} arp on"),
    "port of the leaf": Cause("network_link", "ip link set {port} down", None, "ip link set {port} up"),
    "MTU of the leaf": Cause("ping_gateway_mtu", "ip link set {port} mtu 1500", None, "ip link set {port} mtu 9216"),
    "nothing configured": Cause("network_addresses", "", ""),
}
# Their checks are of the host: they explain others of its rails, or follow from them.
OF_HOSTS = ["exclusion rule", "file of sysctl", "nothing configured", "link without IPv6"]
OF_HOSTS += [name for name, cause in CAUSES.items() if cause.checks in ("network_sysctls", "network_stale")]
OF_RAILS = [name for name in CAUSES if name not in OF_HOSTS]


def singles() -> t.Iterator[Planted]:
    """Yield rounds of four causes, each on a host of its own; each cause has two places."""
    names = [*CAUSES, *list(CAUSES)[::-1]]
    for first in range(0, len(names), len(HOSTS)):
        hosts = zip(HOSTS, names[first:], strict=False)
        yield {(host, (first + number) % RAILS): name for number, (host, name) in enumerate(hosts)}


def together() -> t.Iterator[Planted]:
    """Yield rounds of three causes on each host, one per rail: three pairs of causes on a host."""
    cells = list(itertools.product(HOSTS, range(RAILS)))
    for turn in range(3):
        yield {cell: OF_RAILS[(5 * number + 4 * turn) % len(OF_RAILS)] for number, cell in enumerate(cells)}


ROUNDS = [*singles(), *together()]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Four hosts as planned. The administrator's folder has their inventory."""
    with started("commands", tmp_path_factory.mktemp("commands"), len(HOSTS), RAILS) as made:
        values = {
            **made.words,
            "fabric_supernets": ["172.17.0.0/16", "fd00:17::/48"],
            "fabric_policy": "default_route",
            "site_serial": "100%",
        }
        (made.folder / "group_vars/all.json").write_text(json.dumps(values), encoding="utf-8")
        made.plan()
        made.play("hosts")
        yield made


def run_script(fleet: Fleet, place: Place, script: str) -> None:
    """Run a script on a host or at its leaf: for one rail, or for all where nothing is to be left."""
    host, rail = place
    plan = json.loads((fleet.folder / f"plan/fabric/hosts/{host}.json").read_text(encoding="utf-8"))
    port, lines = f"n{HOSTS.index(host) + 1}r{rail + 1}", []
    for row in [plan["rails"][rail]] if script else plan["rails"]:
        lines.append((script or FLUSH).format(**{**row, **row["addresses"][0], "port": port}))
    if not script:
        lines.append("ip -6 rule flush; ip rule del pref 2000; ip -6 rule add lookup main pref 32766")
    where = [] if "{port}" in script else ["--host", host]
    fleet.lab("exec", fleet.name, *where, "--", "sh", "-ec", "\n".join(lines))


def repaired(fleet: Fleet, planted: Planted, *others: tuple[str, str]) -> list[str]:
    """Plant causes, compare the verdict's, run the printed commands, and return them.

    :param others: checks and sections of the verdict that deviate, too.
    """
    for place, name in planted.items():
        run_script(fleet, place, CAUSES[name].script)
    run = fleet.play("audit", code=2)
    verdict = fleet.verdict()
    cards = [card for card in verdict["causes"] if card["status"] == "deviation"]
    for (host, rail), name in planted.items():
        cause, rails = CAUSES[name], [f"rail{rail + 1}"]
        of_host = [one for one in cards if one["check"] == cause.checks.split()[0] and host in one["hosts"]]
        card = next(one for one in of_host if name in OF_HOSTS or {*one["rails"]} >= {*rails} or not one["rails"])
        if cause.tags is None:
            assert "command" not in card, (name, card)
        else:
            assert f"railops.rdma.hosts{cause.tags} --limit" in f"{card.get('command')} --limit", (name, card)
    expected = {(check, host) for (host, _rail), name in planted.items() for check in CAUSES[name].checks.split()}
    found = {(card["check"], host) for card in cards for host in card["hosts"] or [card["sentence"].partition(":")[0]]}
    assert found == {*expected, *others}, [card["sentence"] for card in cards]
    red = {host for host, entry in verdict["hosts"].items() if entry["status"] != "pass"}
    assert red == {host for host, _rail in planted}
    assert next(line for line in run.output.splitlines() if line.startswith("  ✗ ")) == f"  ✗ {cards[0]['sentence']}"
    for place, name in planted.items():
        if CAUSES[name].tags is None:
            run_script(fleet, place, CAUSES[name].undo)
    for command in run.commands():
        fleet.paste(command)
    return run.commands()


def test_ten_causes_and_a_changed_plan_are_repaired_by_the_printed_commands(fleet):
    draw = random.Random(commit())
    cells = [(host, rail) for host in HOSTS[:3] for rail in range(RAILS)]
    planted = dict(zip(cells, draw.sample(OF_RAILS, len(cells)), strict=True))
    planted[HOSTS[3], 0] = draw.choice(OF_HOSTS)
    path = fleet.folder / "group_vars/all.json"
    path.write_text(path.read_text(encoding="utf-8").replace("{", '{"fabric_hca_max": 99, ', 1), encoding="utf-8")
    commands = repaired(fleet, planted, ("plan_inventory", "plan"))
    assert commands[0].endswith(" railops.rdma.plan")
    fleet.play("audit")


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(ROUNDS)))
def test_the_printed_commands_repair_a_round_of_causes(fleet, number):
    """The next round shows that nothing is left."""
    repaired(fleet, ROUNDS[number])


@pytest.mark.long
def test_nothing_is_left_of_all_causes(fleet):
    fleet.play("audit")

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of a verdict, run as printed, repair the planted causes: the next audit passes.

Commands of other checks end work on a host, or need hardware or a cluster: tests/unit, tests/site/test_site_cluster.py.
"""

from __future__ import annotations

import json
import random
import subprocess
import typing as t

import pytest

from ansible_collections.railops.rdma.tests.site.conftest import CHECKOUT, Fleet, started

HOSTS, RAILS, PUSHED = ("node1", "node2", "node3"), 2, 10
FILES, SYSCTLS = "/etc/systemd/network", "/etc/sysctl.d/90-railops-rails.conf"


class Cause(t.NamedTuple):
    """What a host's shell runs, and the check that shows it. `{}`: fields of the rail and of its address."""

    check: str
    script: str
    tags: str = " --tags rail_network"


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
    "other gateway": Cause("network_routes", "ip route change default dev {interface} table {table} proto 143"),
    "addresses": Cause("network_addresses", "ip address flush dev {interface}"),
    "address": Cause("network_addresses", "ip address del {address}/27 dev {interface}"),
    "address with other length": Cause(
        "network_addresses", "ip address del {address}/27 dev {interface}; ip address add {address}/32 dev {interface}"
    ),
    "complete rail": Cause("network_addresses", FLUSH),
    "link": Cause("network_link", "ip link set {interface} down"),
    "link without IPv6": Cause("network_addresses", "echo 1 > /proc/sys/net/ipv6/conf/{interface}/disable_ipv6"),
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
    "nothing configured": Cause("network_addresses", "", ""),
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Three hosts as planned. The administrator's folder has their inventory."""
    with started("commands", tmp_path_factory.mktemp("commands"), len(HOSTS), RAILS) as made:
        values = {
            "fabric_rails": [{"name": f"rail{rail}", "interface": f"ens{rail}np0"} for rail in range(1, RAILS + 1)],
            "fabric_supernets": ["172.17.0.0/16", "fd00:17::/48"],
            "fabric_policy": "default_route",
            "site_serial": "100%",
        }
        (made.folder / "group_vars").mkdir()
        (made.folder / "group_vars/all.json").write_text(json.dumps(values), encoding="utf-8")
        made.play("plan")
        made.lab("gateways", made.name, "--plan", str(made.folder / "plan/fabric"))
        made.play("hosts")
        made.play("audit")
        yield made


def scripts(fleet: Fleet, host: str, cause: Cause, rail: int) -> t.Iterator[str]:
    """Yield what plants a cause on a host: on one rail, or on all where nothing is to be left."""
    plan = json.loads((fleet.folder / f"plan/fabric/hosts/{host}.json").read_text(encoding="utf-8"))
    for row in [plan["rails"][rail]] if cause.script else plan["rails"]:
        yield (cause.script or FLUSH).format(**{**row, **row["addresses"][0]})
    if not cause.script:
        yield "ip -6 rule flush; ip rule del pref 2000; ip -6 rule add lookup main pref 32766"


def repaired(fleet: Fleet, planted: dict[str, str], rail: int) -> list[str]:
    """Plant a cause on each of these hosts, run the printed commands, and return them."""
    for host, name in planted.items():
        for script in scripts(fleet, host, CAUSES[name], rail):
            fleet.lab("exec", fleet.name, "--host", host, "--", "sh", "-ec", script)
    run = fleet.play("audit", code=2)
    deviations = [card for card in fleet.verdict()["causes"] if card["status"] == "deviation"]
    for host, name in planted.items():
        card = next(card for card in deviations if host in card["hosts"])
        assert card["check"] == CAUSES[name].check, (name, card)
        assert f"hosts{CAUSES[name].tags} --limit" in f"{card.get('command')} --limit", (name, card)
    assert {host for card in deviations for host in card["hosts"]} == {*planted}
    for command in run.commands():
        fleet.paste(command)
    return run.commands()


def test_ten_causes_are_repaired_by_the_printed_commands(fleet):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    draw = random.Random(commit.stdout)
    names = draw.sample(sorted(CAUSES), PUSHED)
    for first in range(0, PUSHED, len(HOSTS)):
        planted = dict(zip(HOSTS, names[first:], strict=False))
        assert repaired(fleet, planted, draw.randrange(RAILS)), planted
    fleet.play("audit")


@pytest.mark.long
@pytest.mark.parametrize("name", CAUSES)
def test_the_printed_command_repairs_a_cause(fleet, name):
    number = sorted(CAUSES).index(name)
    (_command,) = repaired(fleet, {HOSTS[number % len(HOSTS)]: name}, number % RAILS)
    fleet.play("audit")


def test_the_printed_command_repairs_a_plan(fleet):
    path = fleet.folder / "group_vars/all.json"
    path.write_text(path.read_text(encoding="utf-8").replace("{", '{"fabric_hca_max": 99, ', 1), encoding="utf-8")
    fleet.play("audit", code=2)
    (card,) = fleet.verdict()["causes"]
    assert (card["check"], card["command"]) == ("plan_inventory", "ansible-playbook railops.rdma.plan")
    fleet.paste(card["command"])
    fleet.play("audit")

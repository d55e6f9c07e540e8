# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that kernels and switches have the plan. It uses no code of the collection: `ip`, `ping` and port counters.

The switches' ports count the traffic: every rail sends its own number of packets, so a packet that left or came
back by another rail shows in two counters.
"""

from __future__ import annotations

import ipaddress
import json
import shlex
import subprocess
import time
import typing as t

from hosts import command, on
from shell import LabError, run, say

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from topology import Host, Lab

    HostPlan = Mapping[str, t.Any]
    Counters = dict[str, tuple[int, int]]

PACKETS = 10
# Neighbor discovery, multicast reports: what else may pass a port meanwhile.
NOISE = 9
# What timeout(1) ends with when the time is over.
TIMED_OUT = 124
# broadcast, anycast, multicast: with -N, `ip` writes the types as numbers.
KERNELS_OWN = ("3", "4", "5")
READ = (
    ("links", ["-details", "link", "show"]),
    ("addresses", ["address", "show"]),
    ("rules4", ["-4", "-N", "rule", "show"]),
    ("rules6", ["-6", "-N", "rule", "show"]),
    ("routes4", ["-4", "-N", "route", "show", "table", "all"]),
    ("routes6", ["-6", "-N", "route", "show", "table", "all"]),
)
# What shows nothing of the configuration: who wrote it, counters, ages, and state of the moment.
VOLATILE = frozenset(
    {
        *("protocol", "valid_life_time", "preferred_life_time", "dynamic", "noprefixroute", "mngtmpaddr", "nodad"),
        *("ifindex", "link_index", "link_netnsid", "flags", "operstate", "stats64", "dadfailed", "tentative"),
        *("expires", "pref", "qdisc", "group", "txqlen"),
        # Some network managers write the address that the kernel would take anyway.
        "broadcast",
    }
)


def read(lab: Lab, host: Host) -> dict[str, list[dict[str, t.Any]]]:
    """Return what `ip -json` says of a host, in one visit."""
    script = ";".join(f"ip -json {' '.join(words)} || echo '[]'; echo" for dummy, words in READ)
    output = on(lab, host, ["sh", "-c", script]).stdout
    answers = [json.loads(line) for line in output.splitlines() if line.strip()]
    return {name: answer for (name, dummy), answer in zip(READ, answers, strict=True)}


def dump(lab: Lab, host: Host) -> dict[str, list[str]]:
    """Return a host's links, addresses, rules and routes in a form that compares, without what is fleeting."""
    found = read(lab, host)
    addresses = [
        {"ifname": link["ifname"], **{key: value for key, value in address.items() if key not in VOLATILE}}
        for link in found["addresses"]
        for address in link["addr_info"]
    ]
    links = [{"ifname": link["ifname"], "mtu": link["mtu"], "up": "UP" in link["flags"]} for link in found["links"]]
    rest = {name: found[name] for name in ("rules4", "rules6", "routes4", "routes6")}
    return {name: _comparable(rows) for name, rows in {"links": links, "addresses": addresses, **rest}.items()}


def _comparable(rows: Iterable[Mapping[str, t.Any]]) -> list[str]:
    # These, and a link's own address, come and go with carriers.
    kept = [
        row
        for row in rows
        if row.get("type") not in KERNELS_OWN
        and not str(row.get("local") or row.get("dst")).startswith(("fe80:", "ff00:"))
    ]
    return sorted(
        json.dumps({key: value for key, value in row.items() if key not in VOLATILE}, sort_keys=True) for row in kept
    )


def prove(lab: Lab, host_plans: Mapping[str, HostPlan]) -> list[str]:
    """Return everything on the lab that is not as the plan says."""
    planned = {host: host_plans[host.name] for host in lab.hosts if host.name in host_plans}
    if not planned:
        raise LabError("The plan has no host of this lab.", "Give the plan that the hosts were configured by.")
    failures = [failure for host, content in planned.items() for failure in check_kernel(lab, host, content)]
    say(f"{len(planned)} kernels read: {len(failures)} differences from the plan.")
    for family, shift in ((4, 0), (4, 1), (6, 0), (6, 1)):
        # What is broken already only repeats itself.
        failures = failures or check_traffic(lab, planned, family, shift)
    return failures


def check_kernel(lab: Lab, host: Host, content: HostPlan) -> list[str]:
    """Compare what a kernel holds with a host plan."""
    found, failures = read(lab, host), []
    links = {link["ifname"]: link for link in found["links"]}
    held = {
        (link["ifname"], address["local"], address["prefixlen"])
        for link in found["addresses"]
        for address in link["addr_info"]
    }
    for rail in content["rails"]:
        name = rail["interface"]
        place = f"{host.name} {rail['name']} ({name})"
        link = links.get(name, {"flags": [], "mtu": None})
        if "UP" not in link["flags"] or link["mtu"] != rail["mtu"]:
            failures.append(f"{place}: {link['mtu']} {link['flags']}, planned: up with an MTU of {rail['mtu']}")
        for address in rail["addresses"]:
            network = ipaddress.ip_network(address["subnet"])
            if (name, address["address"], network.prefixlen) not in held:
                failures.append(f"{place}: {address['address']}/{network.prefixlen} is missing")
            failures += [f"{place}: {text}" for text in _check_policy(rail, address, found)]
    return failures


def _check_policy(rail: HostPlan, address: HostPlan, found: Mapping[str, list[dict[str, t.Any]]]) -> list[str]:
    """Compare a rail's rule and table of one family."""
    family, table = address["family"], str(rail["table"])
    rules = [
        rule
        for rule in found[f"rules{family}"]
        if rule["priority"] == rail["rule_priority"] and rule["src"] == address["address"] and rule["table"] == table
    ]
    routes = [
        route
        for route in found[f"routes{family}"]
        if str(route.get("table")) == table and route.get("type", "unicast") == "unicast"
    ]
    failures = []
    if len(rules) != 1:
        failures.append(f"{len(rules)} rules from {address['address']} to table {table}, planned: one")
    if not any(route["dst"] == address["subnet"] for route in routes):
        failures.append(f"table {table} has no route to its own subnet {address['subnet']}")
    if address["gateway"] and not any(route.get("gateway") == address["gateway"] for route in routes):
        failures.append(f"table {table} has no route by {address['gateway']}")
    if strangers := [route for route in routes if route["dev"] != rail["interface"]]:
        failures.append(f"table {table} has routes of other interfaces: {strangers}")
    return failures


def check_traffic(lab: Lab, planned: Mapping[Host, HostPlan], family: int, shift: int) -> list[str]:
    """Send from every rail of every host to the next host (`shift` rails further) and compare the ports' counters."""
    failures: list[str] = []
    machines = list(planned)
    for position, host in enumerate(machines if len(machines) > 1 else []):
        peer = machines[(position + 1) % len(machines)]
        jobs, expected = _jobs(lab, host, peer, planned, family, shift)
        if not jobs:
            continue
        before = counters(lab)
        output = on(lab, host, ["sh", "-c", " & ".join(jobs) + "; wait"], timeout=180).stdout
        after = counters(lab)
        place = f"IPv{family} {host.name} to {peer.name}{' across rails' if shift else ''}"
        if (received := output.count("bytes from")) < (sent := sum(job_size(job) for job in jobs)):
            failures.append(f"{place}: {received} answers to {sent} packets")
        failures += [f"{place}: {text}" for text in _judge(before, after, expected)]
        if failures:
            break
        say(f"{place}: {sent} packets by {len(jobs)} rails, as planned.")
    return failures


def _jobs(
    lab: Lab, host: Host, peer: Host, planned: Mapping[Host, HostPlan], family: int, shift: int
) -> tuple[list[str], dict[str, int]]:
    """Return the ping commands of a host, and how many packets each port must see in both directions."""
    jobs, expected = [], {}
    rails = planned[host]["rails"]
    # An emulated guest takes longer to answer than 20 ms.
    interval = 0.02 if lab.kind == "netns" else 0.05
    for number, rail in enumerate(rails):
        target = planned[peer]["rails"][(number + shift) % len(rails)]
        source, destination = _address(rail, family), _address(target, family)
        routed = source and destination and source["gateway"] and destination["gateway"]
        if not source or not destination or (shift and not routed):
            continue
        count = PACKETS * (number + 1)
        payload = min(rail["mtu"], target["mtu"]) - (28 if family == 4 else 48)
        # From the address, not from the interface: the routing policy has to do the rest. With a deadline ping waits
        # for `count` answers, and sends one more packet for each that is late; without, it gives the last two RTTs.
        jobs.append(
            f"ping -{family} -c {count} -i {interval} -w 60 -W 5 -M do -s {payload} "
            f"-I {source['address']} {destination['address']}"
        )
        expected[host.port(rail["index"])] = count
        expected[peer.port(target["index"])] = count
    return jobs, expected


def job_size(job: str) -> int:
    """Return how many packets a ping command sends."""
    words = job.split()
    return int(words[words.index("-c") + 1])


def _address(rail: HostPlan, family: int) -> HostPlan | None:
    return next((address for address in rail["addresses"] if address["family"] == family), None)


def _judge(before: Counters, after: Counters, expected: Mapping[str, int]) -> list[str]:
    failures = []
    for port, counts in after.items():
        for direction, now, then in zip(("from", "to"), counts, before[port], strict=True):
            wanted, passed = expected.get(port, 0), now - then
            if not wanted <= passed <= wanted + NOISE:
                failures.append(f"port {port} passed {passed} packets {direction} the host, expected {wanted}")
    return failures


def counters(lab: Lab) -> Counters:
    """Return the packets that each rail's switch port got from its host and gave to it."""
    links = json.loads(run(["ip", "-netns", lab.fabric, "-json", "-statistics", "link", "show"]).stdout)
    found = {link["ifname"]: link["stats64"] for link in links}
    ports = [host.port(rail) for host in lab.hosts for rail in lab.rails]
    return {port: (found[port]["rx"]["packets"], found[port]["tx"]["packets"]) for port in ports}


def prove_rdma(lab: Lab, host_plans: Mapping[str, HostPlan]) -> list[str]:
    """Read remote memory over every rail between neighbors, with perftest and nothing else."""
    if lab.kind != "guests":
        raise LabError("Namespaces have no RDMA devices.", "Start the lab with --kind guests.")
    planned = {host: host_plans[host.name] for host in lab.hosts if host.name in host_plans}
    machines, failures = list(planned), []
    for position, host in enumerate(machines if len(machines) > 1 else []):
        peer = machines[(position + 1) % len(machines)]
        for rail, far in zip(planned[host]["rails"], planned[peer]["rails"], strict=True):
            family = 4 if _address(far, 4) else 6
            near, away = _address(rail, family), _address(far, family)
            if near is None or away is None:
                continue
            ends = ((host, near["address"]), (peer, away["address"]))
            # A lost packet of soft-RoCE on a busy machine can cost a test its time: once more, at another port.
            if (text := _read_latency(lab, ends, rail["index"], 1)) is None:
                continue
            if (text := _read_latency(lab, ends, rail["index"], 2)) is not None:
                failures.append(f"RDMA {host.name} to {peer.name} on {rail['name']}: {text}")
        done = len(planned[host]["rails"]) - len(failures)
        say(f"RDMA {host.name} to {peer.name}: ib_read_lat on {done} of {len(planned[host]['rails'])} rails.")
    return failures


def _read_latency(lab: Lab, ends: tuple[tuple[Host, str], tuple[Host, str]], rail: int, attempt: int) -> str | None:
    """Run ib_read_lat over one rail (the lab names its devices rxe1, rxe2, ...); return what went wrong.

    :param ends: client and server, each with its address on the rail.
    """
    (client, near), (server, far) = ends
    port = 18500 + 10 * rail + attempt
    done = None
    with subprocess.Popen(
        command(lab, server, _perftest(rail, port, far, [])),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as listening:
        try:
            # The server takes a moment to listen.
            for _retry in range(20):
                done = on(lab, client, _perftest(rail, port, near, [far]), check=False)
                if done.returncode == 0:
                    return None
                if listening.poll() is not None or done.returncode == TIMED_OUT:
                    break
                time.sleep(1)
        finally:
            listening.kill()
    return f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}" if done else "not started"


def _perftest(rail: int, port: int, own: str, words: Sequence[str]) -> list[str]:
    """Return the command of one end, with the GID of its own address."""
    address = ipaddress.ip_address(own)
    gid = ipaddress.IPv6Address(f"::ffff:{own}" if address.version == 4 else own).packed.hex(":", 2)
    device = f"rxe{rail}"
    gids = f"/sys/class/infiniband/{device}/ports/1/gids"
    test = f"timeout 60 ib_read_lat -F -d {device} -i 1 -x $index -p {port} -n 50 -s 64 {shlex.join(words)}"
    # perftest without its own connection manager (-R): that one's connections were seen to stand still on soft-RoCE.
    return ["sh", "-c", f"index=$(grep -ls {gid} {gids}/*); index=${{index##*/}}; exec {test}"]

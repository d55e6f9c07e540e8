# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cases of the matrix that end at the hosts: each takes a fleet and returns what was seen."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

import mirror
from fleet import BROKEN, CHECKOUT, DUAL_STACK, CaseError, Fleet, messages, named, unchanged
from shell import environments

HOSTS_ONLY = {
    **DUAL_STACK,
    "fabric_node_prefix": {"ipv4": 31, "ipv6": 64},
    "fabric_gateway": {"ipv4": "last", "ipv6": 2},
    # The drivers' packages stay after a teardown.
    "site_host_roles": ["rdma_host", "lossless_roce", "rail_network"],
}


def upgrade(fleet: Fleet) -> str:
    """A driver over the fleet, with real reboots: on node1 the new one takes rail3 down at each boot."""
    fleet.up()
    packages = fleet.folder / "mirror"
    packages.mkdir()
    mirror.drivers(packages)
    copy = ["-m", "copy", "-a", f"src={packages}/ dest=/srv/lab-driver/"]
    fleet.lab("exec", fleet.name, "--", "ansible", "gpu_nodes", *copy)
    source = "echo 'deb [trusted=yes] file:/srv/lab-driver ./' >/etc/apt/sources.list.d/lab-driver.list"
    for host in fleet.hosts:
        fleet.on(host, "sh", "-c", source)
    _declare_driver(fleet, mirror.OLD)
    fleet.converge()
    fleet.prove()
    fleet.on("node1", "touch", mirror.BREAKS)
    kernels, first = fleet.dump(), _versions_and_boots(fleet)

    _declare_driver(fleet, mirror.NEW)
    code, text = fleet.ended(fleet.book("railops.rdma.upgrade"))
    worse = "node1 is worse than before its upgrade and no further node is touched: rail3 "
    if code != PLAY_FAILED or worse not in text or "it continues with node1" not in text:
        raise CaseError(f"the upgrade of a node that gets worse ended with {code}: {messages(text)[-1:]}")
    stopped = _versions_and_boots(fleet)
    if stopped["node1"] != (mirror.NEW, first["node1"][1] + 1) or stopped["node2"] != first["node2"]:
        raise CaseError(f"versions and boots were {first}, and when it stopped {stopped}")
    if fleet.dump()["node2"] != kernels["node2"]:
        raise CaseError("the kernel of node2, which had no turn, holds something else than before")
    _rails_of_the_rest(fleet)

    fleet.on("node1", "rm", mirror.BREAKS)
    fleet.on("node1", "ip", "link", "set", "ens3np0", "up")
    fleet.play("hosts", "--limit", "node1")
    text = fleet.play("upgrade")
    for line in ("turn 1: node1: resumes an earlier run", f"turn 2: node2: lab-driver {mirror.OLD} -> "):
        if line not in text:
            raise CaseError(f"the next run does not say {line!r}")
    ended = _versions_and_boots(fleet)
    if ended != {"node1": stopped["node1"], "node2": (mirror.NEW, first["node2"][1] + 1)}:
        raise CaseError(f"versions and boots were {stopped}, and at the end {ended}")
    fleet.play("verify")
    fleet.prove()
    text = fleet.play("upgrade")
    unchanged(text)
    if "skip: 2 hosts have the wanted versions and are healthy" not in text or _versions_and_boots(fleet) != ended:
        raise CaseError("a run over the upgraded fleet did something")
    return (
        "node1 worse by rail3 after its reboot: stopped and named, node2 untouched with its version, boot and rails; "
        "repaired, the next run ended both, each rebooted once; verify green; a further run did nothing"
    )


# What ansible-playbook ends with when a host failed.
PLAY_FAILED = 2


def _declare_driver(fleet: Fleet, version: str) -> None:
    wanted = {"rdma_driver_packages": [], "rdma_driver_versions": {"lab-driver": version}, "rdma_host_reboot": True}
    fleet.declare("exclusive", **DUAL_STACK, **wanted, upgrade_retries=4, upgrade_delay=10)


def _versions_and_boots(fleet: Fleet) -> dict[str, tuple[str, int]]:
    """Return the driver's version on each host, and how often its console has seen systemd begin."""
    consoles = {host: environments.cache() / "labs" / fleet.name / host / "serial.log" for host in fleet.hosts}
    return {
        host: (fleet.on(host, "cat", "/etc/lab-driver/version").strip(), path.read_bytes().count(b"Welcome to"))
        for host, path in consoles.items()
    }


def _rails_of_the_rest(fleet: Fleet) -> None:
    """Insist that node2 holds its plan and reaches all its gateways, and that the other rails join both nodes."""
    host_plans = {
        host: json.loads((fleet.plan / f"hosts/{host}.json").read_text(encoding="utf-8")) for host in fleet.hosts
    }
    sound = {
        host: {**one, "rails": [rail for rail in one["rails"] if rail["name"] != "rail3"]}
        for host, one in host_plans.items()
    }
    for name, part in {"node2": {"node2": host_plans["node2"]}, "sound": sound}.items():
        folder = fleet.folder / "parts" / name
        (folder / "hosts").mkdir(parents=True)
        for host, content in part.items():
            (folder / f"hosts/{host}.json").write_text(json.dumps(content), encoding="utf-8")
        fleet.lab("prove", fleet.name, "--plan", str(folder))
    addresses = [address for rail in host_plans["node2"]["rails"] for address in rail["addresses"]]
    pings = [f"ping -c 3 -w 60 -W 5 -I {one['address']} {one['gateway']}" for one in addresses]
    fleet.on("node2", "sh", "-c", " && ".join(pings))


def network_manager(fleet: Fleet) -> str:
    """Hosts without a cluster from bare through reloads by another tool, a reboot and a repair to the teardown."""
    fleet.up()
    bare = fleet.dump()
    fleet.declare("hosts-only", **HOSTS_ONLY)
    fleet.converge()
    unchanged(fleet.play("hosts"))
    fleet.prove()
    before = fleet.dump()
    for command in RELOADS[fleet.case.manager]:
        for host in fleet.hosts:
            fleet.on(host, *command)
        fleet.same(before, f"after `{' '.join(command)}` by another tool")
    fleet.reboot()
    fleet.same(before, "after the reboot")
    fleet.prove()
    fleet.play("audit")
    fleet.on("node2", "ip", "rule", "del", "pref", "10003")
    for words in named(fleet, ("node2", "rail3", "network_rules")):
        fleet.ansible(*words)
    fleet.play("audit")
    unchanged(fleet.play("hosts"))
    fleet.ansible(Path(__file__).with_name("rollback.yml"), "-e", f"lab_plan_dir={fleet.plan}")
    # MTU and sysctls stay until the next boot.
    fleet.play("teardown")
    fleet.reboot()
    fleet.same(bare, "after the teardown and a reboot")
    return (
        "second run empty; network, sysctls and files the same after reloads by another tool and a reboot; traffic on "
        "each rail; audit green without hosts; a deleted rule repaired by the printed command, then audit green; an "
        "unconfirmed change rolled back by systemd; as bare after the teardown and a reboot"
    )


RELOADS = {
    "networkd": (["systemctl", "restart", "systemd-networkd"], ["networkctl", "reload"]),
    "netplan": (["netplan", "apply"], ["systemctl", "restart", "systemd-networkd"]),
    "networkmanager": (["nmcli", "connection", "reload"], ["systemctl", "restart", "NetworkManager"]),
}


def _site(fleet: Fleet, example: str, **changes: object) -> str:
    fleet.up()
    fleet.declare(example, **DUAL_STACK, **changes)
    fleet.play("plan")
    fleet.lab("gateways", fleet.name, "--plan", str(fleet.plan))
    fleet.play("site", "--check", "--diff")
    fleet.play("site")
    unchanged(fleet.play("site"))
    fleet.prove("--rdma")
    fleet.reboot()
    fleet.play("verify")
    return "bare image to RoCE v2 on every rail; second run empty; verify green after a reboot without another run"


def site_exclusive(fleet: Fleet) -> str:
    """The complete path, exclusive fabric, with deviations that audit names and site repairs."""
    text = _site(fleet, "exclusive")
    # The reboot above is behind us: what is broken now is broken manually.
    fleet.lab("cable", fleet.name, "node1", "ens1np0", "pull")
    named(fleet, ("node1", "rail1", "network_link"))
    # A plug is repaired manually, and what the rail had must be back with the carrier.
    fleet.lab("cable", fleet.name, "node1", "ens1np0", "plug")
    fleet.play("audit")
    for host, _rail, _check, command in BROKEN:
        fleet.on(host, *command)
    named(fleet, *((host, rail, check) for host, rail, check, _command in BROKEN))
    fleet.play("site")
    return f"{text}; a cable pulled, a rule deleted, an MTU and the mode changed: audit names each, site repairs"


# Soft-RoCE delivers a header that UCX's check takes for another port's: without the DGID variable it waits and aborts.
NETPIPE = [
    *("mpirun.openmpi", "--allow-run-as-root", "--host", "{hosts}", "-np", "2", "--mca", "pml", "ucx"),
    *("--mca", "oob_tcp_if_include", "mgmt0", "--mca", "plm_rsh_args", "-o StrictHostKeyChecking=no"),
    # Where one run of several at a time ends, it takes the folder away that another is about to use.
    *("--mca", "orte_tmpdir_base", "/tmp/mpi-{hosts}-{rails}"),
    *("-x", "UCX_TLS=rc,self", "-x", "UCX_NET_DEVICES={devices}", "-x", "UCX_UD_ETH_DGID_CHECK=n"),
    *("-x", "UCX_LOG_LEVEL=info", "NPopenmpi", "-p", "0", "-l", "4096", "-u", "65536", "-n", "5"),
    *("-o", "/tmp/netpipe-{rails}"),
]
ACCEPT = {
    "accept_seconds": 6,
    "accept_timeout": 90,
    # Processors that share two cores are not even.
    "accept_min_relative_percent": 30,
    "accept_collectives": {"netpipe": NETPIPE},
    "accept_collective_timeout": 600,
}


def accept(fleet: Fleet) -> str:
    """From pairs to the whole lab; then a rail that is slowed down, and one that loses everything."""
    fleet.up()
    devices = {f"rail{number}": f"rxe{number}" for number in range(1, fleet.rails + 1)}
    fleet.declare("exclusive", **DUAL_STACK, **ACCEPT, accept_devices=devices)
    fleet.converge()
    key = base64.b64encode((environments.cache() / "labs" / fleet.name / "key").read_bytes()).decode()
    for host in fleet.hosts:
        put = f"umask 077; echo {key} | base64 -d >/root/.ssh/id_ed25519"
        fleet.on(host, "sh", "-c", put)
    fleet.play("verify")
    text = fleet.play("accept")
    steps = re.findall(r"accept: (\w+): step \d+", text)
    # Under one leaf, `leaf` is the whole lab, and nothing is run twice.
    if list(dict.fromkeys(steps)) != ["latency", "bandwidth", "node", "leaf", "collective"]:
        raise CaseError(f"acceptance went through other stages: {steps}")
    # The interface sends a fiftieth of what it could: nothing is broken, and nothing else knows.
    slow = "tc qdisc replace dev ens2np0 root tbf rate 4mbit burst 32kb latency 2s"
    fleet.on("node2", "sh", "-c", slow)
    narrowed = [_accused(fleet, "node2", "rail2", "accept_bandwidth")]
    # By halves alone, when all hosts send at once.
    least = {"accept_stages": ["fabric"], "accept_min_gbits_loaded": 0.006}
    narrowed.append(_accused(fleet, "node2", "rail2", "accept_fabric", "-e", json.dumps(least)))
    fleet.on("node2", "tc", "qdisc", "del", "dev", "ens2np0", "root")
    fleet.lab("cable", fleet.name, "node3", "ens3np0", "pull")
    narrowed.append(_accused(fleet, "node3", "rail3", "accept_latency"))
    fleet.lab("cable", fleet.name, "node3", "ens3np0", "plug")
    return f"pairs, all rails at once, whole lab, NetPIPE over every rail in {len(steps)} steps; {'; '.join(narrowed)}"


def _accused(fleet: Fleet, host: str, rail: str, check: str, *words: str) -> str:
    """Insist that acceptance fails and names exactly this; return what it said."""
    fleet.play("accept", *words, fails=True)
    verdict = json.loads((fleet.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    bad = {
        (name, one["rail"], one["id"]): one["cause"]
        for name, entry in verdict["hosts"].items()
        for one in entry["checks"]
        if one["status"] == "deviation"
    }
    if set(bad) != {(host, rail, check)}:
        raise CaseError(f"acceptance names {sorted(bad)}, not {(host, rail, check)}")
    return f"{host} {rail} named by {check} ({bad[host, rail, check]})"


def host_modules(fleet: Fleet) -> str:
    """The tests of rdma_netns, rdma_info and roce_qos against a kernel that has ib_core."""
    fleet.up()
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECKOUT / "tests/guests")]
    text = fleet.run(["env", f"RAILOPS_LAB={fleet.name}", *tests]).strip().splitlines()[-1]
    if "passed" not in text:
        raise CaseError(f"nothing was tested: {text}")
    return text

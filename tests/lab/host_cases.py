# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cases of the matrix that end at the hosts: each takes a fleet and returns what was seen."""

from __future__ import annotations

import re
import shutil
import sys

from fleet import BROKEN, CHECKOUT, DUAL_STACK, CaseError, Fleet, named, unchanged

NETWORK_ONLY = {**DUAL_STACK, "site_host_roles": ["rail_network"]}


def paths(fleet: Fleet) -> str:
    """200 times two to five deviations are planted; a judge that counts packets at the leaves agrees with the audit."""
    tests = ["-m", "pytest", "-q", "-s", str(CHECKOUT / "tests/kernel/test_paths.py")]
    said = fleet.run(["env", "RAILOPS_PATH_CASES=200", sys.executable, *tests])
    seed = re.search(r"RAILOPS_PATH_SEED=(\d+)", said)
    if not seed:
        raise CaseError("the tests do not say from which seed the deviations were planted")
    return f"200 cases from seed {seed[1]}: no false green, no false red, the right host, rail and cause"


def network_manager(fleet: Fleet) -> str:
    """The host network through a reboot, and through others' use of the same network manager."""
    fleet.up()
    fleet.declare("exclusive", **NETWORK_ONLY)
    fleet.converge()
    unchanged(fleet.play("hosts"))
    fleet.prove()
    before = fleet.dump()
    for command in RELOADS[fleet.case.manager]:
        for number in range(1, fleet.case.nodes + 1):
            fleet.on(f"node{number}", *command)
        fleet.same(before, f"after `{' '.join(command)}` by somebody else")
    fleet.reboot()
    fleet.same(before, "after the reboot")
    fleet.prove()
    unchanged(fleet.play("hosts"))
    return "second run empty; the same dump after others' reloads and after a reboot; traffic by every rail"


RELOADS = {
    "networkd": (["systemctl", "restart", "systemd-networkd"], ["networkctl", "reload"]),
    "netplan": (["netplan", "apply"], ["systemctl", "restart", "systemd-networkd"]),
    "networkmanager": (["nmcli", "connection", "reload"], ["systemctl", "restart", "NetworkManager"]),
}


def rdma_mode(fleet: Fleet) -> str:
    """All host roles at once on hosts that need a reboot for the RDMA namespace mode, there and back."""
    fleet.up()
    hosts = [f"node{number}" for number in range(1, fleet.case.nodes + 1)]
    for attachment, wanted in (("sriov", "exclusive"), ("macvlan", "shared")):
        fleet.declare("exclusive", fabric_attachment=attachment, site_host_roles=ALL_ROLES)
        # Another attachment on a running fabric is a decision; here it is the point.
        shutil.rmtree(fleet.plan, ignore_errors=True)
        for host in hosts:
            # As on a node with pods: the kernel refuses a live change.
            fleet.on(host, "ip", "netns", "add", "pod")
        before = {host: fleet.on(host, "cat", "/proc/sys/kernel/random/boot_id") for host in hosts}
        fleet.converge()
        after = {host: fleet.on(host, "cat", "/proc/sys/kernel/random/boot_id") for host in hosts}
        if kept := [host for host in hosts if before[host] == after[host]]:
            raise CaseError(f"for the mode {wanted} {kept} did not reboot")
        found = {fleet.on(host, "rdma", "system").split()[1] for host in hosts}
        if found != {wanted}:
            raise CaseError(f"after the reboot the mode is {found}, planned: {wanted}")
        unchanged(fleet.play("hosts"))
        if after != {host: fleet.on(host, "cat", "/proc/sys/kernel/random/boot_id") for host in hosts}:
            raise CaseError("the second run rebooted")
    return "all host roles with another namespace there: one reboot to exclusive, one back to shared; second runs empty"


ALL_ROLES = ["rdma_driver", "nic_mode", "rdma_host", "rail_network", "lossless_roce", "gpudirect"]


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
    """The whole path, exclusive fabric, with deviations that audit names and site mends."""
    said = _site(fleet, "exclusive")
    # The reboot above is behind us: what is broken now is broken by hand.
    fleet.lab("cable", fleet.name, "node1", "ens1np0", "pull")
    named(fleet, ("node1", "rail1", "network_link"))
    # A plug is mended by hand, and what the rail had must be back with the carrier.
    fleet.lab("cable", fleet.name, "node1", "ens1np0", "plug")
    fleet.play("audit")
    for host, _rail, _check, command in BROKEN:
        fleet.on(host, *command)
    named(fleet, *((host, rail, check) for host, rail, check, _command in BROKEN))
    fleet.play("site")
    return f"{said}; a cable pulled, a rule deleted, an MTU and the mode changed: audit names each, site mends"


def site_shared(fleet: Fleet) -> str:
    """The whole path, shared fabric."""
    return _site(fleet, "shared", fabric_rail_prefix={"ipv4": 24, "ipv6": 64})


def host_modules(fleet: Fleet) -> str:
    """The tests of rdma_netns, rdma_info and roce_qos against a kernel that has ib_core."""
    fleet.up()
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECKOUT / "tests/guests")]
    said = fleet.run(["env", f"RAILOPS_LAB={fleet.name}", *tests]).strip().splitlines()[-1]
    if "passed" not in said:
        raise CaseError(f"nothing was tested: {said}")
    return said

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A GPU cluster's RDMA network on one machine, for tests and for people without the hardware.

    lab.py up --name try --kind netns --nodes 3      three hosts that are namespaces (a second)
    lab.py up --name try --kind guests --nodes 2     two QEMU guests with systemd, sshd and soft-RoCE (a minute)
    lab.py exec try -- ansible-playbook railops.rdma.site
    lab.py down try

Everything runs in network namespaces of the lab's own: no packet leaves the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
import typing as t
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cluster
import controller
import development
import fabric
import guests
import hosts
import image
import proof
import ready
import spaces
import state
import topology
from shell import LabError, environments, require_root, require_tools, roots, say

NETNS_NEEDS = spaces.TOOLS
PING = {"ping": "iputils-ping"}
MOST_SHOWN = 12
# MiB each guest has: a node of a cluster also runs kubelet, containerd and Spiderpool.
MEMORY, CLUSTER_MEMORY = 1024, 3072
# The word for "not here": test runners take it for a skipped case.
EXIT_SKIPPED = 77


def command_up(args: argparse.Namespace) -> None:
    """Start a lab."""
    interfaces = topology.default_interfaces(args.rails)
    memory = args.memory or (CLUSTER_MEMORY if args.cluster else MEMORY)
    names = tuple(args.names.split(",")) if args.names else ()
    nodes = args.nodes or len(names) or 2
    lab = topology.Lab(args.name, args.kind, nodes, interfaces, args.manager, memory, args.cluster, names, args.suite)
    require_root()
    require_tools(NETNS_NEEDS, "The lab")
    if lab.kind == "guests":
        require_tools(image.TOOLS, "The kind guests")
        image.image(node=lab.cluster, suite=lab.suite)
    if lab.cluster:
        # From inside the lab nothing can be fetched.
        cluster.tools()
    gateways = _gateways(lab, args.plan) if args.plan else ()
    python = environments.runtime() / "python"
    started = time.monotonic()
    state.create(lab)
    try:
        fabric.up(lab)
        if lab.kind == "netns":
            spaces.up(lab, python)
        else:
            if lab.cluster:
                cluster.start(lab)
            guests.up(lab, wait=args.wait)
        if lab.cluster:
            cluster.settle(lab, kubeadm=not args.no_kubeadm_config, wait=args.wait)
        controller.write(lab)
        if args.plan:
            fabric.set_gateways(lab, gateways)
    except BaseException:
        if not args.keep:
            take_down(lab)
        raise
    say(f"Lab {lab.name}: {lab.nodes} hosts of kind {lab.kind} in {time.monotonic() - started:.1f} s.")
    print(controller.folder(lab))


def command_list(args: argparse.Namespace) -> None:
    """Show the labs."""
    rows = [("NAME", "KIND", "HOSTS", "UP", "RAILS", "STATE")]
    for name in state.names():
        lab = state.load(name)
        alive = sum(hosts.backend(lab).is_up(lab, host) for host in lab.hosts)
        if not state.survived_reboot(name):
            status = "left over from before a reboot of this machine"
        else:
            status = "up" if alive == lab.nodes and fabric.exists(lab.fabric) else "broken"
        rows.append((name, lab.kind, str(lab.nodes), str(alive), str(len(lab.interfaces)), status))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def command_inventory(args: argparse.Namespace) -> None:
    """Print the folder of the lab's inventory."""
    print(controller.write(state.load(args.lab)))


def command_exec(args: argparse.Namespace) -> None:
    """Become a command, or a shell, in the fabric's namespace (the controller's) or on a host."""
    lab = _running(args.lab)
    if args.host:
        command = hosts.command(lab, lab.host(args.host), args.words)
        os.execvp(command[0], command)
    command = ["ip", "netns", "exec", lab.fabric, *(args.words or [os.environ.get("SHELL", "/bin/sh")])]
    os.execvpe(command[0], command, controller.environment(lab))


def command_wait(args: argparse.Namespace) -> None:
    """Wait until every pod of the lab's cluster runs, also after a reboot of its node."""
    ready.wait_for_pods(_running(args.lab), seconds=args.wait)


def command_gateways(args: argparse.Namespace) -> None:
    """Give the switches the addresses of a plan."""
    lab = _running(args.lab)
    gateways = _gateways(lab, args.plan)
    fabric.set_gateways(lab, gateways)
    say(f"Lab {lab.name}: {len(gateways)} gateway addresses on {len(lab.interfaces)} leaves.")


def command_cable(args: argparse.Namespace) -> None:
    """Pull or plug the cable of a rail."""
    lab = _running(args.lab)
    host = lab.host(args.host)
    if args.interface not in lab.interfaces:
        raise LabError(f"{args.interface!r} is not a rail.", f"The rails are {', '.join(lab.interfaces)}.")
    rail = lab.interfaces.index(args.interface) + 1
    hosts.backend(lab).cable(lab, host, rail, plugged=args.state == "plug")


def command_dump(args: argparse.Namespace) -> None:
    """Print what the kernels of the hosts hold: links, addresses, rules and routes, as JSON."""
    lab = _running(args.lab)
    print(json.dumps({host.name: proof.dump(lab, host) for host in lab.hosts}, indent=2))


def command_prove(args: argparse.Namespace) -> None:
    """Prove a plan on the lab: kernels hold it, and packets leave and return by the rail they belong to."""
    lab = _running(args.lab)
    if lab.kind == "netns":
        require_tools(PING, "A proof by packets")
    host_plans = topology.read_host_plans(args.plan)
    failures = proof.prove(lab, host_plans)
    if args.rdma and not failures:
        failures = proof.prove_rdma(lab, host_plans)
    for failure in failures[:MOST_SHOWN]:
        say(f"  {failure}")
    if len(failures) > MOST_SHOWN:
        say(f"  ... and {len(failures) - MOST_SHOWN} more")
    if failures:
        raise LabError(f"{len(failures)} things are not as the plan says.", "The first of them are listed above.")


def command_down(args: argparse.Namespace) -> None:
    """End a lab, or all of them."""
    require_root()
    if bool(args.lab) == args.all:
        raise LabError(
            "Which lab shall end?", f"Name one of: {', '.join(state.names()) or '(there is none)'}, or --all."
        )
    for name in state.names() if args.all else [args.lab]:
        take_down(state.load(name))


def command_image(args: argparse.Namespace) -> None:
    """Build the guests' image where it is not there, and print its folder."""
    if args.renew:
        development.packages(roots.DEBIAN, renew=True)
    print(image.image(node=args.cluster, suite=args.suite).disk.parent)


def take_down(lab: topology.Lab) -> None:
    """End what the lab started and remove what it made; nothing else."""
    hosts.backend(lab).down(lab)
    if lab.cluster:
        cluster.down(lab)
    fabric.down(lab)
    state.forget(lab.name)


def _gateways(lab: topology.Lab, plan: Path) -> tuple[topology.Gateway, ...]:
    gateways = topology.gateways_of(lab, topology.read_host_plans(plan))
    topology.check_switch_table(plan, gateways)
    return gateways


def _running(name: str) -> topology.Lab:
    lab = state.load(name)
    require_root()
    if not fabric.exists(lab.fabric):
        raise LabError(f"The lab {name!r} is not running.", f"lab.py down {name}, and start it again.")
    return lab


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="lab.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: t.Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        sub.set_defaults(function=function)
        return sub

    up = add("up", command_up)
    up.add_argument("--name", required=True)
    up.add_argument("--kind", choices=topology.KINDS, default="netns")
    up.add_argument("--nodes", type=int, help="how many hosts: node1, node2, ... (default 2)")
    up.add_argument("--names", help="the hosts by the names of your inventory, separated by commas")
    up.add_argument("--rails", type=int, default=8, help="how many rails: ens1np0, ens2np0, ... (default 8)")
    up.add_argument("--plan", type=Path, help="plan/<fabric_name>: give the switches its gateways")
    up.add_argument("--manager", choices=topology.MANAGERS, default="networkd", help="guests: what manages networks")
    up.add_argument("--cluster", action="store_true", help="guests: a real Kubernetes, each guest a node")
    up.add_argument("--no-kubeadm-config", action="store_true", help="cluster: without kubeadm's ConfigMap")
    memory = f"guests: MiB each (default {MEMORY}, in a cluster {CLUSTER_MEMORY})"
    up.add_argument("--memory", type=int, help=memory)
    up.add_argument("--wait", type=float, default=600, help="guests: seconds until ssh must answer (default 600)")
    up.add_argument("--keep", action="store_true", help="leave a failed start for a look")
    up.add_argument("--suite", choices=image.SUITES, default="bookworm", help="guests: what they boot")
    add("list", command_list)
    add("inventory", command_inventory).add_argument("lab")
    run = add("exec", command_exec)
    run.add_argument("lab")
    run.add_argument("--host", help="on this host instead of beside the switches; the command follows --")
    wait = add("wait", command_wait)
    wait.add_argument("lab")
    wait.add_argument("--wait", type=float, default=900, help="seconds (default 900)")
    gateways = add("gateways", command_gateways)
    gateways.add_argument("lab")
    gateways.add_argument("--plan", type=Path, required=True)
    cable = add("cable", command_cable)
    cable.add_argument("lab")
    cable.add_argument("host")
    cable.add_argument("interface")
    cable.add_argument("state", choices=("pull", "plug"))
    add("dump", command_dump).add_argument("lab")
    prove = add("prove", command_prove)
    prove.add_argument("lab")
    prove.add_argument("--plan", type=Path, required=True)
    prove.add_argument("--rdma", action="store_true", help="guests: ib_read_lat over every rail as well")
    down = add("down", command_down)
    down.add_argument("lab", nargs="?")
    down.add_argument("--all", action="store_true")
    built = add("image", command_image)
    built.add_argument("--cluster", action="store_true", help="the image of a cluster's nodes")
    built.add_argument("--suite", choices=image.SUITES, default="bookworm", help="Debian 12, Ubuntu 22.04 or 24.04")
    built.add_argument("--renew", action="store_true", help="with what Debian's development branch has today")
    return top


def main() -> None:
    """Run one command."""
    # What follows -- is another command's: no option of it is ours.
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    args = parser().parse_args(words[:cut])
    args.words = words[cut + 1 :]
    try:
        args.function(args)
    except development.UnavailableError as exc:
        say(f"lab: {exc}")
        sys.exit(EXIT_SKIPPED)
    except LabError as exc:
        sys.exit(f"lab: {exc}")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            sys.stdout.close()


if __name__ == "__main__":
    main()

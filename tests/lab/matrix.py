# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The full matrix on guests: each case a lab of its own, bounded in time; the result goes into docs/status.md.

matrix.py                 run all cases and write the result
matrix.py CASE ...        run these, and keep the results that docs/status.md has of the others
matrix.py --list          name them
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
CLUSTER = CHECKOUT / "tests/cluster"
LAB = [sys.executable, str(HERE / "lab.py")]
STATUS = CHECKOUT / "docs/status.md"
BEGIN, END = "<!-- lab-test begin -->", "<!-- lab-test end -->"

if t.TYPE_CHECKING:
    from collections.abc import Callable


class CaseError(Exception):
    """What a case found wrong."""


@dataclass(frozen=True)
class Case:
    """One row of the matrix; `limit` in seconds."""

    name: str
    shows: str
    limit: int
    function: Callable[[Fleet], str]
    manager: str = "networkd"
    nodes: int = 2


class Fleet:
    """The lab of one case, and a folder with its inventory, plan and log."""

    def __init__(self, case: Case, rails: int) -> None:
        self.rails = rails
        self.name = f"mx-{case.name}"[:20]
        self.folder = CHECKOUT / "tests/output/matrix" / case.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.log = self.folder / "case.log"
        self.plan = self.folder / "plan/fabric"
        self.case = case

    def run(self, argv: list[str], *, fails: bool = False) -> str:
        """Run a command with its output in the case's log; return what it printed."""
        with self.log.open("a", encoding="utf-8") as log:
            print(f"\n+ {' '.join(argv)}", file=log, flush=True)
            done = subprocess.run(
                argv, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            log.write(done.stdout)
        if bool(done.returncode) != fails:
            words = "succeeded, a failure was due" if fails else f"failed ({done.returncode})"
            messages = re.findall(r'"msg": "((?:[^"\\]|\\.)+)"', done.stdout)
            said = messages[-1] if messages else " / ".join(done.stdout.strip().splitlines()[-6:])
            raise CaseError(f"`{' '.join(argv[-2:])}` {words}: {said[-400:]}")
        return done.stdout

    def lab(self, *words: str, fails: bool = False) -> str:
        """Run a command of the lab."""
        return self.run([*LAB, *words], fails=fails)

    def up(self) -> None:
        """Start the guests."""
        case = self.case
        self.lab(
            *("up", "--name", self.name, "--kind", "guests", "--nodes", str(case.nodes)),
            *("--rails", str(self.rails), "--manager", case.manager),
        )

    def down(self) -> None:
        """End them."""
        subprocess.run([*LAB, "down", self.name], capture_output=True, check=False)

    def on(self, host: str, *argv: str) -> str:
        """Run a command on a guest."""
        return self.lab("ssh", self.name, host, "--", *argv)

    def declare(self, example: str, **changes: object) -> None:
        """Take an example inventory's fabric over for the lab's hosts, with changes."""
        inventory = self.folder / "inventory"
        variables = inventory / "group_vars/all"
        shutil.rmtree(inventory, ignore_errors=True)
        shutil.copytree(CHECKOUT / "inventory" / example / "group_vars/all", variables)
        nodes = "\n".join(f"node{number}" for number in range(1, self.case.nodes + 1))
        (inventory / "hosts.ini").write_text(f"[gpu_nodes]\n{nodes}\n", encoding="utf-8")
        rails = [{"name": f"rail{number}", "interface": f"ens{number}np0"} for number in range(1, self.rails + 1)]
        content = {**GUESTS, "site_serial": [self.case.nodes], "fabric_rails": rails, **changes}
        # JSON is YAML; the last file of a folder wins.
        (variables / "zz_lab.yml").write_text(json.dumps(content) + "\n", encoding="utf-8")

    def play(self, playbook: str, *words: str, fails: bool = False) -> str:
        """Run a playbook of the collection the way a user does."""
        lab_inventory = self.lab("inventory", self.name).strip().splitlines()[-1]
        book = ["ansible-playbook", "-i", str(self.folder / "inventory"), "-i", lab_inventory]
        return self.lab("exec", self.name, "--", *book, f"railops.rdma.{playbook}", *words, fails=fails)

    def converge(self, *words: str) -> None:
        """Plan, give the switches their addresses, and bring the hosts to the plan."""
        self.play("plan")
        self.lab("gateways", self.name, "--plan", str(self.plan))
        self.play("hosts", *words)

    def prove(self, *words: str) -> str:
        """Prove the plan without the collection."""
        return self.lab("prove", self.name, "--plan", str(self.plan), *words)

    def dump(self) -> dict[str, dict[str, list[str]]]:
        """Return what the kernels hold."""
        return t.cast("dict[str, dict[str, list[str]]]", json.loads(self.lab("dump", self.name)))

    def reboot(self) -> None:
        """Reboot all guests and wait for them."""
        self.lab("exec", self.name, "--", "ansible", "gpu_nodes", "-m", "reboot", "-a", "reboot_timeout=420")

    def same(self, before: dict[str, dict[str, list[str]]], what: str) -> None:
        """Insist that the kernels hold what they held; what a manager sets up after ssh answers gets a moment."""
        deadline = time.monotonic() + 60
        while (now := self.dump()) != before and time.monotonic() < deadline:
            time.sleep(5)
        differences = []
        for host, parts in before.items():
            for part, rows in parts.items():
                lost, new = set(rows) - set(now[host][part]), set(now[host][part]) - set(rows)
                if lost or new:
                    differences.append(f"{host} {part} lost {sorted(lost)[:2]}, got {sorted(new)[:2]}")
        if differences:
            raise CaseError(f"{what}: {'; '.join(differences)}")


def unchanged(output: str) -> None:
    """Insist that a playbook changed nothing."""
    changed = {name: int(count) for name, count in re.findall(r"^(\S+)\s*: ok=\d+\s+changed=(\d+)", output, re.M)}
    if not changed or any(changed.values()):
        raise CaseError(f"the second run changed something: {changed}")


# Soft-RoCE has no link type and no DCB, there is no GPU, and an emulated processor takes its time.
GUESTS = {
    "fabric_max_nodes": 8,
    "site_host_roles": ["rdma_driver", "rdma_host", "rail_network"],
    # The guard is tested in namespaces, where time passes as it should.
    "rail_network_confirm_timeout": 0,
    "lossless_roce_unsupported": "report",
    "verify_traffic": "rdma",
    "verify_latency_iterations": 50,
    "verify_bandwidth_iterations": 50,
    "verify_timeout": 90,
}
DUAL_STACK = {"fabric_supernets": ["172.17.0.0/16", "fd00:172:17::/48"], "fabric_mtu": 4200}
NETWORK_ONLY = {**DUAL_STACK, "site_host_roles": ["rail_network"]}


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


# (host, rail, the check that has to name it, what is done to the host)
BROKEN = (
    ("node2", "rail3", "network_rules", ["ip", "rule", "del", "pref", "10003"]),
    ("node2", "rail2", "network_mtu", ["ip", "link", "set", "ens2np0", "mtu", "1500"]),
    # A service of systemd with a network of its own makes the kernel refuse for a while.
    (
        "node1",
        None,
        "rdma_netns.current",
        ["sh", "-c", "for _ in 1 2 3 4 5 6; do rdma system set netns exclusive && exit 0; sleep 10; done; exit 1"],
    ),
)


def named(fleet: Fleet, *wanted: tuple[str, str | None, str]) -> None:
    """Insist that an audit fails and that its verdict names these (host, rail, check)."""
    fleet.play("audit", fails=True)
    verdict = json.loads((fleet.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    found = {
        (host, check["rail"], check["id"])
        for host, entry in verdict["hosts"].items()
        for check in entry["checks"]
        if check["status"] == "deviation" and check["cause"] and check["fix"]
    }
    if missing := set(wanted) - found:
        raise CaseError(f"the audit does not name {sorted(missing, key=str)}, only {sorted(found, key=str)}")


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


@contextlib.contextmanager
def cluster(fleet: Fleet) -> t.Iterator[tuple[dict[str, object], Callable[..., str]]]:
    """Start a real Kubernetes API beside the controller, with a node for each guest.

    Gives the variables that join it to the fleet, and a function that runs kubectl. It ends with its standard input.
    """
    tools = [sys.executable, str(CLUSTER / "tools.py")]
    helm, kubectl = (fleet.run([*tools, name]).strip() for name in ("helm", "kubectl"))
    chart = fleet.folder / "chart"
    fleet.run([*tools, "chart", str(chart)])
    kubeconfig = fleet.folder / "kubeconfig"
    api = [*LAB, "exec", fleet.name, "--", sys.executable, str(CLUSTER / "real_api.py"), "--here"]
    hold = 'cp "$RAILOPS_TEST_KUBECONFIG" "$1.part" && mv "$1.part" "$1" && exec cat'
    words = ["--nodes", str(fleet.case.nodes), "sh", "-c", hold, "hold", str(kubeconfig)]
    with fleet.log.open("a", encoding="utf-8") as log:
        running = subprocess.Popen([*api, *words], stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 900
        while not kubeconfig.exists():
            if running.poll() is not None or time.monotonic() > until:
                raise CaseError(f"no Kubernetes API came up; see {fleet.log}")
            time.sleep(1)
        given = {
            "fabric_kubeconfig": str(kubeconfig),
            "spiderpool_helm": helm,
            "spiderpool_chart_file": str(chart),
            "spiderpool_timeout": 180,
        }
        ask = ["exec", fleet.name, "--", kubectl, "--kubeconfig", str(kubeconfig)]
        yield given, lambda *words: fleet.lab(*ask, *words)
    finally:
        if running.stdin:
            running.stdin.close()
        running.wait(60)


def site_cluster(fleet: Fleet) -> str:
    """The whole path with a cluster: what is broken on a host and in the cluster is named by one audit and mended."""
    fleet.up()
    with cluster(fleet) as (given, kubectl):
        fleet.declare("exclusive", **DUAL_STACK, **given)
        fleet.play("plan")
        fleet.lab("gateways", fleet.name, "--plan", str(fleet.plan))
        fleet.play("site", "--check", "--diff")
        fleet.play("site")
        unchanged(fleet.play("site"))
        namespace = ("--namespace", "spiderpool")
        host, _rail, _check, command = BROKEN[0]
        fleet.on(host, *command)
        edited, gone = "fabric-rail1-v4-node1", "fabric-rail2"
        patch = json.dumps({"spec": {"nodeName": ["elsewhere"]}})
        kubectl("patch", "spiderippool", edited, "--type=merge", "--patch", patch)
        kubectl("delete", "spidermultusconfig", gone, *namespace)
        named(fleet, BROKEN[0][:3])
        verdict = json.loads((fleet.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
        told = [row["planned"] for row in verdict["cluster"]["checks"] if row["status"] == "deviation"]
        if [name for name in (edited, gone) if not any(line.endswith(name) for line in told)]:
            raise CaseError(f"the audit does not name {edited} and {gone}, only {told}")
        fleet.play("site")
        fleet.play("audit")
        pool = json.loads(kubectl("get", "spiderippool", edited, "--output=json"))
        if pool["spec"]["nodeName"] != ["node1"]:
            raise CaseError(f"the edited pool was not mended: {pool['spec']}")
        fleet.play("teardown", "-e", "teardown_spiderpool=true")
        left = kubectl("get", "spiderippools,spidermultusconfigs", "--all-namespaces", "--output=name")
        if left.strip() and "No resources" not in left:
            raise CaseError(f"teardown left {left}")
    return (
        "a real kube-apiserver, a stub chart; second run empty; a pool edited, a config and a rule deleted: one "
        "audit names all, site mends; teardown leaves nothing"
    )


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


CASES = (
    Case("networkd", "host network persists, systemd-networkd", 1500, network_manager, "networkd"),
    Case("netplan", "host network persists, netplan", 1500, network_manager, "netplan"),
    Case("networkmanager", "host network persists, NetworkManager", 1500, network_manager, "networkmanager"),
    Case("host-modules", "RDMA modules on a kernel with ib_core", 3600, host_modules, nodes=1),
    Case("rdma-mode", "all host roles with one reboot for the RDMA namespace mode", 2400, rdma_mode),
    Case("site-exclusive", "whole path, exclusive fabric", 3600, site_exclusive),
    Case("site-shared", "whole path, shared fabric", 2400, site_shared),
    Case("site-cluster", "whole path with a cluster", 3600, site_cluster),
)


def run_one(case: Case, rails: int) -> str:
    """Run a case in this process; return what it showed."""
    fleet = Fleet(case, rails)
    fleet.down()
    try:
        return case.function(fleet)
    finally:
        fleet.down()


@dataclass(frozen=True)
class Result:
    """How a case ended."""

    case: Case
    passed: bool
    seconds: float
    detail: str
    day: str

    def row(self) -> str:
        """Return the row of the table."""
        word = "passed" if self.passed else "**failed**"
        # What is committed names no place of one machine.
        detail = self.detail.replace(f"{CHECKOUT}/", "").replace(str(Path.home()), "~")
        detail = detail.replace("|", "/").replace("\n", " ")
        return f"| {self.case.name} | {self.case.shows} | {word} | {self.seconds:.0f} s | {self.day} | {detail} |"


def attempt(case: Case, rails: int) -> Result:
    """Run a case in a process group of its own, ended when its time is over."""
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, __file__, "--rails", str(rails), "--inside", case.name],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate(timeout=case.limit)[0]
        except BaseException as exc:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            subprocess.run([*LAB, "down", f"mx-{case.name}"[:20]], capture_output=True, check=False)
            if not isinstance(exc, subprocess.TimeoutExpired):
                raise
            said = f"did not end within {case.limit} s"
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    detail = f"{rails} rails; {said.strip()}"
    return Result(case, process.returncode == 0, time.monotonic() - begun, detail, day)


def write_status(results: list[Result]) -> None:
    """Put the results between the markers of docs/status.md; rows of cases that did not run stay."""
    text = STATUS.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    rows = {line.split("|")[1].strip(): line for line in old.splitlines() if line.startswith("| ")}
    rows |= {result.case.name: result.row() for result in results}
    lines = ["| case | shows | result | time | date | what was seen |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [rows[case.name] for case in CASES if case.name in rows]
    STATUS.write_text(f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{tail}", encoding="utf-8")


def inside(name: str, rails: int) -> None:
    """Run one case and tell how it ended on stdout."""
    case = next(case for case in CASES if case.name == name)
    try:
        print(run_one(case, rails))
    except CaseError as exc:
        print(exc)
        sys.exit(1)


def main() -> None:
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-write", action="store_true", help="leave docs/status.md as it is")
    parser.add_argument(
        "--rails", type=int, default=8, choices=range(3, 9), help="fewer for a slow machine (default 8)"
    )
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args.inside, args.rails)
    if args.list:
        return print("\n".join(f"{case.name:<16} {case.shows} (at most {case.limit // 60} minutes)" for case in CASES))
    if unknown := set(args.cases) - {case.name for case in CASES}:
        sys.exit(f"There is no case {', '.join(sorted(unknown))}: matrix.py --list names them.")
    if os.geteuid():
        sys.exit("The matrix starts guests in network namespaces, which needs root: sudo make lab-test")
    # Ended from outside, it takes its guests down.
    signal.signal(signal.SIGTERM, lambda *dummy: sys.exit(143))
    # Built before the first case, so that no case pays for it.
    subprocess.run([*LAB, "image"], check=True, stdout=subprocess.DEVNULL)
    results = []
    for case in CASES:
        if args.cases and case.name not in args.cases:
            continue
        print(f"{case.name}: {case.shows} ...", flush=True)
        results.append(attempt(case, args.rails))
        print(f"  {'passed' if results[-1].passed else 'FAILED'} in {results[-1].seconds:.0f} s: {results[-1].detail}")
        if not args.no_write:
            write_status(results)
    if not all(result.passed for result in results):
        sys.exit(1)
    return None


if __name__ == "__main__":
    main()

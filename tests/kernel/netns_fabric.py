# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small fabric in network namespaces: a bridge per rail as leaf, forwarding between them as spine, hosts with rails.

Names begin with rr-net-<pid>. Module code runs in a forked child that has entered the host's namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import time
import traceback
import typing as t
from pathlib import Path

from module_args import module_args
from returned import returned

from ansible_collections.railops.rdma.plugins.module_utils._persist import plan as persist
from ansible_collections.railops.rdma.plugins.module_utils._persist.host import PersistHost as Files
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
from ansible_collections.railops.rdma.plugins.modules import policy_route, rail_audit

CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18


def run(*argv: str, check: bool = True, stdin: str | None = None) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300, input=stdin)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
    return done.stdout


def setns(path: str) -> None:
    with open(path, encoding="utf-8") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def entered(name: str) -> t.Iterator[None]:
    """Be in a network namespace with this thread: sockets stay where they were opened."""
    with open("/proc/thread-self/ns/net", encoding="utf-8") as home:
        try:
            setns(f"/run/netns/{name}")
            yield
        finally:
            setns(f"/proc/thread-self/fd/{home.fileno()}")


def own_sysfs() -> None:
    """Give this process (a child of `inside`) a /sys that shows the interfaces of its namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "unshare")
    if libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")


def wait_for(read: t.Callable[[], object], wanted: object) -> None:
    """Look until it is as wanted; a busy machine is slow."""
    deadline = time.monotonic() + 120
    while (seen := read()) != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    assert seen == wanted


def drop_capabilities() -> None:
    """Give up all capabilities of this process, as in a container without them."""
    libc = ctypes.CDLL(None, use_errno=True)
    # linux/capability.h: version 3, this process, two sets of three words.
    if libc.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), "capset")


def inside(name: str, function, *args, timeout: float = 60):
    """Run a function in a forked child inside a namespace; return what it returns (JSON). A killed child gives None."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            setns(f"/run/netns/{name}")
            answer = {"value": function(*args)}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        with os.fdopen(writer, "w") as stream:
            json.dump(answer, stream, default=str)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _pid, status = os.waitpid(child, 0)
    if not text:
        assert os.WIFSIGNALED(status), status
        return None
    answer = json.loads(text)
    assert "error" not in answer, answer.get("error")
    return answer["value"]


def call_module(module, params: dict, *, check: bool = False, diff: bool = True, environ: dict | None = None) -> dict:
    """Run a module's main() as Ansible would; return its result."""
    os.environ.pop("SSH_CONNECTION", None)
    os.environ.update({"SSH_CONNECTION": "", **(environ or {})})
    out = io.StringIO()
    with (
        module_args({**params, "_ansible_check_mode": check, "_ansible_diff": diff}),
        contextlib.redirect_stdout(out),
        contextlib.suppress(SystemExit),
    ):
        module.main()
    return returned(module.__name__.rpartition(".")[2], json.loads(out.getvalue()))


# What a boot from our files changes: managers make rules and routes with a number of their own, addresses without one.
REBOOTED = """
set -e
kept=$(mktemp -d)
promote=$(cat /proc/sys/net/ipv4/conf/all/promote_secondaries)
echo 1 > /proc/sys/net/ipv4/conf/all/promote_secondaries
for family in -4 -6; do
  ip $family route show table all proto 143 | sed 's/ proto [^ ]*//' > $kept/routes$family
  ip $family rule show | grep -E 'proto (railops|143)' | sed 's/:\\t/ /; s/ proto .*//; s/^/priority /' > $kept/rules
  while read -r rule; do ip $family rule del $rule; ip $family rule add $rule protocol static; done < $kept/rules
  case $family in -6) nodad=nodad;; *) nodad=;; esac
  ip $family -o address show scope global | awk '$2 ~ /^ens/ {print $4 " dev " $2}' > $kept/addresses
  while read -r address; do
    grep -q " from ${address%/*} " $kept/rules || continue
    ip address del $address
    ip address add $address $nodad
  done < $kept/addresses
done
for family in -4 -6; do
  ip $family route flush proto 143
  for way in -v -e; do
    grep $way via $kept/routes$family | while read -r route; do ip $family route replace $route proto static; done
  done
done
rm -r $kept
echo $promote > /proc/sys/net/ipv4/conf/all/promote_secondaries
"""


# A Python in a namespace, with a /var/lib of its own: there hosts remember their rails.
OWN_LIB = """#!/bin/sh
exec ip netns exec {host} sh -c 'mount --bind {lib} /var/lib && exec {python} "$@"' sh "$@"
"""


class Host:
    """A namespace with `rails` interfaces ens1np0.. on the leaves, and eth0 with the default route."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number

    def ip(self, *argv: str, check: bool = True) -> str:
        return run("ip", "-n", self.name, *argv, check=check)

    def batch(self, lines: str) -> None:
        run("ip", "-n", self.name, "-batch", "-", stdin=lines)

    def module(self, module, params: dict, **options) -> dict:
        return inside(self.name, lambda: call_module(module, params, **options))

    def apply(self, want: dict, **options) -> dict:
        """Bring the host to a plan by policy_route, which must take it."""
        result = self.module(policy_route, want, **options)
        assert not result.get("failed"), result["msg"]
        return result

    def refused(self, want: dict, **options) -> str:
        """Return why policy_route does not take a plan: with a fix, the same in check mode, and nothing is changed."""
        before = self.dump()
        result, preview = (self.module(policy_route, want, check=check, **options) for check in (False, True))
        assert result.get("failed"), result
        assert result["fix"]
        assert preview["msg"] == result["msg"]
        assert self.dump() == before
        return result["msg"]

    def audit(self, want: dict, *groups: str, **more) -> dict:
        """Look at the host by groups of rail_audit, with a /sys of its own; return the answer, which has no errors."""

        def audit_groups():
            own_sysfs()
            return call_module(rail_audit, {**want, "checks": [*groups], **more}, diff=False)

        result = inside(self.name, audit_groups)
        assert result["errors"] == []
        assert not result["changed"]
        return result

    def sysctl(self, key: str, value: str | None = None) -> str:
        def access():
            with open(f"/proc/sys/{key}", "w" if value is not None else "r") as stream:
                return stream.write(value) and "" if value is not None else stream.read().strip()

        return inside(self.name, access)

    def dump(self) -> dict[str, list[str]]:
        """Links, addresses, rules and tables as iproute2 sees them: the checker does not use what it checks."""
        out = {}
        out["links"] = [
            f"{item['ifname']} {item['mtu']} {'UP' in item['flags']}"
            for item in json.loads(self.ip("-j", "link", "show"))
        ]
        out["addresses"] = sorted(
            " ".join(
                f"{item['ifname']} {info['family']} {info['local']}/{info['prefixlen']} {info.get('scope')}"
                f" {sorted(key for key in info if info[key] is True)}".split()
            )
            for item in json.loads(self.ip("-j", "address", "show"))
            for info in item["addr_info"]
            if not info["local"].startswith("fe80:")
        )
        out["rules"] = [*self.ip("-d", "rule").splitlines(), *self.ip("-d", "-6", "rule").splitlines()]
        # Multicast and link-local routes of the kernel appear with carrier, when they do; the local route of an IPv6
        # address a moment after the address.
        kernel = ("ff00::/8", "fe80::", "anycast", "local fd00:", "local 2001:db8:")
        out["routes"] = sorted(
            " ".join(line.split())
            for family in ("-4", "-6")
            for line in self.ip("-d", family, "route", "show", "table", "all").splitlines()
            if not any(word in line for word in kernel)
        )
        return out

    def counters(self, direction: str) -> dict[str, int]:
        return {
            item["ifname"]: item["stats64"][direction]["packets"]
            for item in json.loads(self.ip("-j", "-s", "link", "show"))
        }

    def reboot(self) -> None:
        """Make rules, routes and addresses of ours as a network manager would have made them at boot."""
        run("ip", "netns", "exec", self.name, "sh", "-c", REBOOTED)

    def timer(self) -> dict[str, int]:
        """Return the files of the newest rollback timer of this host, and when each got its name, in nanoseconds."""
        number = int(inside(self.name, lambda: os.stat("/proc/self/ns/net").st_ino))
        folder = max(Path(f"/run/railops-rdma/{number}").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return {path.name: path.stat().st_ctime_ns for path in folder.iterdir()}


class Fabric:
    """The namespaces of one fabric."""

    def __init__(self, name: str, hosts: int, rails: int) -> None:
        self.name = f"rr-net-{os.getpid()}-{name}"
        self.rails = rails
        self.core = f"{self.name}-core"
        self.hosts = [Host(f"{self.name}-h{number}", number) for number in range(1, hosts + 1)]

    def __enter__(self) -> Fabric:
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            for name in (self.core, *(host.name for host in self.hosts)):
                run("ip", "netns", "add", name)
            lines = ["link set lo up", "link add mgmt type bridge", "link set mgmt up"]
            lines += ["address add 198.51.100.254/24 dev mgmt"]
            for rail in range(1, self.rails + 1):
                lines += [f"link add leaf{rail} type bridge", f"link set leaf{rail} mtu 9000 up"]
            run("ip", "-n", self.core, "-batch", "-", stdin="\n".join(lines) + "\n")
            inside(self.core, _forward)
            for host in self.hosts:
                self._plug(host)
            stack.pop_all()
        return self

    def _plug(self, host: Host) -> None:
        lines = ["link set lo up"]
        for rail in range(1, self.rails + 1):
            lines.append(
                f"link add ens{rail}np0 mtu 9000 type veth peer name h{host.number}r{rail} mtu 9000 netns {self.core}"
            )
            lines.append(f"link set ens{rail}np0 mtu 1500")
        lines.append(f"link add eth0 type veth peer name h{host.number}m netns {self.core}")
        lines += ["link set eth0 up", f"address add 198.51.100.{host.number}/24 dev eth0"]
        lines += ["route add default via 198.51.100.254"]
        host.batch("\n".join(lines) + "\n")
        ports = [f"link set h{host.number}m master mgmt up"]
        ports += [f"link set h{host.number}r{rail} master leaf{rail} up" for rail in range(1, self.rails + 1)]
        run("ip", "-n", self.core, "-batch", "-", stdin="\n".join(ports) + "\n")

    def gateways(self, wants: list[dict]) -> None:
        """Give the leaves the gateway addresses of what is planned."""
        for want in wants:
            for rail in want["rails"]:
                for item in rail["addresses"]:
                    give(self.core, f"leaf{rail['index']}", item["gateway"], item["subnet"])

    def converge(self, wants: list[dict]) -> None:
        """Bring leaves and hosts to what is planned, and remember it."""
        self.wants = wants
        self.gateways(wants)
        for host, want in zip(self.hosts, wants, strict=True):
            host.apply(want)

    def inventory(self, folder: Path, wants: list[dict]) -> None:
        """Write a plan folder of what is planned, and an inventory whose hosts' Python runs in their namespaces."""
        frozen = {"mode": "exclusive"}
        digest = hashlib.sha256(json.dumps(frozen, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        (folder / "plan" / "hosts").mkdir(parents=True)
        nodes = {}
        lines = []
        for number, (host, want) in enumerate(zip(self.hosts, wants, strict=True)):
            name = f"node{number + 1}"
            nodes[name] = {"zone": "", "slot": number, "retired": False}
            data = {
                "schema": 1,
                "frozen_digest": digest,
                "fabric": "fabric",
                "node": name,
                "slot": number,
                "rdma_mode": "exclusive",
                **want,
            }
            (folder / "plan" / "hosts" / f"{name}.json").write_text(json.dumps(data))
            wrapper = folder / f"python-{name}"
            lib = folder / f"lib-{name}"
            lib.mkdir()
            wrapper.write_text(OWN_LIB.format(host=host.name, lib=lib, python=sys.executable))
            wrapper.chmod(0o755)
            lines.append(f"{name} ansible_python_interpreter={wrapper}\n")
        plan = {"format": 1, "digest": "x", "frozen": frozen, "nodes": nodes}
        (folder / "plan" / "plan.json").write_text(json.dumps(plan))
        (folder / "plan" / "facts.json").write_text(json.dumps({"prefixes": []}))
        (folder / "inventory").write_text("".join(lines))

    def manual(self, wants: list[dict]) -> None:
        """Give hosts and leaves the addresses of what is planned, and no rule or route."""
        for host, want in zip(self.hosts, wants, strict=True):
            for rail in want["rails"]:
                host.ip("link", "set", rail["interface"], "up")
                for key, value in (("arp_ignore", "1"), ("arp_announce", "2")):
                    host.sysctl(f"net/ipv4/conf/{rail['interface']}/{key}", value)
                for item in rail["addresses"]:
                    give(host.name, rail["interface"], item["address"], item["subnet"])
        self.gateways(wants)
        self.settle()

    def settle(self) -> None:
        """Wait until no address is tentative: a link-local one is for its first second or two."""
        names = [self.core, *(host.name for host in self.hosts)]
        wait_for(lambda: [name for name in names if run("ip", "-n", name, "address", "show", "tentative")], [])

    def __exit__(self, *_exc) -> None:
        self.close()

    def close(self) -> None:
        for name in (*(host.name for host in self.hosts), self.core):
            run("ip", "netns", "del", name, check=False)


def give(space: str, interface: str, address: str, subnet: str) -> None:
    """Give an interface of a namespace an address of a subnet, which is usable at once."""
    more = ["nodad"] if ":" in address else []
    whole = f"{address}/{subnet.partition('/')[2]}"
    run("ip", "-n", space, "address", "replace", whole, "dev", interface, *more)


def files_of(want: dict, manager: str) -> list[persist.File]:
    """Return the files of a plan for the next boot."""
    parsed = parse_options(want)
    return persist.files_of(parsed, {rail.name: rail.interface for rail in parsed.rails}, manager)


def save(root: Path, files: list[persist.File]) -> None:
    """Write files of a host below a folder."""
    there = Files(str(root))
    for file in files:
        there.put(file.path, file.text, file.mode, link=file.mode == 0o777)


def _forward() -> None:
    for key in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"):
        with open(f"/proc/sys/{key}", "w") as stream:
            stream.write("1")
    for key in ("all", "default"):
        with open(f"/proc/sys/net/ipv4/conf/{key}/rp_filter", "w") as stream:
            stream.write("0")


def options(slot: int, rails: int, *, mode: str = "exclusive", six: bool = True, **more) -> dict:
    """What the planner gives a host: the guides' own numbers."""
    out = []
    for rail in range(1, rails + 1):
        if mode == "exclusive":
            base = slot * 32
            four = {"address": f"172.17.{rail - 1}.{base + 2}", "subnet": f"172.17.{rail - 1}.{base}/27"}
            four["gateway"] = f"172.17.{rail - 1}.{base + 1}"
            net = f"fd00:17:{rail}:{slot + 1}"
            sixth = {"address": f"{net}::2", "subnet": f"{net}::/64", "gateway": f"{net}::1"}
        else:
            four = {"address": f"172.17.{rail}.{slot + 2}", "subnet": f"172.17.{rail}.0/24"}
            four["gateway"] = f"172.17.{rail}.1"
            net = f"fd00:17:{rail}"
            sixth = {"address": f"{net}::{slot + 2}", "subnet": f"{net}::/64", "gateway": f"{net}::1"}
        rail_data = {"name": f"rail{rail}", "index": rail, "interface": f"ens{rail}np0", "mtu": 4200}
        rail_data["addresses"] = [four, sixth] if six else [four]
        out.append(rail_data)
    prefixes = ["172.17.0.0/16", "fd00:17::/32"] if six else ["172.17.0.0/16"]
    names = [rail["interface"] for rail in out]
    sysctls = {f"net/ipv4/conf/{name}/{key}": value for name in names for key, value in SYSCTLS.items()}
    return {
        "rails": out,
        "rdma_prefixes": prefixes,
        "sysctls": sysctls,
        "policy": "prefixes",
        "network": "roce",
        **more,
    }


SYSCTLS = {"arp_ignore": "1", "arp_announce": "2", "rp_filter": "2"}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print the host network's benchmarks, each beside its baseline, both measured in this run, with the target beside it.

    python tests/benchmark/host.py            as root; about two minutes

A namespace with eight rails is the host. Playbooks reach it over SSH with pipelining (an sshd on its loopback); where
there is no sshd they use the local connection, and the table says so. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from table import Row, enter_environment, env, show

RAILS = 8
FOREIGN = 10_000
ROUNDS = 7
PORT = 2222


# --- inside the module ------------------------------------------------------------------------------------------------


class Module:
    """As much of AnsibleModule as asks a program."""

    def get_bin_path(self, name: str) -> str | None:
        """Return where a program is."""
        return shutil.which(name)

    def run_command(self, argv: list[str], data: str) -> tuple[int, str, str]:
        """Run a program; return its exit code and what it printed."""
        done = subprocess.run(argv, input=data, capture_output=True, text=True, check=False, timeout=30)
        return done.returncode, done.stdout, done.stderr


def work(params: dict[str, t.Any], rounds: int = 1) -> list[float]:
    """Return the seconds of what the module does between its parameters and its result, without process and import."""
    from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
    from ansible_collections.railops.rdma.plugins.module_utils._route.run import converge
    from ansible_collections.railops.rdma.plugins.module_utils._route.want import parse_want
    from ansible_collections.railops.rdma.plugins.module_utils._untouchable import read_untouchable

    times = []
    for _round in range(rounds):
        began = time.perf_counter()
        converge(parse_want(params), read_untouchable(t.cast("t.Any", Module()), Sysfs()), check_mode=False)
        times.append(time.perf_counter() - began)
    return times


def guides_script(params: dict[str, t.Any]) -> str:
    """Return the `ip` calls that make the same state one by one, 13 per NIC, as the guides' script makes them."""
    lines = []
    for rail in params["rails"]:
        name, table = rail["interface"], 1000 + rail["index"]
        lines += [f"ip link set dev {name} mtu {rail['mtu']}", f"ip link set dev {name} up"]
        for item in rail["addresses"]:
            six = " -6" if ":" in item["address"] else ""
            nodad = " nodad" if six else ""
            length = item["subnet"].partition("/")[2]
            prefix = next(text for text in params["rdma_prefixes"] if (":" in text) == bool(six))
            way = f"via {item['gateway']} dev {name} src {item['address']}"
            lines += [
                f"ip{six} address add {item['address']}/{length} dev {name}{nodad}",
                f"ip{six} route add {item['subnet']} dev {name} src {item['address']} table {table}",
                f"ip{six} route add {prefix} {way} table {table}",
                f"ip{six} rule add from {item['address']} table {table} priority {table + 9000}",
                f"ip{six} route add {prefix} {way} metric {rail['index'] + 100}",
            ]
        lines.append(f"ip link show dev {name} > /dev/null")
    return "set -e\n" + "\n".join(lines) + "\n"


def shell_time(host: t.Any, script: str) -> float:
    """Return the seconds of a shell script inside the host."""

    def child() -> float:
        began = time.perf_counter()
        subprocess.run(["sh", "-e"], input=script, text=True, check=True, timeout=60)
        return time.perf_counter() - began

    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import inside

    return t.cast("float", inside(host.name, child))


def inside_rows(fabric_of: t.Any, params: dict[str, t.Any]) -> list[Row]:
    """Measure the first apply against the guides' calls, and the cost of other people's routes."""
    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import inside

    ours, theirs = [], []
    for number in range(3):
        with fabric_of(f"b{number}", 2, RAILS) as fabric:
            one, two = fabric.hosts
            ours.append(inside(one.name, work, params)[0])
            theirs.append(shell_time(two, guides_script(params)))
    first, guides = min(ours), min(theirs)
    with fabric_of("bf", 1, RAILS) as fabric:
        (host,) = fabric.hosts
        inside(host.name, work, params)
        alone = min(inside(host.name, work, params, 15))
        routes = (f"route add 10.{n // 256}.{n % 256}.0/24 via 198.51.100.254\n" for n in range(FOREIGN))
        host.batch("".join(routes))
        crowded = min(inside(host.name, work, params, 15))
    calls = guides_script(params).count("\nip")
    return [
        Row.faster(
            f"first apply of {RAILS} NICs in the module / the guides' {calls} ip calls",
            f"{first * 1000:.1f} ms",
            f"{guides * 1000:.0f} ms",
            guides / first,
            8,
        ),
        Row.within(
            f"nothing to change, {FOREIGN:,} foreign routes / none",
            f"{crowded * 1000:.1f} ms",
            f"{alone * 1000:.1f} ms",
            crowded / alone,
            2,
        ),
    ]


# --- playbooks --------------------------------------------------------------------------------------------------------


class Playbooks:
    """Playbooks against the namespace, over SSH where there is an sshd."""

    def __init__(self, folder: Path, host: t.Any) -> None:
        self.folder = folder
        self.host = host
        self.sshd: subprocess.Popen[str] | None = None
        self.how = "local connection (no sshd here)"

    def __enter__(self) -> Playbooks:
        tool = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
        if tool and shutil.which("ssh-keygen"):
            self._serve(tool)
        return self

    def _serve(self, tool: str) -> None:
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True, timeout=30
            )
        os.makedirs("/run/sshd", exist_ok=True)
        settings = {
            "Port": PORT,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host",
            "AuthorizedKeysFile": self.folder / "user.pub",
            "PermitRootLogin": "yes",
            "StrictModes": "no",
            "UsePAM": "no",
            "PidFile": "none",
        }
        (self.folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        argv = ["ip", "netns", "exec", self.host.name, tool, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        self.sshd = subprocess.Popen(argv, text=True, stderr=subprocess.DEVNULL)
        time.sleep(1)
        self.how = "SSH with pipelining"

    def __exit__(self, *_exc: object) -> None:
        if self.sshd:
            self.sshd.terminate()
            self.sshd.wait(timeout=10)

    def prepare(self, name: str, tasks: list[dict[str, t.Any]]) -> None:
        """Write a playbook of some tasks."""
        play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
        (self.folder / f"{name}.yml").write_text(json.dumps([play]))

    def run(self, name: str) -> float:
        """Return the wall seconds of one playbook."""
        connection = "ssh" if self.sshd else "local"
        (self.folder / "inventory").write_text(
            f"node1 ansible_connection={connection} ansible_host=127.0.0.1 ansible_port={PORT} ansible_user=root"
            f" ansible_ssh_private_key_file={self.folder}/user ansible_python_interpreter={sys.executable}\n"
        )
        environ = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(env.tree()),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=60s -o StrictHostKeyChecking=no"
            " -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.folder / "cp"),
        }
        tool = Path(sys.executable).parent / "ansible-playbook"
        argv = ["ip", "netns", "exec", self.host.name, str(tool), "-i", "inventory", f"{name}.yml"]
        began = time.perf_counter()
        done = subprocess.run(
            argv, cwd=self.folder, env=environ, capture_output=True, text=True, check=False, timeout=300
        )
        took = time.perf_counter() - began
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        return took


def playbook_rows(books: Playbooks, params: dict[str, t.Any]) -> list[Row]:
    """Measure whole playbooks, in turns, so that the machine's moods hit all of them."""
    one = {"railops.rdma.policy_route": {**params, "force": ["lo"]}}
    loop = {
        "railops.rdma.policy_route": {**params, "rails": ["{{ item }}"], "purge": False, "force": ["lo"]},
        "loop": params["rails"],
        "loop_control": {"label": "{{ item.name }}"},
    }
    books.prepare("ping", [{"ansible.builtin.ping": {}}])
    books.prepare("one", [one])
    books.prepare("loop", [loop])
    for name in ("ping", "one"):
        books.run(name)
    times: dict[str, list[float]] = {"ping": [], "one": [], "loop": []}
    for number in range(ROUNDS):
        times["ping"].append(books.run("ping"))
        times["one"].append(books.run("one"))
        if number < 3:
            times["loop"].append(books.run("loop"))
    ping, ours, looped = (statistics.median(times[name]) for name in ("ping", "one", "loop"))
    return [
        Row.within(
            f"one policy_route call, nothing to change / ansible.builtin.ping; {books.how}",
            f"{ours:.2f} s",
            f"{ping:.2f} s",
            ours / ping,
            1.4,
        ),
        Row.faster(
            f"one policy_route call / {RAILS} looped ones; {books.how}",
            f"{ours:.2f} s",
            f"{looped:.2f} s",
            looped / ours,
            3,
        ),
    ]


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    if os.geteuid() != 0:
        print("host network: skipped, it needs root and network namespaces.")
        return
    enter_environment("pyroute2")
    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside, want_of

    params = want_of(0, RAILS)
    rows = inside_rows(Fabric, params)
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name, Fabric("bp", 1, RAILS) as fabric:
        (host,) = fabric.hosts
        inside(host.name, work, params)
        with Playbooks(Path(name), host) as books:
            rows += playbook_rows(books, params)
    import pyroute2

    show("host network", rows)
    print(f"pyroute2 {getattr(pyroute2, '__version__', 'of unknown version')}; times are wall seconds.")


if __name__ == "__main__":
    main()

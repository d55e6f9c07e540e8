# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host network, each measurement beside its baseline. A namespace with eight rails is the host.

Playbooks reach it over SSH with pipelining: an sshd on its loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

from ran import Pair, playbook, run

RAILS = 8
ROUTES = 10_000
HOSTS = 10
PORT = 2222


def work(params: dict[str, t.Any], rounds: int = 1) -> list[float]:
    """Return the seconds of what the module does between its parameters and its result, without process and import."""
    from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
    from ansible_collections.railops.rdma.plugins.module_utils._management_network import query, read_management_network
    from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
    from ansible_collections.railops.rdma.plugins.module_utils._route.run import converge

    times = []
    for _round in range(rounds):
        query.cache_clear()
        began = time.perf_counter()
        converge(parse_options(params), read_management_network(Sysfs()), check_mode=False)
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


def in_shell(script: str) -> float:
    """Return the seconds of a shell script."""
    began = time.perf_counter()
    subprocess.run(["sh", "-e"], input=script, text=True, check=True, timeout=60)
    return time.perf_counter() - began


def first_apply() -> t.Iterator[dict[str, Pair]]:
    """The first apply inside the module, and the guides' calls: the fastest of some new hosts each."""
    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside, options

    params, times = options(0, RAILS), []
    while True:
        with Fabric("b", 2, RAILS) as fabric:
            one, two = fabric.hosts
            times.append((inside(one.name, work, params)[0], inside(two.name, in_shell, guides_script(params))))
        if len(times) == HOSTS:
            yield {"first": tuple(map(min, zip(*times, strict=True)))}
            times = []


def existing_routes() -> t.Iterator[dict[str, Pair]]:
    """A host that is as planned, without existing routes and with them: the fastest of several rounds."""
    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside, options

    params = options(0, RAILS)
    routes = [f"route add 10.{n // 256}.{n % 256}.0/24 via 198.51.100.254\n" for n in range(ROUTES)]
    with Fabric("bf", 2, RAILS) as fabric:
        crowded, alone = fabric.hosts
        crowded.batch("".join(routes))
        for host in fabric.hosts:
            inside(host.name, work, params)
        while True:
            yield {"existing": tuple(min(inside(host.name, work, params, 15)) for host in (crowded, alone))}


@contextlib.contextmanager
def sshd(folder: Path, namespace: str) -> t.Iterator[None]:
    """Let an sshd listen on a namespace's loopback, with keys of its own, and write the inventory that knows it."""
    tool = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
    if not tool or not shutil.which("ssh-keygen"):
        sys.exit("no sshd here; run: apt-get install openssh-server")
    for name in ("host", "user"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], folder)
    os.makedirs("/run/sshd", exist_ok=True)
    settings = {
        "Port": PORT,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "PermitRootLogin": "yes",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
    }
    (folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    (folder / "inventory").write_text(
        f"node1 ansible_connection=ssh ansible_host=127.0.0.1 ansible_port={PORT} ansible_user=root"
        f" ansible_ssh_private_key_file={folder}/user ansible_python_interpreter={sys.executable}\n"
    )
    argv = ["ip", "netns", "exec", namespace, tool, "-D", "-e", "-f", str(folder / "sshd_config")]
    with subprocess.Popen(argv, text=True, stderr=subprocess.DEVNULL) as server:
        time.sleep(1)
        try:
            yield
        finally:
            server.terminate()


def playbooks() -> t.Iterator[dict[str, Pair]]:
    """Whole playbooks on a host that is as planned, by turns, so that the machine's moods hit all of them."""
    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside, options

    params = options(0, RAILS)
    one = {**params, "force": ["lo"]}
    tasks = {
        "ping": {"ansible.builtin.ping": {}},
        "one": {"railops.rdma.policy_route": one},
        "loop": {
            "railops.rdma.policy_route": {**one, "rails": ["{{ item }}"]},
            "check_mode": True,
            "loop": params["rails"],
            "loop_control": {"label": "{{ item.name }}"},
        },
    }
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name, Fabric("bp", 1, RAILS) as fabric:
        folder, host = Path(name), fabric.hosts[0].name
        inside(host, work, params)
        for name, task in tasks.items():
            play = {"hosts": "all", "gather_facts": False, "tasks": [task]}
            (folder / f"{name}.yml").write_text(json.dumps([play]))
        environ = {
            "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=60s -o StrictHostKeyChecking=no"
            " -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
        }

        def wall(name: str) -> float:
            return playbook(folder, "-i", "inventory", f"{name}.yml", inside=host, **environ).wall

        with sshd(folder, host):
            wall("ping"), wall("one")  # the connection, and the caches of the disk
            while True:
                ping, ours, looped = wall("ping"), wall("one"), wall("loop")
                yield {"ping": (ours, ping), "loop": (ours, looped)}

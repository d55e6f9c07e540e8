# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Time and memory of the host part of site, 10 hosts against 50: both must stay flat per host.

Hosts are namespaces, so the modules run on this machine too: the ratio says how the controller scales, the seconds are
printed and not judged. The rounds of both take turns, the best counts. Needs root.

    site.py             10 hosts against 50
    site.py 4 8         other numbers
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
LAB = CHECKOUT / "tests/lab/lab.py"
MOST = 1.2  # seconds a host, the larger fleet against the smaller
MOST_MEMORY = 1.2  # the controller's largest process, likewise; a fixed part is in both
FORKS = "5"
ROUNDS = 3


def run(argv: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return its wall time in seconds and the largest process's memory in MiB."""
    begun = time.monotonic()
    env = {**os.environ, "ANSIBLE_FORKS": FORKS, "ANSIBLE_NOCOLOR": "true", "ANSIBLE_LOCALHOST_WARNING": "false"}
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"Failed: {' '.join(argv)}\n{(folder / 'log.txt').read_text(encoding='utf-8')[-3000:]}")
    return time.monotonic() - begun, usage.ru_maxrss / 1024


def lab(*words: str) -> list[str]:
    """Return a command line of the lab."""
    return [sys.executable, str(LAB), *words]


class Fleet:
    """Namespace hosts that are as planned."""

    def __init__(self, hosts: int, folder: Path) -> None:
        self.hosts = hosts
        self.folder = folder
        self.name = f"bench{os.getpid() % 10000}n{hosts}"
        self.rounds: list[tuple[float, float]] = []
        inventory = folder / "inventory"
        shutil.copytree(CHECKOUT / "inventory/demo", inventory)
        (inventory / "hosts").write_text(f"[gpu_nodes]\nnode[1:{hosts}]\n", encoding="utf-8")
        settings = inventory / "group_vars/all/site.yml"
        kept = [line for line in settings.read_text(encoding="utf-8").splitlines() if "site_serial" not in line]
        more = ['site_serial: ["100%"]', "fabric_max_nodes: 64"]
        settings.write_text("\n".join([*kept, *more]) + "\n", encoding="utf-8")
        fabric = inventory / "group_vars/all/fabric.yml"
        kept = [line for line in fabric.read_text(encoding="utf-8").splitlines() if "max_nodes" not in line]
        fabric.write_text("\n".join(kept) + "\n", encoding="utf-8")
        self.inventory = str(inventory)

    def start(self) -> None:
        """Plan, start the hosts and bring them to the plan."""
        run(["ansible-playbook", "-i", self.inventory, "railops.rdma.plan"], self.folder)
        plan = str(self.folder / "plan/fabric")
        run(lab("up", "--name", self.name, "--nodes", str(self.hosts), "--plan", plan), self.folder)
        self.play()

    def play(self) -> tuple[float, float]:
        """Run the host part once."""
        where = subprocess.run(lab("inventory", self.name), capture_output=True, text=True, check=True).stdout.strip()
        book = ["ansible-playbook", "-i", self.inventory, "-i", where, "railops.rdma.hosts"]
        return run(lab("exec", self.name, "--", *book), self.folder)

    def measure(self) -> None:
        """Take one more measurement."""
        self.rounds.append(self.play())

    def best(self) -> tuple[float, float]:
        """Return the seconds a host and the MiB of the best round: noise only ever adds."""
        seconds = min(wall for wall, memory in self.rounds)
        memory = min(memory for wall, memory in self.rounds)
        every = " ".join(f"{wall:.1f}" for wall, memory in self.rounds)
        print(
            f"  {self.hosts:>4} hosts  {seconds:7.1f} s  {seconds / self.hosts:6.2f} s a host  {memory:6.0f} MiB"
            f"  (rounds: {every})",
            flush=True,
        )
        return seconds / self.hosts, memory

    def stop(self) -> None:
        """Take the hosts away."""
        subprocess.run(lab("down", self.name), capture_output=True, check=False)


def measure(sizes: tuple[int, int]) -> list[tuple[float, float]]:
    """Return seconds a host and MiB for both fleets; their rounds take turns, so that both see the same machine."""
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as temporary:
        fleets = []
        try:
            for hosts in sizes:
                folder = Path(temporary) / str(hosts)
                folder.mkdir()
                fleets.append(Fleet(hosts, folder))
                fleets[-1].start()
            for fleet in fleets * ROUNDS:
                fleet.measure()
            return [fleet.best() for fleet in fleets]
        finally:
            for fleet in fleets:
                fleet.stop()


def main() -> None:
    """Compare two fleets."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("site: skipped: namespace hosts need root and iproute2.")
        return
    few, many = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (10, 50)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    print(f"host part of site, nothing to change, {FORKS} forks, best of {ROUNDS}:")
    small, large = measure((few, many))
    ratios = {"time a host": (large[0] / small[0], MOST), "memory": (large[1] / small[1], MOST_MEMORY)}
    failed = False
    for what, (ratio, most) in ratios.items():
        bad = ratio > most
        failed |= bad
        print(f"  {what}: {many} against {few} hosts {ratio:.2f} x (at most {most}) {'TOO MUCH' if bad else 'ok'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

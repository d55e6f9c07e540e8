# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first process of a namespace host: gives it /etc, /var/lib and /run of its own, then buries its dead."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

PRIVATE = ("/etc", "/var/lib")
# Where the machine's own network managers are configured: a host must not take them for its own.
MANAGERS = (
    *("/etc/netplan", "/usr/lib/netplan", "/etc/NetworkManager", "/etc/network", "/etc/systemd/network"),
    *("/etc/systemd/networkd.conf.d", "/etc/systemd/system/multi-user.target.wants", "/etc/iproute2/rt_protos.d"),
)
# What makes a host one of systemd-networkd. Roles write files for it; it does not run here, and nothing boots.
NETWORKD = "/etc/systemd/system/multi-user.target.wants/systemd-networkd.service"


def mount(*words: str) -> None:
    """Mount one thing or stop."""
    subprocess.run(["mount", *words], check=True)


def furnish(name: str, home: Path) -> None:
    """Turn the mount namespace into a host's."""
    mount("--make-rprivate", "/")
    world = home / "world"
    world.mkdir()
    mount("-t", "tmpfs", "-o", "mode=0755", "railops-lab", str(world))
    for place in PRIVATE:
        upper, work = world / place.strip("/").replace("/", "-"), world / f"work{place.replace('/', '-')}"
        upper.mkdir()
        work.mkdir()
        mount("-t", "overlay", "-o", f"lowerdir={place},upperdir={upper},workdir={work}", "overlay", place)
    # /run comes last: mount(8) keeps notes there.
    for place in [*filter(os.path.isdir, MANAGERS), "/run"]:
        mount("-t", "tmpfs", "-o", "mode=0755", "railops-lab", place)
    Path(NETWORKD).parent.mkdir(parents=True, exist_ok=True)
    Path(NETWORKD).symlink_to("/lib/systemd/system/systemd-networkd.service")
    Path("/run/lock").mkdir()
    socket.sethostname(name)
    Path("/etc/hostname").write_text(f"{name}\n", encoding="utf-8")


def main() -> None:
    """Furnish, report it, and wait for child processes."""
    name, home = sys.argv[1], Path(sys.argv[2])
    furnish(name, home)
    signal.signal(signal.SIGCHLD, lambda *dummy: None)
    (home / "ready").touch()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            signal.pause()


if __name__ == "__main__":
    main()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps a lab's control plane running: keeper.py FOLDER ADDRESS. It is the first process of a process namespace.

A program that ends is started again, as a kubelet does it with static pods. The store is in memory of this mount
namespace: it ends with its first process.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

import names
from control_plane import TOKEN, ControlPlane, have

LOOK_SECONDS = 1.0


def main() -> None:
    """Start and supervise all programs."""
    folder, address = Path(sys.argv[1]), sys.argv[2]
    # Nothing outlives the namespace that another process could check.
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700", "railops-lab", "/dev/shm"], check=True)
    signal.signal(signal.SIGTERM, lambda *dummy: sys.exit(0))
    nodes = (folder / "nodes.csv").read_text(encoding="utf-8")
    (folder / "identities.csv").write_text(f"{TOKEN},tester,1,system:masters\n{nodes}", encoding="utf-8")
    extra = {
        "kube-apiserver": [
            f"--token-auth-file={folder / 'identities.csv'}",
            # Beside RBAC: a kubelet may do what is its own node's.
            "--authorization-mode=Node",
            "--enable-admission-plugins=NodeRestriction",
            # As which the server asks a kubelet for logs.
            f"--kubelet-client-certificate={folder / 'tls.crt'}",
            f"--kubelet-client-key={folder / 'tls.key'}",
        ],
        # An emulated kubelet is late now and then.
        "kube-controller-manager": ["--node-monitor-grace-period=120s"],
    }
    with ControlPlane(folder, address=address, extra=extra) as plane:
        have(names.ADDRESS)
        names.Names(plane.request).start()
        (folder / "ready").touch()
        while True:
            time.sleep(LOOK_SECONDS)
            plane.restart_ended()


if __name__ == "__main__":
    main()

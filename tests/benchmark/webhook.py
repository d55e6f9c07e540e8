# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print how fast pools are created beside Spiderpool's own webhooks, and how that falls with the pools there are.

    python tests/benchmark/webhook.py               up to 250 pools in steps of 50
    python tests/benchmark/webhook.py --pools 100 --step 25

It runs beside a real kube-apiserver with Spiderpool's real controller (tests/cluster/real_api.py), and is left out
where programs of a cluster are not at hand. There is no bar: the time is the webhook's, which lists all pools at each
create.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import CHECKOUT, enter_environment

sys.path.insert(0, str(CHECKOUT / "tests/cluster"))

MODULE = "ansible_collections.railops.rdma.plugins.modules.cluster_objects"


def apply(folder: Path, kubeconfig: str, rows: list[dict[str, object]], **more: object) -> float:
    """Run the module; return how long it took in seconds."""
    path = folder / "arguments.json"
    given = {"definitions": rows, "kubeconfig": kubeconfig, **more}
    path.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": given}), encoding="utf-8")
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", MODULE, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return time.perf_counter() - began


def measure(kubeconfig: str, most: int, step: int) -> None:
    """Create pools step by step, each time beside those that are there, and print the rate."""
    from fabric_objects import pool
    from tools import install_spiderpool

    install_spiderpool(Path(kubeconfig))
    rows = [pool("bench", rail, node) for node in range(1, most // 8 + 2) for rail in range(1, 9)][:most]
    with tempfile.TemporaryDirectory(prefix="rr-bench-") as name:
        folder = Path(name)
        nothing = apply(folder, kubeconfig, rows[:1])
        nothing = min(nothing, apply(folder, kubeconfig, rows[:1]))
        first = 0.0
        for start in range(1, most, step):
            some = rows[start : min(start + step, most)]
            each = (apply(folder, kubeconfig, some) - nothing) / len(some)
            first = first or each
            there = f"{start:4} to {start + len(some):4} pools"
            print(
                f"{there}: {each * 1000:7.0f} ms a pool, {1 / each:6.1f}/s, {each / first:5.2f} x the first", flush=True
            )
        print(f"{most} pools unchanged: {apply(folder, kubeconfig, rows):.2f} s, Python's start included", flush=True)
        apply(folder, kubeconfig, [], state="absent", prune=True, fabric="bench")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, default=250)
    parser.add_argument("--step", type=int, default=50)
    options = parser.parse_args()
    enter_environment("kubernetes", "yaml")
    if os.environ.get("RAILOPS_TEST_SPIDERPOOL"):
        print(f"Spiderpool's webhooks on a real API {os.environ.get('RAILOPS_TEST_RELEASE', '')}", flush=True)
        return measure(os.environ["RAILOPS_TEST_KUBECONFIG"], options.pools, options.step)
    real = [sys.executable, str(CHECKOUT / "tests/cluster/real_api.py")]
    done = subprocess.run([*real, "--why-not"], capture_output=True, text=True, check=False)
    if done.returncode or "RAILOPS_TEST_KUBECONFIG" in os.environ:
        why = done.stderr.strip() or "Spiderpool's controller is not at hand"
        return print(f"No webhooks of Spiderpool here ({why}): not measured.")
    return os.execv(sys.executable, [*real, sys.executable, *sys.argv])


if __name__ == "__main__":
    main()

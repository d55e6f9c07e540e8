# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What docs/guides/test-application.md does in pods, on made trees of /sys; a stand-in for kubectl runs it."""

from __future__ import annotations

import os
import subprocess
import typing as t
from pathlib import Path

from blocks import CHECKOUT, read

SYSFS = "/sys/class/infiniband"
# Each pod has a tree and an address of its own; `exec -i pod/NAME -- sh -s net1` is what the page asks for.
KUBECTL = """#!/bin/sh
[ "$*" = "get pods -l app=fabric-test -o name" ] && cd "$PODS" && exec ls -d pod/*
[ "$1 $2 $4" = "exec -i --" ] || exit 9
cd "$PODS/$3" && shift 4 && HOSTNAME=${PWD##*/} exec "$@"
"""
IP = """#!/bin/sh
[ "$*" = "-o -4 address show dev net1" ] || exit 9
echo "3: net1    inet $(cat address)/27 brd 172.17.0.31 scope global net1\\   valid_lft forever"
"""


def entries(pod: Path, device: str, gids: t.Sequence[tuple[str, str]]) -> None:
    """Write the GID table of a device: value and type of each entry, in order; an empty type cannot be read."""
    port = pod / device / "ports/1"
    (port / "gids").mkdir(parents=True)
    (port / "gid_attrs/types").mkdir(parents=True)
    for index, (gid, kind) in enumerate(gids):
        (port / f"gids/{index}").write_text(f"{gid}\n", encoding="utf-8")
        if kind:
            (port / f"gid_attrs/types/{index}").write_text(f"{kind}\n", encoding="utf-8")


def mapped(last: int) -> str:
    """Return the GID of 172.17.0.<last>."""
    return f"0000:0000:0000:0000:0000:ffff:ac11:00{last:02x}"


def both(last: int) -> list[tuple[str, str]]:
    """Return the two entries of an address, as the kernel makes them."""
    return [(mapped(last), "IB/RoCE v1"), (mapped(last), "RoCE v2")]


def test_device_and_index_are_found_by_the_address(tmp_path):
    page = read(CHECKOUT / "docs/guides/test-application.md")
    script = next(command.text for command in page.commands() if command.text.startswith("for pod in"))
    # Two pods of one node see one table, where the second came later; in the other rail's table they are not.
    table = [("fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"), *both(2), *both(20), ("0000:" * 7 + "0000", "")]
    for pod, last in (("pod/fabric-test-7hk2p", 2), ("pod/fabric-test-q9x4d", 20)):
        entries(tmp_path / pod, "mlx5_0", both(9))
        entries(tmp_path / pod, "mlx5_1", table)
        (tmp_path / pod / "address").write_text(f"172.17.0.{last}", encoding="utf-8")
    for name, text in (("kubectl", KUBECTL), ("ip", IP)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PODS": str(tmp_path)}
    assert SYSFS in script
    words = ["sh", "-c", script.replace(SYSFS, "$PWD")]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True, timeout=300)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "fabric-test-7hk2p: -d mlx5_1 -x 2, address 172.17.0.2",
        "fabric-test-q9x4d: -d mlx5_1 -x 4, address 172.17.0.20",
    ]
    assert [f"{block.text}\n" for block in page.blocks if block.language == "text"] == [done.stdout], page.path

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The README's first command on a stranger's machine: a pristine Debian, a plain clone, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

import bare

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin") is None,
    reason="a pristine Debian needs root and debootstrap; run as root: make deps",
)
# Whatever machine this is, none of these is for a stranger to have.
CHANCE = ("ip", "ping", "netplan", "nmcli", "helm", "kubectl", "chromium", "qemu-system-x86_64", "debootstrap", "sudo")


def untimed(text: str) -> list[str]:
    """Return the lines of an output without what is another each time: seconds, and the dots of waiting."""
    lines = [re.sub(r"[ \d]*\d(\.\d s| seconds)$", "", line.rstrip()) for line in text.splitlines()]
    return [re.sub(r" \.{4,} done$", " done", line) for line in lines]


def shown() -> list[str]:
    """Return the lines of the demo that the README shows; `...` represents some that it leaves out."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    return [line for line in untimed(re.search(r"```text\n(4\. .*?)```", text, re.DOTALL)[1]) if line != "..."]


def units(machine: bare.Machine) -> set[str]:
    """Return the services and what is enabled of them."""
    folders = (machine.root / "etc/systemd", machine.root / "usr/lib/systemd/system")
    return {str(path) for folder in folders for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def machine():
    with bare.Machine() as made:
        yield made


def test_nothing_of_the_machine_is_visible(machine, tmp_path, monkeypatch):
    planted = tmp_path / "planted-by-chance"
    planted.write_text("#!/bin/sh\necho seen\n", encoding="utf-8")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert subprocess.run(["planted-by-chance"], check=True, capture_output=True, text=True).stdout == "seen\n"
    # The clone may have this checkout's own path.
    uncommitted = CHECKOUT / f"tests/output/{os.getpid()}"
    uncommitted.mkdir(parents=True)
    names = f"planted-by-chance {' '.join(CHANCE)}"
    script = f"for name in {names}; do command -v $name; done; ls -d {planted} {uncommitted}; cat /proc/[0-9]*/comm"
    try:
        done = machine.run(["sh", "-c", script])
    finally:
        uncommitted.rmdir()
    seen = [line for line in done.output.splitlines() if not line.startswith("ls: cannot access")]
    assert sorted(set(seen) - {"sh", "python", "python3", "cat"}) == []
    assert not (machine.clone().parent / "shared").exists()


def test_the_first_command_of_the_readme_ends_green_and_shows_its_verdict(machine):
    before = units(machine)
    done = machine.run(["make", "demo"])
    text = done.output
    assert done.code == 0, text[-3000:]
    assert "✗ node2 rail3: policy rule 10003 is missing." in text
    assert "Verdict pass" in text
    assert "left running: " not in text
    assert "Installing with apt what is missing here: iproute2 (RAILOPS_INSTALL=0 forbids it)." in text
    assert units(machine) == before, "a service came with a package"
    left = iter(untimed(text))
    assert [line for line in shown() if line not in left] == [], "the README shows something else"
    assert (machine.clone() / "tests/output/demo/verify/fabric/report.html").is_file()

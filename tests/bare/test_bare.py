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


class Red(AssertionError):
    """The README's first command does not do there what the README says."""


def first_command(machine: bare.Machine, *words: str) -> str:
    """Type the README's first command; return what it printed.

    :raises Red: it does not end with 0, shows no verdict, or leaves something running.
    """
    done = machine.run(["make", "demo", *words])
    said = done.said
    if done.code:
        raise Red(f"exit code {done.code}: {said[-3000:]}")
    if "✗ node2 rail3: policy rule 10003 is missing." not in said or "Verdict pass" not in said:
        raise Red(f"it shows no verdict: {said[-3000:]}")
    if left := re.findall(r"^left running: .*$", said, re.MULTILINE):
        raise Red(f"it leaves a process behind: {left}")
    return said


def untimed(text: str) -> list[str]:
    """Return the lines of an output without what is another each time: seconds."""
    return [re.sub(r"[ \d]*\d(\.\d s| seconds)$", "", line.rstrip()) for line in text.splitlines()]


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
    seen = [line for line in done.said.splitlines() if not line.startswith("ls: cannot access")]
    assert sorted(set(seen) - {"sh", "python", "python3", "cat"}) == []
    assert not (machine.clone().parent / "shared").exists()


def test_the_first_command_of_the_readme_ends_green_and_shows_its_verdict(machine):
    before = units(machine)
    said = first_command(machine)
    assert "Installing with apt what is missing here: iproute2 (RAILOPS_INSTALL=0 forbids it)." in said
    assert units(machine) == before, "a service came with a package"
    left = iter(untimed(said))
    assert [line for line in shown() if line not in left] == [], "the README shows something else"
    assert (machine.clone() / "tests/output/demo/verify/fabric/report.html").is_file()


def test_a_program_that_only_this_machine_has_makes_it_red(machine, tmp_path):
    """Planted: the demo calls a program that is on this machine's PATH by chance."""
    path = machine.clone() / "tests/demo/demo.py"
    text = path.read_text(encoding="utf-8")
    call = '    show_plan(stage)\n    stage.run("look around", ["netplan", "get"])\n'
    path.write_text(text.replace("    show_plan(stage)\n", call), encoding="utf-8")
    try:
        with pytest.raises(Red, match="netplan"):
            first_command(machine)
    finally:
        path.write_text(text, encoding="utf-8")


def test_a_package_that_is_missing_in_the_list_makes_it_red(machine):
    """Planted fault: a bare machine has no `ip`, which the run before had installed."""
    assert machine.run(["dpkg", "--purge", "--force-depends", "iproute2"]).code == 0
    path = machine.clone() / "tests/tools/packages.py"
    text = path.read_text(encoding="utf-8")
    assert '"demo": (VENV, IP)' in text
    path.write_text(text.replace('"demo": (VENV, IP)', '"demo": (VENV,)'), encoding="utf-8")
    with pytest.raises(Red, match="needs ip, not found"):
        first_command(machine)

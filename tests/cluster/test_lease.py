# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs on one fabric: the playbook that takes the lease, with its process, against an API."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import typing as t
from pathlib import Path

import pytest
from conftest import Live

NAMESPACE = "rr-lease"
BOOK = [
    {"import_playbook": "railops.rdma.lease"},
    {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.wait_for": {"path": "{{ end }}"}, "tags": ["work"]}],
    },
]


class Controller:
    """A folder from which runs begin."""

    def __init__(self, folder: Path, kubeconfig: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = {**environment, "KUBECONFIG": ""}
        (folder / "book.yml").write_text(json.dumps(BOOK), encoding="utf-8")
        self.values = {
            "fabric_name": f"rr-{os.getpid()}",
            "fabric_namespace": NAMESPACE,
            "fabric_kubeconfig": str(kubeconfig),
        }

    def begin(self, until: str, *words: str) -> subprocess.Popen[str]:
        """Begin a run that lasts until a file is there."""
        values = json.dumps({**self.values, "end": str(self.folder / until)})
        argv = ["ansible-playbook", "-i", "node1,", "book.yml", "-e", values, *words]
        return subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        """Run to the end."""
        (self.folder / "now").touch()
        with self.begin("now", *words) as started:
            output = started.communicate(timeout=600)[0]
        return started.returncode, output


@pytest.fixture
def controller(tmp_path: Path, kubeconfig: Path, environment: dict[str, str], live: Live) -> t.Iterator[Controller]:
    """Give a controller; its namespace is not there yet."""
    yield Controller(tmp_path, kubeconfig, environment)
    if NAMESPACE in live.objects("Namespace"):
        live.of("Namespace", "v1").delete(name=NAMESPACE)
        live.until(lambda: NAMESPACE not in live.objects("Namespace"))


def leases(live: Live) -> dict[str, t.Any]:
    return {
        name: row["spec"] for name, row in live.objects("Lease", "coordination.k8s.io/v1", namespace=NAMESPACE).items()
    }


def test_a_second_run_is_refused_and_the_one_after_a_kill_goes_on(controller: Controller, live: Live) -> None:
    first = controller.begin("never")
    try:
        live.until(lambda: bool(leases(live)))
        found = leases(live)[controller.values["fabric_name"]]
        assert f"process {first.pid}" in found["holderIdentity"]

        code, output = controller.run()
        assert code == 2
        assert f"Another run is under way: {found['holderIdentity']}" in output
        assert "Wait until that run has ended and run again." in output
        assert leases(live)[controller.values["fabric_name"]]["renewTime"] > found["renewTime"]
    finally:
        first.send_signal(signal.SIGKILL)
        (controller.folder / "never").touch()  # its forked task waits on
        first.communicate(timeout=300)
    # Its process saw the end and released the lease: no run waits for a minute.
    live.until(lambda: not leases(live), 30)
    code, output = controller.run()
    assert code == 0, output
    live.until(lambda: not leases(live), 30)


@pytest.mark.parametrize("words", [("--check",), ("--tags", "plan")], ids=["check mode", "only planning"])
def test_what_changes_nothing_takes_no_lease(controller: Controller, live: Live, words: tuple[str, ...]) -> None:
    code, output = controller.run(*words)
    assert code == 0, output
    assert NAMESPACE not in live.objects("Namespace")


@pytest.mark.usefixtures("scripted")
@pytest.mark.only_double("needs an API that is away")
def test_while_the_api_is_away_hosts_can_be_repaired(controller: Controller, tmp_path: Path) -> None:
    away = tmp_path / "away"
    text = Path(controller.values["fabric_kubeconfig"]).read_text(encoding="utf-8")
    away.write_text(re.sub(r"https://127.0.0.1:\d+", "https://127.0.0.1:9", text), encoding="utf-8")
    controller.values["fabric_kubeconfig"] = str(away)
    code, output = controller.run()
    assert code == 0, output
    assert "Only files on the hosts lock out other runs, and no Lease does." in output


@pytest.mark.usefixtures("scripted")
@pytest.mark.only_double("needs an API that is away")
def test_a_lease_that_a_later_part_of_the_run_gets_is_kept_and_given_back(controller: Controller, live: Live) -> None:
    """The API is away when the run begins, and back at the second time that it asks."""
    real = Path(controller.values["fabric_kubeconfig"])
    away = controller.folder / "away"
    away.write_text(re.sub(r"https://127.0.0.1:\d+", "https://127.0.0.1:9", real.read_text("utf-8")), encoding="utf-8")
    controller.values["fabric_kubeconfig"] = str(away)
    back = {"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.copy": {}}]}
    back["tasks"][0]["ansible.builtin.copy"] = {"src": str(real), "dest": str(away), "mode": "0600"}
    (controller.folder / "book.yml").write_text(json.dumps([BOOK[0], back, *BOOK]), encoding="utf-8")
    with controller.begin("never") as run:
        try:
            live.until(lambda: bool(leases(live)), 60)
        finally:
            run.send_signal(signal.SIGKILL)
    live.until(lambda: not leases(live), 60)

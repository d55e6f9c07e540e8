# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compromised host: the first of the inventory answers each module with hostile results.

The Python of all hosts is a program of the test (`fake_host.py`): no module runs and no namespace is needed. Facts name
paths of the controller, results contain code, terminal escapes and paths. No answer reads or changes a file of the
controller, new files are in the folders of the playbooks, and the healthy hosts get their verdict.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import ok
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._rdma.info import read_info
from ansible_collections.railops.rdma.plugins.plugin_utils._localhost import DECIDING, INJECTED
from ansible_collections.railops.rdma.tests.site.fake_host import ANSWER
from ansible_collections.railops.rdma.tests.unit import machines

Json = dict[str, t.Any]
HERE = Path(__file__).resolve().parent
SECRET = "the-canary-that-nobody-may-read"
COMPROMISED, HEALTHY = "node1", ("node2", "node3")
ESCAPES = "\x1b[2J\x1b]0;gone\x07\x9b31m\u202e"
CHECK = ok("network_link", "up", "up", rail="rail1")
FINE: Json = {**ANSWER, "checks": [CHECK]}
FABRIC = """\
fabric_mode: exclusive
fabric_supernets: [172.17.0.0/16]
fabric_max_nodes: 8
site_serial: ["100%"]
fabric_rails: [{name: rail1, interface: ens1np0}, {name: rail2, interface: ens2np0}]
"""
BOOKS: dict[str, tuple[str, ...]] = {
    "discover": (),
    "site": (),
    "hosts": (),
    "verify": (),
    "audit": (),
    "accept": (),
    "upgrade": ("-e", "upgrade_delay=0", "-e", "upgrade_retries=1"),
    "teardown": (),
}
KEPT = ("plan", "verify", "discover", "hosts", "home/.ansible")
"""Where new files may lie: what playbooks write, what this test's hosts keep, and Ansible's own."""


class Site:
    """A controller with canaries, and three hosts of which the first is an attacker's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.hosts = folder / "home", folder / "hosts"
        self.canaries = [
            self.put("home/.ssh/id_ed25519", f"{SECRET}\n"),
            self.put("inventory/group_vars/all/secret.yml", f"my_secret: {SECRET}\n"),
            self.put("etc/canary.conf", f"{SECRET}\n"),
            self.put("keys/cluster.key", f"{SECRET}\n"),
        ]
        self.put("inventory/group_vars/all/fabric.yml", FABRIC)
        rows = {
            name: {"ansible_connection": "local", "ansible_python_interpreter": str(self.hosts / name)}
            for name in (COMPROMISED, *HEALTHY)
        }
        self.put("inventory/hosts.yml", json.dumps({"all": {"children": {"gpu_nodes": {"hosts": rows}}}}))
        self.put("hosts/fake_host.py", f"#!{sys.executable}\n{(HERE / 'fake_host.py').read_text(encoding='utf-8')}")
        (self.hosts / "fake_host.py").chmod(0o755)
        for name in (COMPROMISED, *HEALTHY):
            (self.hosts / name).symlink_to("fake_host.py")
        root = machines.lay_out("one-switch-each", folder.parent / "machine")
        self.fine = {"*": FINE, "rdma_info": {"changed": False, "info": read_info(Sysfs(str(root)), gids=False)}}
        self.answer(self.fine)

    def put(self, name: str, text: str) -> Path:
        """Write a file of the controller."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def answer(self, evil: Json) -> None:
        """Decide what the hosts answer."""
        rows = {**dict.fromkeys(HEALTHY, self.fine), COMPROMISED: evil}
        shutil.rmtree(self.hosts / "sent", ignore_errors=True)
        (self.hosts / "answers.json").write_text(json.dumps(rows), encoding="utf-8")

    def files(self) -> dict[str, str]:
        """Return the files of the controller with what they hold, but for those where new ones may lie."""
        return {
            name: path.read_bytes().decode(errors="replace")
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not (name := str(path.relative_to(self.folder))).startswith(KEPT)
        }

    def play(self, book: str, *words: str, inject: bool = True, timeout: int = 300) -> subprocess.CompletedProcess[str]:
        """Run a playbook."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "ANSIBLE_CONFIG"))}
        env |= {"HOME": str(self.home), "ANSIBLE_INJECT_FACT_VARS": str(inject), "ANSIBLE_NOCOLOR": "true"}
        env |= {"ANSIBLE_DEPRECATION_WARNINGS": "false", "ANSIBLE_LOCALHOST_WARNING": "false"}
        argv = ["ansible-playbook", "-i", "inventory", f"railops.rdma.{book}", *words]
        return subprocess.run(
            argv,
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )

    def verdict(self) -> Json:
        """Return the fabric's verdict."""
        return t.cast("Json", json.loads((self.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("compromised") / "controller")
    done = made.play("plan")
    assert done.returncode == 0, done.stdout
    return made


def facts_of(site: Site) -> Json:
    """Return facts that name what an attacker wants to be read, and where it wants to be written."""
    key, secret = str(site.canaries[3]), str(site.canaries[1])
    named = {name: str(site.folder / "etc") if "dir" in name else key for name in DECIDING}
    run = f"{{{{ lookup('pipe', 'touch {site.folder}/ran') }}}}"
    more = {
        "fabric_name": ".",
        "fabric_plan_dir": str(Path(secret).parent),
        "discover_dir": str(site.folder / "etc"),
        "gpudirect_values_dest": secret,
        "rdma_host_node_name": "node2",
        "rdma_host_drain_command": ["touch", str(site.folder / "ran")],
        "__site_plan_dir": str(site.folder / "etc"),
        "__site_verify_dir": str(site.folder / "etc"),
        "__rdma_host_cluster": {"there": True, "kubeconfig": key},
        "__site_cluster": {"there": True, "kubeconfig": key},
        "role_path": str(site.folder / "etc"),
        "playbook_dir": str(site.folder / "etc"),
        "my_own": run,
    }
    return {**named, **more}


def attack(site: Site, kind: str) -> Json:
    """Return what the first host answers."""
    facts = facts_of(site)
    run = f"{{{{ lookup('pipe', 'touch {site.folder}/ran') }}}}"
    odd = {
        "facts": {},
        "templates": {"msg": run, "notes": [run], "work": [], "checks": [{**CHECK, "cause": run, "observed": run}]},
        "escapes": {
            **dict.fromkeys(("msg", f"_ansible_{ESCAPES}", "add_group", ESCAPES), ESCAPES),
            **{key: [ESCAPES] for key in ("warnings", "work", "pods", "notes", "changes", "reboot_reasons")},
            "checks": [{**CHECK, "cause": "\x1b[31mred", "rail": "\x1b[2J"}],
            "deprecations": [{"msg": ESCAPES, "version": "9.9"}],
            "diff": [
                dict.fromkeys(("before", "after", "before_header", "after_header"), ESCAPES),
                {"prepared": ESCAPES},
            ],
            "problems": [{"place": "host", "problem": ESCAPES, "fix": ESCAPES}],
            "switch": [ESCAPES],
        },
        "types": {"checks": [{**CHECK, "rail": ["a"]}, {**CHECK, "id": {}}, 5], "facts": [], "work": 7, "tests": {}},
        "failure": {"failed": True, "msg": f"{run} \x1b[2J", "fix": run, "exception": run},
    }
    if kind not in odd:
        return {"*": kind}
    inside = {"add_host": {"host_name": "localhost", "host_vars": facts}, "add_group": "gpu_nodes"}
    answer = {**FINE, "ansible_facts": facts, **inside, **odd[kind]}
    info = {**site.fine["rdma_info"], "ansible_facts": facts, **inside}
    return {"*": answer, "rdma_info": info if kind == "facts" else answer}


KINDS = ("facts", "templates", "escapes", "types", "failure", "deep", "large", "bytes")
PUSHED = (("facts", "hosts", True), ("deep", "audit", True))
FULL_RESULT = [
    pytest.param(kind, book, inject, marks=() if (kind, book, inject) in PUSHED else pytest.mark.long)
    for kind in KINDS
    for book in BOOKS
    for inject in (True, False)
]


@pytest.mark.parametrize(("kind", "book", "inject"), FULL_RESULT)
def test_compromised_host_affects_only_itself(site: Site, kind: str, book: str, inject: bool) -> None:
    if book == "accept":
        site.answer(site.fine)
        site.play("verify", "-e", "verify_traffic=none")
    site.answer(attack(site, kind))
    before = site.files()
    done = site.play(book, *BOOKS[book], *(["--diff"] if kind == "escapes" else []), inject=inject)
    nothing_was_reached(site, before, done.stdout)
    assert (INJECTED[:40] in " ".join(done.stdout.split())) is inject, done.stdout
    if book in ("verify", "audit") or (book == "site" and kind == "facts"):
        hosts = site.verdict()["hosts"]
        assert [hosts[name]["status"] for name in HEALTHY] == ["pass", "pass"], done.stdout
    if book in ("hosts", "teardown") and kind == "facts":
        sent = {name: [path.name[4:] for path in (site.hosts / "sent" / name).iterdir()] for name in HEALTHY}
        assert all("policy_route" in modules for modules in sent.values()), done.stdout
    # Preflight refuses the whole run where one host fails, before anything is changed.
    if book not in ("accept", "upgrade") and (kind == "facts" or book not in ("hosts", "site")):
        recap = done.stdout.rpartition("PLAY RECAP")[2]
        assert [line for line in recap.splitlines() if line.startswith(HEALTHY) and "failed=0" not in line] == [], (
            done.stdout
        )


def nothing_was_reached(site: Site, before: dict[str, str], text: str) -> None:
    """Assert that canaries are unread and unchanged, that new files lie where they may, and that no escape is shown."""
    assert SECRET not in text
    assert site.files() == before
    for path in (path for name in KEPT for path in (site.folder / name).rglob("*") if path.is_file()):
        assert SECRET not in path.read_bytes().decode(errors="replace"), path
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text) == []
    assert "Traceback" not in text, text[-3000:]

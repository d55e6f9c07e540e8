# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All files of a run get their names or none does; what a killed run has left is taken by the next one."""

from __future__ import annotations

import itertools
import json
import os
import shutil

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._persist.host import PersistHost
from ansible_collections.railops.rdma.plugins.module_utils._persist.model import File
from ansible_collections.railops.rdma.plugins.module_utils._persist.networkmanager import NetworkManager
from ansible_collections.railops.rdma.plugins.module_utils._persist.run import _lines, converge
from ansible_collections.railops.rdma.plugins.module_utils._ports import PORTS
from ansible_collections.railops.rdma.plugins.module_utils._programs import ProgramResult
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.one_rail import WANT
from ansible_collections.railops.rdma.tests.unit.plugins.module_utils._persist.test_plan import PARAMS
from ansible_collections.railops.rdma.tests.unit.simulated_host import SimulatedHost

NEW = {**PARAMS, "rails": [{**rail, "mtu": 4200} for rail in PARAMS["rails"]]}
REMOVED_RAIL = {"interface": "ens3np0", "addresses": [{"address": "192.0.2.66", "subnet": "192.0.2.64/27"}]}
OLD = {**PARAMS, "rails": [*PARAMS["rails"][:1], {**PARAMS["rails"][1], "mtu": 1500}, REMOVED_RAIL], "sysctls": {}}
OLD["rails"][0] = {**OLD["rails"][0], "mtu": 1500}
DROP_IN = "etc/systemd/network/0-railops-ens1np0.network.d/mine.conf"


def persist(root, params, manager="networkd", **options):
    return converge(parse_options(params), PersistHost(str(root)), manager, **{"check_mode": False, **options})


def files(root):
    found = [path for path in sorted(root.rglob("*")) if not path.is_dir()]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in found}


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """Return the files of the old and of the new plan."""
    made = []
    for params in (OLD, NEW):
        root = tmp_path_factory.mktemp("state")
        persist(root, params)
        made.append(files(root))
    return made


def broken(root, params, call, number, how):
    """Run until the numbered call of a function of os, and let that go wrong; return how the process ended."""
    child = os.fork()
    if child == 0:
        real, calls = getattr(os, call), []

        def counted(*args, **options):
            calls.append(args)
            if len(calls) == number:
                how()
            return real(*args, **options)

        setattr(os, call, counted)
        try:
            persist(root, params)
        except RdmaError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused():
    raise OSError(28, "No space left on device")


CALLS = ("fsync", "replace", "link", "unlink", "symlink", "chmod")


@pytest.mark.parametrize("call", CALLS)
def test_failed_call_leaves_old_or_new_files(tmp_path, states, call):
    number, ended = 0, 1
    while ended:
        number += 1
        root = tmp_path / str(number)
        persist(root, OLD)
        ended = broken(root, NEW, call, number, refused)
        left = files(root)
        named = {name: text for name, text in left.items() if not name.endswith(".tmp")}
        assert named == states[1 if not ended else 0], (call, number)
        again = persist(root, NEW)
        assert (files(root), again["changed"]) == (states[1], left != states[1])
    assert number > (3 if call in ("replace", "link", "fsync", "chmod") else 0), "nothing was broken"


@pytest.mark.parametrize("call", ["fsync", "replace", "link"])
def test_leftovers_of_a_killed_run_are_removed(tmp_path, states, call):
    persist(tmp_path / "old", OLD)
    for number in (1, 2, 3):
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "old", root)
        assert broken(root, NEW, call, number, lambda: os._exit(9)) == 9
        # Of a file that is no more of the plan.
        (root / "etc/sysctl.d/.railops-x9ab_c.tmp").write_text("half", encoding="utf-8")
        twin = tmp_path / f"twin{number}"
        shutil.copytree(root, twin)
        result = persist(root, NEW, check_mode=True)
        assert "/etc/sysctl.d/.railops-x9ab_c.tmp" in [row["observed"] for row in result["checks"]]
        assert persist(root, NEW)["changed"]
        assert files(root) == states[1]
        assert not persist(root, NEW)["changed"]
        persist(twin, {"state": "absent"})
        assert files(twin) == {}


STATE = "var/lib/railops-rdma/managed-state.json"


@pytest.mark.parametrize(("earlier", "plan"), [(OLD, NEW), (None, NEW), (OLD, None)], ids=["change", "first", "last"])
def test_a_run_killed_at_any_step_keeps_the_list_of_managed_objects_as_long_as_their_files(tmp_path, earlier, plan):
    ends, kills = {}, 0
    for name, params in (("old", earlier), ("new", plan)):
        (tmp_path / name).mkdir()
        persist(tmp_path / name, params or {"state": "absent"})
        ends[name] = files(tmp_path / name)
    changed = {name for name in ends["old"] if ends["old"][name] != ends["new"].get(name)} - {STATE}
    for call, number in itertools.product(("link", "replace", "unlink"), range(1, 30)):
        root = tmp_path / f"{call}{number}"
        shutil.copytree(tmp_path / "old", root)
        if broken(root, plan or {"state": "absent"}, call, number, lambda: os._exit(9)) != 9:
            continue
        kills, now = kills + 1, files(root)
        if any(now.get(name) == ends["old"][name] for name in changed):
            assert now[STATE] == ends["old"][STATE], (call, number)
        if not earlier and any(name in now for name in ends["new"]):
            assert now[STATE] == ends["new"][STATE], (call, number)
        persist(root, plan or {"state": "absent"})
        assert files(root) == ends["new"]
    assert kills > 3


def test_staged_files_are_no_change_and_written_once(tmp_path, states, monkeypatch):
    persist(tmp_path, OLD)
    made = persist(tmp_path, NEW, stage=True)
    assert not made["changed"]
    now = files(tmp_path)
    assert {name: text for name, text in now.items() if not name.endswith(".tmp")} == states[0]
    assert all(os.path.basename(name).startswith(".railops-") for name in set(now) - set(states[0]))
    monkeypatch.setattr(os, "fsync", lambda _number: refused())
    assert persist(tmp_path, NEW)["changed"]
    assert files(tmp_path) == states[1]


def test_a_user_s_file_beside_ours_is_listed_when_ours_is_removed(tmp_path):
    persist(tmp_path, NEW)
    (tmp_path / DROP_IN).parent.mkdir()
    (tmp_path / DROP_IN).write_text("[Link]\nMTUBytes=9000\n", encoding="utf-8")
    for check_mode in (True, False):
        gone = persist(tmp_path, {"state": "absent"}, check_mode=check_mode)
        causes = [row["cause"] for row in gone["checks"] if row["id"] == "persist_existing"]
        assert causes == [
            f"/{DROP_IN} belongs to a managed file that is removed: from the next boot on no manager reads it."
        ]
        # The checks of a teardown are not used.
        assert [text.partition(" Move it to")[0] for text in gone["warnings"]] == causes
    assert list(files(tmp_path)) == [DROP_IN]


def test_teardown_restores_no_file_that_belongs_to_no_port(tmp_path):
    stray = {f"var/lib/railops-rdma/kept/{name}": "text" for name in ("notes", "ens1np0/notes")}
    for path, text in stray.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert not persist(tmp_path, {"state": "absent"})["changed"]
    assert files(tmp_path) == stray


@pytest.mark.parametrize("made", [{}, {"etc/systemd/network/10-netplan-ens1np0.network.d/user.conf": "[Link]\n"}])
def test_teardown_keeps_other_settings_beside_netplan_s_file(tmp_path, made):
    """netplan makes the file that it is beside, with us and without: it is not orphaned, and not named."""
    for path, text in made.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    persist(tmp_path, {**NEW, "policy": "default_route"}, "netplan")
    (tmp_path / "etc/systemd/network/10-netplan-ens1np0.network.d/.railops-x9ab_c.tmp").write_text("half")
    assert persist(tmp_path, {"state": "absent"}, check_mode=True)["warnings"] == []
    persist(tmp_path, {"state": "absent"})
    assert files(tmp_path) == made
    assert (tmp_path / "etc/systemd/network/10-netplan-ens1np0.network.d").exists() is bool(made)


def test_a_user_s_folder_where_a_link_belongs_is_refused_before_anything_is_written(tmp_path):
    """Who goes from networkd to netplan has it there, by our own advice."""
    (tmp_path / DROP_IN).parent.mkdir(parents=True)
    (tmp_path / DROP_IN).write_text("[Link]\n", encoding="utf-8")
    for check_mode in (True, False):
        with pytest.raises(RdmaError, match=r"0-railops-ens1np0\.network\.d: is a folder.* 10-netplan-IF\.network\.d"):
            persist(tmp_path, NEW, "netplan", check_mode=check_mode)
    assert list(files(tmp_path)) == [DROP_IN]


def test_files_of_a_folder_that_are_the_same_are_one_line_of_the_diff():
    paths = [f"/etc/n/ens{rail}np0.network" for rail in range(1, 4)]
    files = {path: File(path, "a\nb\n", 0o644) for path in paths}
    assert _lines(paths, files, {}) == (
        f"{paths[0]}: mode 0644, 2 lines (the same for ens2np0.network, ens3np0.network)\n"
    )
    assert _lines(paths, files, {paths[1]: File(paths[1], "a\nc\n", 0o644)}).splitlines() == [
        f"{paths[0]}: mode 0644, 2 lines (the same for ens3np0.network)",
        f"{paths[1]}: mode 0644, 2 lines, 1 of them new",
    ]


def test_a_running_networkmanager_hears_of_profiles_that_come_and_go(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(NetworkManager, "_running", lambda self, host: True)
    machines.program(tmp_path / "usr/bin/nmcli", "")
    host = SimulatedHost(str(tmp_path), lambda argv: called.append(argv[1:]) or ProgramResult(0, "", ""))

    def run(manager, **more):
        called.clear()
        converge(parse_options({**WANT, **more}), host, manager, check_mode=False)
        return [argv[:2] for argv in called if argv[:1] == ["connection"]]

    assert run("networkmanager") == [["connection", "load"]]
    assert run("networkmanager") == []
    # The rails stay wanted: NetworkManager would take their addresses along with its profile.
    assert run("networkd") == []
    assert run("networkmanager") == [["connection", "load"]]
    assert run("networkmanager", state="absent") == [["connection", "reload"]]


@pytest.mark.parametrize(
    ("theirs", "line"),
    [
        ("net.ipv4.neigh.default.gc_thresh3 = 65536", None),
        ("net.ipv4.neigh.default.gc_thresh3 = 4096", "net/ipv4/neigh/default/gc_thresh3 = 4096"),
        ("net.ipv4.neigh.default.gc_thresh3 = 1024", "net/ipv4/neigh/default/gc_thresh3 = 4096"),
    ],
    ids=["larger", "equal", "smaller"],
)
def test_a_larger_neighbor_table_of_another_file_is_not_lowered_at_boot(tmp_path, theirs, line):
    key, other = "net/ipv4/neigh/default/gc_thresh3", "net/ipv4/conf/ens1np0/arp_ignore"
    machines.put(tmp_path, "etc/sysctl.d/50-cluster.conf", f"{theirs}\n")
    params = {**PARAMS, "sysctls": {key: "4096", other: "1"}}
    persist(tmp_path, params)
    lines = (tmp_path / "etc/sysctl.d/90-railops-rails.conf").read_text(encoding="utf-8").splitlines()
    assert f"{other} = 1" in lines
    assert [row for row in lines if "gc_thresh3" in row] == ([line] if line else [])
    assert not persist(tmp_path, params)["changed"]


def own_files(root):
    found = [path for path in sorted(root.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return {str(path): os.readlink(path) if path.is_symlink() else path.read_text(encoding="utf-8") for path in found}


def with_rail_out_of_service(rails):
    """Return a plan of two rails, and the same with the first one out of service."""
    names = [row["interface"] for row in rails]
    sysctls = {f"net/ipv4/conf/{name}/arp_ignore": "1" for name in names}
    complete = {**NEW, "rails": rails, "sysctls": sysctls}
    kept = {key: value for key, value in sysctls.items() if names[1] in key}
    return complete, {**complete, "rails": rails[1:], "sysctls": kept, "out_of_service": rails[:1]}


@pytest.mark.parametrize("manager", ["netplan", "networkmanager", "networkd"])
@pytest.mark.parametrize("vlan", [0, 7])
def test_files_of_a_rail_out_of_service_stay_as_they_are(tmp_path, manager, vlan, monkeypatch):
    # The rails are declared by alternative names.
    monkeypatch.setattr(PersistHost, "interface", lambda _host, rail: f"k{rail.interface}")
    rails = [{**rail, "index": index, "vlan": vlan} for index, rail in enumerate(NEW["rails"], 1)]
    complete, out = with_rail_out_of_service(rails)
    persist(tmp_path, complete, manager)
    before = own_files(tmp_path)
    result = persist(tmp_path, out, manager)
    assert not result["changed"], result["diff"]
    assert {check["status"] for check in result["checks"]} <= {"ok", "skipped"}
    assert persist(tmp_path, {**out, "rails": [{**rails[1], "mtu": 1500}]}, manager)["changed"]
    changed = [path for path, text in own_files(tmp_path).items() if before.get(path) != text]
    assert changed
    assert not [path for path in changed if rails[1]["interface"] not in path]
    persist(tmp_path, complete, manager)
    assert own_files(tmp_path) == before
    persist(tmp_path, {**out, "state": "absent"}, manager)
    assert own_files(tmp_path) == {}


def test_a_rail_out_of_service_from_the_start_gets_no_file(tmp_path):
    _whole, out = with_rail_out_of_service([{**rail, "index": index} for index, rail in enumerate(NEW["rails"], 1)])
    persist(tmp_path, out)
    assert not persist(tmp_path, out)["changed"]
    assert not [path for path, text in own_files(tmp_path).items() if NEW["rails"][0]["interface"] in path + text]


def test_a_lost_card_that_is_declared_by_its_pci_address_keeps_its_files(tmp_path):
    card = tmp_path / "sys/bus/pci/devices/0000:1a:00.0/net/ens1np0"
    card.mkdir(parents=True)
    rail = {**NEW["rails"][0], "name": "rail1", "interface": "", "pci": "0000:1a:00.0"}
    plan = {**NEW, "rails": [rail, NEW["rails"][1]], "sysctls": {}}
    persist(tmp_path, plan)
    machines.put(tmp_path, PORTS.lstrip("/"), json.dumps({"rail1": ["ens1np0", ""]}))
    card.rmdir()
    assert not persist(tmp_path, plan)["changed"]
    machines.put(tmp_path, PORTS.lstrip("/"), json.dumps({"rail1": ["../../tmp/x", ""]}))
    with pytest.raises(RdmaError, match="no interface at the PCI address"):
        persist(tmp_path, plan)

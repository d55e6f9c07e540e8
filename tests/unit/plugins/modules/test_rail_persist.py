# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml

from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.one_rail import RAIL, WANT


@pytest.fixture
def root(tmp_path):
    (tmp_path / "etc/netplan").mkdir(parents=True)
    (tmp_path / "etc/netplan/50-cloud-init.yaml").write_text("network: {version: 2}\n")
    return tmp_path


@pytest.fixture
def params(root):
    return {**WANT, "manager": "netplan", "root": str(root)}


def tree(root):
    return {
        str(path.relative_to(root)): (path.read_text(), path.stat().st_mode & 0o777)
        for path in root.rglob("*")
        if path.is_file()
    }


def test_the_first_run_changes_and_the_second_does_not(run_module, root):
    before = tree(root)
    assert run_module()["changed"] is True
    after = tree(root)
    assert before.items() <= after.items()
    assert after["etc/netplan/zz-railops-ens1np0.yaml"][1] == 0o600
    second = run_module()
    assert second["changed"] is False
    found = {check["id"]: check["status"] for check in second["checks"]}
    # netplan's result for files of another root is unknown.
    assert found == {"persist_file": "ok", "persist_precedence": "skipped"}
    assert tree(root) == after


def test_the_diff_has_a_line_a_file_and_their_text_with_v(run_module, root):
    (one,) = run_module(_ansible_check_mode=True, _ansible_diff=True)["diff"]
    assert one["before"] == ""
    lines = one["after"].splitlines()
    files = list(run_module(_ansible_check_mode=True)["after"])
    assert all(path.rpartition("/")[2] in one["after"] for path in files)
    name = "/etc/netplan/zz-railops-ens1np0.yaml"
    assert next(line for line in lines if name in line).startswith(f"{name}: mode 0600, ")
    whole = run_module(_ansible_check_mode=True, _ansible_diff=True, _ansible_verbosity=1)["diff"]
    assert sorted(row["after_header"] for row in whole) == sorted(files)
    run_module()
    (root / name[1:]).chmod(0o644)
    (one,) = run_module(_ansible_diff=True)["diff"]
    (was,), (now,) = one["before"].splitlines(), one["after"].splitlines()
    assert (was.partition(",")[0], now.endswith(" lines, 0 of them new")) == (f"{name}: mode 0644", True)


def test_what_an_earlier_plan_or_manager_left_goes(run_module, root):
    run_module(manager="networkmanager")
    assert any(check["id"] == "persist_stale" for check in run_module()["checks"])
    assert "etc/NetworkManager/system-connections/railops-ens1np0.nmconnection" not in tree(root)
    run_module(rails=[{**RAIL, "interface": "ens2np0"}])
    assert "etc/netplan/zz-railops-ens1np0.yaml" not in tree(root)


def test_an_ifupdown_host_is_refused_with_the_fix(run_module, refused, root):
    (root / "etc/netplan/50-cloud-init.yaml").unlink()
    (root / "etc/network").mkdir()
    (root / "etc/network/interfaces").write_text("iface eth0 inet dhcp\n")
    before = tree(root)
    refused("ifupdown", fix="networkd", manager="auto")
    assert tree(root) == before
    reported = run_module(manager="auto", on_conflict="report", _ansible_check_mode=True)
    assert [check["id"] for check in reported["checks"]] == ["persist_preflight"]


def test_an_exclusion_rule_that_the_renderer_cannot_express_is_refused(refused, root):
    (root / "etc/netplan/01-all.yaml").write_text("network:\n  renderer: NetworkManager\n")
    refused("renderer NetworkManager", policy="default_route")


def test_a_priority_is_written_for_the_renderer_that_reads_only_it(run_module, root):
    """netplan 1.1 refuses the word for the other: networkmanager backend settings found but renderer is not."""
    path = root / "etc/netplan/zz-railops-ens1np0.yaml"
    run_module()
    assert "networkmanager" not in path.read_text()
    (root / "etc/netplan/01-all.yaml").write_text("network:\n  renderer: NetworkManager\n")
    run_module()
    port = yaml.safe_load(path.read_text())["network"]["ethernets"]["ens1np0"]
    passed = {"passthrough": {"connection.autoconnect-priority": "999"}}
    assert (port["renderer"], port["networkmanager"], port["dhcp4"]) == ("NetworkManager", passed, False)


def test_a_read_only_folder_is_an_error_with_its_path(refused, root):
    (root / "etc/systemd").write_text("in the way")
    refused("/etc/systemd")


@pytest.mark.parametrize("manager", ["netplan", "networkd", "networkmanager"])
def test_no_network_manager_is_asked_to_apply(run_module, root, manager):
    machines.put(root, "called")
    for name in ("netplan", "nmcli", "networkctl"):
        machines.program(root / "usr/bin" / name, f'cat > /dev/null; echo "$*" >> {root}/called')
    for state in ("present", "absent"):
        assert run_module(manager=manager, state=state)["changed"] is True
    assert {"apply", "up", "restart", "reconfigure"} & {*(root / "called").read_text().split()} == set()

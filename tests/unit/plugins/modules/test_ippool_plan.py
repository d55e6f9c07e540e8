# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of the planner returns and how it fails, and that all lists of parameters agree."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest
import yaml
from returned import returned

from ansible_collections.railops.rdma.plugins.module_utils._fabric.attachments import ATTACHMENTS
from ansible_collections.railops.rdma.plugins.module_utils._fabric.backends import BACKENDS
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import RESOURCE_PREFIX
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import OPTIONS
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, rails

ROLE = pathlib.Path(__file__).parents[4] / "roles/fabric"


@pytest.fixture
def plan(tmp_path):
    def plan(**params):
        flags = {key: params.pop(key, False) for key in ("check_mode", "diff", "full")}
        raw = {**exclusive(rails=rails(2)), "nodes": hosts(2), "plan_dir": str(tmp_path / "plan"), **params}
        done = run(raw, raw.pop("nodes"), **flags)
        warnings = done.pop("plan_warnings")  # the action makes warnings of them
        return {**returned("ippool_plan", done), "plan_warnings": warnings}

    return plan


def test_the_diff_shows_nodes_and_rails_first_and_small_files_completely(plan):
    plan()

    nodes, *files = plan(mtu=9000, policy="default_route", diff=True)["diff"]

    assert "node1: slot 0, roce in RDMA mode shared, prefixes 172.17.0.0/23\n" in nodes["before"]
    assert "node1: slot 0, roce in RDMA mode shared, default_route 172.17.0.0/16\n" in nodes["after"]
    assert "node1 rail2: ens2np0 mtu 9000 172.17.1.2/27 by 172.17.1.1 pods" in nodes["after"]
    assert "node2: as node1, each with its own slot and addresses\n" in nodes["after"]
    shown = {one["after_header"]: one for one in files}
    assert "cluster/ippools.yaml" not in shown
    assert "mtu: 4200" in shown["cluster/multusconfigs.yaml"]["before"]
    assert "mtu: 9000" in shown["cluster/multusconfigs.yaml"]["after"]


def test_a_first_diff_names_the_files_and_has_their_text_with_v(plan, tmp_path):
    (one,) = plan(check_mode=True, diff=True)["diff"]
    assert "new files: .gitattributes, cluster/ippools.yaml, cluster/kustomization.yaml" in one["after"]
    _nodes, *files = plan(check_mode=True, diff=True, full=True)["diff"]
    assert "mtu: 4200" in {one["after_header"]: one for one in files}["cluster/multusconfigs.yaml"]["after"]


def test_the_diff_of_a_large_fleet_has_equal_nodes_once_and_no_equal_lines(plan):
    nodes = hosts(150)
    fleet = {"supernets": ["10.0.0.0/8"], "max_nodes": 150, "nodes": nodes}
    (first,) = plan(**fleet, check_mode=True, diff=True)["diff"]
    assert len(first["after"].splitlines()) == 5
    assert "\nnode[2-150]: as node1, each with its own slot and addresses\n" in first["after"]
    plan(**fleet)
    nodes[7] |= {"slot": 7, "interfaces": {"rail2": "ens9np0"}}

    for full, changed in ((False, 4), (True, 300)):
        diff = plan(**fleet, mtu=9000, check_mode=True, diff=True, full=full)["diff"][0]
        before, after = diff["before"].splitlines(), diff["after"].splitlines()
        assert len([line for line in after if " mtu 9000 " in line]) == changed
        assert not set(before) & set(after)
        assert ("node[2-7,9-150]: as node1, each with its own slot and addresses" in after) is not full


def test_the_role_is_made_of_the_options_and_their_choices_are_what_there_is():
    task = yaml.safe_load((ROLE / "tasks/main.yml").read_text())[0]["railops.rdma.ippool_plan"]

    assert task is None
    assert (OPTIONS["attachment"]["choices"], OPTIONS["ipam"]["choices"]) == ([*ATTACHMENTS], [*BACKENDS])
    assert OPTIONS["resource_prefix"]["default"] == RESOURCE_PREFIX
    made = subprocess.run(
        [sys.executable, ROLE.parents[1] / "tests/docs/options_doc.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr


def test_no_module_falls_back_to_another_default():
    pattern = re.compile(r"fabric_(\w+) \| default\(('[^']*'|\d+|true|false)\)")
    paths = [path for folder in ("playbooks", "roles") for path in (ROLE.parents[1] / folder).rglob("*.[yj]*")]
    found = {(str(path), *match) for path in paths for match in pattern.findall(path.read_text())}
    assert len(found) > 20
    other = {
        row
        for row in found
        if row[1] in OPTIONS and yaml.safe_load(row[2]) not in (OPTIONS[row[1]].get("default"), "macvlan")
    }
    assert other == set()

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What docs/day2.md promises of plans: each procedure is gone through; nobody is renumbered but where it says so."""

from __future__ import annotations

import csv
import json
import typing as t
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, rails


class Fleet:
    """A plan folder and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def plan(self, raw: dict[str, t.Any], nodes: list[dict[str, t.Any]]) -> None:
        """Plan."""
        run({**raw, "plan_dir": str(self.folder)}, nodes, check_mode=False)

    def rails(self, host: str, fabric: str = "fabric") -> list[dict[str, t.Any]]:
        """Return the rails of a host plan."""
        text = (self.folder / fabric / f"hosts/{host}.json").read_text(encoding="utf-8")
        return t.cast("list[dict[str, t.Any]]", json.loads(text)["rails"])

    def rows(self, file: str) -> list[dict[str, str]]:
        """Return the lines of a file for switches."""
        with (self.folder / "fabric/switch" / file).open(encoding="utf-8") as stream:
            return list(csv.DictReader(stream))


@pytest.fixture
def fleet(tmp_path):
    """Six nodes in a fabric for eight."""
    made = Fleet(tmp_path)
    made.plan(exclusive(), hosts(6))
    return made


def test_added_nodes_take_free_slots_and_their_leaves_learn_new_gateways_only(fleet):
    before = fleet.rails("node6"), fleet.rows("gateways.csv"), [row["aggregate"] for row in fleet.rows("prefixes.csv")]
    fleet.plan(exclusive(), hosts(8))
    assert fleet.rails("node6") == before[0]
    assert [row["aggregate"] for row in fleet.rows("prefixes.csv")] == before[2]
    new = [row for row in fleet.rows("gateways.csv") if row not in before[1]]
    assert {row["node"] for row in new} == {"node7", "node8"}


def test_a_new_rail_leaves_the_others_and_everybody_gets_a_route_to_it(fleet):
    before = fleet.rails("node1")
    fleet.plan(exclusive(rails=rails(9)), hosts(6))
    assert fleet.rails("node1")[:8] == before
    aggregates = [row["aggregate"] for row in fleet.rows("prefixes.csv")]
    assert aggregates == [f"172.17.{number}.0/24" for number in range(9)]


def test_a_second_fabric_beside_the_first(fleet):
    foreign = [str(fleet.folder / "fabric/plan.json")]
    with pytest.raises(InputError, match="foreign_plans"):
        fleet.plan({**exclusive(), "name": "second", "foreign_plans": foreign}, hosts(6))
    fleet.plan({**exclusive(supernets=["172.18.0.0/16"]), "name": "second", "foreign_plans": foreign}, hosts(6))
    assert fleet.rails("node1", "second")[0]["addresses"][0]["address"] == "172.18.0.2"
    assert fleet.rails("node1")[0]["addresses"][0]["address"] == "172.17.0.2"

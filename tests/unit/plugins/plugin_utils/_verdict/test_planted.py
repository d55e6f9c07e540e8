# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Planted causes: the first line names the cause and the right host, the command repairs it, innocents are not red."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import text
from ansible_collections.railops.rdma.tests.unit.planted import HOSTS, RAILS, Fleet, plant

TABLE = yaml.safe_load((Path(__file__).parents[3] / "data/causes.yml").read_text(encoding="utf-8"))
SCHEMA = pytest.importorskip("jsonschema").Draft202012Validator(
    json.loads((Path(__file__).parents[5] / "docs/reference/verdict.schema.json").read_text(encoding="utf-8"))
)
PLACES = [(host, RAILS[number % 3]) for number, host in enumerate(HOSTS)]
PLANTED = [
    (cause, *place)
    for number, (cause, row) in enumerate(TABLE.items())
    for place in (PLACES[number % 4 :] + PLACES)[: 1 if row.get("once") else 3]
]
# Two causes on two hosts and two rails, each with the next of those that are one rail's.
OF_RAILS = [cause for cause, row in TABLE.items() if not row.get("once") and cause not in ("pair", "filter")]
STEPS = (1, 4)
PAIRS = [
    ((cause, *PLACES[number % 4]), (OF_RAILS[(number + step) % len(OF_RAILS)], *PLACES[(number + 2) % 4]))
    for step in STEPS
    for number, cause in enumerate(OF_RAILS)
]


def sentence_of(cause, host, rail):
    """Return the pattern of a cause's sentence."""
    place, number = HOSTS.index(host), int(rail[-1])
    pair = " and ".join(sorted([host, HOSTS[(place + 1) % 4]]))
    address = Fleet().machines[host].address(rail)
    length = address["subnet"].partition("/")[2]
    values = {"before": HOSTS[place - 1], "pair": pair, "address": f"{address['address']}/{length}", "n": number}
    return TABLE[cause]["says"].format(host=host, rail=rail, **values)


def found(fleet):
    """Return the verdict, the cards of its deviations, and the hosts that are red."""
    verdict = fleet.verdict()
    SCHEMA.validate(json.loads(json.dumps(verdict)))
    causes = [card for card in verdict["causes"] if card["status"] == "deviation"]
    red = [host for host, entry in verdict["hosts"].items() if entry["status"] != "pass"]
    return verdict, causes, red


def test_a_fleet_without_a_cause_passes():
    verdict, causes, red = found(Fleet())
    assert (verdict["status"], causes, red) == ("pass", [], [])
    assert len(PLANTED) >= 60
    assert len(PAIRS) >= 30


@pytest.mark.parametrize(("cause", "host", "rail"), PLANTED)
def test_the_first_line_names_the_cause_and_the_host(cause, host, rail):
    row, fleet = TABLE[cause], Fleet()
    plant(fleet, cause, host, rail)
    verdict, causes, red = found(fleet)
    first = causes[0]
    assert re.fullmatch(sentence_of(cause, host, rail), first["sentence"])
    assert red == (HOSTS if row.get("red") == "all" else row.get("red", [host]))
    command = None
    if "tags" in row:
        tags = f" --tags {row['tags']}" if row["tags"] else ""
        command = f"ansible-playbook railops.rdma.hosts{tags} --limit {host}"
    elif "playbook" in row:
        command = f"ansible-playbook railops.rdma.{row['playbook']}"
    assert (first.get("command"), first["impact"]) == (command, row.get("impact", "none"))
    assert {card.get("command") for card in causes} == {command}, "one command repairs all of it"
    lines = text.terminal(verdict, "fabric").splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 240
    shown = next(line for line in lines if line.startswith("  ✗ "))
    assert shown == f"  ✗ {first['sentence']}"
    # A consequence has neither a fix nor a card of its own.
    for entry in verdict["hosts"].values():
        for check in entry["checks"]:
            assert not (check.get("caused_by") and check["fix"])


@cache
def check_of(cause):
    """Return the ID of the check that shows a cause."""
    fleet = Fleet()
    plant(fleet, cause, "node1", "rail1")
    return found(fleet)[1][0]["check"]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_of_two_causes_each_is_named_on_its_host(one, other):
    fleet = Fleet()
    plant(fleet, *one)
    plant(fleet, *other)
    _verdict, causes, red = found(fleet)
    for cause, host, rail in (one, other):
        (card,) = [card for card in causes if card["check"] == check_of(cause) and host in card["hosts"]]
        # Equal causes are one card.
        assert len(card["hosts"]) > 1 or re.fullmatch(sentence_of(cause, host, rail), card["sentence"])
    assert causes[0]["check"] in (check_of(one[0]), check_of(other[0]))
    assert red == sorted({one[1], other[1]})


def test_the_plan_is_renewed_before_it_is_applied():
    fleet = Fleet()
    plant(fleet, "rule", "node1", "rail1")
    plant(fleet, "plan", "node1", "rail1")
    commands = [command for _impact, command in text.repair_commands(fleet.verdict())]
    hosts = "ansible-playbook railops.rdma.hosts --tags rail_network --limit node1"
    assert commands == ["ansible-playbook railops.rdma.plan", hosts]


def test_what_follows_from_a_rail_leaves_the_host_itself_green():
    fleet = Fleet()
    plant(fleet, "gateway", "node1", "rail1")
    lines = text.terminal(fleet.verdict(), "fabric").splitlines()
    assert ["node1", "●", "✗", "●", "●"] in [line.split() for line in lines]

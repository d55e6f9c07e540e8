# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new option of a host role takes its module's SPEC and documentation, and one command."""

from __future__ import annotations

import options_doc
import yaml

SPEC = (options_doc.ROLES / "rdma_host/meta/argument_specs.yml").read_text(encoding="utf-8")
NEW = {"description": ["Seconds to wait, with O(live)."], "type": "int", "default": 5, "version_added": "1.0.0"}


def test_an_option_that_the_role_has_not_is_added_to_its_entry_point_and_defaults():
    docs = {**options_doc.of_roles()["rdma_host"], "rdma_host_wait": NEW}
    made = yaml.safe_load(options_doc.completed("rdma_host", docs, SPEC))["argument_specs"]
    added = made["main"]["options"].pop("rdma_host_wait")
    assert added == {**NEW, "description": ["Seconds to wait, with O(rdma_host_live)."]}
    assert made == yaml.safe_load(SPEC)["argument_specs"]
    assert options_doc.with_defaults({"main": {"options": {"rdma_host_wait": added}}}, "") == "rdma_host_wait: 5\n"
    row = "| `rdma_host_wait` | int | `5` | Seconds to wait, with `rdma_host_live`. |"
    assert row in options_doc.readme({"main": {"options": {"rdma_host_wait": added}}}, "# role\n")


def test_a_default_that_only_the_role_has_is_added_and_one_that_is_there_stays():
    options = {
        "accept_wait": {"type": "int", "default": 5},
        "accept_dir": {"default": "x"},
        "accept_host": {"default": ""},
    }
    specs = {"main": {"options": options}, "other": {"options": {"accept_list": {"default": ["a", "b"]}}}, "none": {}}
    old = "accept_dir: '{{ other }}'\n"
    assert options_doc.with_defaults(specs, old) == f'{old}accept_wait: 5\naccept_host: ""\naccept_list: [a, b]\n'


def test_the_choices_of_an_option_follow_the_module():
    docs = {"rdma_host_naming": {"description": "x", "type": "str", "choices": ["name", "mac"]}}
    made = yaml.safe_load(options_doc.completed("rdma_host", docs, SPEC))["argument_specs"]["main"]["options"]
    assert made["rdma_host_naming"]["choices"] == ["name", "mac"]
    assert made["rdma_host_naming"]["description"].startswith("How rails")
    assert made["rdma_host_naming"]["default"] == "name"

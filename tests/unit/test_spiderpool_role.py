# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role spiderpool decides by expressions: its variables, templated by Ansible itself."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.template import Templar, trust_as_template

from ansible_collections.railops.rdma.tests.unit.playbooks import LOADER, content

Json = dict[str, t.Any]
ROLE = "roles/spiderpool"


def value(text: str, **given: t.Any) -> t.Any:
    """Return what an expression comes to in the role, for a user who set `given`."""
    known = {**content(f"{ROLE}/defaults/main.yml"), **content(f"{ROLE}/vars/main.yml"), **given}
    return Templar(loader=LOADER, variables=known).template(trust_as_template(text))


def release(chart: str, made: str) -> Json:
    """Return what the role has read of a release: helm's list, and the note of who made it."""
    listed = [{"chart": chart, "status": "deployed"}] if chart else []
    noted = [{"data": {"made": made}}] if made else []
    return {"__spiderpool_list": {"stdout": json.dumps(listed)}, "__spiderpool_marked": {"resources": noted}}


@pytest.mark.parametrize(
    ("chart", "made", "given", "version"),
    [
        pytest.param("", "", {}, "1.2.3", id="a new one gets the newest"),
        pytest.param("spiderpool-1.2.1", "true", {}, "1.2.1", id="ours keeps its own"),
        pytest.param("spiderpool-1.2.4-rc1", "taken", {}, "1.2.4-rc1", id="so does one that was taken over"),
        pytest.param("spiderpool-1.2.1", "", {}, "1.2.3", id="another's is none of ours"),
        pytest.param("spiderpool-1.2.1", "true", {"spiderpool_chart_version": "1.2.2"}, "1.2.2", id="as asked"),
        pytest.param("my-spiderpool-v1.1.0", "true", {}, "v1.1.0", id="a chart of another name"),
    ],
)
def test_the_version_of_the_chart(chart: str, made: str, given: Json, version: str) -> None:
    assert value("{{ __spiderpool_version }}", **release(chart, made), **given) == version
    named = value("{{ __spiderpool_chart }}", **release(chart, made), **given, spiderpool_chart_cache="cache")
    assert named == f"cache/spiderpool-{version}.tgz"


def test_a_file_has_the_version_that_it_has() -> None:
    seen = release("spiderpool-1.2.1", "true")
    assert value("{{ __spiderpool_kept }}", **seen, spiderpool_chart_file="a.tgz") == ""
    assert value("{{ __spiderpool_chart }}", **seen, spiderpool_chart_file="a.tgz") == "a.tgz"

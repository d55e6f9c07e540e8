# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who runs in the wrong folder learns where the plan lies, by a whole path."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleError

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import parent_hint, read_lock
from ansible_collections.railops.rdma.plugins.plugin_utils._host_plan import read_host_plan, read_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, rails

RAW = exclusive(name="fra1", max_nodes=4, rails=rails(1))
HINT = "A plan of fra1 is in '../plan/fra1'"


@pytest.fixture
def below(tmp_path, monkeypatch):
    """A plan of fra1, and this process in a folder beside it."""
    monkeypatch.chdir(tmp_path)
    assert run(RAW, hosts(1), check_mode=False)["plan_dir"] == str(tmp_path / "plan/fra1")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    return tmp_path / "sub"


@pytest.mark.parametrize("read", [read_lock, read_plan, lambda folder: read_host_plan(folder, "node1")])
def test_a_plan_that_is_not_here_is_named_where_it_lies(below, read):
    with pytest.raises((AnsibleError, RdmaError)) as caught:
        read("plan/fra1")
    assert str(below / "plan/fra1/plan.json") in str(caught.value)
    assert HINT in str(caught.value)


def test_a_second_plan_is_warned_of_and_the_first_one_of_a_folder_is_not(below):
    (warning,) = (text for text in run(RAW, hosts(1), check_mode=True)["plan_warnings"] if "There is no plan" in text)
    assert HINT in warning
    assert str(below / "plan/fra1") in warning
    assert parent_hint("plan/other") == ""
    run(RAW, hosts(1), check_mode=False)
    assert not [text for text in run(RAW, hosts(1), check_mode=False)["plan_warnings"] if "There is no plan" in text]

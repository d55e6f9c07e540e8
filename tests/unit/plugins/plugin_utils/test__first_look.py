# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a playbook cannot do at all it says first, and does not end well."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.tests.unit.book import play


@pytest.mark.parametrize(
    ("book", "group", "said"),
    [
        ("discover", "", "The group gpu_nodes has no host"),
        ("teardown", "node1 ansible_host=192.0.2.1\n", "what is ours on the hosts is not known. Nothing was changed."),
    ],
)
def test_a_playbook_with_nothing_to_work_on_is_refused_before_a_host_is_asked(tmp_path, book, group, said):
    (tmp_path / "hosts").write_text(f"[gpu_nodes]\n{group}", encoding="utf-8")
    done = play(tmp_path, "-i", "hosts", f"railops.rdma.{book}")
    assert done.returncode == 2, done.stdout
    assert said in " ".join(done.stdout.split())
    assert "node1" not in done.stdout

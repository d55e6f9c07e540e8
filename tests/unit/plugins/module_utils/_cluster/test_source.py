# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io

import pytest

yaml = pytest.importorskip("yaml")

from ansible_collections.railops.rdma.plugins.module_utils._cluster import source
from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError, RdmaError

TRICKY = """\
# a comment
---
text: plain
number: 1
float: 1.5
yes: true
nothing: null
empty:
date: 2026-11-20
octal: 0o17
quoted: "1"
list: [a, 1, {b: c}]
block: |
  two
  lines
anchors: &a {x: 1}
again: *a
merged:
  <<: *a
  y: 2
1: number as key
---
---
second: {}
"""


def test_it_reads_what_the_loader_reads():
    assert list(source.load_all(io.BytesIO(TRICKY.encode()))) == list(yaml.safe_load_all(TRICKY))


def test_a_merge_below_a_fast_map_is_read_too():
    text = "a: &a {x: 1}\nb:\n  c:\n    <<: *a\n    z: 2\n"
    assert list(source.load_all(io.BytesIO(text.encode()))) == [yaml.safe_load(text)]


@pytest.mark.parametrize("text", ["a: [", "a: !!python/object:os.system x", "\t", "a: &a\n  b: *a\n"])
def test_a_broken_file_and_one_that_contains_itself_are_told_by_name(tmp_path, text):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(RdmaError, match=r"broken\.yaml"):
        list(source.documents(str(path)))


def test_a_folder_without_values_and_labels(tmp_path):
    (tmp_path / "pools.yaml").write_text("apiVersion: v1\nkind: X\nmetadata: {name: a}\n")
    (tmp_path / "values.yaml").write_text("a: 1\n")
    (tmp_path / "nodelabels.json").write_text("{}")
    assert [ref.name for ref in source.read([], [str(tmp_path)])] == ["a"]


def test_all_that_is_wrong_is_told_at_once():
    row = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}}
    with pytest.raises(InputError) as caught:
        source.read([row, row, {}, 3], [])
    assert [problem.place for problem in caught.value.problems] == [f"definitions[{number}]" for number in (1, 2, 3)]


def test_a_missing_folder_is_told():
    with pytest.raises(RdmaError, match="does not exist"):
        source.read([], ["/nowhere/at/all"])

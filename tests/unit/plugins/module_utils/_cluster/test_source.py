# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

yaml = pytest.importorskip("yaml")

from ansible_collections.railops.rdma.plugins.module_utils._cluster import source
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError


@pytest.mark.parametrize(("value", "read"), [("2026-11-20", "2026-11-20"), ("{1: a}", {"1": "a"}), ("[a]", ["a"])])
def test_an_object_is_read_as_the_server_will_have_it(tmp_path, value, read):
    path = tmp_path / "one.yaml"
    path.write_text(f"apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nspec: {value}\n")
    assert [row["spec"] for row in source.read([], [str(path)]).values()] == [read]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("spec: {2026-11-28: a}", "keys must be str, .* not date"),
        ("spec: &a [*a]", "Circular"),
        ("kind: XList\nitems: 5", "'int' object is not iterable"),
        *((text, "") for text in ("a: [", "a: !!python/object:os.system x", "\t", "a: 2026-13-45")),
    ],
)
def test_what_the_server_cannot_have_is_refused_by_file(tmp_path, text, why):
    path = tmp_path / "one.yaml"
    path.write_text(f"apiVersion: v1\n{'' if 'kind' in text else 'kind: X'}\nmetadata: {{name: a}}\n{text}\n")
    with pytest.raises(RdmaError, match=rf"(?s)one\.yaml.* cannot be read: {why}.*\[manifest_unreadable\]"):
        source.read([], [str(path)])


@pytest.mark.parametrize("text", ["metadata: text", "metadata: {name: [a]}", "kind: {}", "apiVersion: 1"])
def test_an_object_without_names_is_refused(text):
    whole = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}}
    with pytest.raises(RdmaError, match="object_incomplete"):
        source.read([{**whole, **yaml.safe_load(text)}], [])


def test_a_folder_without_values_and_labels(tmp_path):
    (tmp_path / "pools.yaml").write_text("apiVersion: v1\nkind: X\nmetadata: {name: a}\n")
    (tmp_path / "values.yaml").write_text("a: 1\n")
    (tmp_path / "deviceplugin.json").write_text("{}")
    (tmp_path / "kustomization.yaml").write_text("resources: [pools.yaml]\n")
    assert [ref.name for ref in source.read([], [str(tmp_path)])] == ["a"]


def test_a_missing_folder_is_reported():
    with pytest.raises(RdmaError, match="does not exist"):
        source.read([], ["/nowhere/at/all"])

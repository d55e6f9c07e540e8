# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.railops.rdma.plugins.action.rdma_probe import address_of
from ansible_collections.railops.rdma.plugins.plugin_utils._json_lines import json_lines
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import files
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.finish import _page
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result


@pytest.mark.parametrize("host", ["node1", "../../etc/passwd", ".hidden", "a/b", "100%"])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path, host):
    path = files.result_path(str(tmp_path), host)
    assert os.path.dirname(os.path.realpath(path)) == str(tmp_path / "hosts")


def test_names_do_not_collide(tmp_path):
    hosts = ["a/b", "a%2Fb", ".a", "%2Ea"]
    assert len({files.result_path(str(tmp_path), host) for host in hosts}) == len(hosts)


def test_results_come_back_and_broken_ones_do_not(tmp_path):
    folder = str(tmp_path)
    files.write_json(files.result_path(folder, "node1"), host_result("node1", "node1", "d", []))
    files.write_text(files.result_path(folder, "node2"), "{")
    files.write_json(files.result_path(folder, "node3"), host_result("node4", "node4", "d", []))
    os.mkfifo(files.result_path(folder, "node4"))
    found = files.read_results(dict.fromkeys(["node1", "node2", "node3", "node4", "node9"], folder))
    assert [result["host"] for result in found] == ["node1"]
    files.forget(folder, ["node1", "node9"])
    assert list(files.read_results({"node1": folder})) == []


@pytest.mark.parametrize(
    "value", [{}, [], {"a": {}, "b": []}, {"hosts": {"ä": {"checks": [{"id": None}]}}, "n": [1, "x"]}]
)
def test_the_layout_of_a_file_changes_no_value(tmp_path, value):
    path = tmp_path / "verdict.json"
    files.write_json(str(path), value)
    assert json.loads(path.read_text(encoding="utf-8")) == value


def test_a_host_is_a_line_of_the_verdict():
    text = json_lines({"hosts": {"node1": {"checks": [1, 2]}, "node2": {"checks": []}}}, 2)
    assert '    "node1": {"checks": [1, 2]},' in text.splitlines()


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = str(tmp_path / "verdict.json")
    files.write_text(path, "old")
    monkeypatch.setattr(
        os, "replace", lambda *dummy: (dummy for dummy in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space"):
        files.write_text(path, "new")
    assert (tmp_path / "verdict.json").read_text(encoding="utf-8") == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_report_that_is_none_is_a_warning(tmp_path):
    assert _page(str(tmp_path), {})[0] is None
    (tmp_path / "report.html").write_text("<p>something else</p>", encoding="utf-8")
    page, warning = _page(str(tmp_path), {})
    assert page is None
    assert "report.html" in warning


@pytest.mark.parametrize(
    ("addresses", "wanted"),
    [
        ([{"family": 6, "address": "2001:db8::2"}, {"family": 4, "address": "192.0.2.2"}], "192.0.2.2"),
        ([{"family": 6, "address": "2001:db8::2"}], "2001:db8::2"),
        ([], None),
    ],
)
def test_the_address_of_a_test(addresses, wanted):
    assert address_of({"addresses": addresses}) == wanted

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module node_cni against the API double: its pods' own scripts run in real folders, one for each node."""

from __future__ import annotations

import base64
import gzip
import json
import typing as t

import node_folders
import pytest
from api_double import ApiDouble
from conftest import Run
from node_folders import CONFIGURATIONS, PROGRAMS, NodeFolders
from plays import empty_cluster

from ansible_collections.railops.rdma.plugins.module_utils._pods import node_cni_run
from ansible_collections.railops.rdma.plugins.modules import node_cni

Json = dict[str, t.Any]
OURS = [*node_folders.AGENTS, "rdma"]


@pytest.fixture
def double(scripted: None) -> t.Iterator[ApiDouble]:
    """Give an empty cluster of eight nodes with folders."""
    with empty_cluster() as made:
        made.put("v1", "Namespace", "spiderpool")
        yield made


@pytest.fixture
def ask(module: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs the module."""
    monkeypatch.setattr(node_cni_run, "POLL_SECONDS", 0.05)

    def run(state: str, check: bool = False, **params: t.Any) -> Json:
        given = {"namespace": "spiderpool", "image": "registry.example/agent:1", "timeout": 3}
        return module(node_cni, check, state=state, **{**given, **params})

    return run


def left_of(double: ApiDouble) -> set[str]:
    """Return the pods of the module that are still there."""
    return {name for name in double.objects("Pod") if name.startswith("railops-node-")}


def packed(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text)).decode()


def had_of(record: str) -> Json:
    """Return the configurations and programs that each node had, of a record."""
    rows = json.loads(gzip.decompress(base64.b64decode(record)))
    return {node: (row["configurations"], row["programs"]) for row in rows for node in row["nodes"]}


def agents(nodes: NodeFolders, double: ApiDouble) -> None:
    for name in double.objects("Node"):
        node_folders.agent(nodes.root(name), programs=OURS)


def test_what_was_there_is_there_again(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    # One has a program of that name already, and one names it in a configuration of its own later.
    node_folders.write(nodes.root("node3") / PROGRAMS / "rdma", "rdma of the host\n")
    before = nodes.trees()
    noted = ask("noted", fresh=True, needs=["macvlan"])
    assert (noted["lacking"], noted["left"], noted["changed"]) == ({}, [], False)
    assert nodes.trees() == before
    had = had_of(noted["record"])
    assert had["node1"] == had["node2"] != had["node3"]
    assert had["node1"][0] == ["10-calico.conflist", "calico-kubeconfig"]
    agents(nodes, double)
    node_folders.write(nodes.root("node4") / CONFIGURATIONS / "20-own.conf", '{"type": "rdma"}\n')
    given = ask("given_back", record=noted["record"], ours=OURS)
    assert (given["changed"], given["left"], given["down"]) == (True, [], [])
    after = nodes.trees()
    assert after.pop("node4").keys() - before.pop("node4").keys() == {
        f"{CONFIGURATIONS}/20-own.conf",
        f"{PROGRAMS}/rdma",
    }
    kept = {f"{PROGRAMS}/rdma": "rdma of Spiderpool\n"}
    assert after.pop("node3") == {**before.pop("node3"), **kept}, "it was there before, so it stays"
    assert after == before
    assert left_of(double) == set()


def test_without_a_record_only_what_multus_left_goes(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    before = nodes.trees()
    agents(nodes, double)
    ask("given_back", ours=OURS)
    left = {f"{PROGRAMS}/{name}" for name in OURS if name != "multus"}
    assert {name: files.keys() - before[name].keys() for name, files in nodes.trees().items()} == dict.fromkeys(
        before, left
    )


def test_what_an_earlier_multus_left_is_not_kept_for_later(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    """A release that was taken away by hand leaves them; the next one writes them anew, with a token that dies too."""
    agents(nodes, double)
    noted = ask("noted", fresh=True)
    agents(nodes, double)
    ask("given_back", record=noted["record"], ours=OURS)
    for files in nodes.trees().values():
        assert not [name for name in files if "multus" in name and name.startswith(CONFIGURATIONS)]


def test_names_in_the_note_are_words(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    noted = ask("noted", fresh=True)
    before = nodes.trees()
    ask("given_back", record=noted["record"], ours=["*", "../*", "x;y", ".."], multus=False)
    assert nodes.trees() == before
    for nonsense in ("%", "AAAA", packed(b"[]")[:-8], packed(b'[{"nodes": 1}]')):
        said = ask("noted", record=nonsense)
        assert said["failed"]
        assert "cannot be read from the note" in said["msg"]


def test_a_machine_that_came_later_by_the_same_name_is_another_one(
    ask: Run, double: ApiDouble, nodes: NodeFolders
) -> None:
    noted = ask("noted", fresh=True)
    double.objects("Node")["node2"]["metadata"]["creationTimestamp"] = "2999-01-01T00:00:00Z"
    since = "2998-01-01T00:00:00Z"
    node_folders.write(nodes.root("node2") / PROGRAMS / "rdma", "rdma of the new machine\n")
    again = ask("noted", record=noted["record"], since=since)
    assert had_of(again["record"])["node2"][0] is None
    nodes.asked.clear()
    assert ask("noted", record=again["record"], since=since)["record"] == again["record"]
    assert nodes.asked == []
    for record in (noted["record"], again["record"]):
        ask("given_back", record=record, since=since, ours=OURS)
        assert f"{PROGRAMS}/rdma" in nodes.trees()["node2"]


def test_a_node_that_cannot_run_these_pods_is_left_out(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    double.objects("Node")["node1"]["metadata"]["labels"] = {"kubernetes.io/os": "windows"}
    double.objects("Node")["node2"]["metadata"]["labels"] = {"type": "virtual-kubelet"}
    noted = ask("noted", fresh=True)
    assert had_of(noted["record"]).keys() == {f"node{number}" for number in range(3, 9)}
    assert not {"node1", "node2"} & set(nodes.asked)


def test_a_multus_of_others_stays(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    noted = ask("noted", fresh=True)
    agents(nodes, double)
    ask("given_back", record=noted["record"], ours=OURS, multus=False)
    for files in nodes.trees().values():
        assert {f"{CONFIGURATIONS}/00-multus.conf", f"{PROGRAMS}/multus"} <= files.keys()
        assert f"{PROGRAMS}/spiderpool" not in files


def test_what_nodes_lack_is_named_and_who_does_not_answer_is_no_fault(
    ask: Run, double: ApiDouble, nodes: NodeFolders
) -> None:
    (nodes.root("node2") / PROGRAMS / "macvlan").unlink()
    nodes.silent.add("node5")
    kind = double.store.kind_of("v1", "Node")
    status = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    with double.store.lock:
        double.store.patch_status(kind, "", "node6", status)
    said = ask("noted", fresh=True, needs=["macvlan"])
    assert said["lacking"] == {"node2": ["macvlan"]}
    assert (said["left"], said["down"]) == (["node5"], ["node6"])
    assert left_of(double) == set(), "also the pods of those that do not answer are gone"
    nodes.silent.clear()
    nodes.asked.clear()
    later = ask("noted", record=said["record"], needs=["macvlan"])
    assert sorted(nodes.asked) == ["node2", "node5"], "who had all is not asked again"
    assert later["lacking"] == {"node2": ["macvlan"]}
    found = had_of(later["record"])
    assert found["node5"] == (None, sorted(node_folders.USUAL)), "it may have things of ours by then"
    assert found["node2"] == had_of(said["record"])["node2"]
    nodes.asked.clear()
    assert ask("noted", record=later["record"], needs=["tuning"])["lacking"] == {}
    assert nodes.asked == []
    assert ask("noted", record=later["record"], needs=["vlan"])["lacking"].keys() == found.keys()


def test_who_was_asked_over_ssh_gets_no_pod(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    looked = ask("noted", fresh=True)
    said = "10-calico.conflist\n/\nmacvlan\nown\n/\n"
    nonsense = {"node3": ["/\n"] * 3, "node4": "\n".join(["x" * 5000, "/", "macvlan", "/", ""])}
    nodes.asked.clear()
    noted = ask("noted", fresh=True, needs=["tuning"], known={"node1": said, "elsewhere": said, **nonsense})
    assert sorted(nodes.asked) == [f"node{number}" for number in range(2, 9)]
    assert noted["lacking"] == {"node1": ["tuning"]}
    had = had_of(noted["record"])
    assert had.pop("node1") == (["10-calico.conflist"], ["macvlan", "own"])
    assert had == {node: row for node, row in had_of(looked["record"]).items() if node != "node1"}
    seen = ask("noted", check=True, fresh=True, known=dict.fromkeys(had, said))
    assert seen["left"] == ["node1"], "the preview names who was not looked at"


def test_a_preview_starts_nothing(ask: Run, double: ApiDouble, nodes: NodeFolders) -> None:
    before = double.writes()
    seen = ask("noted", check=True, fresh=True)
    assert len(seen["left"]) == 8
    assert ask("given_back", check=True, ours=OURS)["changed"]
    assert (double.writes(), nodes.asked) == (before, [])

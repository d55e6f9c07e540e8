# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of hosts, leaves, pods and parts by chance: no traceback, and no escape in any output.

2,000 on each push, always the same; 100,000 others with the check `long`, or RAILOPS_ANSWERS.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import unicodedata

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._cabling.lldp import parse_lldp
from ansible_collections.railops.rdma.plugins.module_utils._cluster import gate, pools
from ansible_collections.railops.rdma.plugins.module_utils._cluster import pod_state as state
from ansible_collections.railops.rdma.plugins.module_utils._cluster.nodes import Node
from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import POD_STATUS
from ansible_collections.railops.rdma.plugins.module_utils._pods import latency
from ansible_collections.railops.rdma.plugins.module_utils._pods.checks import Network, PodNode, network_checks
from ansible_collections.railops.rdma.plugins.module_utils._pods.commands import CommandResult
from ansible_collections.railops.rdma.plugins.module_utils._pods.pod_checks import COMMANDS, inside_checks
from ansible_collections.railops.rdma.plugins.module_utils._probe.schedule import HostPair
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.results import READERS, failure_of
from ansible_collections.railops.rdma.plugins.plugin_utils._discover import plan as discovered
from ansible_collections.railops.rdma.plugins.plugin_utils._discover import text as discover_text
from ansible_collections.railops.rdma.plugins.plugin_utils._json_lines import json_lines
from ansible_collections.railops.rdma.plugins.plugin_utils._report.html import DATA, with_verdict
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import files, merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import text as verdict_text
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.intake import KINDS, answer_in
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.metrics import metrics
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.outliers import compared
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.parts import folders_of, merged_checks, read_part

ALL = int(os.environ.get("RAILOPS_ANSWERS") or (100_000 if os.environ.get("RAILOPS_TEST_LONG") else 2_000))
RAILS = ["rail1", "rail2"]
# Control, format, surrogates, private, unassigned, and what ends a line.
STRANGE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def answers(share, each):
    """Return the settings of a test that has a share of all answers, so many in each of its examples."""
    return settings(max_examples=round(ALL * share / each), deadline=None, suppress_health_check=CHECKS)


WORDS = [
    "rail1",
    "rail2",
    "network_link",
    "ok",
    "deviation",
    "checks",
    "id",
    "\x1b[2J",
    "\x9b31m",
    "\u202e",
    "\n",
    "{{ x }}",
]
TEXT = st.one_of(
    st.sampled_from(WORDS), st.text(max_size=12), st.text(st.characters(categories=["C", "Z"]), max_size=4)
)
NUMBER = st.one_of(st.integers(-(10**6), 10**6), st.just(10**30), st.floats(), st.just(True), st.just(400000))
KEYS = st.one_of(st.sampled_from(["checks", "id", "status", "rail", "observed", "rails", "health", "ports"]), TEXT)
WEIRD = st.recursive(
    st.one_of(st.none(), NUMBER, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
DEEP = st.integers(1, 60).map(lambda depth: json.loads("[" * depth + "]" * depth))


def near(*values):
    """Draw one of the values that a sound answer has, and now and then anything."""
    usual = st.sampled_from(values)
    return st.one_of(usual, usual, usual, usual, WEIRD, DEEP)


CHECK = st.fixed_dictionaries(
    {
        "id": near("network_link", "ping_gateway", "fleet_speed", "address_duplicate", "node_resources"),
        "rail": near("rail1", "rail2", None),
        "status": near(*KINDS),
        "planned": near("up", None, {"a": 1}, ["x"]),
        "observed": near("down", None, 5, "00:11:22:33:44:55"),
        "cause": near("no carrier", "", None),
        "fix": near("Look.", "", None),
    },
    optional={
        "family": near(4, 6),
        "peers": near(["node1"], ["node3", "n"]),
        "object": near("x"),
        "node": near("node1", "n9"),
        "attributed_to": near("node1"),
        "unconfirmed": near(True),
    },
)
PORT = st.fixed_dictionaries(
    {},
    optional={
        "pci_id": near("15b3:1021"),
        "driver": near("mlx5_core"),
        "version": near("1", "2"),
        "firmware": near("28.1", "28.2"),
        "speed": near(400000, 200000, 1.5),
        "counters": WEIRD,
    },
)
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "health": st.fixed_dictionaries({"rails": st.fixed_dictionaries({"rail1": PORT})}),
        "macs": near({"rail1": "00:11:22:33:44:55"}),
        "more": WEIRD,
    },
)
ROWS_OF_CHECKS = st.one_of(st.lists(CHECK, max_size=3), st.lists(CHECK, max_size=3), WEIRD)
RESULT = st.fixed_dictionaries(
    {"checks": ROWS_OF_CHECKS, "facts": st.one_of(FACTS, FACTS, WEIRD)},
    optional={"node": near("n1", None), "plan_digest": near("d"), "error": near(None, "boom"), "schema": near(1, 2)},
)
PAGE = DATA.format("verdict", "null")


def printable(text):
    assert [char for char in text if unicodedata.category(char) in STRANGE and char != "\n"] == [], ascii(text)


def outputs(verdict):
    for text in (
        verdict_text.terminal(verdict, "fabric"),
        verdict_text.markdown(verdict, "fabric"),
        with_verdict(PAGE, verdict),
        metrics(verdict, "fabric", 1.0),
        json_lines(verdict, 2),
        merge.summary(verdict),
    ):
        printable(text)
    json.loads(json.dumps(verdict, allow_nan=False))


@answers(0.2, 3)
@given(st.lists(RESULT, min_size=2, max_size=2), st.one_of(st.lists(CHECK, max_size=2), WEIRD))
@example([{"checks": [], "facts": {"health": {"checks": None}}}], [])
def test_results_of_hosts(results, nodes):
    rows = [{"plan_digest": "d", **result, "host": f"node{number}"} for number, result in enumerate(results)]
    sound = {"id": "network_link", "rail": "rail1", "status": "ok", "planned": 1, "observed": 1, "cause": "", "fix": ""}
    rows.append({"host": "sound", "node": "s", "plan_digest": "d", "error": None, "checks": [sound]})
    of_nodes = answer_in(nodes).checks
    verdict = merge.merge("d", rows, {"gone": None, "sound": "s"}, rails=RAILS, nodes=of_nodes, require=["network"])
    assert verdict["hosts"]["sound"]["status"] == "pass"
    outputs(with_causes(verdict, {}))
    for row in rows:
        answer = answer_in([row, {"results": [row]}], RAILS)
        compared(answer.facts)
        printable(answer.error)
        printable(json_lines(merge.host_result("a", "a", "d", answer.checks, answer.error, answer.facts), 2))


PART = st.fixed_dictionaries(
    {
        "plan_digest": st.sampled_from(["d", "d", "d", "e"]),
        "time": near(1.5, 2),
        "hosts": near(["node1"], ["node1", "../x"]),
        "require": near([], ["network"]),
        "checks": st.one_of(st.dictionaries(st.sampled_from(["plan", "cluster", "nodes"]), ROWS_OF_CHECKS), WEIRD),
        "errors": near({}, {"plan": "boom"}),
    }
)


@answers(0.2, 2)
@given(st.lists(st.one_of(PART, PART, PART, WEIRD), min_size=1, max_size=2), st.lists(RESULT, min_size=2, max_size=2))
def test_parts_of_a_verdict(parts, results):
    with tempfile.TemporaryDirectory() as place:
        found = []
        for number, (data, result) in enumerate(zip(parts, results, strict=False)):
            folder = f"{place}/{number}"
            files.write_text(f"{folder}/sections.json", json.dumps(data))
            files.write_text(files.result_path(folder, "node1"), json.dumps({**result, "host": "node1"}))
            try:
                found.append(read_part(folder, "d"))
            except InputError as exc:
                printable(str(exc))
        folders = folders_of(found)
        verdict = merge.merge(
            "d",
            files.read_results(folders),
            {"node1": "n1", "gone": None},
            rails=RAILS,
            nodes=merged_checks(found, "nodes")[0] if found else (),
            unverified={"gone": "No part had this host."},
            **{name: merge.seen_section(*merged_checks(found, name)) for name in ("plan", "cluster") if found},
        )
    outputs(with_causes(verdict, {}))
    gate.judgments(verdict)


NOTE = st.fixed_dictionaries(
    {
        "fabric": near("f"),
        "bad": near(0, 1, 2),
        "good": near(0, 3),
        "broken": near(None, True, False),
        "out": near(True, False),
        "seen": near(0, 100.5, 10**12, 10**15, -1),
        "message": near("", "rail1: network_link"),
    },
    optional={"more": WEIRD},
)
NOTES = st.one_of(NOTE.map(json.dumps), NOTE.map(json.dumps), WEIRD.map(json.dumps), TEXT, st.just("[" * 50_000))


@answers(0.2, 4)
@given(st.lists(NOTES, min_size=4, max_size=4), st.booleans(), st.sampled_from([0.0, 100.0, 200.0]))
def test_annotations_of_the_gate(notes, taint, when):
    nodes = {f"n{number}": Node(note=note) for number, note in enumerate(notes)}
    found = {name: "rail1: x" if number % 2 else "" for number, name in enumerate(nodes)}
    targets = gate.decide(
        "f", nodes, {}, found, when, 300.0, gate.GatePolicy(taint=taint, max_unavailable=2, min_available=1)
    )
    for name, target in targets.items():
        patch = gate.status_patch(nodes[name], target, 300.0)
        json.loads(json.dumps(patch, allow_nan=False))
        printable(target.message)
        assert patch is None or gate.GateMemory.of(target.memory.text()) == target.memory


ROW = st.fixed_dictionaries(
    {},
    optional={
        "ifname": near("net1", "net2", "mlx5_0/1"),
        "flags": near(["UP"], ["NO-CARRIER", "UP"], []),
        "mtu": near(4200),
        "addr_info": near([{"local": "172.17.1.3"}], []),
        "src": near("172.17.1.3"),
        "table": near("101", "main", 101),
        "dst": near("default", "10.0.0.0/8"),
        "gateway": near("172.17.1.1"),
        "dev": near("net1", "eth0"),
        "state": near("ACTIVE", "DOWN"),
        "netdev": near("net1"),
        "type": near("unicast"),
    },
)
ROWS = st.one_of(st.lists(ROW, max_size=3).map(json.dumps), WEIRD.map(json.dumps), TEXT)
NETWORK = st.fixed_dictionaries(
    {"name": near("n/rail1", "n/rail2"), "interface": near("net1"), "ips": near(["172.17.1.3"], [])},
    optional={"default": near(True, False)},
)
LINES = st.lists(
    st.one_of(
        TEXT,
        st.sampled_from(
            [
                "#bytes #iterations t_avg[usec]",
                "2 1000 1.5",
                "net1: railops: exit 0",
                "net99999999999999999999: x",
                f"net1: railops: exit {'9' * 30}",
                "#  size count type redop root time algbw busbw #wrong",
                "8 2 float sum -1 1.0 2.0 3.0 0",
                "² 2 float sum -1 1.0 2.0 3.0 0",
                f"{'9' * 5000} 2 float sum -1 1e999 2.0 inf nan",
                f"# Out of bounds values : {'9' * 5000} FAILED",
                f"0: {'9' * 5000} bytes 3 times --> 1.2.3 Mbps in 4 usec",
                '{"level": ["x"], "msg": "\\u009b"}',
                "NCCL INFO Using network IB",
            ]
        ),
    ),
    max_size=6,
).map("\n".join)
NODE = PodNode(
    "node1",
    tuple(
        Network(f"rail{n}", f"n/rail{n}", kind, (f"172.17.{n}.0/27",), (f"172.17.{n}.1",), 4200)
        for n, kind in ((1, "macvlan"), (2, "sriov"))
    ),
)


@answers(0.25, 5)
@given(
    st.dictionaries(st.sampled_from(sorted(COMMANDS)), st.one_of(ROWS, LINES), min_size=3, max_size=3),
    st.one_of(st.lists(NETWORK).map(json.dumps), ROWS),
    LINES,
)
def test_what_pods_print_and_say(printed, status, message):
    meta = {"name": "p", "namespace": "n", "annotations": {POD_STATUS: status}}
    ended = {"name": "c", "state": {"terminated": {"exitCode": 1, "reason": message, "message": message}}}
    pod = {"metadata": meta, "spec": {"nodeName": "node1"}, "status": {"phase": "Running"}}
    late = {**pod, "status": {"phase": "Pending", "containerStatuses": [ended], "message": message, "reason": message}}
    events = [{"type": "Warning", "reason": message, "message": message}]
    checks = [*inside_checks(NODE, pod, printed), *network_checks(NODE, pod), *network_checks(NODE, late, events)]
    pair = HostPair("node1", "node2", "rail1", "read_lat", 18515)
    ends = [CommandResult(message, code) for code in (0, 1, None)]
    checks += latency.latency_checks([latency.read(pair, end, ends[1], 0.0) for end in ends])
    checks += latency.latency_checks([latency.failed_command(pair, "node2", message)])
    for check in checks:
        for key in ("observed", "cause", "fix"):
            printable(str(check[key]).replace("\n", "\x00"))
    assert answer_in(checks).error == ""
    for text in (state.trouble(late, events).text, state.last_lines(message), state.last_warning(events)):
        printable(text.replace("\n", "\x00"))
    for address in pools.attached([pod]):
        assert isinstance(address, str)
    for read in READERS.values():
        failure_of(read(message), 0)


DEVICE = st.fixed_dictionaries(
    {
        "name": near("mlx5_0", "mlx5_1"),
        "vf": near(False),
        "nearest_gpus": near(["0000:02:00.0"], []),
        "ports": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "netdev": near("ens1np0", None),
                    "link_layer": near("Ethernet"),
                    "state": near("ACTIVE", "DOWN"),
                },
            ),
            max_size=2,
        ),
    },
    optional={"pci": near("0000:01:00.0", None), "serves": near(None, "serves the NVSwitches")},
)
HEARD = st.fixed_dictionaries({"is_switch": near(True), "switch": near("leaf1", "leaf2"), "port": near("swp1", None)})
INFO = st.fixed_dictionaries(
    {
        "devices": st.lists(DEVICE, max_size=2),
        "gpus": near([{"pci": "0000:02:00.0", "index": 0}], []),
        "default_interfaces": near([], ["eth0"]),
        "lldp": st.one_of(st.fixed_dictionaries({"ens1np0": HEARD}), WEIRD),
    }
)


class Loader(yaml.SafeLoader):
    """Reads what Ansible would, and shows what is unsafe."""


Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


@answers(0.15, 3)
@given(
    st.fixed_dictionaries(dict.fromkeys(["node1", "node2"], st.one_of(INFO, INFO, WEIRD))), st.one_of(WEIRD, st.none())
)
def test_options_of_discover(infos, lldp):
    made = discovered.discover(infos)
    printable(discover_text.report(made))
    for data in (discover_text.inventory(made, "gpu_nodes"), discover_text.cables(made, "gpu_nodes")):
        text = discover_text.as_yaml(data or {})
        printable(text)
        assert "{{" not in text
        assert yaml.load(text, Loader) == json.loads(json.dumps(data or {}))
    with contextlib.suppress(ValueError):
        parse_lldp(json.dumps({"lldp": [{"interface": [lldp]}]}))

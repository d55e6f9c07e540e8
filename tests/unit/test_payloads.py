# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host gets with each module, as AnsiballZ packs it: rooms that it may have, and nothing of the controller."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
CLUSTER = {"_cluster", "_fabric"}
# The rooms that a module may bring along, beside what lies in the corridor.
ROOMS: dict[str, set[str]] = {
    "acceptance": set(),
    "collective_job": {*CLUSTER, "_pods", "_probe"},
    "cluster_components_info": CLUSTER,
    "cluster_nodes": CLUSTER,
    "cluster_objects": CLUSTER,
    "cluster_wait": {*CLUSTER, "_pods", "_probe"},
    "fabric_lease": CLUSTER,
    "gpudirect": {"_gpudirect", "_card"},
    "host_record": {
        *("_record", "_cabling", "_card", "_probe", "_qos", "_route"),
        # Whose files a record tells from a stranger's.
        *("_fabric", "_gpudirect", "_netns", "_persist", "_rdma"),
    },
    "host_work_info": {"_rdma"},
    "ippool_plan": set(),
    "nic_link_type": {"_card", "_fabric"},
    "node_cni": {*CLUSTER, "_pods", "_probe"},
    "node_gate": CLUSTER,
    "notice": set(),
    "pod_probe": {*CLUSTER, "_pods", "_probe"},
    "policy_route": {"_fabric", "_route"},
    "rail_audit": {
        *("_audit", "_cabling", "_card", "_driver", "_fabric", "_gpudirect", "_netns"),
        *("_persist", "_probe", "_qos", "_rdma", "_route"),
    },
    "rail_discover": set(),
    "rail_persist": {"_fabric", "_persist", "_route"},
    "rail_upgrade": set(),
    "rdma_driver": {"_driver", "_card"},
    "rdma_host": {"_rdma", "_card", "_fabric"},
    "rdma_info": {"_rdma", "_cabling", "_card", "_fabric"},
    "rdma_netns": {"_netns"},
    "rdma_probe": {"_probe", "_fabric"},
    "roce_qos": {"_qos", "_cabling"},
    "verdict": set(),
    "verify_result": set(),
    "webhook_tls": CLUSTER,
}
# Bytes of the collection's own files that a host gets with each module: at fe11470, before there were rooms (None: it
# was not there), and as recorded last; with the reason where that is more than 5 % larger.
BYTES: dict[str, tuple[int | None, int, str]] = {
    "acceptance": (None, 7_740, ""),
    "collective_job": (None, 177_275, ""),
    "cluster_components_info": (None, 157_800, ""),
    "cluster_nodes": (
        86_048,
        115_300,
        "cordon, drain and labels of switches came from roles; waits as cluster_wait does; which node a host is",
    ),
    "cluster_objects": (105_148, 144_700, "what admission mends, pages of large lists, progress"),
    "cluster_wait": (None, 144_730, ""),
    "fabric_lease": (None, 70_300, ""),
    "gpudirect": (
        46_580,
        59_700,
        "a lock with a deadline; checks; modules run by _module; files by fsync and SELinux context",
    ),
    "host_record": (None, 303_000, ""),
    "host_work_info": (None, 24_400, ""),
    "ippool_plan": (259_667, 0, ""),
    "nic_link_type": (96_599, 115_000, "what carries the host's own network, or other roles, is kept"),
    "node_cni": (None, 165_000, ""),
    "node_gate": (None, 96_200, ""),
    "notice": (None, 0, ""),
    "pod_probe": (163_031, 192_793, "which nodes take pods, and why others do not; Jobs that Kubernetes ended"),
    "policy_route": (
        122_227,
        205_500,
        "VLANs; what stands on a port; the host's own network by every rule and table; which rails meet; checks; one"
        " file for files; the carried library; what our own files name; a timer that has fired",
    ),
    "rail_audit": (None, 724_000, ""),
    "rail_discover": (0, 0, ""),
    "rail_persist": (90_791, 160_300, "VLANs; the host's own network is kept; what else decides about a rail at boot"),
    "rail_upgrade": (None, 4_495, ""),
    "rdma_driver": (
        47_343,
        69_093,
        "headers, DKMS and the driver container; upgrades to named versions; checks; one file for files",
    ),
    "rdma_host": (
        70_936,
        101_300,
        "a port that is for something else keeps its name; .link files of others are kept",
    ),
    "rdma_info": (88_438, 103_400, "the intake of what lldpd says, and its answer as a record has it"),
    "rdma_netns": (
        43_729,
        63_100,
        "checks; modules run by _module; files by fsync and SELinux context; one file for files",
    ),
    "rdma_probe": (
        49_269,
        72_200,
        "kinds of counters, InfiniBand, acceptance, checks; modules run by _module; one file for files",
    ),
    "roce_qos": (141_098, 131_000, ""),
    "verdict": (5_310, 0, ""),
    "verify_result": (2_972, 0, ""),
    "webhook_tls": (66_810, 64_200, ""),
}
MOST = 1.05
# What was asked since, in bytes over all of them: answers pass one intake; files for the next boot are one transaction;
# what is ours is proved by our own files; echoes are counted; a host without pyroute2 is brought it.
ASKED = 30_000 + 15_000 + 6_000 + 9_200 + 5_500


# A process of its own: packing goes by ansible's own importer, which pytest's does not bear.
PACK = """
import base64, io, json, re, sys, zipfile
from ansible.executor.module_common import modify_module
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader, module_loader
from ansible.template import Templar

init_plugin_loader([])
found = {}
for name in sys.argv[1:]:
    # By the path where ansible finds it: what a relative import leads to is told by that.
    place = module_loader.find_plugin_with_context(f"railops.rdma.{name}")
    built = modify_module(
        module_name=place.plugin_resolved_name,
        module_path=place.plugin_resolved_path,
        module_args={},
        templar=Templar(loader=DataLoader()),
        task_vars={"ansible_python_interpreter": "/usr/bin/python3"},
    )
    text = getattr(built, "b_module_data", None) or built[0]
    # A file that is documentation alone is not packed.
    packed = [base64.b64decode(part) for part in re.findall(rb"[A-Za-z0-9+/=]{2000,}", text)]
    files = [item for part in packed for item in zipfile.ZipFile(io.BytesIO(part)).infolist()]
    ours = [item for item in files if "/rdma/plugins/" in item.filename]
    found[name] = {item.filename.partition("/rdma/plugins/")[2]: item.file_size for item in ours}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def payloads() -> dict[str, dict[str, int]]:
    """The files of the collection that a host gets with each module, by their paths below plugins/, and their bytes."""
    argv = [sys.executable, "-c", PACK, *ROOMS]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


def test_every_module_is_in_the_table():
    assert sorted(ROOMS) == sorted(path.stem for path in (PLUGINS / "modules").glob("*.py"))


@pytest.mark.parametrize("name", sorted(ROOMS))
def test_a_host_gets_the_rooms_of_its_subject_and_no_more(name, payloads):
    files = {path for path in payloads[name] if not path.endswith("__init__.py")}
    # A file that is documentation alone is not packed: its work is done on the controller.
    assert f"modules/{name}.py" in files or not ROOMS[name]
    rooms = {path.split("/")[1] for path in files if path.count("/") == 2}
    assert {path.split("/")[0] for path in files} <= {"modules", "module_utils"}
    assert rooms <= ROOMS[name]
    # What is not documentation alone brings its work along.
    assert rooms or not ROOMS[name]


def test_growth_has_a_reason_and_all_together_did_not_grow():
    assert sorted(BYTES) == sorted(ROOMS)
    grown = {name for name, (then, now, _reason) in BYTES.items() if then and now > then * MOST}
    assert grown == {name for name, (_then, _now, reason) in BYTES.items() if reason}
    both = [(then, now) for then, now, _reason in BYTES.values() if then is not None]
    assert sum(now for _then, now in both) <= sum(then for then, _now in both) * MOST + ASKED


@pytest.mark.parametrize("name", sorted(BYTES))
def test_a_module_carries_no_more_than_was_recorded(name, payloads):
    """See what came along and cut it, or record the new number; a reason belongs to 5 % more than at fe11470."""
    _then, now, _reason = BYTES[name]
    assert sum(payloads[name].values()) <= now * MOST, sorted(payloads[name].items(), key=lambda item: -item[1])

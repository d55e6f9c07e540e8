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
    "host_work_info": {"_rdma"},
    "ippool_plan": set(),
    "nic_link_type": {"_card", "_fabric"},
    "kubernetes_gate": CLUSTER,
    "notice": set(),
    "pod_probe": {*CLUSTER, "_pods", "_probe"},
    "policy_route": {"_fabric", "_route"},
    "rail_audit": {
        *("_audit", "_cabling", "_card", "_driver", "_fabric", "_gpudirect", "_netns"),
        *("_persist", "_probe", "_qos", "_rdma", "_route"),
    },
    "rail_discover": set(),
    "rail_persist": {"_fabric", "_persist", "_route"},
    "rail_upgrade_info": set(),
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

# One worker packs them.
pytestmark = pytest.mark.xdist_group("payloads")

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

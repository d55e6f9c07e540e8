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
    "cluster_nodes": {*CLUSTER, "_pods", "_probe"},
    "cluster_objects": CLUSTER,
    "cluster_wait": {*CLUSTER, "_pods", "_probe"},
    "gpudirect": {"_gpudirect", "_card"},
    "ippool_plan": set(),
    "nic_link_type": {"_card"},
    "plan_objects_info": CLUSTER,
    "pod_probe": {*CLUSTER, "_pods", "_probe"},
    "policy_route": {"_fabric", "_route"},
    "rail_discover": set(),
    "rail_persist": {"_fabric", "_persist", "_route"},
    "rail_ping": {"_fabric", "_route"},
    "rdma_driver": {"_driver", "_card"},
    "rdma_host": {"_rdma", "_card"},
    "rdma_info": {"_rdma", "_card"},
    "rdma_netns": {"_rdma", "_card"},
    "rdma_probe": {"_probe"},
    "roce_qos": {"_qos"},
    "verdict": set(),
    "verify_result": set(),
    "webhook_tls": CLUSTER,
}


# A process of its own: packing goes by ansible's own importer, which pytest's does not bear.
PACK = """
import base64, io, json, re, sys, zipfile
from ansible.executor.module_common import modify_module
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar

init_plugin_loader([])
found = {}
for name in sys.argv[2:]:
    built = modify_module(
        module_name=f"ansible_collections.railops.rdma.plugins.modules.{name}",
        module_path=f"{sys.argv[1]}/modules/{name}.py",
        module_args={},
        templar=Templar(loader=DataLoader()),
        task_vars={"ansible_python_interpreter": "/usr/bin/python3"},
    )
    text = getattr(built, "b_module_data", None) or built[0]
    # A file that is documentation alone is not packed.
    packed = [base64.b64decode(part) for part in re.findall(rb"[A-Za-z0-9+/=]{2000,}", text)]
    names = [path for part in packed for path in zipfile.ZipFile(io.BytesIO(part)).namelist()]
    found[name] = [path.partition("/rdma/plugins/")[2] for path in names if "/rdma/plugins/" in path]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def payloads() -> dict[str, list[str]]:
    """The files of the collection that a host gets with each module, by their paths below plugins/."""
    argv = [sys.executable, "-c", PACK, str(PLUGINS), *ROOMS]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_every_module_is_in_the_table():
    assert sorted(ROOMS) == sorted(path.stem for path in (PLUGINS / "modules").glob("*.py"))


@pytest.mark.parametrize("name", sorted(ROOMS))
def test_a_host_gets_the_rooms_of_its_subject_and_no_more(name, payloads):
    files = {path for path in payloads[name] if not path.endswith("__init__.py")}
    assert f"modules/{name}.py" in files or name in (
        "ippool_plan",
        "rail_discover",
    )  # whose files are documentation alone
    rooms = {path.split("/")[1] for path in files if path.count("/") == 2}
    assert {path.split("/")[0] for path in files} <= {"modules", "module_utils"}
    assert rooms <= ROOMS[name]

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._rdma.files import file_checks
from ansible_collections.railops.rdma.tests.unit.machines import put

RAIL = {"name": "rail1", "interface": "ens1np0"}
INFO = {"devices": [{"name": "mlx5_0", "pci": None, "vf": False, "ports": [{"port": 1, "netdev": "ens1np0"}]}]}
COMPLETE = ("sys/class/infiniband_verbs/uverbs2", "sys/class/infiniband_mad/umad4")
FILES = ("uverbs2", "umad4", "rdma_cm")


def lay_out(root, files):
    for folder in COMPLETE:
        put(root, f"{folder}/ibdev", "mlx5_0\n")
    for name in files:
        put(root, f"dev/infiniband/{name}")
    return Sysfs(str(root))


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        pytest.param(FILES, "", id="whole"),
        pytest.param(("uverbs2", "rdma_cm"), "ib_umad", id="umad"),
        pytest.param(("umad4", "rdma_cm", "uverbs0"), "ib_uverbs", id="uverbs-of-another"),
        pytest.param(("uverbs2", "umad4"), "rdma_ucm", id="rdma_cm"),
        pytest.param((), "ib_uverbs and ib_umad and rdma_ucm", id="none"),
    ],
)
def test_the_module_that_is_missing_is_named(tmp_path, files, missing):
    (check,) = file_checks(lay_out(tmp_path, files), INFO, [RAIL], "shared", {})
    assert check["status"] == ("deviation" if missing else "ok")
    assert (check["id"], check["rail"]) == ("rdma_device_files", "rail1")
    if missing:
        assert f"that {missing} makes" in check["cause"]
        assert "rdma_host" in check["fix"]


@pytest.mark.parametrize("mode", ["exclusive", None])
def test_a_function_of_its_own_needs_none_of_them(tmp_path, mode):
    assert list(file_checks(lay_out(tmp_path, ()), INFO, [RAIL], mode, {})) == []


def test_a_rail_without_a_device_has_its_own_check(tmp_path):
    assert list(file_checks(lay_out(tmp_path, FILES), {"devices": []}, [RAIL], "shared", {})) == []

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.module_utils._pods.node_cni import Had, packed, unpacked


def test_equal_lists_are_kept_once():
    had = {f"gpu-{number:04}": Had(("10-calico.conflist",), ("macvlan", "tuning")) for number in range(10_000)}
    assert unpacked(packed(had)) == had
    assert len(packed(had)) < 60_000, "a ConfigMap takes a MiB"

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._qos.files import escape


@pytest.mark.parametrize(
    ("name", "unit"), [("ens1np0", "ens1np0"), ("eth-1", r"eth\x2d1"), ("rail1.100", "rail1.100"), (".x", r"\x2ex")]
)
def test_names_are_written_as_systemd_does(name, unit):
    assert escape(name) == unit

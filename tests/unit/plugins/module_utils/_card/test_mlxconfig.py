# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._card.mlxconfig import (
    failure,
    number,
    parse_text,
)
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError

HEAD = """
Device #1:
----------

Device type:        ConnectX7
Name:               MCX75310AAS-NEA_Ax
Description:        NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP
Device:             0000:1b:00.0

"""
THREE = """Configurations:                                          Default             Current             Next Boot
        MEMIC_BAR_SIZE                              0                   0                   0
        HOST_CHAINING_DESCRIPTORS                   Array[0..7]         Array[0..7]         Array[0..7]
*       LINK_TYPE_P1                                IB(1)               IB(1)               ETH(2)
   RO   LINK_TYPE_P2                                IB(1)               1                   0x1
   RO   ROCE_CONTROL                                N/A                 N/A                 ROCE_ENABLE(2)
The '*' shows parameters with next value different from default/current value.
The RO shows parameters which are read-only
"""


def test_an_answer_without_a_table_is_refused():
    with pytest.raises(RdmaError, match="Configurations"):
        parse_text(HEAD)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ETH(2)", 2), ("IB(1)", 1), ("True(1)", 1), ("_256KB(1)", 1), ("0x10", 16), ("8", 8), ("08", 8),
        ("N/A", None), ("Array[0..7]", None), ("", None), (None, None), ("ETH", None),
    ],
)  # fmt: skip
def test_values(value, expected):
    assert number(value) == expected


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Failed to open the device", "cannot open the card"),
        ("Failed to open device: 0000:1b:00.0.", "cannot open the card"),
        ("Device in Livefish mode is not supported", "livefish"),
        ("Cannot set TLV: it is read-only", "keeps this configuration read-only"),
        ("Something new", "failed with exit code 3"),
    ],
)
def test_every_message_is_recognized_and_has_a_fix(text, meaning):
    error = failure(["mstconfig", "-d", "x", "q"], 3, f"\n-E- {text}\n", "0000:1b:00.0")
    assert meaning in error.problem
    assert error.fix
    assert text in str(error)


def test_a_bluefield_that_leaves_the_host_its_ports_is_no_dpu():
    rows = "".join(
        f"        {name:48}{value:20}{value:20}{value}\n"
        for name, value in (
            ("INTERNAL_CPU_MODEL", "SEPERATED_HOST(0)"),
            ("INTERNAL_CPU_OFFLOAD_ENGINE", "ENABLED(0)"),
        )
    )
    assert parse_text(HEAD + THREE.splitlines()[0] + "\n" + rows).dpu is False

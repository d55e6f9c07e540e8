# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import functools
import json
import struct
import subprocess
import sys

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._qos import device

OS_CONTROLLED = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
\tprio:5 dscp:47,46,45,44,43,42,41,40,
\tprio:5 dscp:33,
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   1   0   0
\tbuffer      0   0   0   1   0   1   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
"""
FIRMWARE_CONTROLLED = """\
****** WARNING: lldpad service is running and may overwrite your settings ******

DCBX mode: Firmware controlled
Priority trust state: pcp
default priority:
Receive buffer size (bytes): 130944,0,0,0,0,0,0,0,total_size=262016
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   0   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
"""


def test_the_vendors_text_in_host_mode():
    said = device.parse_mlnx_qos(OS_CONTROLLED)
    assert (said["dcbx"], said["trust"], said["pfc"]) == ("host", "dscp", [3, 5])
    assert {dscp: said["dscp_map"][dscp] for dscp in (0, 26, 33, 40, 47)} == {0: 0, 26: 3, 33: 5, 40: 5, 47: 5}


def test_the_vendors_text_in_firmware_mode_and_with_buffers():
    said = device.parse_mlnx_qos(FIRMWARE_CONTROLLED)
    assert said == {"dcbx": "firmware", "trust": "pcp", "pfc": [], "dscp_map": {}}


def test_another_text_is_no_answer():
    assert device.parse_mlnx_qos("Interface name is required")["pfc"] is None


def test_an_answer_is_read():
    pfc = device.attribute(device.IEEE_PFC, device.PFC.pack(8, 0b1000, 0, 7, *range(16)))
    apps = b"".join(
        device.attribute(device.IEEE_APP, device.APP.pack(*row)) for row in ((5, 3, 26), (5, 6, 48), (1, 3, 0x8906))
    )
    nested = device.attribute(device.ATTR_IEEE | 0x8000, pfc + device.attribute(device.IEEE_APP_TABLE, apps))
    said = device.ieee_reply(device.attribute(device.ATTR_IFNAME, b"ens1np0\0") + nested)
    assert said == {"pfc": 0b1000, "pfc_cap": 8, "delay": 7, "dscp": [(26, 3), (48, 6)], "ets": None}


def test_classes_are_written_over_what_was_read():
    """The rows of struct ieee_ets; what is recommended to the other side stays."""
    recommended = bytes(range(1, 25))
    was = bytes([1, 8, 0]) + bytes([12] * 8) + bytes([12] * 8) + bytes([2] * 8) + bytes(range(8)) + recommended
    said = device.ieee_reply(device.attribute(device.ATTR_IEEE, device.attribute(device.IEEE_ETS, was)))
    assert device.ets_values(said["ets"]) == [*range(8), *[12] * 8, *[2] * 8]
    wanted = [0, 0, 0, 3, 0, 0, 6, 0, 50, 0, 0, 50, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 0]
    ((_kind, nested),) = device.attributes(device.ets_request(was, wanted))
    ((kind, data),) = device.attributes(nested)
    assert (kind, len(data)) == (device.IEEE_ETS, device.ETS_SIZE)
    assert data[:3] == bytes([0, 8, 0])
    assert device.ets_values(data) == wanted
    assert data[11:19] == data[3:11]
    assert data[35:] == recommended


@pytest.mark.parametrize(
    ("code", "expected"), [(0, None), (256 - errno.EOPNOTSUPP, errno.EOPNOTSUPP), (256 - errno.EINVAL, errno.EINVAL)]
)
def test_the_error_number_hides_in_one_byte(monkeypatch, code, expected):
    dcb = device.Dcb()
    monkeypatch.setattr(dcb, "_query", lambda *dummy: device.attribute(device.ATTR_IEEE, bytes([code])))
    if expected is None:
        dcb.set("ens1np0", device.app_request(26, 3))
        return
    with pytest.raises(OSError, match=r".") as caught:
        dcb.set("ens1np0", device.app_request(26, 3))
    assert caught.value.errno == expected


def test_a_device_that_keeps_dcbx(monkeypatch):
    dcb = device.Dcb()
    monkeypatch.setattr(dcb, "_query", lambda *dummy: device.attribute(device.ATTR_DCBX, b"\1"))
    with pytest.raises(OSError, match="keeps DCBX"):
        dcb.set_dcbx("ens1np0", 9)


def test_cut_attributes_end_the_reading():
    whole = device.attribute(device.ATTR_DCBX, b"\1")
    for size in range(len(whole)):
        device.attributes(whole[:size])
    assert device.attributes(struct.pack("=HH", 0, 1)) == []


def test_a_real_kernel_says_that_loopback_has_none():
    with pytest.raises(OSError, match=r".") as caught:
        device.Dcb().get("lo")
    assert caught.value.errno == errno.EOPNOTSUPP
    with pytest.raises(OSError, match=r"."):
        device.Dcb().get("rr-none")


def test_the_unit_fails_when_the_rdma_device_does_not_come(tmp_path, monkeypatch, capsys):
    settings = tmp_path / "settings.json"
    entry = {"backend": "kernel", "rdma": True, "operations": [["traffic_class", 162]]}
    settings.write_text(json.dumps({"interfaces": {"ens1np0": entry}}))
    (tmp_path / "sys/class/net/ens1np0").mkdir(parents=True)
    monkeypatch.setattr(device, "RDMA_WAIT", 0)
    monkeypatch.setattr(device, "Nic", functools.partial(device.Nic, root=str(tmp_path)))
    assert device.main([str(settings), "ens1np0"]) == 1
    assert "ens1np0: no RDMA device within 0 s" in capsys.readouterr().err
    assert device.main([str(settings), "ens9np0"]) == 0


def test_the_program_runs_alone():
    done = subprocess.run(
        [sys.executable, "-I", device.__file__, "/dev/null", "ens1np0"], capture_output=True, text=True, check=False
    )
    assert "JSONDecodeError" in done.stderr  # it started, and read the file it was given

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What programs say: of LLDP the fields that are read, of JSON known keys, of text known lines, and known errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cabling.lldp import ARGV, parse_lldp
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._qos.device import parse_mlnx_qos
from ansible_collections.railops.rdma.plugins.module_utils._record import run as work
from ansible_collections.railops.rdma.plugins.module_utils._record.answers import answer, error
from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub
from ansible_collections.railops.rdma.tests.unit.plugins.module_utils._qos.test_device import OS_CONTROLLED

LLDP = json.loads((Path(__file__).parents[3] / "data/lldpcli-1.0.16-json0.json").read_text(encoding="utf-8"))
QOS = f"{OS_CONTROLLED}of acme-gpu-7: hunter2secret\n"


def said(change=None):
    data = json.loads(json.dumps(LLDP))
    row = data["lldp"][0]["interface"][0]
    if change:
        change(row, data["lldp"][0]["interface"])
    return json.dumps(data)


def told(text, names=("leaf1",)):
    return answer(ARGV, text, Scrub("key", names).allow)


def test_lldp_says_the_same_of_what_is_read():
    assert parse_lldp(told(said()))["ens1np0"] == {**parse_lldp(said())["ens1np0"], "description": "rail1 node1"}


def two(row, rows):
    rows.append({**row, "chassis": [{**row["chassis"][0], "name": [{"value": "acme-spine"}]}]})


def private(row, _rows):
    row["chassis"][0]["descr"] = [{"value": "Acme OS"}]
    row["port"][0]["descr"] = [{"value": "to Acme Munich"}]
    row["vlan"][0]["value"] = "acme-storage"
    row["lldp-med"] = [{"inventory": [{"serial": [{"value": "ACME77"}], "asset": [{"value": "acme street 1"}]}]}]


def bytes_of_a_name(row, _rows):
    text = b"acme1".hex(",")
    row["unknown-tlvs"][0]["unknown-tlv"] += [
        {"oui": "00,80,C2", "subtype": number, "value": text} for number in ("3", "9", "11", "12")
    ]
    row["unknown-tlvs"][0]["unknown-tlv"].append({"oui": "00,12,0F", "subtype": "1", "value": text})


@pytest.mark.parametrize("change", [two, private, bytes_of_a_name])
def test_of_lldp_nothing_else_gets_in(change):
    text = told(said(change))
    assert [word for word in ("acme", "ACME", b"acme1".hex(","), "inventory") if word.lower() in text.lower()] == []
    assert parse_lldp(text)["ens1np0"]["dcbx"] == parse_lldp(said())["ens1np0"]["dcbx"]


def no_name(_row, rows):
    rows.append({"chassis": [{"name": [{"value": "acme-leaf"}]}]})


def odd(row, _rows):
    row["unknown-tlvs"][0]["unknown-tlv"][0]["value"] = "0"


@pytest.mark.parametrize("change", [no_name, odd])
def test_lldp_that_cannot_be_parsed_is_left_out_and_named(tmp_path, change):
    text = said(change)
    assert told(text) is None
    made = work.Recorder(
        Sysfs(str(tmp_path)), lambda argv, _text: {"argv": argv, "stdin": "", "rc": 0, "out": text, "err": ""}, "key"
    )
    archive = made.record()
    assert "leaf" not in json.dumps(archive)
    assert "/lldpcli" in archive["unread"]


def test_whose_a_process_is_is_not_kept():
    rows = [{"ifname": "mlx5_0", "pid": 4711, "comm": "acme-train"}, {"ifname": "mlx5_0", "comm": "nvme_rdma"}]
    kept = json.loads(answer(["rdma", "-j", "resource", "show", "qp"], json.dumps(rows), Scrub("key").allow))
    assert kept == [{"ifname": "mlx5_0", "pid": 4711}, rows[1]]


def test_text_is_kept_by_whole_lines():
    done = answer(["mlnx_qos", "-i", "ens1np0"], QOS, Scrub("key").allow)
    assert parse_mlnx_qos(done) == parse_mlnx_qos(QOS)
    assert "acme" not in done
    assert answer(["ip", "-V"], "ip utility, iproute2-6.1.0, acme build 7", Scrub("key").allow) == "ip 6.1.0\n"


def test_errors_are_the_known_ones():
    assert error("acme: RTNETLINK: Operation not supported by hunter2") == "not supported"
    assert error("-E- Failed to open the device /home/alice") == "Failed to open the device"
    assert error("alice: no") == ""

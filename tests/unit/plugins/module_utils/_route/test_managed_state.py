# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What our own files name is what is planned: of every manager."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles
from ansible_collections.railops.rdma.plugins.module_utils._persist.host import PersistHost as Files
from ansible_collections.railops.rdma.plugins.module_utils._persist.plan import MANAGERS, files_of
from ansible_collections.railops.rdma.plugins.module_utils._persist.run import converge
from ansible_collections.railops.rdma.plugins.module_utils._route import managed_state
from ansible_collections.railops.rdma.plugins.module_utils._route.desired import desired_state
from ansible_collections.railops.rdma.plugins.module_utils._route.model import Link, RouteHost, Snapshot
from ansible_collections.railops.rdma.plugins.module_utils._route.ownership import exactly
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options

PARAMS = {
    "rails": [
        {
            "interface": f"ens{rail}np0",
            "mtu": 4200,
            "addresses": [
                {"address": f"192.0.2.{net + 2}", "subnet": f"192.0.2.{net}/27", "gateway": f"192.0.2.{net + 1}"},
                {"address": f"{six}::2", "subnet": f"{six}::/64", "gateway": f"{six}::1"},
            ],
        }
        for rail, net, six in ((1, 32, "2001:db8:1"), (2, 64, "2001:db8:2"))
    ],
    "rdma_prefixes": ["192.0.2.0/24", "2001:db8::/32"],
}


def planned(want):
    names = {rail.identifier: f"eth{rail.index}" for rail in want.rails}
    links = {name: Link(name, 4200, True) for name in names.values()}
    found = desired_state(want, RouteHost(Snapshot(links, *[frozenset()] * 3, {}), names=names))
    return found.addresses, {exactly(route) for route in found.routes}, found.rules


def named(root):
    found = managed_state.read_retained(HostFiles(str(root)))
    return found.addresses, {exactly(route) for route in found.routes}, found.rules


@pytest.mark.parametrize("vlan", [0, 101])
@pytest.mark.parametrize("policy", ["prefixes", "default_route"])
@pytest.mark.parametrize("manager", MANAGERS)
def test_our_files_name_exactly_what_is_planned(tmp_path, manager, policy, vlan):
    rails = [{**rail, "vlan": vlan} for rail in PARAMS["rails"]]
    want = parse_options({**PARAMS, "rails": rails, "policy": policy})
    files = Files(str(tmp_path))
    for file in files_of(want, {rail.name: f"eth{rail.index}" for rail in want.rails}, manager):
        files.put(file.path, file.text, file.mode, link=file.mode == 0o777)
    assert named(tmp_path) == planned(want)
    assert named(tmp_path) != planned(dataclasses.replace(want, rails=want.rails[1:]))


@pytest.mark.parametrize("text", ["", "[]", '{"links": []}', '{"links": [], "addresses": [3]}', "[" * 100_000])
def test_a_broken_file_names_nothing(tmp_path, text):
    HostFiles(str(tmp_path)).put(managed_state.MANAGED_STATE, text)
    assert named(tmp_path) == (frozenset(), set(), frozenset())


def test_the_record_of_earlier_values_is_read_as_written_and_goes_when_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(managed_state, "ROOT", str(tmp_path))
    earlier, ports = frozenset({("ens1np0", "192.0.2.2")}), {"rail1": ("ens1np0", "02:00:00:00:00:01")}
    assert (managed_state.read_noted(), managed_state.read_ports()) == (frozenset(), {})
    managed_state.note(earlier, ports)
    assert (managed_state.read_noted(), managed_state.read_ports()) == (earlier, ports)
    for path, text in ((managed_state.ORIGINAL_STATE, "[" * 100_000), (managed_state.PORTS, '{"rail1": 3}')):
        (tmp_path / path[1:]).write_text(text)
    assert (managed_state.read_noted(), managed_state.read_ports()) == (frozenset(), {})
    monkeypatch.setattr(Files, "live", True)
    for left in (ports, {}):  # with and without rails in the running network
        managed_state.note(earlier, left)
        converge(parse_options({"state": "absent"}), Files(str(tmp_path)), "networkd", check_mode=False)
        assert bool(list(tmp_path.rglob("*.json"))) is bool(left)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that had a life before: others' files on a rail's port, read by the real netplan, networkd and NetworkManager.

What the host boots with is what the daemon itself sets on links of a namespace, and not what the module says of it.
"""

from __future__ import annotations

import json
import re
import uuid

import pytest

from ansible_collections.railops.rdma.tests.kernel.managers import MANAGED, boot, needs_managers, persist, wrote
from ansible_collections.railops.rdma.tests.unit.one_rail import RAIL

pytestmark = needs_managers

PROFILES, NETWORKS = "/etc/NetworkManager/system-connections", "/etc/systemd/network"
THEIRS = "10.66.0.5/24"


def reported(result, name):
    return next(check for check in result["checks"] if check["id"] == name and check["status"] != "ok")


def entry(name, **settings):
    """Return a file of netplan with one entry."""
    return json.dumps({"network": {"version": 2, "ethernets": {name: settings}}})


def network(match, *lines, link=()):
    return "\n".join(["[Match]", match, "", "[Link]", *link, "", "[Network]", *lines, ""])


def profile(name, priority, address="", interface=""):
    four = f"method=manual\naddress1={address}\n" if address else "method=auto\n"
    bound = f"interface-name={interface}\n" if interface else ""
    head = f"[connection]\nid={name}\nuuid={uuid.uuid5(uuid.NAMESPACE_DNS, name)}\ntype=ethernet\n"
    return f"{head}{bound}autoconnect-priority={priority}\n\n[ipv4]\n{four}\n[ipv6]\nmethod=ignore\n"


# What other people have on a host, which a rail outranks and which loses nothing by that.
HARMLESS = {
    "netplan": {"/etc/netplan/90-default.yaml": entry("all-en", match={"name": "en*"}, dhcp4=True, dhcp6=True)},
    "networkd": {f"{NETWORKS}/00-all.network": network("Name=en*", "DHCP=yes")},
    "networkmanager": {f"{PROFILES}/office.nmconnection": profile("office", 500)},
}


@pytest.mark.parametrize("manager", HARMLESS)
def test_file_for_all_nics_does_not_outrank_the_rail(run_steps, manager):
    _written, made, booted = run_steps(wrote(HARMLESS[manager]), persist(manager), boot(manager, MANAGED))
    assert set(MANAGED["ens1np0"]) <= set(booted["links"]["ens1np0"])
    # Said, and no reason to stop: DHCP has no lease there.
    check = reported(made, "persist_existing")
    assert (check["status"], check["observed"]) == ("warning", list(HARMLESS[manager]))


# The same with something that the rail does not keep: refused with the file and what it is.
LOST = {
    "netplan": {"/etc/netplan/50-a.yaml": entry("a", match={"name": "ens1*"}, addresses=[THEIRS])},
    "netplan-mtu": {"/etc/netplan/50-b.yaml": entry("ens1np0", dhcp4=True, mtu=9000)},
    "networkd": {f"{NETWORKS}/00-user.network": network("Name=ens1np0", f"Address={THEIRS}", "MACVLAN=pods0")},
    "networkmanager": {f"{PROFILES}/user.nmconnection": profile("user", 0, THEIRS, "ens1np0")},
}


@pytest.mark.parametrize("case", LOST)
def test_lost_settings_are_refused_before_writing(run_steps, case):
    manager = case.partition("-")[0]
    ((path, _text),) = LOST[case].items()
    steps = [wrote(LOST[case]), persist(manager), persist(manager, adopt_ports=["ens1np0"]), boot(manager, MANAGED)]
    before, refused, taken, booted = run_steps(*steps)
    what = "MTU 9000" if "mtu" in case else THEIRS
    assert (path in refused["failed"], what in refused["failed"]) == (True, True)
    assert "rail_network_adopt_ports" in refused["failed"]
    assert refused["files"] == before["files"]
    # Given up on purpose: the rail is what the host boots with, and the file is where it was.
    assert set(MANAGED["ens1np0"]) <= set(booted["links"]["ens1np0"])
    assert taken["files"][path] == before["files"][path]


# What even our names do not outrank.
FIRST = {
    "networkd": (f"{NETWORKS}/0-a.network", "Name=ens1np0"),
    "netplan": (f"{NETWORKS}/0-a.network", "Name=ens1np0"),
    "networkmanager": (f"{PROFILES}/first.nmconnection", "ens1np0"),
}


@pytest.mark.parametrize("manager", FIRST)
def test_adopted_file_is_restored_by_teardown(run_steps, manager):
    path, match = FIRST[manager]
    theirs = {"ens1np0": [THEIRS]}
    text = profile("first", 999, THEIRS, match) if "Manager" in path else network(match, f"Address={THEIRS}")
    over = {"adopt_ports": ["ens1np0"]}
    results = run_steps(
        wrote({path: text, **({"/etc/netplan/01.yaml": entry("ens9", dhcp4=True)} if manager == "netplan" else {})}),
        persist(manager),
        {**persist(manager, **over), "check": True},
        persist(manager, **over),
        boot(manager, MANAGED),
        persist(manager, **over),
        persist(manager, state="absent"),
        boot(manager, theirs),
    )
    before, refused, predicted, taken, booted, again, gone, back = results
    assert (path in refused["failed"], refused["files"]) == (True, before["files"])
    assert (predicted["diff"], predicted["files"]) == (taken["diff"], before["files"])
    assert path not in taken["files"]
    assert taken["files"][f"/var/lib/railops-rdma/kept/ens1np0{path}"] == before["files"][path]
    assert path in reported(taken, "persist_existing")["cause"]
    assert set(MANAGED["ens1np0"]) <= set(booted["links"]["ens1np0"])
    assert (again["changed"], again["diff"]) == (False, [])
    assert gone["files"] == before["files"]
    assert THEIRS in back["links"]["ens1np0"]


def test_what_is_also_for_another_port_is_not_set_aside(run_steps):
    text = network("Name=en*", f"Address={THEIRS}")
    before, refused = run_steps(wrote({f"{NETWORKS}/0-a.network": text}), persist("networkd", adopt_ports=["ens1np0"]))
    assert f"{NETWORKS}/0-a.network" in refused["failed"]
    assert refused["files"] == before["files"]


def test_other_settings_in_netplan_and_networkd_stay(run_steps):
    """The remedies that the refusals name: an entry of the interface's own name, and a file beside ours."""
    merged = {"/etc/netplan/50-user.yaml": entry("ens1np0", addresses=[THEIRS])}
    _written, made, booted = run_steps(
        wrote(merged), persist("netplan"), boot("netplan", {"ens1np0": [THEIRS, *MANAGED["ens1np0"]]})
    )
    assert {THEIRS, *MANAGED["ens1np0"]} <= set(booted["links"]["ens1np0"])
    assert {
        check["status"] for check in made["checks"] if check["id"] in ("persist_precedence", "persist_existing")
    } == {"ok"}
    beside = {
        f"{NETWORKS}/0-railops-ens1np0.network.d/mine.conf": f"[Network]\nAddress={THEIRS}\nMACVLAN=pods0\n",
        f"{NETWORKS}/50-pods0.netdev": "[NetDev]\nName=pods0\nKind=macvlan\n\n[MACVLAN]\nMode=bridge\n",
        f"{NETWORKS}/50-pods0.network": network("Name=pods0", "Address=10.67.0.5/24"),
    }
    wanted = {"ens1np0": [THEIRS, *MANAGED["ens1np0"]], "pods0": ["10.67.0.5/24"]}
    before, _made, booted, gone = run_steps(
        wrote(beside), persist("networkd"), boot("networkd", wanted), persist("networkd", state="absent")
    )
    assert {THEIRS, *MANAGED["ens1np0"]} <= set(booted["links"]["ens1np0"])
    assert "10.67.0.5/24" in booted["links"]["pods0"]
    assert gone["files"] == before["files"]


def test_a_later_file_of_netplan_with_another_mtu_is_refused_whatever_is_taken_over(run_steps):
    text = entry("ens1np0", mtu=1500, dhcp4=True)
    before, refused = run_steps(wrote({"/etc/netplan/zzz.yaml": text}), persist("netplan", adopt_ports=["ens1np0"]))
    assert "/etc/netplan/zzz.yaml outranks /etc/netplan/zz-railops-ens1np0.yaml: MTU 4200, no DHCP" in refused["failed"]
    assert refused["files"] == before["files"]


def test_netplan_s_entry_for_every_nic_does_not_outrank_the_rail_under_networkmanager(run_steps):
    """Where netplan renders for NetworkManager, the priority counts that netplan hands on."""
    every = json.loads(HARMLESS["netplan"]["/etc/netplan/90-default.yaml"])
    every["network"]["renderer"] = "NetworkManager"
    files = {"/etc/netplan/90-default.yaml": json.dumps(every)}
    _written, made, booted = run_steps(wrote(files), persist("netplan"), boot("networkmanager", MANAGED))
    assert set(MANAGED["ens1np0"]) <= set(booted["links"]["ens1np0"])
    assert reported(made, "persist_existing")["observed"] == ["/etc/netplan/90-default.yaml"]


def test_networkd_that_does_not_know_ipoib_s_mode_is_not_what_sets_it(run_steps, tmp_path):
    """The section is in systemd.network(5) since 250, and 252 says `Unknown section 'IPoIB'` to it."""
    more = {"network": "infiniband", "rails": [{**RAIL, "mtu": 65520}]}
    made, booted = run_steps(persist("networkd", **more), boot("networkd", {"ens1np0": ["192.0.2.2/27", "mtu 65520"]}))
    assert "[IPoIB]\nMode=connected\n" in made["files"][f"{NETWORKS}/0-railops-ens1np0.network"][0]
    assert "192.0.2.2/27" in booted["links"]["ens1np0"]
    unknown = re.findall("Unknown .*", (tmp_path / "output").read_text(encoding="utf-8"))
    assert set(unknown) <= {"Unknown section 'IPoIB'. Ignoring."}
    assert "/etc/udev/rules.d/90-railops-ipoib.rules" in made["after"]


def test_a_link_file_that_netplan_s_would_hide_is_refused_and_stays_in_force_when_it_sorts_before(run_steps):
    late, early = "/etc/systemd/network/50-rings.link", "/etc/systemd/network/05-rings.link"
    text = "[Match]\nOriginalName=ens1*\n\n[Link]\nRxBufferSize=4096\n"
    some = {"/etc/netplan/01.yaml": entry("ens9", dhcp4=True)}
    udev = {"do": "udev", "port": "ens1np0"}
    taken = persist("netplan", adopt_ports=["ens1np0"])
    _written, refused, _taken, hidden = run_steps(wrote({late: text, **some}), persist("netplan"), taken, udev)
    assert f"{late} sets RxBufferSize=4096" in refused["failed"]
    # What it is refused for: udev takes netplan's in its place.
    assert hidden["file"] == ["/run/systemd/network/10-netplan-ens1np0.link"], hidden["output"]
    _written, made, kept = run_steps(wrote({early: text, **some}), persist("netplan"), udev)
    assert ("failed" in made, kept["file"]) == (False, [early]), kept["output"]

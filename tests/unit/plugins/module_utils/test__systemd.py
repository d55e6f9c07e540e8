# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._systemd import effective, fits, named, sections


def test_files_are_read_in_the_order_of_their_names_and_hide_those_in_later_folders():
    paths = ["/etc/modprobe.d/zz.conf", "/etc/modprobe.d/b.conf", "/lib/modprobe.d/a.conf", "/lib/modprobe.d/b.conf"]
    found = named(paths, ("/etc/modprobe.d", "/lib/modprobe.d"))
    assert list(found.values()) == ["/lib/modprobe.d/a.conf", "/etc/modprobe.d/b.conf", "/etc/modprobe.d/zz.conf"]


@pytest.mark.parametrize(
    ("match", "met"),
    [
        ("MACAddress=00:00:5E:00:53:01", True),
        ("MACAddress=00-00-5e-00-53-02 0000.5e00.5301", True),
        ("MACAddress=0000.5e00.5302", False),
        ("Name=!ens*", False),
        ("Name=eth* ens1np?", True),
        ("Name=eth0\nName=\nName=ens1np0", True),
        ("Name=ens1np0\nHost=gpu-1", None),
        ("Name=eth0\nHost=gpu-1", False),
        ("", True),
    ],
)
def test_what_a_match_fits(match, met):
    rows = sections(f"[Match]\n{match}\n[Link]\nName=other\n")
    assert fits(effective(rows, "Match"), {"MACAddress": ["00:00:5e:00:53:01"], "Name": {"ens1np0"}}) is met

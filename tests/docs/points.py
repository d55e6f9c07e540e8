# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What real hardware and real clusters do that would fail or hurt, by number, each with the tests that hold it.

A test that holds a point carries `@pytest.mark.point("1.4")`. A part of a point that no test holds says why in LEFT.
"""

from __future__ import annotations

POINTS = {
    "1.1": "The chart's DaemonSet of the device plugin has no labels of its own: a wait by label never sees it.",
    "1.2": "Controller and agents read their configuration at their start alone: who reads what changed is restarted.",
    "1.3": "The SR-IOV operator wants NUM_OF_VFS exactly, and reboots nodes by itself where it differs.",
    "1.4": "Cards are chosen by the plan's rails, port by port; functions that serve NVSwitches are left alone.",
    "1.5": "Spiderpool injects no RDMA resource for ipoib: pods ask for it themselves.",
    "1.6": "A partition key in the plugin's configuration does nothing without ib-kubernetes.",
    "1.7": "Another priority than the switches' moves a fleet off its lossless queue.",
    "1.8": "A rollout over thousands of nodes takes hours, and a node that is down never takes part.",
    "1.9": "The SR-IOV operator switches SR-IOV off on cards that no policy names.",
    "1.10": "DKMS needs the headers of the kernel, and a compiler.",
    "1.11": "Ubuntu 22.04 and the RHEL family have no pyroute2 that is new enough.",
    "1.12": "A VLAN on pods alone parts host, pods and gateway.",
    "1.13": "Dashboards without the Grafana operator's CRD fail the whole release.",
    "1.14": "Adaptive routing makes counters of lost order grow on sound fabrics.",
    "1.15": "The chart's operator does not know ConnectX-8 and newer.",
    "1.16": "Operator and device plugin know no alternative names of interfaces.",
    "1.17": "Subnet managers without virtualisation, a driver installed by hand, representors of the rail's card.",
}

# Parts of points without a test, and why.
LEFT = {
    "1.17": "Path= in a rail's .link file matches representors and IPoIB children too. Driver= would exclude the first,"
    " but what udev compares it with differs by systemd's release, and no switchdev card is at hand to see that a rail"
    " keeps its name. docs/host-network.md says what to do.",
}

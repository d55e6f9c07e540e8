# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random fabrics, as people may declare them."""

from __future__ import annotations

import os

from hypothesis import HealthCheck
from hypothesis import strategies as st

# On each push the same ones.
FABRICS = int(os.environ.get("RAILOPS_FABRICS", "700"))
SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
    "derandomize": "RAILOPS_FABRICS" not in os.environ,
}


@st.composite
def supernets(draw):
    families = draw(st.sampled_from([(4,), (4,), (6,), (4, 6)]))
    nets = {4: f"10.0.0.0/{draw(st.integers(12, 19))}", 6: f"fd00:0::/{draw(st.sampled_from([40, 48, 52]))}"}
    return families, [nets[family] for family in families]


def shifted(net, zone):
    """The same network for another zone: at most a /12, and a /32, apart."""
    return net.replace("10.0.", f"10.{zone * 16}.").replace("fd00:0:", f"fd00:{zone}:")


@st.composite
def reserved(draw, nets):
    """A few addresses and ranges near the beginning of the networks, where they hurt."""
    items = []
    for net in nets:
        head = net.partition("/")[0]
        for _number in range(draw(st.integers(0, 2))):
            low = draw(st.integers(0, 700))
            high = low + draw(st.integers(0, 12))
            if ":" in head:
                items.append(f"{head}{low:x}-{head}{high:x}")
            else:
                base = head.rsplit(".", 2)[0]
                items.append(f"{base}.{low // 256}.{low % 256}-{base}.{high // 256}.{high % 256}")
    return items


@st.composite
def hosts_only(draw):
    """A fabric without pods, and its nodes: links and a gateway per family among them."""
    raw, nodes = draw(fabrics())
    raw |= {
        "attachment": "none",
        "pods_per_node": None,
        "node_prefix": {"ipv4": draw(st.integers(27, 31)), "ipv6": draw(st.sampled_from([64, 124, 126, 127]))},
        "gateway": {family: draw(st.sampled_from(["first", "last", "last", "none", 2])) for family in ("ipv4", "ipv6")},
    }
    return raw, nodes


@st.composite
def fabrics(draw):
    """A fabric as people may declare it, and its nodes."""
    mode = draw(st.sampled_from(["exclusive", "exclusive", "shared", "shared", "flat"]))
    network = "infiniband" if mode == "flat" else draw(st.sampled_from(["roce", "roce", "infiniband"]))
    attachment = draw(
        st.sampled_from(["ib-sriov", "ipoib"] if network == "infiniband" else ["macvlan", "ipvlan", "sriov"])
    )
    families, nets = draw(supernets())
    slots = draw(st.integers(1, 9))
    raw = {
        "mode": mode,
        "network": network,
        "attachment": attachment,
        "supernets": nets,
        "max_nodes": slots,
        "rails": [{"interface": f"eth{number}"} for number in range(draw(st.integers(1, 4)))],
        "node_prefix": {"ipv4": draw(st.integers(24, 29)), "ipv6": draw(st.sampled_from([64, 112, 120, 124]))},
        "rail_prefix": {"ipv4": draw(st.integers(21, 27)), "ipv6": draw(st.sampled_from([64, 112, 120]))},
        "subnet_offset": draw(st.integers(0, 3)),
        "gateway": draw(st.sampled_from(["first", "first", "last", "none", 2, 5, -2, -4])),
        "host_addresses": draw(st.sampled_from(["start", "end"])),
        "pods_per_node": draw(st.sampled_from([None, None, None, 1, 2])),
        "reserved_per_subnet": draw(st.sampled_from([None, None, {"first": 3, "last": 0}, {"first": 1, "last": 2}])),
        "existing_networks": ["192.168.0.0/16", "fd99::/32"],
    }
    explicit = mode == "shared" and draw(st.booleans())
    if mode == "flat":
        small = draw(st.sampled_from([8, 10]))
        nets = raw["supernets"] = [f"{net.partition('/')[0]}/{(128 if ':' in net else 32) - small}" for net in nets]
    if explicit:
        raw["rails"][-1]["subnets"] = [{4: "10.200.4.0/22", 6: "fd77::/64"}[family] for family in families]
    groups = [] if explicit else [f"group{number}" for number in range(draw(st.sampled_from([0, 0, 1, 2, 3])))]
    raw["zones"] = [
        {"name": f"z{number}", "group": group, "supernets": [shifted(net, number) for net in nets]}
        for number, group in enumerate(groups)
    ]
    nets = [net for zone in raw["zones"] for net in zone["supernets"]] or nets
    raw["reserved"] = draw(reserved(nets))
    count = draw(st.integers(1, slots))
    nodes = [{"host": f"n{number}"} for number in range(1, count + 1)]
    for node in nodes:
        if groups:
            node["groups"] = [draw(st.sampled_from(groups))]
    names = [f"rail{number}" for number in range(1, len(raw["rails"]) + 1)]
    out = st.one_of(st.just("all"), st.lists(st.sampled_from(names), min_size=1, unique=True))
    raw["out_of_service"] = {
        node["host"]: {"rails": draw(out), "reason": "RMA 4711"} for node in nodes if draw(st.integers(0, 5)) == 5
    }
    return raw, nodes

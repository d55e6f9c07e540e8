# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a record takes of a host: what is not in these tables is not read. Data alone.

A new file, program or setting that a module reads gets its row here; replaying a record names what has none.
"""

from __future__ import annotations

import re
import typing as t


class Files(t.NamedTuple):
    """Files of folders. The first row that a file fits counts.

    :param folder: a path with wildcards.
    :param names: in it, with wildcards, parted by blanks.
    :param keep: what is taken: everything, `names` (no contents), `keys` (lines with a key of KEYS), `vpd` (a card's
        vital product data), `config` (a bridge's configuration space), `bytes`, or what an expression matches.
    :param form: of each match.
    """

    folder: str
    names: str
    keep: str = ""
    form: str = r"\g<0>"


NET, RDMA, PORT, PCI = (
    "/sys/class/net/*",
    "/sys/class/infiniband/*",
    "/sys/class/infiniband/*/ports/*",
    "/sys/bus/pci/devices/*",
)
MODULES = r"(?m)^.*(?:ib_|rdma|mlx|nvidia|gdr|rxe|siw|iw_|irdma|bnxt_re|8021q).*?(?::|$)"
OPTIONS = r"(?m)^\s*(?:options|install|blacklist|softdep)\s+(?:ib_|mlx|rdma|nvidia)\S*(?:\s+\w+=[\w,.]*)*\s*$"
STORAGE = r"(?m)^\S+ \S+ (nfs4?|ceph|lustre|beegfs|cifs|smb3) \S*?(addr=[\da-fA-F.:]+).*$"
ARGUMENTS = r"\b(?:ib_core\.\w+|pci|iommu|intel_iommu|amd_iommu|net\.ifnames|biosdevname)=[\w,.:;@/-]*"
LIBRARIES = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
FILES = (
    # Our own.
    Files("/etc/modprobe.d", "zz-railops-rdma.conf"),
    Files("/etc/modules-load.d", "railops-*.conf"),
    Files("/etc/netplan", "*railops-*.yaml"),
    Files("/etc/NetworkManager/system-connections", "railops-*.nmconnection"),
    Files("/etc/systemd/network", "*railops-*"),
    Files("/etc/systemd/networkd.conf.d", "90-railops.conf"),
    Files("/etc/udev/rules.d", "90-railops-ipoib.rules"),
    Files("/etc/sysctl.d", "90-railops-rails.conf"),
    Files("/etc/railops-rdma", "*.json"),
    Files("/etc/iproute2/rt_protos.d", "railops.conf"),
    Files("/etc/systemd/system", "railops-*.service"),
    Files(
        "/etc/systemd/system/multi-user.target.wants",
        "railops-*.service systemd-networkd.service NetworkManager.service",
        "names",
    ),
    Files("/etc/default/grub.d", "config-acs.cfg"),
    Files("/usr/local/lib/railops-rdma", "*.py"),
    Files("/var/lib/railops-rdma", "nic_link_type.json"),
    # Interfaces.
    Files(
        NET,
        "address type mtu operstate carrier carrier_changes carrier_down_count carrier_up_count dev_port ifindex iflink"
        " flags phys_port_name parent mode speed duplex device lower_* upper_* master",
    ),
    Files(f"{NET}/statistics", "*"),
    Files(f"{NET}/qos", "*"),
    Files(f"{NET}/ecn/*", "*"),
    Files(f"{NET}/ecn/*/enable", "*"),
    Files("/proc/net", "if_inet6"),
    Files("/proc/net/vlan", "*"),
    Files("/proc/sys/net/ipv4", "ip_forward"),
    Files("/proc/sys/net/ipv4/conf/*", "accept_local arp_announce arp_filter arp_ignore forwarding rp_filter"),
    Files("/proc/sys/net/ipv4/neigh/*", "gc_thresh?"),
    Files("/proc/sys/net/ipv6/neigh/*", "gc_thresh?"),
    Files(
        "/proc/sys/net/ipv6/conf/*",
        "accept_dad accept_ra addr_gen_mode autoconf disable_ipv6 forwarding keep_addr_on_down use_tempaddr",
    ),
    # RDMA.
    Files(RDMA, "node_guid sys_image_guid node_type fw_ver hca_type hw_rev board_id parent device"),
    Files(PORT, "link_layer state phys_state rate lid sm_lid sm_sl cap_mask"),
    Files(f"{PORT}/gids", "*", r"\A(?!(?:0000:){7}0000).*"),
    Files(f"{PORT}/gid_attrs/*", "*"),
    Files(f"{PORT}/counters", "*"),
    Files(f"{PORT}/hw_counters", "*"),
    Files(f"{RDMA}/tc/*", "traffic_class"),
    Files("/sys/class/infiniband_verbs/*", "ibdev"),
    Files("/sys/class/infiniband_mad/*", "ibdev port"),
    Files("/dev/infiniband", "*", "names"),
    Files("/dev", "gdrdrv", "names"),
    Files("/sys/kernel/config/rdma_cm/*/ports/*", "default_roce_tos"),
    Files("/sys/kernel/debug/mlx5/*/cc_params", "*"),
    # The machine.
    Files(
        PCI,
        "class vendor device subsystem_vendor subsystem_device revision numa_node sriov_totalvfs sriov_numvfs"
        " current_link_speed current_link_width max_link_speed max_link_width driver physfn virtfn* iommu_group",
    ),
    Files(PCI, "vpd", "vpd"),
    Files(PCI, "config", "config"),
    Files("/sys/class/nvme/*", "transport address"),
    Files("/sys/class/iscsi_connection/*", "address"),
    Files("/sys/class/dmi/id", "sys_vendor product_name board_vendor board_name bios_version"),
    Files("/sys/devices/system/node/*", "cpulist"),
    Files("/sys/kernel/iommu_groups/0", "type"),
    Files("/sys/firmware/efi/efivars", "SecureBoot-*", "bytes"),
    Files("/proc", "cpuinfo", r"(?ms)\Aprocessor.*?^flags[^\n]*"),
    Files(
        "/proc",
        "mounts",
        r"(?m)^\S+ \S+ (nfs4?|ceph|lustre|beegfs|cifs|smb3) \S*?(addr=[\da-fA-F.:]+).*$",
        r"- - \1 \2 0 0",
    ),
    Files("/proc/sys/kernel/random", "boot_id"),
    # The system.
    Files(
        "/proc",
        "cmdline",
        r"(?:ib_core\.\w+|pci|iommu|intel_iommu|amd_iommu|net\.ifnames|biosdevname)=[\w,.:;@/-]*",
        r"\g<0> ",
    ),
    Files("/proc", "kallsyms", r"(?m)^.*\bib_register_peer_memory_client\b.*$"),
    Files("/proc/driver/nvidia", "version"),
    Files("/sys/module", "*", "names"),
    Files("/sys/module/*", "version srcversion"),
    Files("/sys/module/ib_core/parameters", "netns_mode"),
    Files("/lib/modules", "*", "names"),
    Files("/lib/modules/{release}", "modules.dep modules.builtin", MODULES),
    Files("/lib/modules/{release}/build", "Makefile", "names"),
    Files("/boot", "initr* vmlinuz*", "names"),
    Files("/etc", "os-release"),
    Files("/run", "NetworkManager netplan", "names"),
    Files("/run/systemd", "system", "names"),
    Files("/run/systemd/netif", "links", "names"),
    Files("/usr/lib/systemd", "systemd-networkd", "names"),
    Files("/lib/systemd", "systemd-networkd", "names"),
    *(Files(home, "netplan nmcli networkctl", "names") for home in ("/usr/sbin", "/usr/bin", "/sbin", "/bin")),
    Files("/run/mellanox/drivers", ".driver-ready", "names"),
    *(
        Files(f"{home}/modprobe.d", "*.conf", OPTIONS)
        for home in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
    ),
    # Network managers. Most of what a key says is no secret; one that is none of KEYS is not taken.
    *(Files(f"{home}/netplan", "*.yaml", "keys") for home in ("/etc", "/run", "/usr/lib", "/lib")),
    *(Files(f"{home}/NetworkManager/system-connections", "*", "keys") for home in ("/etc", "/run", "/usr/lib")),
    *(
        Files(f"{home}/systemd/network{more}", "*.network *.link *.netdev *.conf", "keys")
        for home in LIBRARIES
        for more in ("", "/*.d")
    ),
    Files("/run/systemd/netif/links", "*", "keys"),
    Files("/etc/network", "interfaces", "keys"),
    Files("/etc/network/interfaces.d", "*", "keys"),
    Files("/etc/sysconfig/network-scripts", "ifcfg-*", "keys"),
    Files("/run/udev/data", "n*", r"(?m)^E:ID_(?:NET_\w+|PATH|BUS)=.*$"),
)
# The keys of network managers' files whose lines are taken, in any of their formats and spellings (dash, underscore).
KEY_WORDS = """
accept-ra accept-local activation-mode addr-gen-mode address address1 address2 address3 address4 addresses admin-state
alias allow-hotplug arp auto autoconf autoconnect autoconnect-priority bond bonds bootproto bridge bridges broadcast
cidr
connection-type critical defroute description destination device dhcp dhcp4 dhcp6 dns driver emit-lldp ethernets family
from gateway gateway4 gateway6 gatewayonlink group hwaddr id iface ignore-carrier infiniband interface interface-name
interfaces ipaddr ipv6addr ipv6init keep-configuration kind link link-local linklocaladdressing lldp macaddress
manage-foreign-routes match may-fail metric mode mtu mtubytes name netmask network network-file never-default
nm-controlled no-auto-default on-link onboot oper-state optional originalname parent path peerdns permanentmacaddress
pkey prefix prefixlength priority primary protocol renderer required-for-online requiredforonline route route-metric
route-table route1 route2 route3 route4 routes routing-policy routing-rule1 routing-rule2 routing-rule3 routing-rule4
scope set-name slave source source-directory sourcepolicyrouting table to transport-mode type unmanaged up use-dns
user-control uuid version via virtual-function-count vlan vlan-id vlanid vlans wake-on-lan wakeonlan
"""
KEYS = frozenset(KEY_WORDS.split())
LINE = re.compile(r"^\s*(?:- )?\s*(?P<key>[\w.-]+)\s*[:=](?P<value>[^{}|>&]*)$")
# ifupdown parts words by blanks alone.
WORDS = re.compile(r"^\s*(?P<key>[\w-]+)\s+(?P<value>.*)$")
ITEM = re.compile(r"^\s*-\s*[\"']?[\w.:-]+(?:/\d+)?[\"']?\s*$")
SECTION = re.compile(r"^\s*(?:\[[\w. -]+\]|(?P<key>[\w.-]+):)\s*$")

# The programs that modules call, and how each says its version.
VERSIONS = {
    "ip": "-V",
    "rdma": "-V",
    "ethtool": "--version",
    "lldpcli": "-v",
    "nmcli": "--version",
    "networkctl": "--version",
    "mlxconfig": "--version",
    "mstconfig": "--version",
}
# {interface} is each that has a device, {nic} each NIC of NVIDIA's by its PCI address.
COMMANDS = (
    ("ip", "-j", "-d", "link", "show"),
    ("ip", "-j", "neigh", "show"),
    ("ip", "-j", "route", "show", "table", "all"),
    ("ip", "-j", "-6", "route", "show", "table", "all"),
    ("rdma", "system"),
    ("rdma", "-j", "link"),
    ("rdma", "-j", "resource", "show", "qp"),
    ("lldpcli", "-f", "json0", "show", "neighbors", "details"),
    ("ethtool", "{interface}"),
    ("mlnx_qos", "-i", "{interface}"),
    ("mlxconfig", "-d", "{nic}", "-e", "q"),
    ("mstconfig", "-d", "{nic}", "-e", "q"),
    ("modinfo", "-F", "srcversion", "mlx5_core"),
    ("networkctl", "list", "--no-pager", "--no-legend"),
    ("nvidia-smi", "topo", "-m"),
    ("rdma_topo", "check"),
    ("lspci", "-nnt"),
    ("uname", "-srm"),
)


def lines_with_keys(path: str, text: str) -> str:
    """Return a network manager's file with the lines of known keys; the others are named as not recorded."""
    pattern = WORDS if path.startswith("/etc/network/") else LINE
    found, last = [], ""
    for line in text.splitlines():
        section, known = SECTION.match(line), pattern.match(line)
        if ITEM.match(line):
            taken = last in KEYS
        else:
            last = _key(section["key"] or "" if section else known["key"] if known else "")
            taken = not line.strip() or bool(section) or last in KEYS
        found.append(line if taken else "# (not recorded)")
    return "\n".join(found) + "\n"


def _key(text: str) -> str:
    return text.lower().replace("_", "-")

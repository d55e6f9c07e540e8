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
    :param keep: what is taken: everything (the kernel's own), `names` (no contents), the known settings of a network
        manager's file (`yaml`, `ini`, `script`, `words`), `ours` and `json` (what modules of this collection write),
        `program` (theirs, as it is), `vpd` (a card's vital product data), `bytes`, or a row of EXPRESSIONS: the
        matches that are typed (allow.py).
    """

    folder: str
    names: str
    keep: str = ""


# What is taken of other texts, and behind "=>" in which form where it is not the match.
EXPRESSIONS = {
    "gid": r"\A(?!(?:0000:){7}0000)[\da-f:]{39}",
    "hardware": r"\A(?:[\da-f]{2}:){5}(?:(?:[\da-f]{2}:){14})?[\da-f]{2}\n?\Z",
    "release": r"\A[\w.-]{1,40}\n?\Z",
    "traddr": r"(?<![^,])traddr=[\da-fA-F.:]+(?=,|\s)",
    "peer": r"\A\[?[\da-fA-F.:]+\]?\s*\Z",
    "flags": r"(?m)^(flags\s*:).*(?= )( hypervisor)\b.*$ => \1\2",
    "storage": r"(?m)^.* (nfs4?|ceph|lustre|beegfs|cifs|smb3) (?:\S*,)?(addr=[\da-fA-F.:]+)(?=[ ,]).* => - - \1 \2 0 0",
    "arguments": r"(?<!\S)(?:ib_core\.\w+|pci|iommu|intel_iommu|amd_iommu|net\.ifnames|biosdevname)=\S* => \g<0> ",
    "symbol": r"(?m)^.* (ib_register_peer_memory_client)\b.*$ => 0 T \1",
    "nvidia": r"(?m)^(NVRM version:)(?:.*?(Open Kernel Module))?.*? (\d+\.\d+[.\d]*) .*$ => \1 \2 \3",
    "modules": r"(?m)^[\w./+-]*?/([\w-]*(?:ib_|rdma|mlx|nvidia|gdr|rxe|siw|iw_|bnxt_re|8021q)[\w.-]*(?::|$)) => /\1",
    "distribution": r"(?m)^(?:ID|ID_LIKE|VERSION_ID|VERSION_CODENAME|PLATFORM_ID)=.*$",
    "options": r"(?m)^[ \t]*(?:options|blacklist)[ \t]+(?:ib_|mlx|rdma|nvidia)\w*(?:[ \t]+\w+=\w*)*[ \t]*$",
    "sysctl": r"(?m)^-?[ \t]*net[./]ipv[46][./][\w./@-]+[ \t]*=[ \t]*-?\d+[ \t]*$",
    "udev": r"(?m)^E:ID_(?:NET_NAME\w*|NET_DRIVER|PATH|BUS)=.*$",
}
# Rows, parted by semicolons: folder, names, and what is kept of them. Ours, the kernel's, other people's.
TABLE = """
/etc/modprobe.d | zz-railops-rdma.conf | ours; /etc/modules-load.d | railops-rdma.conf railops-gpudirect.conf | ours;
/etc/systemd/networkd.conf.d | 90-railops.conf | ours; /etc/udev/rules.d | 90-railops-ipoib.rules | ours;
/etc/sysctl.d | 90-railops-rails.conf | ours; /etc/iproute2/rt_protos.d | railops.conf | ours;
/etc/systemd/system | railops-acs.service railops-roce-qos@.service | ours;
/etc/systemd/system/multi-user.target.wants | railops-acs.service systemd-networkd.service
NetworkManager.service | names; /etc/railops-rdma | roce-qos.json acs.json | json;
/var/lib/railops-rdma | nic_link_type.json | json; /usr/local/lib/railops-rdma | roce_qos.py | program;
/opt/cni/bin | ipvlan macvlan spiderpool tuning | names; /etc/cni/net.d | 00-multus.conf | names;
/sys/class/net/* | address | hardware; /sys/class/net/* | type mtu operstate carrier carrier_changes carrier_down_count
carrier_up_count dev_port ifindex iflink flags phys_port_name parent mode speed duplex device lower_* upper_* master;
/sys/class/net/*/{statistics,qos} | *; /sys/class/net/*/ecn/* | *; /sys/class/net/*/ecn/*/enable | *;
/proc/net | if_inet6; /proc/net/vlan | *; /proc/sys/net/ipv4 | ip_forward; /proc/sys/net/ipv4/conf/* | accept_local
arp_announce arp_filter arp_ignore forwarding rp_filter; /proc/sys/net/{ipv4,ipv6}/neigh/* | gc_thresh?;
/proc/sys/net/ipv6/conf/* | accept_dad accept_ra addr_gen_mode autoconf disable_ipv6 forwarding keep_addr_on_down
use_tempaddr; /sys/class/infiniband/* | node_guid sys_image_guid node_type fw_ver hca_type hw_rev board_id parent
device; /sys/class/infiniband/*/ports/* | link_layer state phys_state rate lid sm_lid sm_sl cap_mask;
/sys/class/infiniband/*/ports/*/gids | * | gid; /sys/class/infiniband/*/ports/*/gid_attrs/* | *;
/sys/class/infiniband/*/ports/*/{counters,hw_counters} | *; /sys/class/infiniband/*/tc/* | traffic_class;
/sys/class/infiniband_verbs/* | ibdev; /sys/class/infiniband_mad/* | ibdev port; /dev/infiniband | * | names;
/dev | gdrdrv | names; /sys/kernel/config/rdma_cm/*/ports/* | default_roce_tos; /sys/kernel/debug/mlx5/*/cc_params | *;
/sys/bus/pci/devices/* | class vendor device subsystem_vendor subsystem_device revision numa_node sriov_totalvfs
sriov_numvfs current_link_speed current_link_width max_link_speed max_link_width driver physfn virtfn* iommu_group;
/sys/bus/pci/devices/* | vpd | vpd; /sys/class/nvme/* | transport;
/sys/class/nvme/* | address | traddr; /sys/class/iscsi_connection/* | address | peer;
/sys/class/dmi/id | sys_vendor product_name board_vendor board_name bios_version; /sys/devices/system/node/* | cpulist;
/sys/kernel/iommu_groups/0 | type; /sys/firmware/efi/efivars | SecureBoot-* | bytes; /proc | cpuinfo | flags;
/proc | mounts | storage; /proc | cmdline | arguments; /proc | kallsyms | symbol; /proc/sys/kernel/random | boot_id;
/proc/driver/nvidia | version | nvidia; /sys/module | *ib_* *rdma* mlx* nvidia* gdr* *rxe* siw iw_* bnxt_re 8021q cifs
ko2iblnd smbdirect smc nvme* | names; /sys/module/* | version srcversion | release;
/sys/module/ib_core/parameters | netns_mode; /lib/modules | * | names;
/lib/modules/{release} | modules.dep modules.builtin | modules; /lib/modules/{release}/build | Makefile | names;
/boot | initr* vmlinuz* | names; /etc | os-release | distribution; /run | NetworkManager netplan | names;
/run/systemd | system | names; /{usr/lib,lib}/systemd | systemd-networkd | names;
/{usr/sbin,usr/bin,sbin,bin} | netplan nmcli networkctl | names; /run/mellanox/drivers | .driver-ready | names;
/{etc,run,usr/local/lib,usr/lib,lib}/modprobe.d | *.conf | options; /{etc,run,usr/lib,lib}/netplan | *.yaml | yaml;
/{etc,run,usr/lib}/NetworkManager/system-connections | * | ini;
/{etc,run,usr/local/lib,usr/lib,lib}/systemd/{network,network/*.d} | *.network *.network.d *.link *.netdev *.conf | ini;
/run/systemd/netif | links | names; /run/systemd/netif/links | * | script;
/{etc,run,usr/lib}/NetworkManager/conf.d | *.conf | ini; /etc/NetworkManager | NetworkManager.conf | ini;
/{etc,run,usr/local/lib,usr/lib}/sysctl.d | *.conf | sysctl; /etc/network | interfaces | words;
/etc/network/interfaces.d | * | words; /etc/sysconfig/network-scripts | ifcfg-* | script; /run/udev/data | n* | udev
"""


def _each(text: str) -> list[str]:
    """Return a path once for each choice in its braces."""
    found = re.search(r"\{([^{}]+,[^{}]+)\}", text)
    return [path for word in found[1].split(",") for path in _each(text.replace(found[0], word))] if found else [text]


FILES = tuple(
    Files(folder, *rest)
    for first, *rest in (row.split(" | ") for row in " ".join(TABLE.split()).split("; "))
    for folder in _each(first)
)
# Words that tell nobody whose a host is, beside those of the tables here: keys and values of network managers and of
# `ip`, `rdma` and LLDP (without marks and digits), drivers, distributions, what interfaces are called. Only what is
# made of them is taken as it is: the name of a setting that may hold a secret or a command must not be here.
WORDS = """
acceptlocal acceptra action activationmode activationpolicy active add addresses addrgenmode adhoc admin adminstate
allmulti allowedaddresses allowhotplug almalinux alternativename alternativenamespolicy altnames any anycast ap arch
attr auto autoconnect autoconnectpriority autonegotiate azure backend blackhole bond bonding bondmaster bondmode bonds
bondslaves bookworm bootproto bridge bridgeports bridges broadcast buffer bullseye by cable cache capability centos
change chassis clonedmacaddress cloud comm configured configurewithoutcarrier connected connectionautoconnectpriority
container controller critical cumulus cxgb cycle database datagram dcbx dead debian defroute deprecated descr
destination dhcp dhcpoverrides dhcptimeout disabled dns dnsdefaultroute dnsoptions dnspriority dnssearch docker
domains dormant drm dscp dscps dst dstlen dummy duplicateaddressdetection dynamic efa el en enabled eni eno enp ens
env enx eth ether ethernet ethernets ets eui except exclusive fail failed false family fc fedora fixed forever from
full fwctl fwmark fwmask gateway gatewayonlink generic gigabit global gre gz half hfi high hns host hwaddr hwaddress
i40e ibp ibs ibx ice iface ifalias ifname ignoreautodns ignoreautoroutes ignorecarrier ignorecarrierloss iif index
infinibandmode info init initialized instance instead interfacename inventory invertrule ip6gre ipaddr ipip ipprivacy
ipproto iptables iptunnel ipvacceptra ipvaddr ipvinit ipvlan ipvtap iser isert ixgbe jammy keepconfiguration keyfile
kind ko l3mdev length life linkdown linkinfo linklocal linklocaladdressing linkmode lldp llmnr lo localhost lookup
loopback loose low lowlatency lqpn mac macaddress macaddresspolicy macvlan macvtap main managed manageforeignroutes
manageforeignroutingpolicyrules mandatory manual masquerade match matchdevice mayfail mdev mdns medium method metric
metrics mfs mgmt min mlxfw mlxsw modeset move mtubytes multicast multicastdns multiconnect namepolicy nameservers
neighbors netmask netnsid never neverdefault nexthops nm nmconnection nmcontrolled no noarp noautodefault noble none
noprefixroute not note nowhere ntp num nvmet o ocrdma off offline offload oif onboard onboot onlink oper operations
optional oracle original originalname oui parentbus parentdev passthrough peermem permaddr permanent
permanentmacaddress persistent pervasive pfc physdev physical pid pkey plugins pointopoint policy polling power
predictable pref preferred preferredsource prefix prefixlen prefixlength prefsrc primary priority private prohibit
promisc protocol pt pvid pvrdma qedr qib quiet rail rds realloc redhat redirect relax renderer required
requiredforonline rhel rocky routable routemetric routeoptions router routes routetable routingpolicy
routingpolicyrule routingrule rpcrdma rule scope search secondary serviceable set setname shared sit site slaac slave
slavetype slot src srclen srp srpt stable static strict subtype suppress swp team temporary tentative the throw time
tlv tlvs to transmit transportmode trixie true trust tun tunnel ubuntu ucm umad unicast unknown unmanaged
unmanageddevices unreachable usb usedomains useroutes usnic uuid uverbs uvm valid value values vb vdpa ve veth vf via
vid virtio virtual virtualfunctioncount vlanid vlanrawdevice vlans vm vmw volatile vrf vt vxlan vz wait
waitdevicetimeout wakeonlan weight wifi wired wl wlan wlp written ww xdp xfrm xz yes zst
"""

# The programs that modules call, and how each says its version.
VERSIONS = "ip -V, rdma -V, ethtool --version, lldpcli -v, nmcli --version, networkctl --version, mlxconfig --version"
# {interface} is each that has a device, {nic} each NIC of NVIDIA's and {bridge} each bridge by its PCI address.
COMMANDS = (
    "ip -j -d link show; ip -j route show table all; ip -j -6 route show table all; rdma system; rdma -j link; "
    "rdma -j resource show qp; mlnx_qos -i {interface}; mlxconfig -d {nic} -e q; mstconfig -d {nic} -e q; "
    "modinfo -F srcversion mlx5_core; nvidia-smi topo -m; setpci -s {bridge} ECAP_ACS+6.w; "
    "ip -json -details address show"
)
# What is taken of answers that are neither JSON nor a version: whole lines.
COLUMN = r" +(?:\w*\((?:\d+|0x[\da-fA-F]+)\)|\d+|0x[\da-fA-F]+|N/A|-|Array\[[\d.]+\])(?= |$)"
CONFIGURATION = (
    r"Configurations:(?: +(?:Default|Current|Next Boot|New))+ *|(?:Device type|Name): +[\w-]+"
    rf"|\*? *(?:RO)? +[A-Z][A-Z0-9_]*(?:\[[\d.N]+\])?(?:{COLUMN})+ *"
)
LINES = {
    "rdma": r"netns (?:shared|exclusive)(?: [a-z-]+ (?:on|off))*",
    "mlnx_qos": r"DCBX mode: (?:OS|Firmware) controlled|Priority trust state: (?:dscp|pcp|none)|dscp2prio mapping:"
    r"|\s*prio:\d dscp:[\d,]+|Cable len: \d+|PFC configuration:|\s*(?:priority|enabled|buffer)[\d\s]*",
    **dict.fromkeys(("mlxconfig", "mstconfig"), CONFIGURATION),
    "modinfo": r"[\dA-F]{16,33}",
    "setpci": r"[\da-f]{4}",
    "nvidia-smi": r"\s*(?:GPU|NIC)\d+(?:\s+(?:(?:GPU|NIC|NV)\d+|X|SYS|NODE|PHB|PXB|PIX|N/A|[\d,-]+|mlx5_\d+))*\s*"
    r"|\s*NIC\d+: mlx5_\d+",
}

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes hosts out of a grammar of each format that a record reads, with a secret wherever that format allows a text.

Where a value, a key, a section, a comment, a name of a file or a line may stand, a secret may: the grammar knows the
formats, and nothing of what a record takes of them.
"""

from __future__ import annotations

import base64
import json
import random
import string
import struct
import typing as t
from pathlib import Path

from ansible_collections.railops.rdma.plugins.module_utils._persist.model import HEADER
from ansible_collections.railops.rdma.plugins.module_utils._route import netlink as nl
from ansible_collections.railops.rdma.tests.unit.machines import put

KEYS = [
    "network",
    "version",
    "renderer",
    "ethernets",
    "wifis",
    "tunnels",
    "vlans",
    "bonds",
    "access-points",
    "password",
    "key",
    "mtu",
    "addresses",
    "match",
    "name",
    "macaddress",
    "set-name",
    "routes",
    "to",
    "via",
    "auth",
    "identity",
    "nameservers",
    "search",
    "dhcp4",
    "id",
    "link",
    "interfaces",
    "parameters",
    "mode",
    "optional",
]
SECTIONS = [
    "Match",
    "Link",
    "Network",
    "Address",
    "Route",
    "NetDev",
    "WireGuard",
    "WireGuardPeer",
    "MACsec",
    "L2TP",
    "Tunnel",
    "connection",
    "ethernet",
    "wifi",
    "wifi-security",
    "vpn",
    "vpn-secrets",
    "802-1x",
    "wireguard",
    "ipv4",
    "ipv6",
    "vlan",
    "match",
    "proxy",
    "user",
]
SETTINGS = [
    "Name",
    "MACAddress",
    "MTUBytes",
    "Address",
    "Gateway",
    "DNS",
    "Domains",
    "Description",
    "PrivateKey",
    "PresharedKey",
    "Key",
    "Alias",
    "Destination",
    "WakeOnLanPassword",
    "id",
    "uuid",
    "type",
    "interface-name",
    "mtu",
    "mac-address",
    "method",
    "address1",
    "route1",
    "route1_options",
    "dns-search",
    "psk",
    "ssid",
    "identity",
    "password",
    "private-key",
    "username",
    "gateway",
    "secrets",
    "VLAN",
    "Bridge",
    "DHCP",
    "Kind",
]
SCRIPT = [
    "DEVICE",
    "TYPE",
    "NAME",
    "IPADDR0",
    "KEY",
    "WPA_PSK",
    "ESSID",
    "MTU",
    "MACADDR",
    "DOMAIN",
    "ETHTOOL_OPTS",
    "BOOTPROTO",
    "HWADDR",
    "USERCTL",
    "OPER_STATE",
    "DNS",
]
STANZAS = [
    "address",
    "netmask",
    "mtu",
    "up",
    "pre-up",
    "post-up",
    "down",
    "wpa-psk",
    "wpa-ssid",
    "hwaddress",
    "gateway",
    "dns-search",
    "source",
    "mapping",
    "script",
    "wireless-key",
    "bond-slaves",
    "mode",
    "description",
    "auto",
    "allow-hotplug",
    "iface",
    "metric",
    "provider",
]
GOOD = [
    "9000",
    "192.0.2.7/24",
    "eth0",
    "ens1np0",
    "true",
    "manual",
    "auto",
    "00:00:5e:00:53:01",
    "2001:db8::7",
    "vlan",
    "",
]
SAID = "{0}: {1}\nSpeed: {0}\nnetns {0}\nserial number {0} of {1}\nDCBX mode: {0} controlled\n\tprio:0 dscp:{0}\n"


class Grammar:
    """One random host.

    :param seed: the same makes the same host.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.secrets: list[str] = []

    def secret(self, word: bool = False) -> str:
        """Return a new secret, of one of the forms that secrets have.

        :param word: whether it must be one word, as a file's name or a label.
        """
        pick, letters = self.chance.choice, string.ascii_lowercase
        plain = "".join(pick(letters) for _place in range(10)) + str(self.chance.randrange(1000))
        forms = [
            plain,
            plain.title(),
            f"{plain}-{pick(['corp', 'site', 'x'])}",
            str(self.chance.randrange(10**11, 10**15)),
        ]
        if not word:
            raw = self.chance.randbytes(32)
            forms += [
                base64.b64encode(raw).decode(),
                raw.hex(),
                f"{plain}!@#$%",
                f"{plain} and {plain[::-1]}",
                f"ü{plain}",
            ]
            forms += [f"https://svc:{plain}@vpn.example/", f"-psk={plain};x", f"eyJ{plain}.eyJ{plain[::-1]}.sig"]
        found = pick(forms)
        # What is looked for: the longest run of letters and digits that nobody else has.
        self.secrets.append(
            max("".join(c if c.isalnum() and c.isascii() else " " for c in found).split(), key=len).lower()
        )
        return found

    def text(self) -> str:
        return self.secret() if self.chance.random() < 0.5 else self.chance.choice(GOOD)

    def line(self) -> str:
        return self.text().replace("\n", " ")

    def some(self, make: t.Callable[[], str], most: int = 4) -> list[str]:
        return [make() for _number in range(self.chance.randrange(1, most + 1))]

    # YAML

    def scalar(self) -> str:
        text, pad = self.line(), " " * 40
        quoted = [json.dumps(text), "'" + text.replace("'", "''") + "'", f"|\n{pad}{text}\n{pad}name: {self.secret()}"]
        quoted += [f">-\n{pad}{text}\n{pad}{self.line()}", f"!tag {json.dumps(text)}", f"&anchor {json.dumps(text)}"]
        return self.chance.choice(quoted)

    def flow(self, depth: int = 0) -> str:
        kind = self.chance.randrange(3 if depth < 3 else 1)
        if kind == 0:
            return json.dumps(self.line())
        parts = self.some(lambda: self.flow(depth + 1))
        if kind == 1:
            return f"[{', '.join(parts)}]"
        end = self.chance.choice([", ", f",   # {self.secret()}\n" + " " * 40])
        return "{" + end.join(f"{json.dumps(self.key())}: {part}" for part in parts) + "}"

    def key(self) -> str:
        return self.secret() if self.chance.random() < 0.2 else self.chance.choice(KEYS)

    def block(self, pad: str = "", depth: int = 0) -> str:
        found = ""
        for _number in range(self.chance.randrange(1, 5)):
            key, kind = self.key(), self.chance.randrange(6)
            shown = key if key in KEYS else json.dumps(key)
            found += f"{pad}# {self.secret()}\n" if self.chance.random() < 0.2 else ""
            if kind < 2 and depth < 4:
                found += f"{pad}{shown}:\n{self.block(pad + '  ', depth + 1)}"
            elif kind == 2:
                found += f"{pad}{shown}:\n" + "".join(f"{pad}- {json.dumps(self.line())}\n" for _item in range(2))
            elif kind == 3:
                found += f"{pad}{shown}: {self.flow()}\n"
            elif kind == 4:
                found += f"{pad}? [{json.dumps(self.secret())}]\n{pad}: {json.dumps(self.line())}\n"
            else:
                found += f"{pad}{shown}: {self.scalar()}\n"
        return found

    def yaml(self) -> str:
        text = f"network:\n  ethernets:\n    {json.dumps(self.key())}:\n{self.block('      ')}{self.block('  ')}"
        more = [
            f"---\n{self.block()}",
            f"# {self.secret()}\n",
            f"%TAG ! tag:{self.secret(True)}\n---\n",
            f"{self.secret()}\n",
        ]
        return "".join([*(self.chance.sample(more, 1) if self.chance.random() < 0.3 else ()), text])

    # INI

    def ini(self) -> str:
        lines = []
        for _section in range(self.chance.randrange(1, 5)):
            name = self.chance.choice(SECTIONS)
            name = self.chance.choice([name, name, name, self.secret(), f"{name}.{self.secret()}"])
            lines.append(f"[{name}]")
            for _setting in range(self.chance.randrange(6)):
                key = self.chance.choice(SETTINGS) if self.chance.random() < 0.9 else self.secret()
                value = self.line()
                mark, end = (
                    self.chance.choice(["=", "=", " = ", ":"]),
                    self.chance.choice(["", "", f" # {self.secret()}"]),
                )
                forms = [
                    f"{key}{mark}{value}{end}",
                    f"{key}=\\\n{value}",
                    f"{key}={value};{self.line()};",
                    f"# {value}",
                ]
                forms += [
                    f"; {key}={value}",
                    f"{key}",
                    f"  {value}",
                    f"{key}={value}\\\n# {self.secret()}\\\n{self.line()}",
                ]
                lines.append(self.chance.choice(forms))
        return "\n".join(lines) + "\n"

    # Lines

    def script(self) -> str:
        forms = [
            "{0}={1}",
            '{0}="{1}"',
            "export {0}={1}",
            "{0}={1}; {2}={1}",
            "# {0}={1}",
            "{0}=$(echo {1})",
            '{0}="\n{1}"',
            "{1}",
        ]
        return self._lines(forms, SCRIPT)

    def words(self) -> str:
        forms = [
            "  {0} {1}",
            "iface eth0 inet {1}",
            "iface {1} inet static",
            "  {0} eth0 \\\n   {1}",
            "# {1}",
            "auto lo {1}",
        ]
        return self._lines([*forms, "  {0} ip link set eth0 alias {1}", "source /etc/{1}/*", "{1} {0}"], STANZAS)

    def _lines(self, forms: list[str], keys: list[str]) -> str:
        return "\n".join(
            self.chance.choice(forms).format(self.chance.choice(keys), self.line(), self.chance.choice(keys))
            for _line in range(self.chance.randrange(1, 9))
        )

    def sentences(self, *forms: str) -> str:
        """Return lines of these forms, each with two texts."""
        return "".join(self.chance.choice(forms).format(self.line(), self.line()) + "\n" for _line in range(5))

    # JSON

    def data(self, value: t.Any, depth: int = 0) -> t.Any:
        """Return JSON of a known form with other texts and further keys in it."""
        if isinstance(value, dict):
            more = {self.secret(): self.line()} if self.chance.random() < 0.3 and depth < 6 else {}
            return {**{key: self.data(item, depth + 1) for key, item in value.items()}, **more}
        if isinstance(value, list):
            return [self.data(item, depth + 1) for item in value]
        return self.secret() if isinstance(value, str) and self.chance.random() < 0.3 else value

    # The host

    def lay_out(self, root: Path) -> None:
        """Write the host's files."""

        def name() -> str:
            return self.secret(True)

        ours = {"note": self.line(), "interfaces": {self.line(): {"dscp": 26, self.secret(): self.line()}}}
        keyfile = f"{HEADER}{self.ini()}"
        files = {
            f"/etc/netplan/{name()}.yaml": self.yaml(),
            "/run/netplan/50-cloud-init.yaml": self.yaml(),
            "/etc/netplan/zz-railops-ens1np0.yaml": f"{HEADER}{self.yaml()}",
            "/etc/netplan/99-railops-local.yaml": self.yaml(),
            f"/etc/NetworkManager/system-connections/{name()}.nmconnection": self.ini(),
            "/etc/NetworkManager/system-connections/railops-rail1.nmconnection": keyfile,
            f"/etc/systemd/network/10-{name()}.network": self.ini(),
            f"/etc/systemd/network/10-a.network.d/{name()}.conf": self.ini(),
            "/etc/systemd/network/30-railops-wg.netdev": f"{HEADER}{self.ini()}",
            "/etc/systemd/network/05-railops-rail1.link": f"{HEADER}{self.ini()}",
            "/etc/systemd/system/railops-pull.service": self.ini(),
            "/etc/systemd/system/railops-acs.service": f"{HEADER}{self.ini()}",
            "/etc/systemd/networkd.conf.d/90-railops.conf": f"{HEADER}{self.ini()}",
            "/etc/network/interfaces": self.words(),
            f"/etc/network/interfaces.d/{name()}": self.words(),
            f"/etc/sysconfig/network-scripts/ifcfg-{name()}": self.script(),
            "/run/systemd/netif/links/2": self.script(),
            "/run/udev/data/n2": self.sentences(
                "E:ID_NET_NAME={0}", "E:ID_PATH={0}", "E:{0}={1}", "S:{0}", "E:ID_BUS={0}"
            ),
            f"/etc/modprobe.d/{name()}.conf": self.sentences(
                "options mlx5_core {0}={1}",
                "options cfg80211 x={0}",
                "install mlx5_core /bin/sh {0}",
                "# {0}",
                "blacklist {0}",
            ),
            "/etc/modprobe.d/zz-railops-rdma.conf": self.sentences("options ib_core netns_mode={0}", "# {0}"),
            "/etc/sysctl.d/90-railops-rails.conf": f"{HEADER}{self.sentences('net/ipv4/{0} = 1', 'kernel.x = {0}')}",
            "/etc/udev/rules.d/90-railops-ipoib.rules": HEADER + self.sentences('RUN+="/bin/sh -c {0}"', "# {0}"),
            "/etc/modules-load.d/railops-rdma.conf": f"{HEADER}{self.secret()}\nib_uverbs\n",
            "/etc/os-release": self.sentences(
                "ID={0}", 'NAME="{0}"', 'HOME_URL="https://{0}/"', "ID_LIKE={0}", "# {0}"
            ),
            "/etc/railops-rdma/roce-qos.json": json.dumps(ours),
            "/etc/railops-rdma/acs.json": json.dumps(self.data({"note": "a", "bridges": ["0000:00:01.0"]})),
            "/usr/local/lib/railops-rdma/roce_qos.py": f"# {self.secret()}\nTOKEN = '{self.secret()}'\n",
            "/proc/cmdline": self.sentences("quiet vault_pci={0} pci={1}", "ib_core.netns_mode={0} x={1}"),
            "/proc/mounts": self.sentences(
                "{0}:/{1} /mnt nfs4 rw,addr={0} 0 0", "a b nfs4 rw,addr=192.0.2.9,pw={0} 0 0", "{0}"
            ),
            "/proc/kallsyms": self.sentences("{0} T ib_register_peer_memory_client [{1}]", "{0}"),
            "/proc/driver/nvidia/version": self.sentences(
                "NVRM version: x 550.54.15 {0}", "GCC {0}", "NVRM version: {0}"
            ),
            "/proc/cpuinfo": f"model name: {self.secret()}\nflags : a {self.secret()} hypervisor {self.secret()}\n",
            "/sys/class/nvme/nvme0/address": f"traddr={self.line()},host_traddr={self.secret()}",
            "/sys/class/iscsi_connection/connection1:0/address": self.line(),
            "/sys/class/net/gre9/address": "",
            "/sys/module/mlx5_core/version": self.line(),
        }
        for path, text in self.chance.sample(sorted(files.items()), self.chance.randrange(12, 28)):
            put(root, path, text)

    def names(self) -> list[str]:
        """Return names that were given."""
        return [self.secret(True), "link", "host", "debian", "max"]

    def said(self, argv: list[str], _text: str = "") -> dict[str, t.Any] | None:
        """Return what a program says."""
        link = {
            "ifname": "ens1np0",
            "ifindex": 2,
            "ifalias": "a",
            "address": "0a:01:02:03",
            "link_type": "gre",
            "group": "x",
        }
        held = {
            **link,
            "addr_info": [{"family": "inet", "local": "192.0.2.7", "prefixlen": 24, "label": "a", "scope": "global"}],
        }
        answers: dict[str, t.Any] = {
            "ip": [{**held, "linkinfo": {"info_kind": "gre", "info_data": {"local": "a", "okey": "a"}}}],
            "rdma": [{"ifname": "mlx5_0", "comm": "a", "pid": 7}, {"ifname": "mlx5_0", "comm": "nvme_rdma"}],
        }
        if argv[0] in answers and len(argv) > 2:
            out = json.dumps(self.data(answers[argv[0]]))
        elif argv[0] == "lldpcli" and len(argv) > 2:
            out = self.lldp()
        else:
            out = SAID.format(self.line(), self.line())
        out = self.chance.choice([out, out, out, out + self.secret()])
        return {"argv": argv, "stdin": "", "rc": 0, "out": out, "err": f"{self.secret()} not supported\n{self.line()}"}

    def lldp(self) -> str:
        """Return what lldpd heard: two neighbours of a port, one of them odd."""
        word = self.secret(True)
        odd = self.chance.choice(["09", "zz", word.encode().hex(",")])
        tlvs = [
            {"oui": o, "subtype": s, "value": odd}
            for o, s in (("00,80,C2", "9"), ("00,80,C2", "11"), ("aa,bb,cc", "1"))
        ]
        rows = [
            {
                "name": "ens1np0",
                "chassis": [
                    {
                        "id": [{"type": "mac", "value": "00:00:5e:00:53:01"}],
                        "name": [{"value": word}],
                        "descr": [{"value": "a"}],
                    }
                ],
                "port": [{"id": [{"value": "swp1"}], "descr": [{"value": self.line()}], "mfs": [{"value": "9216"}]}],
                "vlan": [{"vlan-id": "7", "pvid": True, "value": self.line()}],
                "lldp-med": [{"inventory": [{"serial": [{"value": self.secret()}]}]}],
                "unknown-tlvs": [{"unknown-tlv": self.chance.sample(tlvs, self.chance.randrange(3))}],
            }
            for _row in range(2)
        ]
        if self.chance.random() < 0.2:
            rows[1].pop("name")
        self.secrets.append(word.encode().hex(","))
        return json.dumps({"lldp": [{"interface": [self.data(row)]} for row in rows]})

    def dumped(self, kind: str) -> list[bytes]:
        """Return the kernel's answers: a tunnel whose names and ends are secrets."""
        if kind != "link":
            return []
        word, end = self.secret(True).encode(), self.chance.randbytes(4)
        self.secrets.append(end.hex())
        rows = [(nl.IFLA_IFNAME, b"gre9\0"), (1, end), (2, end), (54, end), (20, word + b"\0"), (77, word)]
        rows.append((52 | 0x8000, nl.attribute(53, word + b"\0")))
        return [
            struct.pack("=BxHiII", 0, 778, 9, 0, 0) + b"".join(nl.attribute(number, value) for number, value in rows)
        ]

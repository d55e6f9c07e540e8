# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random hosts, a thousand by the check `long`, have secrets, serials, names and addresses wherever a record reads."""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import re
import shutil
import string
import types
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._card.vpd import parse_vpd
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._record import run as work
from ansible_collections.railops.rdma.tests.conftest import LONG
from ansible_collections.railops.rdma.tests.unit.machines import put, vpd

LLDP = Path(__file__).parents[3] / "data/lldpcli-1.0.16-json0.json"
PCI = "/sys/bus/pci/devices/0000:15:00.0"
NETPLAN = """network:
  ethernets:
    ens1np0:
      addresses: [{four}/24, "{six}/64"]
      auth:
        password: {secret}
        client-key-password: |
          {secret}
      mtu: 9000
  wifis:
    wlan0:
      access-points: {{"x": {{password: "{secret}"}}}}
      keys:
        - {secret}
"""
KEYFILE = """[connection]
id=a
uuid={uuid}
[ipv4]
address1={four}/24
[wifi-security]
psk={secret}
[802-1x]
identity={user}
"""
NETWORKD = """[Match]
Name=ens*
[WireGuard]
PrivateKey={secret}
[WireGuardPeer]
PresharedKey={secret}
[Network]
Address={six}/64
"""
IFUPDOWN = "auto ens1np0\niface ens1np0 inet static\n  address {four}\n  wpa-psk {secret}\n  post-up echo {secret}\n"
SAID = """{mac} {MAC} {four} {six} {guid} {gid} Serial Number: {serial}
host {host} of {user}: {host}.corp.example {serial} {uuid}
"""
UPPER, LETTERS = string.ascii_uppercase, "abcdef"


def word(size, letters=string.ascii_lowercase):
    return "".join(random.choice(letters) for _place in range(size))


def a_host():
    """Return what a host has that nobody shall see, by kind."""
    mac = bytes([random.randrange(64) << 2, *random.randbytes(5)])
    guid = random.choice([mac[:3] + b"\x03\x00" + mac[3:], random.randbytes(8)])
    four = ipaddress.ip_address(random.choice([0x0A << 24, 0xC0A8 << 16, 0x5B << 24]) | random.randrange(300, 1 << 16))
    eui = bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]
    six = ipaddress.ip_address(
        bytes.fromhex("20010db8") + random.randbytes(4) + random.choice([eui, random.randbytes(8)])
    )
    return {
        "mac": mac.hex(":"),
        "MAC": mac.hex("-").upper(),
        "bare": mac.hex(),
        "four": str(four),
        "six": str(six),
        "inet6": six.packed.hex(),
        "guid": guid.hex(":", 2),
        "gid": f"fe80:0000:0000:0000:{guid.hex(':', 2)}",
        "serial": word(2, UPPER) + word(4, string.digits) + word(1, UPPER) + word(5, string.digits),
        "uuid": "-".join([word(8, LETTERS), f"4{word(3, LETTERS)}", *[f"a{word(3, LETTERS)}"] * 2, word(12, LETTERS)]),
        "host": f"{word(6)}{random.randrange(100)}",
        "user": word(7),
        "secret": f"{word(9)}{random.randrange(10**6)}",
    }


def lay_out(root, real):
    """Write a host with each of them in many files."""
    net = f"{PCI}/net/ens1np0"
    four = real["four"]
    files = {
        f"{net}/address": real["mac"],
        f"{net}/mtu": "9000",
        f"{PCI}/class": "0x020000",
        f"{PCI}/vendor": "0x15b3",
        "/sys/class/dmi/id/product_serial": real["serial"] + "X",
        "/sys/class/dmi/id/product_uuid": real["uuid"],
        "/sys/class/infiniband/mlx5_0/node_guid": real["guid"],
        "/sys/class/infiniband/mlx5_0/node_desc": f"{real['host']} mlx5_0",
        "/sys/class/infiniband/mlx5_0/ports/1/gids/0": real["gid"],
        f"/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/{random.randrange(9)}": f"enx{real['bare']}",
        "/sys/class/nvme/nvme0/address": f"traddr={four},trsvcid=4420,src_addr={four}",
        "/proc/net/if_inet6": f"{real['inet6']} 02 40 00 80 ens1np0",
        "/proc/mounts": f"{real['host']}:/home/{real['user']} /mnt nfs4 rw,addr={four},sec=sys,{real['secret']} 0 0",
        "/proc/cmdline": f"quiet pci=realloc ip={four} token={real['secret']}",
        "/etc/netplan/50-cloud-init.yaml": NETPLAN.format(**real),
        "/etc/NetworkManager/system-connections/a.nmconnection": KEYFILE.format(**real),
        "/etc/systemd/network/10-a.network": NETWORKD.format(**real),
        "/etc/network/interfaces": IFUPDOWN.format(**real),
        "/etc/sysconfig/network-scripts/ifcfg-ens1np0": f"IPADDR={four}\nHWADDR={real['MAC']}\nKEY={real['secret']}\n",
        "/etc/modprobe.d/a.conf": f"options mlx5_core a=1\noptions cfg80211 token={real['secret']}\n",
        "/etc/railops-rdma/roce-qos.json": json.dumps({"interfaces": {"ens1np0": [real["mac"], real["host"]]}}),
        "/root/.kube/config": real["secret"],
        "/etc/wireguard/wg0.conf": real["secret"],
    }
    for path, text in random.sample(sorted(files.items()), random.randrange(8, len(files))):
        put(root, path, text + "\n")
    put(root, f"{PCI}/class", "0x020000\n")
    (root / f"{PCI[1:]}/vpd").write_bytes(vpd("MCX75310AAS-NEAT", real["serial"]))
    home = root / "sys/class/net"
    home.mkdir(parents=True, exist_ok=True)
    put(root, f"{net}/type", "1\n")
    (home / "ens1np0").symlink_to("../../bus/pci/devices/0000:15:00.0/net/ens1np0")


def recorder(root, real, said=SAID, key=None):
    def run(argv, text):
        address = [{"ifname": "ens1np0", "addr_info": [{"local": real["four"]}, {"local": real["six"]}]}]
        if argv[0] not in ("ip", "ethtool"):
            return None
        out = json.dumps(address) if "address" in argv else said.format(**real)
        return {"argv": argv, "stdin": text, "rc": 0, "out": out, "err": said.format(**real)}

    # So many hosts share the kernel's random: a key each.
    names = [f"{real['host']}.corp.example", real["user"]]
    return work.Recorder(Sysfs(str(root)), run, key or word(20), names)


def left(archive, real):
    """Return what of the real values is anywhere in an archive, however it is written."""
    text = json.dumps(archive)
    text += "".join(base64.b64decode(row[2]).decode("latin-1") for row in archive["files"] if row[0] == "b")
    text = text.lower()
    # A stand-in such as 10.1.2.34 holds no 10.1.2.3.
    return [kind for kind, value in real.items() if re.search(rf"(?<!\d){re.escape(value.lower())}(?!\d)", text)]


@pytest.fixture(autouse=True)
def nothing_of_this_host(monkeypatch):
    monkeypatch.setattr(work, "connection_ends", lambda sysfs: None)
    monkeypatch.setattr(work, "dumped", lambda kind: [])


@pytest.mark.parametrize("seed", range(10))
def test_random_archives_keep_nothing_real(tmp_path, seed):
    random.seed(seed)
    for number in range(100 if LONG else 20):
        root = tmp_path / "root"
        real = a_host()
        lay_out(root, real)
        assert left(recorder(root, real).record(), real) == [], number
        shutil.rmtree(root)


@pytest.mark.parametrize("hidden", ["{MAC}", "{bare}", "{four}", "{six}", "{serial}", "{host}", "{user}", "{guid}"])
def test_what_the_patterns_pass_over_is_refused_with_its_place(tmp_path, monkeypatch, hidden):
    random.seed(3)
    real = a_host()
    lay_out(tmp_path, real)
    made = recorder(tmp_path, real)
    scrub = made.scrub.text
    made.record()
    # As if everything was allowed: the second look must not rest on the first.
    monkeypatch.setattr(work, "answer", lambda argv, out, allow: out)
    secret = hidden.format(**real)
    monkeypatch.setattr(made.scrub, "text", lambda text: text if secret in text else scrub(text))
    with pytest.raises(RdmaError, match=r"something real in \d+ places: \w+ in ") as failed:
        made.record()
    assert secret not in str(failed.value)


def test_the_same_value_is_the_same_everywhere(tmp_path):
    random.seed(5)
    real = a_host()
    lay_out(tmp_path, real)
    made = recorder(tmp_path, real, key="key")
    archive = made.record()
    files = {path: content for _kind, path, content, _mode in archive["files"]}
    mac = made.scrub.text(real["mac"])
    assert files[f"{PCI}/net/ens1np0/address"].strip() == mac
    (said,) = {ran["out"] for ran in archive["commands"] if "address" in ran["argv"]}
    (link,) = json.loads(said)
    assert [item["local"] for item in link["addr_info"]] == [made.scrub.address(real[kind]) for kind in ("four", "six")]
    data = parse_vpd(base64.b64decode(files[f"{PCI}/vpd"]))
    assert (data["PN"], data["SN"]) == ("MCX75310AAS-NEAT", made.scrub.serial(real["serial"]))
    assert recorder(tmp_path, real, key="key").record() == archive


def test_what_the_switch_calls_itself_has_a_stand_in(tmp_path):
    said = LLDP.read_text(encoding="utf-8")
    made = work.Recorder(
        Sysfs(str(tmp_path)), lambda argv, text="": {"out": said} if "lldpcli" in argv else None, "key"
    )
    assert "leaf1" in said
    assert "leaf1" not in made.scrub.text(said)


def test_people_have_stand_ins_whatever_their_number_is(tmp_path, monkeypatch):
    """Those of directories have numbers of 60000 and more."""
    people = {"root": 0, "carol": 1000, "dave": 60000, "erin": 1200000001}
    users = [types.SimpleNamespace(pw_name=name, pw_uid=number) for name, number in people.items()]
    monkeypatch.setattr(work.pwd, "getpwall", lambda: users)
    monkeypatch.setattr(work, "Sysfs", lambda: Sysfs(str(tmp_path)))
    monkeypatch.setattr(work, "execute", lambda argv, text="": None)
    put(tmp_path, "/sys/class/infiniband/mlx5_0/hca_type", f"{' '.join(people)}\n")
    module = types.SimpleNamespace(params={"key": "key", "names": [], "folders": []})
    (kept,) = [row[2] for row in work.run(module)["record"]["files"] if row[1].endswith("/hca_type")]
    assert re.fullmatch(r"root( name-[0-9a-f]{8}){3}\n", kept)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/NetworkManager/system-connections/a.nmconnection", "[connection]\nid={0}\ntype=ethernet\n"),
        ("/etc/systemd/network/10-a.network", "[Match]\nName={0}\n"),
        ("/etc/netplan/10-a.yaml", "network:\n  ethernets:\n    {0}:\n      mtu: 9000\n"),
        ("/etc/network/interfaces", "iface {0} inet manual\n"),
        ("/run/udev/data/n2", "E:ID_NET_NAME={0}\n"),
    ],
)
def test_the_domain_behind_a_hosts_short_name_is_nowhere(tmp_path, path, text):
    put(tmp_path, path, text.format("gpu17.hall3.acme.example"))
    made = work.Recorder(Sysfs(str(tmp_path)), lambda _argv, _text: None, "key", ["gpu17"])
    assert [word for word in ("gpu17", "hall3", "acme") if word in json.dumps(made.record())] == []

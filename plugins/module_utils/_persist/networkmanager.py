# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkManager: one keyfile profile a rail, and one for its VLAN. Format: nm-settings-keyfile(5)."""

from __future__ import annotations

import os
import re
import typing as t
import uuid
from fnmatch import fnmatchcase
from functools import partial

from .._errors import RdmaError
from .._route.model import MAIN_TABLE, Route, Rule
from .._systemd import named, sections
from .model import HEADER, PRIVATE, File, Manager, Port, Profile, anywhere

if t.TYPE_CHECKING:
    from .._route.route_options import RailOptions
    from .machine import RootedHost

FOLDER = "/etc/NetworkManager/system-connections"
RUN = "/run/NetworkManager/system-connections"
SCRIPTS = "/etc/sysconfig/network-scripts"
PROFILES = (FOLDER, RUN, "/usr/lib/NetworkManager/system-connections", SCRIPTS)
# Later ones have the last word; the first name hides it in those before.
CONF = ("/usr/lib/NetworkManager/conf.d", "/run/NetworkManager/conf.d", "/etc/NetworkManager/conf.d")
MAIN = "/etc/NetworkManager/NetworkManager.conf"
# What ours leave out without a loss: names, what profiles match by, when they come up, and what DHCP asks for.
HARMLESS = re.compile(
    r"connection\.(id|uuid|type|interface-name|timestamp|autoconnect.*|wait-.*|controller|master|(port|slave)-type)"
    r"|(match|user|proxy)\..*|vlan\.(id|parent|flags)|(ethernet|infiniband)\.(mac-address(-.*list)?|mtu)"
    r"|ipv[46]\.(method|dhcp-.*|may-fail|addr-gen-mode|ip6-privacy|token|never-default|route-metric|ra-.*|ignore-auto-.*)"
    r"|ifcfg\.(TYPE|DEVICE|ONBOOT|NAME|UUID|BOOTPROTO|HWADDR|MTU|MASTER|SLAVE|BRIDGE|VLAN(_ID)?|PHYSDEV|DHCP.*"
    r"|AUTOCONNECT_PRIORITY|PROXY_METHOD|BROWSER_ONLY|DEFROUTE|PEER.*|IPV4_FAILURE_FATAL|IPV6(INIT|_.*)"
    r"|(IPADDR|PREFIX|NETMASK|GATEWAY)\d*)"
)
# The greatest that it takes: of two with the same, the one that was used last comes first.
PRIORITY = 999
# For the names of the profiles, which are UUIDs: the same interface has the same one on every run.
NAMESPACE = uuid.UUID("5d1ce7a1-9c5f-4d0b-8f0b-7261696c6f70")


class NetworkManager(Manager):
    """NetworkManager.

    It waits for the carrier and for the end of duplicate address detection. Without one it takes the kernel's refusal
    of a route from an address that was tentative for a moment as final, and leaves the route out (seen with 1.42).
    """

    owned = ((FOLDER, re.compile(r"^railops-.+\.nmconnection$")),)
    folders = (*PROFILES, "/etc/NetworkManager", *CONF[:2])
    yields = f"Give it a connection.autoconnect-priority below {PRIORITY}, or autoconnect=false"
    keeps = "Give it to another interface, or remove it from the profile"

    def manages(self, host: RootedHost) -> bool:
        """Whether it runs, or will be started."""
        runs = host.is_folder("/run/NetworkManager") and not host.enabled("systemd-networkd")
        return runs or host.enabled("NetworkManager")

    def files(
        self, rail: RailOptions, port: str, interface: str, routes: list[Route], rules: list[Rule], *, infiniband: bool
    ) -> t.Iterable[File]:
        """Yield the rail's profile, and one for the port of its VLAN.

        :param port: the interface's name, and `interface` that of its VLAN, or the same.
        :param infiniband: whether the rail is IP over InfiniBand.
        """

        def head(name: str, kind: str) -> str:
            text = f"{HEADER}[connection]\nid=railops-{name}\nuuid={uuid.uuid5(NAMESPACE, name)}\ntype={kind}\n"
            # Another profile bound to the interface must not win at boot.
            return f"{text}interface-name={name}\nautoconnect=true\nautoconnect-priority={PRIORITY}\n\n"

        kind = "infiniband" if infiniband else "ethernet"
        # A VLAN's MTU is in the section of Ethernet too.
        link = f"[{kind}]\n" + (f"mtu={rail.mtu}\n" if rail.mtu is not None else "")
        text = head(interface, "vlan" if rail.vlan else kind) + link
        if rail.vlan:
            none = "\n[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=disabled\n"
            yield File(f"{FOLDER}/railops-{port}.nmconnection", head(port, kind) + link + none, PRIVATE, rail.name)
            text += f"\n[vlan]\nflags=1\nid={rail.vlan}\nparent={port}\n"
        if infiniband:
            # NetworkManager sets the mode at boot: one that cannot carry the MTU would leave the rail without it.
            text += f"transport-mode={rail.ipoib_mode}\n"
        # The connected routes' metrics as the kernel gives them, so that a reboot changes nothing.
        for family, section, metric in ((4, "ipv4", 0), (6, "ipv6", 256)):
            own = [item for item in rail.addresses if item.family == family]
            method = "manual" if own else ("disabled" if family == 4 else "link-local")
            text += f"\n[{section}]\nmethod={method}\n"
            for number, item in enumerate(own, 1):
                text += f"address{number}={item.address}/{item.length}\n"
            if not own:
                continue
            text += f"never-default=true\nroute-metric={metric}\n"
            nowhere = "0.0.0.0" if family == 4 else "::"
            for number, route in enumerate((item for item in routes if item.family == family), 1):
                text += f"route{number}={anywhere(route)},{route.gateway or nowhere},{route.metric}\n"
                options = [f"src={route.source}"] if route.source else []
                options += [f"table={route.table}"] if route.table != MAIN_TABLE else []
                text += f"route{number}_options={','.join(options)}\n" if options else ""
            for number, rule in enumerate((item for item in rules if item.family == family), 1):
                text += f"routing-rule{number}={_rule(rule)}\n"
        yield File(f"{FOLDER}/railops-{interface}.nmconnection", text, PRIVATE, rail.name)

    def loaded(self, host: RootedHost, written: t.Sequence[str], removed: t.Sequence[str]) -> None:
        """Load written profiles into a running manager (active devices stay as they are), and unload removed ones.

        The next flap of the link would bring those back.
        """
        if not self._running(host):
            return
        for path in written:
            done = host.run(["nmcli", "connection", "load", path])
            if done.status or "could not" in f"{done.out}{done.err}".lower():
                raise RdmaError(
                    f"NetworkManager does not load {path}: {done.reported()}",
                    "Look at `journalctl -u NetworkManager`. [nm_not_loaded]",
                )
        if removed and (done := host.run(["nmcli", "connection", "reload"])).status:
            raise RdmaError(
                f"NetworkManager does not reload its profiles: {done.reported()}",
                "Run `nmcli connection reload` on the host. [nm_not_reloaded]",
            )

    def _running(self, host: RootedHost) -> bool:
        # Its folder stays when it is stopped, and then no daemon can reload.
        there = host.live and os.path.isdir("/run/NetworkManager")
        return there and host.run(["nmcli", "-t", "-f", "RUNNING", "general"]).out.strip() == "running"


def profiles(texts: t.Mapping[str, str]) -> t.Iterator[Profile]:
    """Yield what NetworkManager will make of these files; nm-settings-keyfile(5) and nm-settings-ifcfg-rh(5)."""
    for path, text in sorted(texts.items()):
        folder, _slash, name = path.rpartition("/")
        if folder not in PROFILES or name.startswith(".") or name.endswith("~"):
            continue
        if folder == SCRIPTS:
            have = _script(text) if name.startswith("ifcfg-") else {}
        else:
            have = {section: dict(pairs) for section, pairs in sections(text)}
        own = have.get("connection", {})
        if own.get("type") and own.get("autoconnect", "true").lower() not in ("false", "no", "0"):
            rank = -int(own.get("autoconnect-priority") or 0)
            yield Profile(path, "networkmanager", rank, partial(_matches, have), *_holds(have))


def _script(text: str) -> dict[str, dict[str, str]]:
    """Return a file of network-scripts as the keyfile would have it."""
    have = {key: value.strip("\"'") for key, value in re.findall(r"^\s*([A-Z0-9_]+)=(.*?)\s*$", text, re.MULTILINE)}
    kind = have.get("TYPE", "vlan" if have.get("VLAN") == "yes" else "ethernet").lower()
    own = {"type": kind, "interface-name": have.get("DEVICE", ""), "autoconnect": have.get("ONBOOT", "yes")}
    own["autoconnect-priority"] = have.get("AUTOCONNECT_PRIORITY", "")
    own["controller"] = have.get("MASTER") or have.get("BRIDGE") or ""
    four = {"method": "auto" if have.get("BOOTPROTO") == "dhcp" else "manual"}
    for key, value in have.items():
        if match := re.fullmatch(r"IPADDR(\d*)", key):
            length = have.get(f"PREFIX{match[1]}") or have.get(f"NETMASK{match[1]}") or "32"
            four[f"address{match[1]}"] = f"{value}/{length},{have.get(f'GATEWAY{match[1]}', '')}"
    link = {"mac-address": have.get("HWADDR", ""), "mtu": have.get("MTU", "")}
    section = "ethernet" if kind == "vlan" else kind
    return {"connection": own, section: link, "ipv4": four, "ipv6": {"method": "ignore"}, "ifcfg": have}


def _matches(have: t.Mapping[str, t.Mapping[str, str]], port: Port) -> bool:
    own, match = have["connection"], have.get("match", {})
    kind = "vlan" if port.kind == "vlan" else {"ether": "ethernet"}.get(port.type, port.type)
    if own["type"].replace("802-3-", "") != kind:
        return False
    mac = next((pairs["mac-address"].lower() for pairs in have.values() if pairs.get("mac-address")), "")
    named = [word.lstrip("&|!") for word in match.get("interface-name", "").replace(";", " ").split()]
    return (
        own.get("interface-name", "") in ("", port.name)
        and mac in ("", port.permanent or port.mac)
        and (not named or any(fnmatchcase(port.name, word) for word in named))
    )


def _holds(have: t.Mapping[str, t.Mapping[str, str]]) -> tuple[frozenset[str], bool]:
    own = have["connection"]
    found = {f"MTU {part['mtu']}" for part in have.values() if part.get("mtu", "0") not in ("", "0", "auto")}
    if upper := own.get("controller") or own.get("master"):
        found.add(f"port of {upper}")
    for section, pairs in have.items():
        nowhere = {"ipv4": "0.0.0.0/0", "ipv6": "::/0"}.get(section, "")
        for key, value in pairs.items():
            first, _comma, gateway = value.partition(",")
            if nowhere and re.fullmatch(r"address(es)?\d*", key):
                found.add(f"address {first}")
                found |= {f"route {nowhere} gateway {gateway}"} if gateway else set()
            elif nowhere and key == "gateway":
                found.add(f"route {nowhere} gateway {value}")
            elif nowhere and re.fullmatch(r"route\d+", key):
                options = pairs.get(f"{key}_options", "")
                found.add(" ".join(["route", first, f"gateway {gateway.partition(',')[0]}", options]).strip())
            elif nowhere and re.fullmatch(r"routing-rule\d+", key):
                found.add(f"rule {value}")
            elif (key, value) in (("method", "shared"), ("method", "link-local")) and section != "ipv6":
                found.add(f"[{section}] method={value}")
            elif value and not key.endswith("_options"):
                word = f"{section.replace('802-3-', '')}.{key}"
                found |= set() if HARMLESS.fullmatch(word) else {f"[{section}] {key}={value}"}
    methods = [have.get(section, {}).get("method", "auto") for section in ("ipv4", "ipv6")]
    return frozenset(found), bool({"auto", "dhcp"} & set(methods))


def leaves_alone(texts: t.Mapping[str, str], port: Port) -> str:
    """Return the file by which NetworkManager does not manage a port, or nothing; NetworkManager.conf(5)."""
    files = [path for path in named(texts, CONF[::-1]).values() if path.endswith(".conf")]
    order = sorted(files, key=lambda path: CONF.index(os.path.dirname(path)))
    main = next((number for number, path in enumerate(order) if path.startswith("/etc/")), len(order))
    words: list[str] = []
    managed, unmanaged = "", ""
    for path in [*order[:main], MAIN, *order[main:]]:
        for section, pairs in sections(texts.get(path, "")):
            have = dict(pairs)
            for key in set(have) & {"unmanaged-devices", "unmanaged-devices+"} if section == "keyfile" else ():
                words, unmanaged = [*(words if key.endswith("+") else ()), *re.split("[;,]", have[key])], path
            there = section.startswith("device") and "managed" in have
            if there and _specified(re.split("[;,]", have.get("match-device", "*")), port):
                managed = path if have["managed"].lower() in ("0", "no", "false", "off") else ""
    return managed or (unmanaged if _specified(words, port) else "")


def _specified(words: t.Iterable[str], port: Port) -> bool:
    """Whether a list of devices has a port; see "Device List Format"."""
    taken, others = False, []
    for word in filter(None, map(str.strip, words)):
        other = word.startswith("except:")
        key, colon, value = word[7 * other :].partition(":")
        if colon and key in ("interface-name", "mac", "type", "driver"):
            have = {"mac": port.permanent or port.mac, "driver": port.driver, "interface-name": port.name}.get(key)
            have = ("vlan" if port.kind == "vlan" else port.type.replace("ether", "ethernet")) if have is None else have
            fits = fnmatchcase(have.lower(), value.lstrip("=~").lower())
        else:
            fits = word[7 * other :].lower() in ("*", port.name, port.mac)
        if fits and other:
            return False
        taken |= fits
        others.append(other)
    return taken or (bool(others) and all(others))


def _rule(rule: Rule) -> str:
    words = ["priority", str(rule.priority)]
    words += ["not"] if rule.invert else []
    words += ["from", rule.source or ("0.0.0.0/0" if rule.family == 4 else "::/0")]
    words += ["to", rule.dest] if rule.dest else []
    return " ".join([*words, "table", str(rule.table)])

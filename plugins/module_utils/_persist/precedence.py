# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Existing files of a rail's port: whether the next boot uses the managed file, and which settings it removes."""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import dataclass, field, replace

from .._check import Check, compared, deviation, ok, skipped, warning
from .._route.model import equivalent
from . import networkd, networkmanager, sysctl
from .model import LINK, Port, Profile
from .netplan import GENERATED, SOURCES
from .plan import MANAGERS, SYSCTL_FILE

if t.TYPE_CHECKING:
    from .._route.route_options import RouteOptions
    from .host import PersistHost
    from .model import File, Texts

ADOPT_FIX = "Or list {port} in rail_network_adopt_ports."
NAMING = ("Name", "NamePolicy", "AlternativeName", "AlternativeNamesPolicy")
IFUPDOWN = "/etc/network/interfaces"
# What keeps a port from being a rail, or from coming up, whatever else is set.
DROPS = re.compile(r"(Bridge|Bond|VRF|port of) .+|ActivationPolicy=(?!(always-)?up$).+|Unmanaged=yes")


def precedence_checks(
    host: PersistHost, manager: str, want: RouteOptions, names: t.Mapping[str, str], files: t.Sequence[File]
) -> tuple[list[Check], dict[str, str]]:
    """Compare the rails' ports after the next boot with and without the managed files.

    Return the checks, and the files to set aside, each with its port.

    :param manager: one of MANAGERS, and `files` all that are wanted.
    :param names: the interface name of each rail.
    """
    ruler, folders = MANAGERS[manager], [folder for one in MANAGERS.values() for folder in one.folders]
    existing = host.texts(dict.fromkeys(folders))
    own = {file.path: file.text for file in files if file.mode != LINK and file.path.startswith(ruler.folders)}
    before, after = ruler.at_boot(host, existing), ruler.at_boot(host, {**existing, **own})
    if before is None or after is None:
        cause = f"the effect of the files in {manager} is known on the running host only"
        return [skipped("persist_precedence", cause, rail=rail.name) for rail in want.rails], {}
    for file in files:
        if file.mode == LINK:
            target = os.path.join(os.path.dirname(file.path), file.text)
            inside = {path[len(target) :]: text for path, text in after.items() if path.startswith(target)}
            after.update({file.path + rest: text for rest, text in inside.items() if rest[:1] in ("", "/")})
    given = [rail for rail in want.rails if want.adopt_ports & {rail.interface, rail.pci, names[rail.name]}]
    adopted = {name for rail in given for name in (names[rail.name], rail.device)}
    running = {name for name, one in MANAGERS.items() if one.manages(host)}
    now, then = ([*networkd.profiles(texts), *networkmanager.profiles(texts)] for texts in (before, after))
    comparison = PrecedenceCheck(manager, existing, own, after, host.ports(), now, then, running, adopted)
    ifupdown = host.ifupdown_interfaces()
    for rail in want.rails:
        port = names[rail.name]
        paths = [file.path for file in files if file.rail == rail.name]
        # A card that still has another name, which the role rdma_host changes.
        old = next(iter(host.pci_interfaces(rail.pci)), "") if rail.pci else ""
        kind = "infiniband" if want.network == "infiniband" else "ether"
        other = replace(comparison.ports.get(old, Port("", type=kind)), name=port, altnames=frozenset({old}))
        facts = comparison.ports.get(port, other)
        tagged = Port(rail.device if rail.vlan else port, mac=facts.mac, driver="802.1Q VLAN Support", kind="vlan")
        for device in (facts, comparison.ports.get(tagged.name, tagged)) if rail.vlan else (facts,):
            addresses = rail.addresses if device.name == tagged.name else ()
            planned = {f"address {item.address}/{item.length}" for item in addresses}
            planned |= {f"MTU {rail.mtu}"} if rail.mtu is not None else set()
            comparison.add(rail.name, port, device, planned, paths)
        if port in ifupdown:
            text = f"{port}: ifupdown configures it as well ({IFUPDOWN}, or a file that it includes)."
            fix = f"Remove {port} from {IFUPDOWN}; `grep -rw {port} /etc/network` finds it."
            where = {"rail": rail.name, "object": port}
            comparison.checks.append(deviation("persist_existing", [], [IFUPDOWN], text, fix, **where))
    settings = "".join(file.text for file in files if file.path == SYSCTL_FILE)
    comparison.checks += _outranked(host, want, names, settings)
    return comparison.checks, comparison.aside


def _outranked(host: PersistHost, want: RouteOptions, names: t.Mapping[str, str], own: str) -> t.Iterator[Check]:
    """Yield the settings where another file of sysctl.d overrides the managed one at boot.

    :param names: the interface name of each rail; `own` is the text of the managed file.
    """
    reported = sysctl.last_words({**host.texts(sysctl.FOLDERS), SYSCTL_FILE: own})
    rails = {name: rail.name for rail in want.rails for name in (names[rail.name], rail.device)}
    for key, (_own, value) in sysctl.last_words({SYSCTL_FILE: own}).items():
        path, last = reported[key]
        if not equivalent(key, last, value):
            port, first = (key.split("/")[3:-1] or [key])[0], os.path.basename(SYSCTL_FILE)  # net/ipv4/conf/PORT/NAME
            text = f"{path} sets {key} = {last} at boot, after {SYSCTL_FILE}, which has {value}."
            fix = f"Remove that line from {path}, or rename the file so that it sorts before {first}."
            where = {"rail": rails.get(port), "object": port}
            yield deviation("persist_precedence", f"{key} = {value}", f"{key} = {last}", text, fix, **where)


MATCHED_MAC = re.compile(r"^(?:Permanent)?(?:MACAddress|mac-address)=([0-9A-Fa-f:]{17})\s*$", re.MULTILINE)


@dataclass
class PrecedenceCheck:
    """Compare the network of ports after the next boot, with and without the managed files.

    :param existing: the texts of existing files.
    :param own: the texts of managed files; `texts` are all that the managers read at the next boot.
    :param before: the profiles of existing files only; `after` are the profiles with ours.
    :param running: the managers that run, or start at boot.
    :param adopted: the ports that are adopted.
    """

    manager: str
    existing: Texts
    own: Texts
    texts: Texts
    ports: t.Mapping[str, Port]
    before: list[Profile]
    after: list[Profile]
    running: set[str]
    adopted: set[str]
    checks: list[Check] = field(default_factory=list)
    aside: dict[str, str] = field(default_factory=dict)

    def add(self, rail: str, port: str, device: Port, planned: set[str], files: t.Sequence[str]) -> None:
        """Add the checks of one interface of a rail: its port, or the VLAN's on that.

        :param port: the rail's port, which may be adopted.
        :param planned: what its profile must hold, and `files` those of the rail.
        """
        where = {"rail": rail, "object": device.name}
        made = re.compile(rf"/(10-)?netplan-{re.escape(device.name)}\.")
        used = [item for item in self.after if item.matches(device) and (item.path in files or made.search(item.path))]
        profile = min(used, key=lambda item: (item.daemon, item.rank), default=None)
        if profile is None:
            self.checks.append(self.unused(device, files, made, where))
            return
        if initrd := [item.path for item in self.before if self.early(item, profile) and item.matches(device)]:
            text = f"{device.name}: the initrd creates {', '.join(initrd)} at each boot, by the kernel command line."
            fix = "Name only the management interface there (ip=<interface>:dhcp), update the boot loader, and reboot."
            self.checks.append(deviation("persist_precedence", profile.path, initrd, text, fix, **where))
            return
        first = [item for item in self.after if item.daemon == profile.daemon and item.rank <= profile.rank]
        first = [item for item in first if item.matches(device) and item not in used]
        rivals = self.rivals(profile, device)
        aside = [item.path for item in first + rivals if port in self.adopted and self.movable(item)]
        ignored = networkmanager.leaves_alone(self.texts, device) if profile.daemon == "networkmanager" else ""
        own = next(path for path in (*(path for path in files if path.startswith(SOURCES)), profile.path))
        seen: t.Sequence[str]
        if len(aside) < len(first + rivals):
            seen = list(dict.fromkeys(self.source(item.path) for item in first + rivals))
            text = f"{device.name}: the next boot uses {', '.join(seen)} and not {own}."
            fix = MANAGERS[profile.daemon].yields.format(path=profile.path, port=device.name)
            fix = f"Remove {device.name} from it, or write for that manager (rail_network_manager)" if rivals else fix
            fix += f". {ADOPT_FIX.format(port=port)}"
        elif ignored:
            seen = [ignored]
            text = f"{device.name}: NetworkManager does not manage it ({ignored}), so it stays down at the next boot."
            fix = f"Remove {device.name} from that file, or add except:interface-name:{device.name} to its list."
        else:
            seen, text, fix = self.outranked(port, device, profile, own, planned)
        if not text:
            self.aside.update(dict.fromkeys(aside, port))
        self.checks.append(compared("persist_precedence", own, seen, text, fix, good=not text, **where))
        self.compare(port, device, profile, aside, where)
        self.links(port, device, where)

    def unused(self, device: Port, files: t.Sequence[str], made: re.Pattern[str], where: dict[str, str]) -> Check:
        """Return the check of an interface for which no manager uses the managed files.

        :param made: the files that netplan makes of the interface's entry.
        """
        drop_ins = [path for path in sorted(self.existing) if path.startswith(tuple(f"{path}.d/" for path in files))]
        text = f"{device.name}: {self.manager} ignores {', '.join(files)}"
        text += f" with {', '.join(drop_ins)}." if drop_ins else "."
        fix = "Correct the [Match] there." if drop_ins else "Report it as a bug."
        for path, content in self.texts.items():
            # Installers write the MAC address of the card that was there.
            old = MATCHED_MAC.search(content) if made.search(path) else None
            if old and old[1].lower() not in (device.mac, device.permanent):
                new, source = device.permanent or device.mac, self.source(path)
                text = f"{device.name}: {source} matches the MAC address {old[1]}, and the card has {new}: "
                text += "it was replaced, or the entry is another port's."
                fix = f"Change the address to {new} in {source}; where cloud-init writes it, in its network data."
                break
        return deviation("persist_precedence", files, drop_ins, text, fix, **where)

    def outranked(
        self, port: str, device: Port, profile: Profile, own: str, planned: set[str]
    ) -> tuple[t.Sequence[str], str, str]:
        """Return the files that override settings of ours in the used profile, with cause and fix; else our file."""
        read = networkd.profiles({profile.path: self.own.get(profile.path, "")}) if profile.daemon == "networkd" else ()
        planned |= {word for item in read for word in item.holds if word.startswith(("route ", "rule "))}
        missing = sorted(planned - profile.holds) + (["no DHCP"] if profile.dhcp else [])
        drops = sorted(filter(DROPS.fullmatch, profile.holds))
        if not missing and not drops:
            return own, "", ""
        last = os.path.basename(own)
        seen = [path for path in sorted(self.existing) if path.startswith(f"{profile.path}.d/")]
        sources = [path for path in sorted(self.existing) if path.startswith(SOURCES) and path.endswith(".yaml")]
        seen += [path for path in sources if os.path.basename(path) > last or (drops and port in self.existing[path])]
        what = [f"{', '.join(missing)} is lost"] if missing else []
        what += [f"it sets {', '.join(drops)}"] if drops else []
        text = f"{device.name}: {', '.join(seen) or 'another file'} outranks {own}: {', and '.join(what)}."
        fix = f"Remove {device.name} from that file, or rename it so that it sorts before {last}."
        return seen, text, f"Remove {', '.join(drops)} there." if drops else fix

    def links(self, port: str, device: Port, where: dict[str, str]) -> None:
        """Add a check of .link files: an MTU of netplan's makes one, and udev takes the first that matches."""
        sides = [
            [item for item in side if item.daemon == "udev" and item.matches(device)]
            for side in (self.before, self.after)
        ]
        old, new = (min(side, key=lambda item: item.rank, default=None) for side in sides)
        lost = sorted(old.holds - new.holds) if old and new and old.path.startswith("/etc/") else []
        if new and not new.matches(replace(device, name="", altnames=frozenset())):
            # A file that goes by the name alone is not for the interface yet when it gets its name.
            lost = [what for what in lost if what.partition("=")[0] not in NAMING]
        if old and new and lost and port not in self.adopted:
            text = f"{device.name}: {old.path} sets {', '.join(lost)}, and the next boot would lose that."
            fix = f"Rename it so that it sorts before {os.path.basename(new.path)}. {ADOPT_FIX.format(port=port)}"
            self.checks.append(deviation("persist_existing", [], [old.path], text, fix, **where))

    def compare(self, port: str, device: Port, profile: Profile, aside: t.Sequence[str], where: dict[str, str]) -> None:
        """Add checks of an interface's existing files and of the settings that ours do not keep.

        :param port: the rail's port, which may be adopted; `profile` is the one in use with the managed files.
        :param aside: the files that are set aside; `where` is the checks' place.
        """
        before = [item for item in self.before if item.daemon == profile.daemon and item.matches(device)]
        files = list(dict.fromkeys(self.source(item.path) for item in before))
        # NetworkManager takes the next profile where the first one is busy elsewhere; networkd only ever the first.
        used = before if profile.daemon != "networkd" else sorted(before, key=lambda item: item.rank)[:1]
        lost = sorted({what for item in used for what in item.holds} - profile.holds)
        dhcp = any(item.dhcp for item in used)
        lost += [f"DHCP's address {device.lease}"] if dhcp and device.lease else []
        names, name = ", ".join(files), device.name
        if len(before) <= 1 and not lost and not dhcp:
            self.checks.append(ok("persist_existing", [], files, **where))
        elif not lost or port in self.adopted:
            text = f"{name} is adopted: the next boot loses {', '.join(lost)} of {names}."
            text += f" {', '.join(aside)} is copied, and teardown restores it." if aside else ""
            text = text if lost else f"{name}: {names} is for it too, and loses nothing."
            self.checks.append(warning("persist_existing", [], files, text, "", **where))
        else:
            text = f"{name}: {names} sets {', '.join(lost)}, and the next boot would lose that."
            keeps = MANAGERS[self.manager].keeps.format(path=profile.path, port=name)
            if any(item.path.endswith(f"/10-netplan-{name}.network") for item in used):
                keeps = f"It is in the entry {name!r}, with which the managed file merges: remove it there"
            fix = f"{keeps}. {ADOPT_FIX.format(port=port)}"
            self.checks.append(deviation("persist_existing", [], files, text, fix, **where))

    def rivals(self, profile: Profile, device: Port) -> list[Profile]:
        """Return the profiles of other running managers for an interface."""
        found = [item for item in self.after if item.daemon in self.running - {profile.daemon} and item.matches(device)]
        if profile.daemon == "networkd" and found:
            # netplan excludes networkd's devices from NetworkManager by udev.
            return [] if self.manager == "netplan" or networkmanager.leaves_alone(self.texts, device) else found
        return [item for item in found if "Unmanaged=yes" not in item.holds]

    def early(self, item: Profile, profile: Profile) -> bool:
        """Whether a profile is the initrd's, which NetworkManager keeps active whatever the priority of ours."""
        there = item.path.startswith(f"{networkmanager.RUN}/") and not GENERATED.match(item.path)
        return there and profile.daemon == item.daemon

    def movable(self, item: Profile) -> bool:
        """Whether a file may be set aside: an existing one, for no interface but the adopted ones."""
        own = self.adopted | {"lo"}
        free = {name for name, port in self.ports.items() if name not in own and item.matches(port)}
        return bool(self.ports) and item.path.startswith("/etc/") and not free

    def source(self, path: str) -> str:
        """Return the source of a file: the one from which netplan generated it."""
        if not GENERATED.match(path):
            return path
        entry = re.escape(re.sub(r".*/(?:10-)?netplan-(.+)\.\w+$", r"\1", path))
        key = re.compile(rf"(^|[{{,])\s*[\"']?{entry}[\"']?\s*:", re.MULTILINE)
        files = [name for name, text in sorted(self.existing.items()) if name.startswith(SOURCES) and key.search(text)]
        return ", ".join(files) or path

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other configuration of a rail's port: whether the next boot uses our file, and which settings that would remove."""

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

TAKE = "Or list {port} in rail_network_adopt_ports."
NAMING = ("Name", "NamePolicy", "AlternativeName", "AlternativeNamesPolicy")
IFUPDOWN = "/etc/network/interfaces"
# What keeps a port from being a rail, or from coming up, whatever else is set.
DROPS = re.compile(r"(Bridge|Bond|VRF|port of) .+|ActivationPolicy=(?!(always-)?up$).+|Unmanaged=yes")


def precedence_checks(
    host: PersistHost, manager: str, want: RouteOptions, names: t.Mapping[str, str], files: t.Sequence[File]
) -> tuple[list[Check], dict[str, str]]:
    """Return what the next boot would make of the rails' ports with our files, compared with what it makes without.

    With the checks come the files that have to give way, each with the port for which it does.

    :param manager: one of MANAGERS, and `files` all that are wanted.
    :param names: the interface name of each rail.
    """
    ruler, folders = MANAGERS[manager], [folder for one in MANAGERS.values() for folder in one.folders]
    others = host.texts(dict.fromkeys(folders))
    own = {file.path: file.text for file in files if file.mode != LINK and file.path.startswith(ruler.folders)}
    before, after = ruler.at_boot(host, others), ruler.at_boot(host, {**others, **own})
    if before is None or after is None:
        cause = f"the effect of the files in {manager} is known on the running host only"
        return [skipped("persist_precedence", cause, rail=rail.name) for rail in want.rails], {}
    for file in files:
        if file.mode == LINK:
            target = os.path.join(os.path.dirname(file.path), file.text)
            inside = {path[len(target) :]: text for path, text in after.items() if path.startswith(target)}
            after.update({file.path + rest: text for rest, text in inside.items() if rest[:1] in ("", "/")})
    given = [rail for rail in want.rails if want.adopt_ports & {rail.interface, rail.pci, names[rail.name]}]
    taken = {name for rail in given for name in (names[rail.name], rail.device)}
    running = {name for name, one in MANAGERS.items() if one.manages(host)}
    now, then = ([*networkd.profiles(texts), *networkmanager.profiles(texts)] for texts in (before, after))
    comparison = PrecedenceCheck(manager, others, own, after, host.ports(), now, then, running, taken)
    ifupdown = host.ifupdown_interfaces()
    for rail in want.rails:
        port = names[rail.name]
        mine = [file.path for file in files if file.rail == rail.name]
        # A card that still has another name, which the role rdma_host changes.
        old = next(iter(host.pci_interfaces(rail.pci)), "") if rail.pci else ""
        kind = "infiniband" if want.network == "infiniband" else "ether"
        other = replace(comparison.ports.get(old, Port("", type=kind)), name=port, others=frozenset({old}))
        facts = comparison.ports.get(port, other)
        tagged = Port(rail.device if rail.vlan else port, mac=facts.mac, driver="802.1Q VLAN Support", kind="vlan")
        for device in (facts, comparison.ports.get(tagged.name, tagged)) if rail.vlan else (facts,):
            addresses = rail.addresses if device.name == tagged.name else ()
            planned = {f"address {item.address}/{item.length}" for item in addresses}
            planned |= {f"MTU {rail.mtu}"} if rail.mtu is not None else set()
            comparison.add(rail.name, port, device, planned, mine)
        if port in ifupdown:
            text = f"{port}: ifupdown configures it as well ({IFUPDOWN}, or a file that it includes)."
            fix = f"Remove {port} from {IFUPDOWN}; `grep -rw {port} /etc/network` finds it."
            where = {"rail": rail.name, "object": port}
            comparison.checks.append(deviation("persist_existing", [], [IFUPDOWN], text, fix, **where))
    settings = "".join(file.text for file in files if file.path == SYSCTL_FILE)
    comparison.checks += _outranked(host, want, names, settings)
    return comparison.checks, comparison.aside


def _outranked(host: PersistHost, want: RouteOptions, names: t.Mapping[str, str], own: str) -> t.Iterator[Check]:
    """Yield the settings where another file of sysctl.d overrides ours at boot.

    :param names: the interface name of each rail; `own` is the text of our file.
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
    """Compares the network of ports after the next boot, with and without our files.

    :param others: the texts of existing files.
    :param own: the texts of our files; `texts` are all that the managers read at the next boot.
    :param before: the profiles of existing files only; `after` are the profiles with ours.
    :param running: the managers that run, or start at boot.
    :param taken: the ports that are taken over.
    """

    manager: str
    others: Texts
    own: Texts
    texts: Texts
    ports: t.Mapping[str, Port]
    before: list[Profile]
    after: list[Profile]
    running: set[str]
    taken: set[str]
    checks: list[Check] = field(default_factory=list)
    aside: dict[str, str] = field(default_factory=dict)

    def add(self, rail: str, port: str, device: Port, planned: set[str], files: t.Sequence[str]) -> None:
        """Add the checks of one interface of a rail: its port, or the VLAN's on that.

        :param port: the rail's port, which may be taken over.
        :param planned: what its profile must hold, and `files` those of the rail.
        """
        where = {"rail": rail, "object": device.name}
        made = re.compile(rf"/(10-)?netplan-{re.escape(device.name)}\.")
        used = [item for item in self.after if item.matches(device) and (item.path in files or made.search(item.path))]
        mine = min(used, key=lambda item: (item.daemon, item.rank), default=None)
        if mine is None:
            self.checks.append(self.unused(device, files, made, where))
            return
        if initrd := [item.path for item in self.before if self.early(item, mine) and item.matches(device)]:
            text = f"{device.name}: the initrd creates {', '.join(initrd)} at each boot, by the kernel command line."
            fix = "Name only the management interface there (ip=<interface>:dhcp), update the boot loader, and reboot."
            self.checks.append(deviation("persist_precedence", mine.path, initrd, text, fix, **where))
            return
        first = [item for item in self.after if item.daemon == mine.daemon and item.rank <= mine.rank]
        first = [item for item in first if item.matches(device) and item not in used]
        rivals = self.rivals(mine, device)
        aside = [item.path for item in first + rivals if port in self.taken and self.movable(item)]
        ignored = networkmanager.leaves_alone(self.texts, device) if mine.daemon == "networkmanager" else ""
        own = next(path for path in (*(path for path in files if path.startswith(SOURCES)), mine.path))
        seen: t.Sequence[str]
        if len(aside) < len(first + rivals):
            seen = list(dict.fromkeys(self.source(item.path) for item in first + rivals))
            text = f"{device.name}: the next boot uses {', '.join(seen)} and not {own}."
            fix = MANAGERS[mine.daemon].yields.format(path=mine.path, port=device.name)
            fix = f"Remove {device.name} from it, or write for that manager (rail_network_manager)" if rivals else fix
            fix += f". {TAKE.format(port=port)}"
        elif ignored:
            seen = [ignored]
            text = f"{device.name}: NetworkManager does not manage it ({ignored}), so it stays down at the next boot."
            fix = f"Remove {device.name} from that file, or add except:interface-name:{device.name} to its list."
        else:
            seen, text, fix = self.outranked(port, device, mine, own, planned)
        if not text:
            self.aside.update(dict.fromkeys(aside, port))
        self.checks.append(compared("persist_precedence", own, seen, text, fix, good=not text, **where))
        self.compare(port, device, mine, aside, where)
        self.links(port, device, where)

    def unused(self, device: Port, files: t.Sequence[str], made: re.Pattern[str], where: dict[str, str]) -> Check:
        """Return the check of an interface of which no manager makes anything by our files.

        :param made: the files that netplan makes of the interface's entry.
        """
        beside = [path for path in sorted(self.others) if path.startswith(tuple(f"{path}.d/" for path in files))]
        text = f"{device.name}: {self.manager} ignores {', '.join(files)}"
        text += f" with {', '.join(beside)}." if beside else "."
        fix = "Correct the [Match] there." if beside else "Report it as a bug."
        for path, content in self.texts.items():
            # Installers write the MAC address of the card that was there.
            old = MATCHED_MAC.search(content) if made.search(path) else None
            if old and old[1].lower() not in (device.mac, device.permanent):
                new, source = device.permanent or device.mac, self.source(path)
                text = f"{device.name}: {source} matches the MAC address {old[1]}, and the card has {new}: "
                text += "it was replaced, or the entry is another port's."
                fix = f"Change the address to {new} in {source}; where cloud-init writes it, in its network data."
                break
        return deviation("persist_precedence", files, beside, text, fix, **where)

    def outranked(
        self, port: str, device: Port, mine: Profile, own: str, planned: set[str]
    ) -> tuple[t.Sequence[str], str, str]:
        """Return the files that override settings of ours in the used profile, with cause and fix; else our file."""
        read = networkd.profiles({mine.path: self.own.get(mine.path, "")}) if mine.daemon == "networkd" else ()
        planned |= {word for item in read for word in item.holds if word.startswith(("route ", "rule "))}
        missing = sorted(planned - mine.holds) + (["no DHCP"] if mine.dhcp else [])
        drops = sorted(filter(DROPS.fullmatch, mine.holds))
        if not missing and not drops:
            return own, "", ""
        last = os.path.basename(own)
        seen = [path for path in sorted(self.others) if path.startswith(f"{mine.path}.d/")]
        sources = [path for path in sorted(self.others) if path.startswith(SOURCES) and path.endswith(".yaml")]
        seen += [path for path in sources if os.path.basename(path) > last or (drops and port in self.others[path])]
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
        if new and not new.matches(replace(device, name="", others=frozenset())):
            # A file that goes by the name alone is not for the interface yet when it gets its name.
            lost = [what for what in lost if what.partition("=")[0] not in NAMING]
        if old and new and lost and port not in self.taken:
            text = f"{device.name}: {old.path} sets {', '.join(lost)}, and the next boot would lose that."
            fix = f"Rename it so that it sorts before {os.path.basename(new.path)}. {TAKE.format(port=port)}"
            self.checks.append(deviation("persist_existing", [], [old.path], text, fix, **where))

    def compare(self, port: str, device: Port, mine: Profile, aside: t.Sequence[str], where: dict[str, str]) -> None:
        """Add checks of an interface's existing files and of the settings that ours do not keep.

        :param port: the rail's port, which may be taken over; `mine` is the profile in use with our files.
        :param aside: the files that are set aside; `where` is the checks' place.
        """
        before = [item for item in self.before if item.daemon == mine.daemon and item.matches(device)]
        files = list(dict.fromkeys(self.source(item.path) for item in before))
        # NetworkManager takes the next profile where the first one is busy elsewhere; networkd only ever the first.
        used = before if mine.daemon != "networkd" else sorted(before, key=lambda item: item.rank)[:1]
        lost = sorted({what for item in used for what in item.holds} - mine.holds)
        dhcp = any(item.dhcp for item in used)
        lost += [f"DHCP's address {device.lease}"] if dhcp and device.lease else []
        names, name = ", ".join(files), device.name
        if len(before) <= 1 and not lost and not dhcp:
            self.checks.append(ok("persist_existing", [], files, **where))
        elif not lost or port in self.taken:
            text = f"{name} is adopted: the next boot loses {', '.join(lost)} of {names}."
            text += f" {', '.join(aside)} is copied, and teardown restores it." if aside else ""
            text = text if lost else f"{name}: {names} is for it too, and loses nothing."
            self.checks.append(warning("persist_existing", [], files, text, "", **where))
        else:
            text = f"{name}: {names} sets {', '.join(lost)}, and the next boot would lose that."
            keeps = MANAGERS[self.manager].keeps.format(path=mine.path, port=name)
            if any(item.path.endswith(f"/10-netplan-{name}.network") for item in used):
                keeps = f"It is in the entry {name!r}, with which the managed file merges: remove it there"
            fix = f"{keeps}. {TAKE.format(port=port)}"
            self.checks.append(deviation("persist_existing", [], files, text, fix, **where))

    def rivals(self, mine: Profile, device: Port) -> list[Profile]:
        """Return what another manager that is at work would make of an interface as well."""
        found = [item for item in self.after if item.daemon in self.running - {mine.daemon} and item.matches(device)]
        if mine.daemon == "networkd" and found:
            # netplan excludes networkd's devices from NetworkManager by udev.
            return [] if self.manager == "netplan" or networkmanager.leaves_alone(self.texts, device) else found
        return [item for item in found if "Unmanaged=yes" not in item.holds]

    def early(self, item: Profile, mine: Profile) -> bool:
        """Whether a profile is the initrd's, which NetworkManager keeps active whatever the priority of ours."""
        there = item.path.startswith(f"{networkmanager.RUN}/") and not GENERATED.match(item.path)
        return there and mine.daemon == item.daemon

    def movable(self, item: Profile) -> bool:
        """Whether a file may be set aside: a person's own, and for no interface but those that are taken over."""
        own = self.taken | {"lo"}
        free = {name for name, port in self.ports.items() if name not in own and item.matches(port)}
        return bool(self.ports) and item.path.startswith("/etc/") and not free

    def source(self, path: str) -> str:
        """Return the file that people wrote: the one of which netplan made this."""
        if not GENERATED.match(path):
            return path
        entry = re.escape(re.sub(r".*/(?:10-)?netplan-(.+)\.\w+$", r"\1", path))
        named = re.compile(rf"(^|[{{,])\s*[\"']?{entry}[\"']?\s*:", re.MULTILINE)
        files = [name for name, text in sorted(self.others.items()) if name.startswith(SOURCES) and named.search(text)]
        return ", ".join(files) or path

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the rails on a host: which manager configures the network, which files exist, and writing them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import typing as t

from .._errors import Problem, RdmaError
from .._files import temporary, writing
from .._ports import ports_of
from .._route.route_options import RailOptions
from .machine import RootedHost
from .model import LINK, File, Port, Texts
from .plan import OWNED, SINGLE, owned

# Copies of others' files that had to give way: a folder for each port, and below it the file's absolute path.
KEPT = "/var/lib/railops-rdma/kept"


class PersistHost(RootedHost):
    """A host's owned files of the rails; the root may be another one, to prepare an image."""

    def state(self, desired: t.Iterable[str]) -> dict[str, File]:
        """Return the owned files that are there as they are, and those of the wanted paths that are."""
        paths = {*desired, *SINGLE}
        for folder, _name in OWNED:
            for name in self.names(folder):
                inner = f"{folder}/{name}"
                paths |= {path for path in (inner, f"{inner}/90-railops.conf") if owned(path)}
        found = {}
        for path in sorted(paths):
            target = self.link(path)
            text = self.read(path) if target is None and os.path.isfile(self.path(path)) else None
            if target is not None:
                found[path] = File(path, target, LINK)
            elif text is not None:
                found[path] = File(path, text, stat.S_IMODE(os.stat(self.path(path)).st_mode))
        return found

    def interface(self, rail: RailOptions) -> str:
        """Return the kernel's name of a rail's interface; if missing, the declared one or that of the last run."""
        if rail.pci and not rail.interface:
            last, _mac = ports_of(self.root).get(rail.name, ("", ""))
            if not (found := [*self.pci_interfaces(rail.pci), last])[0]:
                text = f"There is no interface at the PCI address {rail.pci}."
                raise RdmaError(text, "Look with `lspci -D | grep -i ethernet`. [pci_no_interface]")
            return found[0]
        # The managers' files need the link's own name, not an alternative one.
        return self.kernel_name(rail.interface) if self.live else rail.interface

    def texts(self, folders: t.Iterable[str]) -> Texts:
        """Return the texts of others' files in these folders, and of those beside them (NAME.d)."""
        found: Texts = {}
        paths = [f"{folder}/{name}" for folder in folders for name in self.names(folder)]
        paths += [f"{path}/{name}" for path in paths if path.endswith(".d") for name in self.names(path)]
        for path in paths:
            # A link to /dev/null hides its name, and is as a file with nothing in it.
            there = os.path.isfile(self.path(path)) or self.link(path) == os.devnull
            if there and not owned(path):
                found[path] = self.read(path) or ""
        return found

    def ports(self) -> dict[str, Port]:
        """Return what files can match the running host's interfaces by; none of another root."""
        found = {}
        for link in self.links() if self.live else ():
            name, mac, kind = link["ifname"], link.get("address", ""), link.get("linkinfo", {}).get("info_kind", "")
            udev = self.text(f"/run/udev/data/n{link['ifindex']}") or ""
            # DHCPv6 leases single addresses; what a router advertises has a prefix.
            lease = [item for item in link["addr_info"] if item.get("dynamic")]
            lease = [item for item in lease if item["family"] == "inet" or item["prefixlen"] == 128]
            found[name] = Port(
                name=name,
                altnames=frozenset(link.get("altnames", ())),
                mac=mac,
                permanent="" if kind == "vlan" else link.get("permaddr", mac),
                path=next((line[10:] for line in udev.splitlines() if line.startswith("E:ID_PATH=")), ""),
                driver=os.path.basename(self.real(f"/sys/class/net/{name}/device/driver") or ""),
                type=link.get("link_type", ""),
                kind=kind,
                lease=next((f"{item['local']}/{item['prefixlen']}" for item in lease), ""),
            )
        return found

    def set_aside(self) -> dict[str, str]:
        """Return the port for which each file was set aside."""
        found = {}
        for folder, _folders, names in os.walk(self.path(KEPT)):
            port, _slash, path = os.path.relpath(folder, self.path(KEPT)).partition("/")
            found.update({f"/{path}/{name}": port for name in names if path and not name.startswith(".railops-")})
        return found

    def swap(self, new: t.Iterable[str], removed: t.Iterable[str], undo: contextlib.ExitStack) -> None:
        """Give staged files their names and take others away.

        :param new: the paths whose next text is staged.
        :param removed: the paths that go.
        :param undo: gets what puts all of it back, for when this or what follows fails.
        """
        for path in (*new, *removed):
            target, old = self.path(path), self.path(temporary(f"{path}.old"))
            with writing(path):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(old)
                if os.path.lexists(target):
                    os.link(target, old, follow_symlinks=False)
                undo.callback(self._back, target, old)
                if path in removed:
                    self.remove(path)
                else:
                    os.replace(self.path(temporary(path)), target)
                    self.labeled(path)

    def _back(self, target: str, old: str) -> None:
        with contextlib.suppress(OSError):
            if os.path.lexists(old):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(old, target)
            else:
                os.unlink(target)

    def unwritable(self, paths: t.Iterable[str]) -> t.Iterator[Problem]:
        """Yield what keeps these files from being written or removed, as far as that shows before."""
        for folder in sorted(set(map(os.path.dirname, paths))):
            place = self.path(folder)
            while not os.path.isdir(place):
                place = os.path.dirname(place)
            if not os.access(place, os.W_OK | os.X_OK):
                fix = "Run the task with become: true, on a file system that is mounted writable. [disk_permission]"
                yield Problem(folder, "cannot be written (no permission, or read-only).", fix)
        for path in sorted(path for path in paths if self.is_folder(path) and self.link(path) is None):
            fix = (
                "Move its files to another folder (netplan: 10-netplan-IF.network.d) and remove it. [drop_in_existing]"
            )
            yield Problem(path, "is a folder; a managed file needs this path.", fix)

    def move(self, path: str, target: str) -> None:
        """Move a file as it is, over file systems too; the new one is complete before the old one is removed."""
        old, new, there = self.path(path), self.path(target), self.path(temporary(target))
        with writing(target):
            os.makedirs(os.path.dirname(new), exist_ok=True)
            shutil.copy2(old, there, follow_symlinks=False)
            os.chown(there, os.lstat(old).st_uid, os.lstat(old).st_gid, follow_symlinks=False)
            os.replace(there, new)
            os.unlink(old)
            if path.startswith(KEPT):
                with contextlib.suppress(OSError):
                    os.removedirs(os.path.dirname(old))
        self.labeled(target)

    def left(self) -> list[str]:
        """Return the temporaries of runs that were killed, and of the one that is at work."""
        folders = {os.path.dirname(path) for path in SINGLE} | {folder for folder, _name in OWNED}
        drop_ins = {f"{folder}/{name}" for folder in folders for name in self.names(folder) if name.endswith(".d")}
        folders |= {folder for folder in drop_ins if self.link(folder) is None}
        folders |= {"/" + os.path.relpath(folder, self.root) for folder, _folders, _names in os.walk(self.path(KEPT))}
        found = [f"{folder}/{name}" for folder in sorted(folders) for name in self.names(folder)]
        return [path for path in found if re.search(r"/\.railops-[^/]+\.tmp$", path)]

    def sweep(self) -> None:
        """Remove all temporaries; one that stays is the next run's."""
        for path in self.left():
            with contextlib.suppress(RdmaError):
                self.put(path, None)

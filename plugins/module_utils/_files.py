# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a host: reads the kernel's files, and replaces managed files atomically."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import typing as t
from dataclasses import dataclass

from ._errors import RdmaError
from ._formatting import group_by

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

# What a representor calls its port: of a virtual function, a subfunction, or another host's function
# (__devlink_port_phys_port_name_get in the kernel's net/devlink/port.c). The function's own port is p0.
REPRESENTOR = re.compile(r"(c\d+)?pf\d+((vf|sf)\d+)?")
PCI = re.compile(r"/([\da-f]{4,}:[\da-f]{2}:[\da-f]{2}\.[0-7])(?=/|$)")
ETHERNET, INFINIBAND = 1, 32  # ARPHRD_ETHER, ARPHRD_INFINIBAND
TCP_LISTEN = "0A"  # the state in /proc/net/tcp
# The ends of folders that systemd or a network manager reads, and that one managed file may be the only one in.
MADE = (".wants", ".network.d")


def unblocked(path: str, flags: int) -> int:
    """Open a file; a pipe without a writer reads as empty."""
    return os.open(path, flags | os.O_NONBLOCK)


class Sysfs:
    """The files of /sys, /proc and the like under one root. Paths are given with their leading slash.

    A file that is not there, or that the driver refuses to answer (a down port's `speed` gives EINVAL),
    reads as None: what to make of that is for the caller to decide.
    """

    def __init__(self, root: str = "/") -> None:
        self.root = os.path.realpath(root)

    def path(self, path: str) -> str:
        """Return where that path of the host lies on this machine."""
        return os.path.join(self.root, path.lstrip("/"))

    def text(self, path: str) -> str | None:
        """Return a file's text without surrounding white space, or None."""
        data = self.data(path)
        return None if data is None else data.decode("utf-8", "replace").strip().strip("\0")

    def data(self, path: str) -> bytes | None:
        """Return a file's bytes, or None."""
        with contextlib.suppress(OSError), open(self.path(path), "rb") as file:
            return file.read()
        return None

    def number(self, path: str) -> int | None:
        """Return a file's number (decimal, or hexadecimal with 0x), or None."""
        try:
            return int(self.text(path) or "", 0)
        except ValueError:
            return None

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none when there is no such folder."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def real(self, path: str) -> str | None:
        """Return where a link leads, as a path of the host; None when it leads nowhere."""
        found = os.path.realpath(self.path(path))
        if not os.path.exists(found):
            return None
        inside = os.path.relpath(found, self.root)
        return None if inside.startswith("..") else "/" + inside

    def kernel_modules(self) -> dict[str, bool]:
        """Return the modules that the running kernel has, and whether each is built into it."""
        found: dict[str, bool] = {}
        for file in ("modules.dep", "modules.builtin"):
            text = self.text(f"/lib/modules/{os.uname().release}/{file}") or ""
            # The kernel spells them with underscores.
            names = re.findall(r"^(?:\S*/)?([^/\s:]+)\.ko(?:\.\w+)?(?::|\s*$)", text, re.MULTILINE)
            found.update(dict.fromkeys((name.replace("-", "_") for name in names), file == "modules.builtin"))
        return found

    def listening(self) -> dict[int, list[str]]:
        """Return the TCP ports with a listener in this network namespace, each with the inodes of its sockets."""
        texts = [self.text(f"/proc/self/net/{name}") or "" for name in ("tcp", "tcp6")]
        rows = [row.split() for text in texts for row in text.splitlines()[1:]]
        return group_by((int(row[1].rpartition(":")[2], 16), row[9]) for row in rows if row[3] == TCP_LISTEN)

    @property
    def boot_id(self) -> str:
        """The identifier of this boot."""
        return self.text("/proc/sys/kernel/random/boot_id") or ""

    def exists(self, path: str) -> bool:
        """Whether there is such a file, folder or link (also one that leads nowhere)."""
        return os.path.lexists(self.path(path))

    def kernel_name(self, interface: str) -> str:
        """Return the kernel's name of an interface that may be given by an alternative name."""
        if self.exists(f"/sys/class/net/{interface}"):
            return interface
        try:
            # The kernel finds alternative names too, since 5.5; sysfs does not show them.
            return socket.if_indextoname(socket.if_nametoindex(interface))
        except OSError:
            return interface

    def rail_interface(self, rail: t.Mapping[str, t.Any]) -> str:
        """Return the kernel's name of a rail's interface: by its name, else by its PCI address."""
        name = self.kernel_name(rail.get("interface") or "")
        if name and self.exists(f"/sys/class/net/{name}"):
            return name
        return next(iter(self.pci_interfaces(rail["pci"])), name) if rail.get("pci") else name

    def port_interface(self, interface: str) -> str:
        """Return the port below an interface, such as a VLAN's; the interface itself when it has none or several."""
        lower = [name[6:] for name in self.names(f"/sys/class/net/{interface}") if name.startswith("lower_")]
        return self.port_interface(lower[0]) if len(lower) == 1 else interface

    def receive_problem(self, interface: str) -> str:
        """Return as a clause why a rail's interface cannot receive; empty where it can."""
        folder = f"/sys/class/net/{interface}"
        if not self.exists(folder):
            return "the host has no such interface."
        if self.number(f"{folder}/type") != ETHERNET:
            return "the rail is not Ethernet, and InfiniBand has no LLDP and is not queried for addresses."
        return "" if self.number(f"{folder}/carrier") == 1 else "the interface has no carrier."

    def own_interfaces(self, function: str) -> list[str]:
        """Return the own interfaces of a PCI function out of its folder, sorted.

        The representors of its virtual functions (switchdev mode) and its IPoIB partitions lie beside them.
        """
        # virtio puts one more folder between the function and its net/.
        devices = [name for name in self.names(function) if re.fullmatch(r"virtio\d+", name)]
        folders = [f"{function}/net", *(f"{function}/{device}/net" for device in devices)]
        found = [name for folder in folders for name in self.names(folder)]
        return [name for name in found if self._is_uplink(f"/sys/class/net/{name}")]

    def pci_address(self, folder: str) -> str | None:
        """Return the PCI address of the function that an interface or RDMA device belongs to, by its folder."""
        # A virtio port has a device of its own below the card.
        found = PCI.findall(self.real(f"{folder}/device") or "")
        return found[-1] if found else None

    def pci_interfaces(self, address: str) -> list[str]:
        """Return the own interfaces of the PCI function at an address, sorted; none when there is no such function."""
        return self.own_interfaces(f"/sys/bus/pci/devices/{address}")

    def _is_uplink(self, interface: str) -> bool:
        represented = REPRESENTOR.fullmatch(self.text(f"{interface}/phys_port_name") or "")
        return not represented and not self.exists(f"{interface}/parent")


@dataclass(frozen=True)
class Change:
    """One file or link to write; None removes it."""

    path: str
    content: str | None
    link: bool = False


class HostFiles(Sysfs):
    """The collection's own files and links. Paths are the host's, with their leading slash.

    A write replaces the complete file, on disk before the rename: after an interruption the host has the old or the new
    one.

    :param root: the folder that serves as the host's root.
    :param module: sets the SELinux context of written files; None where there is none.
    """

    def __init__(self, root: str = "/", module: AnsibleModule | None = None) -> None:
        super().__init__(root)
        self._module = module

    def read(self, path: str) -> str | None:
        """Return a file's text, or None when it is not there."""
        try:
            with open(self.path(path), encoding="utf-8", errors="replace", opener=unblocked) as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise RdmaError(
                f"{path} cannot be read: {exc.strerror}.", "Run the task with become: true. [file_unreadable]"
            ) from exc

    def link(self, path: str) -> str | None:
        """Return where a link leads, or None."""
        try:
            return os.readlink(self.path(path))
        except OSError:
            return None

    def changed_at(self, path: str) -> int | None:
        """Return when a file was last written, in nanoseconds, or None when it is not there."""
        try:
            return os.stat(self.path(path)).st_mtime_ns
        except OSError:
            return None

    def changes(self, files: t.Mapping[str, str | None], links: t.Mapping[str, str | None]) -> list[Change]:
        """Return what has to be written for these contents and targets; None wants the path away."""
        found = [Change(path, content) for path, content in files.items() if self.read(path) != content]
        return found + [Change(path, target, link=True) for path, target in links.items() if self.link(path) != target]

    def apply(self, changes: t.Iterable[Change]) -> None:
        """Write them."""
        for change in changes:
            self.put(change.path, change.content, link=change.link)

    def put(self, path: str, content: str | None, mode: int = 0o644, *, link: bool = False) -> None:
        """Make a file hold exactly that text, with that mode from its first moment, or a link lead there; None removes.

        It also removes a folder that was made for the removed file and is empty now.

        :param path: on the host.
        :param content: the text, or where the link leads.
        :param mode: of the file, such as 0o644.
        :param link: make a symbolic link.
        """
        with writing(path):
            if content is None:
                self.remove(path)
            else:
                self.stage(path, content, mode, link=link)
                try:
                    os.replace(self.path(temporary(path)), self.path(path))
                except OSError:
                    self.remove(temporary(path))
                    raise
                self.labeled(path)

    def stage(self, path: str, content: str, mode: int = 0o644, *, link: bool = False) -> None:
        """Write the new content of a path to a temporary file beside it; keep an identical one.

        :param path: on the host.
        :param content: the text, or where the link leads.
        :param mode: of the file, such as 0o644.
        :param link: make a symbolic link.
        """
        target = self.path(temporary(path))
        with writing(path):
            os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
            if self._is(temporary(path), content, mode, link=link):
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target)
            try:
                if link:
                    os.symlink(content, target)
                    return
                with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(target, mode)
            except BaseException:
                os.unlink(target)
                raise

    def _is(self, path: str, content: str, mode: int, *, link: bool) -> bool:
        if link or self.link(path) is not None:
            return link and self.link(path) == content
        there = os.path.isfile(self.path(path)) and os.stat(self.path(path)).st_mode & 0o7777 == mode
        return there and self.read(path) == content

    def remove(self, path: str) -> None:
        """Remove a file, and the folder that was made for it."""
        target = self.path(path)
        if os.path.lexists(target):
            os.unlink(target)
            if target.rpartition("/")[0].endswith(MADE) and not os.listdir(os.path.dirname(target)):
                os.rmdir(os.path.dirname(target))

    def labeled(self, path: str) -> None:
        """Give a file the SELinux context of its place."""
        if self._module:
            self._module.set_default_selinux_context(self.path(path), False)


def temporary(path: str) -> str:
    """Return where a file's next text waits; by its ending, neither systemd nor a network manager reads it."""
    return "{}/.railops-{}.tmp".format(*os.path.split(path))


@contextlib.contextmanager
def writing(path: str) -> t.Iterator[None]:
    """Raise RdmaError with a remedy where a path cannot be written."""
    try:
        yield
    except OSError as exc:
        fix = "Run the task with become: true, on a file system that is not read-only and has room. [file_not_writable]"
        raise RdmaError(f"{path} cannot be written: {exc.strerror}.", fix) from exc

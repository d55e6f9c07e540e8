# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the rails on a host: who manages its network, what is there, the tools' own checks, and the writing."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import stat
import tempfile
import typing as t

from .._errors import RdmaError
from .._files import HostFiles, Sysfs
from .plan import KEYFILE_FOLDER, NETPLAN_FOLDER, OWNED, SINGLE, File, Found, interfaces_of, owned

# netplan generate reads these of its root; the rest of a host has no say in it.
NETPLAN_SOURCES = ("/usr/lib/netplan", "/lib/netplan", "/etc/netplan", "/run/netplan")
RENDERER = re.compile(r"^\s*renderer\s*:\s*[\"']?NetworkManager", re.MULTILINE)


class State(t.NamedTuple):
    """An owned file as it is: its text and its permission bits."""

    text: str
    mode: int


class Ran(t.NamedTuple):
    """What came of a command."""

    status: int
    out: str
    err: str


def no_command(argv: list[str], text: str) -> Ran:
    """Stand in for a runner of commands where there is none: every tool is missing."""
    return Ran(127, "", f"{argv[0]}: not run")


class Host(HostFiles):
    """A host's owned files of the rails; the root may be another one, to prepare an image.

    :param command: runs a command with a text as its input.
    """

    def __init__(
        self,
        root: str = "/",
        move: t.Callable[[str, str], None] = os.replace,
        command: t.Callable[[list[str], str], Ran] = no_command,
    ) -> None:
        super().__init__(root, move)
        self._command = command

    @property
    def live(self) -> bool:
        """Whether the root is that of the running system."""
        return os.path.realpath(self.root) == "/"

    def found(self) -> Found:
        """Return what tells who manages the network."""
        networkd = os.path.isdir(self.path("/run/systemd/netif/links"))
        text = "".join(
            self.read(path) or ""
            for path in [
                "/etc/network/interfaces",
                *(f"/etc/network/interfaces.d/{name}" for name in self.names("/etc/network/interfaces.d")),
            ]
        )
        plans = {
            name: self.read(f"{folder}/{name}") or ""
            for folder in NETPLAN_SOURCES
            for name in self.names(folder)
            if name.endswith(".yaml")
        }
        return Found(
            netplan_tool=bool(self._tool("netplan")),
            netplan_files=bool(plans),
            netplan_networkmanager=any(RENDERER.search(text) for text in plans.values()),
            networkmanager=os.path.isdir(self.path("/run/NetworkManager")) or self._enabled("NetworkManager"),
            networkd=networkd or self._enabled("systemd-networkd"),
            ifupdown_interfaces=interfaces_of(text),
        )

    def _tool(self, name: str) -> str | None:
        for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
            if os.access(self.path(f"{folder}/{name}"), os.X_OK):
                return self.path(f"{folder}/{name}")
        return None

    def _enabled(self, unit: str) -> bool:
        wants = f"/etc/systemd/system/multi-user.target.wants/{unit}.service"
        return os.path.lexists(self.path(wants))

    def state(self, wanted: t.Iterable[str]) -> dict[str, State]:
        """Return the owned files that are there, and those of the wanted paths that are."""
        paths = {*wanted, *SINGLE}
        for folder, _name in OWNED:
            for name in self.names(folder):
                inner = f"{folder}/{name}"
                paths |= {path for path in (inner, f"{inner}/90-railops.conf") if owned(path)}
        found = {}
        for path in sorted(paths):
            text = self.read(path) if os.path.isfile(self.path(path)) else None
            if text is not None:
                found[path] = State(text, stat.S_IMODE(os.stat(self.path(path)).st_mode))
        return found

    def interface(self, name: str, pci: str) -> str:
        """Return the name of a rail's interface as the kernel has it now; the declared one when it is not there."""
        if not name and pci:
            found = Sysfs(self.root).pci_interfaces(pci)
            if not found:
                raise RdmaError(
                    f"There is no interface at the PCI address {pci}.", "Look with `lspci -D | grep -i ethernet`."
                )
            return found[0]
        if self.live:
            # The managers' files need the link's own name, not an alternative one.
            with contextlib.suppress(OSError):
                return socket.if_indextoname(socket.if_nametoindex(name))
        return name

    def write(self, file: File) -> None:
        """Put a file in place, with its mode from the first moment on."""
        target = self.path(file.path)
        temporary = ""
        try:
            os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
            # The name ends in something that no network manager reads.
            handle, temporary = tempfile.mkstemp(prefix=".railops-", suffix=".tmp", dir=os.path.dirname(target))
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(file.text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, file.mode)
            self._move(temporary, target)
        except OSError as exc:
            if temporary and os.path.lexists(temporary):
                os.unlink(temporary)
            raise RdmaError(
                f"{file.path} cannot be written: {exc.strerror}.",
                "Run the task with become: true, on a file system that is not read-only.",
            ) from exc

    def remove(self, path: str) -> None:
        """Remove an owned file, and its folder when that was made for it and is empty now."""
        self.put(path, None)
        folder = os.path.dirname(path)
        if folder.endswith(".network.d") and not self.names(folder):
            os.rmdir(self.path(folder))

    # --- the tools' own checks ----------------------------------------------------------------------------------------

    def check_netplan(self, files: t.Iterable[File]) -> None:
        """Let `netplan generate` read the host's files with the new ones in place, in a root of its own."""
        tool = self._tool("netplan")
        if not tool or not self.live:
            return
        with tempfile.TemporaryDirectory(prefix="railops-netplan-") as root:
            for folder in NETPLAN_SOURCES:
                if os.path.isdir(self.path(folder)):
                    shutil.copytree(self.path(folder), f"{root}{folder}", dirs_exist_ok=True)
            os.makedirs(f"{root}{NETPLAN_FOLDER}", exist_ok=True)
            for name in os.listdir(f"{root}{NETPLAN_FOLDER}"):
                if owned(f"{NETPLAN_FOLDER}/{name}"):
                    os.unlink(f"{root}{NETPLAN_FOLDER}/{name}")
            new = Host(root)
            for file in files:
                if file.path.startswith(NETPLAN_FOLDER):
                    new.write(file)
            done = self._command([tool, "generate", "--root-dir", root], "")
            if done.status:
                raise RdmaError(
                    f"netplan refuses the files, and nothing was written: {_said(done, root)}",
                    "Mend the host's other files in /etc/netplan if the message is about them.",
                )

    def check_keyfiles(self, files: t.Iterable[File]) -> None:
        """Let nmcli read each profile without the daemon, where it can (NetworkManager 1.40 and later)."""
        tool = self._tool("nmcli")
        if not tool:
            return
        for file in files:
            if file.path.startswith(KEYFILE_FOLDER):
                argv = [tool, "--offline", "connection", "modify", "connection.autoconnect", "yes"]
                done = self._command(argv, file.text)
                # Its --help does not tell; older ones refuse the option itself.
                if done.status and "Option '--offline' is unknown" in done.err:
                    return
                if done.status:
                    raise RdmaError(
                        f"NetworkManager refuses {file.path}, and nothing was written: {_said(done)}",
                        "Report this profile as a bug of the collection.",
                        profile=file.text,
                    )

    def load_keyfiles(self, paths: t.Iterable[str]) -> None:
        """Tell a running NetworkManager of the profiles; a device that is up stays as it is."""
        tool = self._running_nmcli()
        if not tool:
            return
        for path in paths:
            done = self._command([tool, "connection", "load", path], "")
            if done.status or "could not" in f"{done.out}{done.err}".lower():
                raise RdmaError(
                    f"NetworkManager does not load {path}: {_said(done)}", "Look at `journalctl -u NetworkManager`."
                )

    def forget_keyfiles(self) -> None:
        """Let a running NetworkManager forget removed profiles; the next flap of the link would bring them back."""
        tool = self._running_nmcli()
        if not tool:
            return
        done = self._command([tool, "connection", "reload"], "")
        if done.status:
            raise RdmaError(
                f"NetworkManager does not reload its profiles: {_said(done)}",
                "Run `nmcli connection reload` on the host.",
            )

    def _running_nmcli(self) -> str | None:
        return self._tool("nmcli") if self.live and os.path.isdir("/run/NetworkManager") else None


def _said(done: Ran, root: str = "") -> str:
    text = " ".join(f"{done.err} {done.out}".split())
    return text.replace(root, "") if root else text

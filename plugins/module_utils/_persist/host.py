# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the rails on a host: what tells who manages its network, what is there, and the writing."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import typing as t

from .._errors import RdmaError
from .._files import HostFiles
from .model import File, Ran
from .plan import OWNED, SINGLE, interfaces_of, owned

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


class State(t.NamedTuple):
    """An owned file as it is: its text and its permission bits."""

    text: str
    mode: int


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
        module: AnsibleModule | None = None,
        command: t.Callable[[list[str], str], Ran] = no_command,
    ) -> None:
        super().__init__(root, module)
        self.command = command

    @property
    def live(self) -> bool:
        """Whether the root is that of the running system."""
        return self.root == "/"

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return os.path.isdir(self.path(path))

    def tool(self, name: str) -> str | None:
        """Return the path of a program of the host, or None."""
        paths = (self.path(f"{folder}/{name}") for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"))
        return next((path for path in paths if os.access(path, os.X_OK)), None)

    def enabled(self, unit: str) -> bool:
        """Whether a service is started at boot."""
        return os.path.lexists(self.path(f"/etc/systemd/system/multi-user.target.wants/{unit}.service"))

    def ifupdown_interfaces(self) -> tuple[str, ...]:
        """Return the interfaces that ifupdown configures."""
        folder = "/etc/network/interfaces.d"
        paths = ["/etc/network/interfaces", *(f"{folder}/{name}" for name in self.names(folder))]
        return interfaces_of("".join(self.read(path) or "" for path in paths))

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
            found = self.pci_interfaces(pci)
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
        self.put(file.path, file.text, file.mode)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host as network managers see it: its programs, what is started at boot, and what ifupdown configures."""

from __future__ import annotations

import glob
import os
import re

from .._programs import Machine

# A stanza that says no more than `manual` leaves its interface to others.
NEXT = r"(?=(?:\s|#.*)*(?:iface|auto|allow-|source|mapping|\Z))"
MANUAL = re.compile(rf"^[ \t]*iface\s+\S+\s+inet6?\s+manual[ \t]*${NEXT}", re.MULTILINE)


class RootedHost(Machine):
    """A host below a root: the running one, or an image that is prepared."""

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
        """Return the interfaces that ifupdown configures, also by files elsewhere; interfaces(5)."""
        texts: dict[str, str] = {}
        ahead = ["/etc/network/interfaces", "/etc/network/interfaces.d/*"]
        while ahead:
            for found in sorted(glob.glob(self.path(os.path.join("/etc/network", ahead.pop())))):
                if found not in texts and os.path.isfile(found):
                    texts[found] = self.read(os.path.relpath(found, self.root)) or ""
                    more = re.findall(r"^\s*source(-directory)?\s+(\S+)", texts[found], re.MULTILINE)
                    ahead += [f"{name}/*" if folder else name for folder, name in more]
        return interfaces_of("\n".join(texts.values()))


def interfaces_of(text: str) -> tuple[str, ...]:
    """Return the interfaces that an ifupdown file configures or takes as ports, without the loopback."""
    text = MANUAL.sub("", text)
    found = [name.partition(":")[0] for name in re.findall(r"^\s*iface\s+(\S+)\s+", text, re.MULTILINE)]
    ports = re.findall(r"^\s*(?:bond[-_]slaves|bridge[-_]ports|ovs_ports)\s+(.+)", text, re.MULTILINE)
    found += [name for line in ports for name in line.split()]
    return tuple(dict.fromkeys(name for name in found if name not in ("lo", "none", "all")))

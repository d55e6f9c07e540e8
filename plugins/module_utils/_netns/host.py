# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what a host has of the RDMA namespace mode, and applies a plan to it."""

from __future__ import annotations

import os
import re
import typing as t

from .._errors import RdmaError
from .._systemd import named
from .._validation import excerpt
from . import initramfs
from . import plan as planning
from .plan import NetnsCurrent, NetnsOptions, NetnsPlan

if t.TYPE_CHECKING:
    from .._programs import Machine

# modprobe.d(5): a name in an earlier folder masks the same name in a later one.
MODPROBE_FOLDERS = tuple(f"{top}/modprobe.d" for top in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
MODULE_FOLDER = "/sys/module/ib_core"
MODE_FILE = "/sys/module/ib_core/parameters/netns_mode"


class NetnsHost:
    """One host: its files, its initramfs images, and iproute2's program `rdma`."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine
        self._kernel = os.uname().release

    def read(self, want: NetnsOptions) -> NetnsCurrent:
        """Return what is there."""
        support, builtin = self._support()
        current = None
        if support == planning.LOADED:
            current = self._current()
            if current is None:
                support, current = planning.TOO_OLD, planning.DEFAULT_MODE
        owned = self._files.read(planning.OWNED_FILE)
        return NetnsCurrent(
            support=support,
            kernel=self._kernel,
            current=current,
            builtin=builtin,
            owned_text=owned,
            settings=self._settings(),
            arguments=tuple(planning.parse_arguments(self._files.read("/proc/cmdline") or "")),
            namespaces=self._namespaces(),
            images=tuple(
                initramfs.images(
                    self._files,
                    planning.OWNED_FILE,
                    older_than=self._files.changed_at(planning.OWNED_FILE) if owned == want.text else None,
                    still_holding=owned is None and want.text is None,
                )
            ),
            tool=self._files.tool("rdma") or "",
        )

    def apply(self, plan: NetnsPlan) -> NetnsPlan:
        """Carry a plan out and return it as it turned out."""
        if plan.before.file != plan.after.file:
            self._files.put(planning.OWNED_FILE, plan.after.file)
        # The images before the live change: after an interrupted run the next boot repairs the host.
        for image in plan.images:
            initramfs.rebuild(self._files, image)
        if not plan.tries_live:
            return plan
        done = self._files.run([plan.have.tool, "system", "set", "netns", plan.wanted])
        # The mode shows whether other namespaces prevent the change; the tool's message does not.
        if (now := self._current()) == plan.wanted:
            return plan.ended(live=True)
        if not done.status:
            raise RdmaError(
                f"The kernel took the mode {plan.wanted} and still reports {now}.",
                "Read the kernel's log (dmesg); something else may be setting the mode. [netns_not_kept]",
            )
        if os.geteuid():
            reported = excerpt((done.err or done.out).strip())
            raise RdmaError(
                f"rdma cannot set the mode {plan.wanted}: {reported}", "Run the task with become: true. [netns_refused]"
            )
        return plan.ended(live=False)

    def _support(self) -> tuple[str, bool]:
        modules = self._files.kernel_modules()
        builtin = modules.get("ib_core", False)
        if os.path.isdir(self._files.path(MODULE_FOLDER)) or builtin:
            return planning.LOADED, builtin
        return (planning.NOT_LOADED if "ib_core" in modules else planning.ABSENT), False

    def _current(self) -> str | None:
        # The parameter came with the mode, in kernel 5.2; its file shows the live value.
        value = self._files.read(MODE_FILE)
        return None if value is None else planning.mode_of(value.strip())

    def _settings(self) -> tuple[planning.Setting, ...]:
        paths = [f"{folder}/{name}" for folder in MODPROBE_FOLDERS for name in self._files.names(folder)]
        return tuple(
            setting
            for name, path in named(paths, MODPROBE_FOLDERS).items()
            if name.endswith((".conf", ".alias"))
            for setting in planning.parse_options(self._files.read(path) or "", path)
        )

    def _namespaces(self) -> int:
        """Return how many network namespaces there are besides the initial one, as far as /proc shows them."""
        home = self._files.link("/proc/1/ns/net")
        found = {self._files.link(f"/proc/{name}/ns/net") for name in self._files.names("/proc") if name.isdigit()}
        # ip netns and container runtimes keep namespaces without a process by mounting them: the fourth word.
        mounts = self._files.read("/proc/1/mountinfo") or ""
        found |= set(re.findall(r"^(?:\S+ +){3}(net:\[\S+)", mounts, re.MULTILINE))
        return len(found - {home, None})

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a host's kernel modules, .link files and interfaces, and applies a plan to them."""

from __future__ import annotations

import os
import typing as t

from .. import _systemd
from .._card.pci import read_pci
from .._errors import RdmaError
from .._files import INFINIBAND
from . import host_plan as planning
from . import verbs
from .host_model import LinkFile, Netdev, RdmaOptions, RdmaState
from .host_plan import RdmaPlan
from .link_files import ADMIN_FOLDERS, DEFAULT, FOLDERS, RULES

if t.TYPE_CHECKING:
    from .._programs import Machine


class RdmaHost:
    """One host: its files and its kernel.

    :param roles: says what interfaces and RDMA devices are for, by folder in /sys/class; called only when an interface
        gets another name.
    """

    def __init__(self, machine: Machine, roles: t.Callable[[], dict[str, str]]) -> None:
        self._files = machine
        self._roles = roles

    def read(self, want: RdmaOptions) -> RdmaState:
        """Return what is there."""
        modules = self._files.kernel_modules()
        folder = planning.LINK_FOLDER
        managed = [f"{folder}/{name}" for name in self._files.names(folder) if planning.OWNED_LINK.fullmatch(name)]
        retained = {f"{folder}/{planning.LINK_FILE.format(rail=rail)}" for rail in want.out}
        managed = [path for path in managed if path not in retained]
        paths = (planning.MODULES_FILE, *managed)
        files = {path: text for path in paths if (text := self._files.read(path)) is not None}
        netdevs = tuple(sorted(self._netdevs(want), key=lambda item: item.name))
        renamed = planning.renamed(want, netdevs)
        roles = self._roles() if renamed else {}
        rules = [f"{RULES}/{name}" for name in self._files.names(RULES) if name.endswith(".rules")]
        return RdmaState(
            kernel=os.uname().release,
            loaded=frozenset(self._files.names("/sys/module")),
            available=frozenset(name for name, builtin in modules.items() if not builtin),
            builtin=frozenset(name for name, builtin in modules.items() if builtin),
            files=files,
            link_files=tuple(self._link_files()) if want.naming != "none" else (),
            rules={path: self._files.text(path) or "" for path in rules if want.naming != "none"},
            netdevs=netdevs,
            roles={name: role for name in renamed if (role := self._role(name, roles))},
        )

    def apply(self, plan: RdmaPlan) -> None:
        """Carry a plan out."""
        for path, text in plan.files.items():
            self._files.put(path, text)
        for name in plan.load:
            done = self._files.run(["modprobe", name])
            if done.status:
                raise RdmaError(
                    f"Kernel module {name} cannot be loaded: {(done.err or done.out).strip()}",
                    "Read the kernel's log (dmesg): an unsigned module needs Secure Boot's MOK, one of another kernel "
                    "a reboot into that kernel. [module_not_loaded]",
                )

    def _link_files(self) -> t.Iterator[LinkFile]:
        """Yield the unmanaged .link files, each with its drop-ins; one that is masked is none."""
        paths = [f"{folder}/{name}" for folder in FOLDERS for name in self._files.names(folder)]
        paths += [f"{path}/{name}" for path in paths if path.endswith(".link.d") for name in self._files.names(path)]
        there = _systemd.named(paths, FOLDERS)
        for name, path in there.items():
            if not name.endswith(".link") or planning.OWNED_LINK.fullmatch(name):
                continue
            more = [other for part, other in there.items() if part.startswith(f"{name}.d/") and part.endswith(".conf")]
            parts = [path, *more]
            usual = name == DEFAULT and not path.startswith(ADMIN_FOLDERS)
            texts = [self._files.text(part) or "" for part in (parts[1:] if usual else parts)]
            if any(texts) and (texts[0] or usual):
                yield LinkFile(path, [section for text in texts for section in _systemd.sections(text)])

    def _role(self, interface: str, roles: dict[str, str]) -> str:
        home = f"/sys/class/net/{interface}"
        devices = (f"/sys/class/infiniband/{name}" for name in self._files.names(f"{home}/device/infiniband"))
        return next((roles[path] for path in (home, *devices) if path in roles), "")

    def _netdevs(self, want: RdmaOptions) -> t.Iterator[Netdev]:
        answers = verbs.read()[0] if want.network == "infiniband" and want.rails else {}
        for function in read_pci(self._files).functions.values():
            ports = (port for device in function.rdma for port in answers.get(device, {}).values())
            port_mtu = next((port.get("active_mtu") for port in ports), None)
            for name in function.netdevs:
                home = f"/sys/class/net/{name}"
                yield Netdev(
                    name=name,
                    pci=function.address,
                    infiniband=self._files.number(f"{home}/type") == INFINIBAND,
                    ipoib_mode=self._files.text(f"{home}/mode"),
                    port_mtu=port_mtu,
                    mac=self._files.text(f"{home}/address") or "",
                    driver=(self._files.real(f"{home}/device/driver") or "").rpartition("/")[2],
                )

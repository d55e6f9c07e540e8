# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a host's kernel modules, .link files and interfaces, and applies a plan to them."""

from __future__ import annotations

import os
import re
import typing as t

from .._card.pci import read_pci
from .._errors import RdmaError
from . import host_plan as planning
from .host_model import Have, Netdev, Want
from .host_plan import Plan
from .link_files import DEFAULT, FOLDERS, PEOPLES, RULES, LinkFile, parse

if t.TYPE_CHECKING:
    from .._files import HostFiles
    from .._module import Run

ARPHRD_INFINIBAND = "32"


class Host:
    """One host: its files, its kernel, and the alternative names of its interfaces.

    :param verbs: an object with read() as verbs.Verbs has it.
    :param altnames: an object with read() and change() as altnames.AltNames has them.
    :param roles: says what interfaces and RDMA devices are for, by folder in /sys/class; asked only when an interface
        gets another name.
    """

    def __init__(
        self,
        files: HostFiles,
        run: Run,
        verbs: t.Any,
        altnames: t.Any,
        roles: t.Callable[[], dict[str, str]],
    ) -> None:
        self._files = files
        self._run = run
        self._verbs = verbs
        self._altnames = altnames
        self._roles = roles
        self._kernel = os.uname().release

    def read(self, want: Want) -> Have:
        """Return what is there."""
        modules = f"/lib/modules/{self._kernel}"
        link_files = {
            name: self._files.read(f"{planning.LINK_FOLDER}/{name}") or ""
            for name in self._files.names(planning.LINK_FOLDER)
            if planning.OWNED_LINK.fullmatch(name)
        }
        # The library behind them takes longer to import than all the rest takes to run.
        named = want.naming == "altname" or any("AlternativeName=" in text for text in link_files.values())
        netdevs = self._netdevs(want, self._altnames.read() if named else {})
        renamed = planning.renamed(want, netdevs)
        roles = self._roles() if renamed else {}
        return Have(
            kernel=self._kernel,
            loaded=frozenset(self._files.names("/sys/module")),
            available=module_names(self._files.read(f"{modules}/modules.dep") or ""),
            builtin=module_names(self._files.read(f"{modules}/modules.builtin") or ""),
            modules_text=self._files.read(planning.MODULES_FILE),
            link_files=link_files,
            others=self._others() if want.naming != "none" else (),
            rules={path: self._files.text(path) or "" for path in self._rules()} if want.naming == "name" else {},
            netdevs=netdevs,
            roles={name: role for name in renamed if (role := self._role(name, roles))},
        )

    def apply(self, plan: Plan) -> None:
        """Carry a plan out."""
        for path, text in plan.files.items():
            self._files.put(path, text)
        for name in plan.load:
            code, output, errors = self._run(["modprobe", name])
            if code:
                raise RdmaError(
                    f"Kernel module {name} cannot be loaded: {(errors or output).strip()}",
                    "Read the kernel's log (dmesg): an unsigned module needs Secure Boot's MOK, one of another kernel "
                    "a reboot into that kernel.",
                    module=name,
                )
        if plan.add_names or plan.drop_names:
            self._altnames.change(plan.add_names, plan.drop_names)

    def _rules(self) -> list[str]:
        return [f"{RULES}/{name}" for name in self._files.names(RULES) if name.endswith(".rules")]

    def _others(self) -> tuple[LinkFile, ...]:
        """Return the .link files that are not ours, each with its drop-ins; one that is masked is none."""
        found: dict[str, str] = {}
        drop_ins: dict[str, dict[str, str]] = {}
        for folder in FOLDERS:
            for name in self._files.names(folder):
                if name.endswith(".link") and not planning.OWNED_LINK.fullmatch(name):
                    found.setdefault(name, f"{folder}/{name}")
                elif name.endswith(".link.d"):
                    for part in self._files.names(f"{folder}/{name}"):
                        if part.endswith(".conf"):
                            drop_ins.setdefault(name[:-2], {}).setdefault(part, f"{folder}/{name}/{part}")
        files = []
        for name, path in found.items():
            parts = [path, *(drop_ins.get(name, {})[part] for part in sorted(drop_ins.get(name, {})))]
            usual = name == DEFAULT and not path.startswith(PEOPLES)
            texts = [self._files.text(part) or "" for part in (parts[1:] if usual else parts)]
            if any(texts) and (texts[0] or usual):
                files.append(LinkFile(path, [section for text in texts for section in parse(text)]))
        return tuple(files)

    def _role(self, interface: str, roles: dict[str, str]) -> str:
        home = f"/sys/class/net/{interface}"
        devices = (f"/sys/class/infiniband/{name}" for name in self._files.names(f"{home}/device/infiniband"))
        return next((roles[path] for path in (home, *devices) if path in roles), "")

    def _netdevs(self, want: Want, altnames: dict[str, tuple[str, ...]]) -> tuple[Netdev, ...]:
        answers = self._verbs.read()[0] if want.network == "infiniband" and want.rails else {}
        found = []
        for function in read_pci(self._files).functions.values():
            ports = [answers[device].get("ports", {}) for device in function.rdma if device in answers]
            port_mtu = next((port.get("active_mtu") for port_set in ports for port in port_set.values()), None)
            for name in function.netdevs:
                home = f"/sys/class/net/{name}"
                found.append(
                    Netdev(
                        name=name,
                        pci=function.address,
                        altnames=altnames.get(name, ()),
                        infiniband=self._files.text(f"{home}/type") == ARPHRD_INFINIBAND,
                        ipoib_mode=self._files.text(f"{home}/mode"),
                        port_mtu=port_mtu,
                        mac=self._files.text(f"{home}/address") or "",
                        driver=(self._files.real(f"{home}/device/driver") or "").rpartition("/")[2],
                    )
                )
        return tuple(sorted(found, key=lambda item: item.name))


def module_names(text: str) -> frozenset[str]:
    """Return the names in a modules.dep or modules.builtin file: the kernel's spelling, with underscores."""
    return frozenset(
        match["name"].replace("-", "_")
        for match in re.finditer(r"^(?:\S*/)?(?P<name>[^/\s:]+)\.ko(?:\.\w+)?(?::|\s*$)", text, re.MULTILINE)
    )

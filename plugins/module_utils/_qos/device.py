# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes the RoCE settings of one interface: by a back end, and by files of sysfs, configfs and debugfs.

Documentation/ABI/testing/configfs-rdma_cm; mlx5's cong.c for debugfs; the vendor's sysfs folders `qos/`, `ecn/`, `tc/`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import typing as t

from .._errors import RdmaError
from .._files import Sysfs
from .backends import BACKENDS, OPERATIONS, QosError, driver_of, release_dcbx, run

if t.TYPE_CHECKING:
    from .backends import Operation, Values

RDMA_CM = "/sys/kernel/config/rdma_cm"
# Of a congestion notification's values: the file of OFED below the interface's folder, and that of debugfs.
CNP_FILES = {
    "cnp_dscp": ("ecn/roce_np/cnp_dscp", "np_cnp_dscp"),
    "cnp_priority": ("ecn/roce_np/cnp_802p_prio", "np_cnp_prio"),
}


class Nic(Sysfs):
    """One interface. What its driver does not offer reads as None, and is never written."""

    def __init__(self, interface: str, root: str = "/") -> None:
        super().__init__(root)
        self.interface = interface
        self._net = f"/sys/class/net/{interface}"
        self._backend = BACKENDS["kernel"]  # read() chooses it

    @property
    def driver(self) -> str:
        """The kernel driver; empty for a virtual interface."""
        return os.path.basename(self.real(f"{self._net}/device/driver") or "")

    @property
    def rdma(self) -> dict[str, str]:
        """The folders of the interface's RDMA devices, by `device/port`."""
        home = f"{self._net}/device/infiniband"
        devices = self.names(home)
        if not devices:
            # Soft-RoCE is on top of an interface, not of its PCI function.
            base = "/sys/class/infiniband"
            names = [name for name in self.names(base) if self.text(f"{base}/{name}/parent") == self.interface]
            return {f"{name}/1": f"{base}/{name}" for name in names}
        port = str((self.number(f"{self._net}/dev_port") or 0) + 1)
        found = {}
        for name in devices:
            ports = self.names(f"{home}/{name}/ports") or ["1"]
            found[f"{name}/{port if port in ports else ports[0]}"] = f"{home}/{name}"
        return found

    def _cnp_path(self, name: str) -> str:
        """Return the file of a value of congestion notifications: OFED's, else the driver's in debugfs."""
        ofed, debugfs = CNP_FILES[name]
        device = os.path.basename(os.path.realpath(self.path(f"{self._net}/device")))
        path = f"{self._net}/{ofed}"
        return path if self.text(path) is not None else f"{driver_of(self.driver).congestion.format(device)}/{debugfs}"

    # Reading

    def read(self) -> Values:
        """Return all settings, with the back end that reads and writes flow control and the DSCP map."""
        return {
            **self._read_backend(),
            "ecn_np": self._enabled(f"{self._net}/ecn/roce_np/enable"),
            "ecn_rp": self._enabled(f"{self._net}/ecn/roce_rp/enable"),
            **{name: self.number(self._cnp_path(name)) for name in CNP_FILES},
            "traffic_class": self._read_tos(),
            "forced_traffic_class": self._read_forced(),
            "driver": self.driver,
            "rdma": list(self.rdma),
        }

    def _read_backend(self) -> Values:
        problems = []
        # Drivers of OFED with this folder keep trust and map there, not in the kernel's table: their tool reads them.
        ofed = bool(shutil.which("mlnx_qos")) and self.names(f"{self._net}/qos")
        for name in ("vendor",) if ofed else BACKENDS:
            self._backend = BACKENDS[name]
            try:
                return {**self._backend.read(self.interface), "backend": name}
            except QosError as exc:
                problems.append(str(exc))
        empty: Values = dict.fromkeys(("trust", "pfc", "dscp_map", "dcbx", "ets"))
        return {**empty, "backend": None, "problem": "; ".join(problems)}

    def _enabled(self, folder: str) -> list[int] | None:
        names = [name for name in self.names(folder) if re.fullmatch("[0-7]", name)]
        return [int(name) for name in names if self.number(f"{folder}/{name}")] if names else None

    def _read_tos(self) -> int | None:
        try:
            found = {self._tos(path) for path in self._tos_files() if self.exists(RDMA_CM)}
        except OSError:
            return None
        return found.pop() if len(found) == 1 else -1 if found and None not in found else None

    def _tos(self, path: str) -> int | None:
        """Return the number of a configfs file; its folder is made when missing, and removed after reading."""
        home = self.path(path.partition("/ports/")[0])
        made = not os.path.exists(home)
        if made:
            os.mkdir(home)
        try:
            return self.number(path)
        finally:
            if made:
                with contextlib.suppress(OSError):
                    os.rmdir(home)

    def _tos_files(self) -> list[str]:
        return ["{}/{}/ports/{}/default_roce_tos".format(RDMA_CM, *item.split("/")) for item in self.rdma]

    def _forced_files(self) -> list[str]:
        paths = [f"/sys/class/infiniband/{item.replace('/', '/tc/')}/traffic_class" for item in self.rdma]
        return [path for path in paths if self.text(path) is not None]

    def _read_forced(self) -> int | None:
        # OFED prints a sentence when rules are set, and an empty text when none is.
        found = [re.search(r"(?:^|=)\s*(\d+)", self.text(path) or "") for path in self._forced_files()]
        if not found:
            return None
        return int(found[0].group(1)) if found[0] else 0

    # Writing

    def files_of(self, operation: Operation) -> dict[str, int]:
        """Return the kernel's files that an operation writes, with their numbers."""
        kind, value = operation
        if kind in ("ecn_np", "ecn_rp"):
            folder = f"{self._net}/ecn/roce_{kind[4:]}/enable"
            return {f"{folder}/{priority}": int(priority in value) for priority in range(8)}
        if kind in CNP_FILES:
            return {self._cnp_path(kind): value}
        paths = {"traffic_class": self._tos_files, "forced_traffic_class": self._forced_files}.get(kind, list)()
        return {path: int(value) for path in paths}

    def argv_of(self, operation: Operation) -> list[str]:
        """Return the command that carries out an operation; none when it writes files.

        read() must have been called: it chooses the back end.
        """
        return self._backend.argv(self.interface, *operation) if operation[0] in OPERATIONS else []

    def write(self, operation: Operation) -> None:
        """Make one change.

        :raises RdmaError: when it fails.
        """
        try:
            for path, number in self.files_of(operation).items():
                if path.startswith(RDMA_CM):
                    os.makedirs(self.path(path.partition("/ports/")[0]), exist_ok=True)
                if self.number(path) != number:
                    with open(self.path(path), "w", encoding="utf-8") as file:
                        file.write(f"{number}\n")
            if operation == ("dcbx", "firmware") and self._backend is BACKENDS["kernel"]:
                release_dcbx(self.interface)
            elif argv := self.argv_of(operation):
                run(argv)
        except (OSError, QosError) as exc:
            if operation[0] == "dcbx":
                return  # a wish: what counts is what is read back
            raise RdmaError(
                f"{self.interface}: setting {operation[0]} to {operation[1]} failed: {exc}.",
                "Read the kernel log (dmesg): it has the driver's reason. [qos_refused]",
                interface=self.interface,
            ) from exc

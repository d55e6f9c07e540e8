# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads each rail's counters, link, PCIe slot, driver and firmware, and has them judged. Read-only."""

from __future__ import annotations

import re
import typing as t

from .._errors import RdmaError
from .._files import Sysfs
from . import nic
from .counters import kind_of
from .health_plan import LIMITS, health_checks
from .sysfs import counters, ports, rdma_port

if t.TYPE_CHECKING:
    from .._check import Check
    from .sysfs import Port

NET = "/sys/class/net"
PCI = "/sys/bus/pci/devices"


def check_health(
    rails: t.Sequence[t.Mapping[str, t.Any]], options: t.Mapping[str, t.Any]
) -> tuple[list[Check], dict[str, t.Any]]:
    """Return the checks `port_errors`, `port_discards`, `port_flaps`, `port_order`, `pcie_link` and `port_speed`.

    The facts `health` are what the next audit gets as `since`, and what the fleet's hosts are compared by.

    :param rails: the rails of the host plan.
    :param options: `since` (the facts `health` of the last audit), `limits` (of `health_plan.LIMITS`), `gbits`
        (the planned speed, Gb/s; 0 for none).
    :raises RdmaError: when a limit has a name that is none.
    """
    sysfs = options.get("sysfs") or Sysfs()
    if unknown := sorted(set(options.get("limits") or {}) - set(LIMITS)):
        raise RdmaError(
            f"There are no limits for {', '.join(unknown)}.", f"Known are {', '.join(LIMITS)}. [limit_unknown]"
        )
    boot = sysfs.boot_id
    known = list(ports(sysfs))
    found = {rail["name"]: read_rail(sysfs, sysfs.port_interface(sysfs.rail_interface(rail)), known) for rail in rails}
    limits = {key: int(value) for key, value in (options.get("limits") or {}).items()}
    planned = int(float(options.get("gbits") or 0) * 1000)
    checks = health_checks(found, boot, options.get("since"), limits, planned)
    return checks, {"health": {"boot": boot, "rails": found}}


def read_rail(sysfs: Sysfs, interface: str, known: t.Sequence[Port]) -> dict[str, t.Any]:
    """Return what a port shows; what there is none of is None or empty.

    `interface`, `ifindex`, `device`, `port` (of the RDMA device), `counters`, `pci`, `pci_id`, `pcie`, `speed` and
    `offered` (Mb/s, by both ends), `rate` (the RDMA port's own word), `driver`, `version`, `firmware`.
    """
    folder = f"{NET}/{interface}"
    rdma = rdma_port(sysfs, interface, known)
    address = sysfs.pci_address(folder)
    speed = sysfs.number(f"{folder}/speed")
    driver = nic.driver(interface) if sysfs.exists(folder) else {}
    return {
        "interface": interface,
        "ifindex": sysfs.number(f"{folder}/ifindex"),
        "device": rdma.device if rdma else None,
        "port": rdma.number if rdma else None,
        "counters": _counters(sysfs, interface, rdma),
        "pci": address,
        "pci_id": _pci_id(sysfs, address),
        "pcie": pcie_of(sysfs, address),
        "speed": speed if speed and speed > 0 else None,
        "offered": nic.offered(interface) if sysfs.exists(folder) else 0,
        "rate": sysfs.text(f"{rdma.folder}/rate") if rdma else None,
        "driver": driver.get("driver") or None,
        "version": driver.get("version") or None,
        "firmware": driver.get("firmware-version")
        or (sysfs.text(f"/sys/class/infiniband/{rdma.device}/fw_ver") if rdma else None),
    }


def _counters(sysfs: Sysfs, interface: str, rdma: Port | None) -> dict[str, int]:
    folder = f"{NET}/{interface}"
    paths = {name: f"{folder}/statistics/{name}" for name in sysfs.names(f"{folder}/statistics") if kind_of(name)}
    paths["carrier_down_count"] = f"{folder}/carrier_down_count"
    found = {name: sysfs.number(path) for name, path in paths.items()}
    found |= counters(sysfs, rdma) if rdma else {}
    if sysfs.exists(folder):
        found |= {name: value for name, value in nic.statistics(interface).items() if kind_of(name)}
    return {name: value for name, value in sorted(found.items()) if value is not None}


def _pci_id(sysfs: Sysfs, address: str | None) -> str | None:
    """Return vendor, device and the card maker's numbers: ports with equal values are peers."""
    if address is None:
        return None
    keys = ("vendor", "device", "subsystem_vendor", "subsystem_device")
    return ":".join((sysfs.text(f"{PCI}/{address}/{key}") or "").replace("0x", "") for key in keys)


def pcie_of(sysfs: Sysfs, address: str | None) -> dict[str, float] | None:
    """Return the link's width (lanes) and speed (GT/s), and what card and slot offer; None without a link."""
    if address is None:
        return None
    # A virtual function has no link of its own.
    own = sysfs.real(f"{PCI}/{address}/physfn") or sysfs.real(f"{PCI}/{address}")
    if own is None:
        return None
    slot = own.rsplit("/", 1)[0]
    ends = {"": f"{own}/current", "card_": f"{own}/max", "slot_": f"{slot}/max"}
    keys = {f"{end}{what}": f"{path}_link_{what}" for end, path in ends.items() for what in ("width", "speed")}
    # `16`, and `32.0 GT/s PCIe` or Unknown.
    texts = {key: re.match(r"[\d.]+", sysfs.text(path) or "") for key, path in keys.items()}
    values = {key: float(found[0]) for key, found in texts.items() if found}
    # 255 lanes is what a link that does not answer reads as.
    return {key: value for key, value in values.items() if 0 < value < 255} or None

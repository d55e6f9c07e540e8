# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What RDMA devices say of themselves, by pyverbs; an optional source."""

from __future__ import annotations

import typing as t

PYVERBS_ERROR: str | None = None
try:
    import pyverbs.device as pyverbs_device
except ImportError as exc:
    PYVERBS_ERROR = repr(exc)

# enum ibv_port_state, ibv_mtu, the link layers of infiniband/verbs.h, and the port's physical states of the
# InfiniBand specification (as the kernel's phys_state file words them).
PORT_STATES = {0: "NOP", 1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
MTUS = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
LINK_LAYERS = {1: "InfiniBand", 2: "Ethernet"}
PHYS_STATES = {
    1: "Sleep",
    2: "Polling",
    3: "Disabled",
    4: "PortConfigurationTraining",
    5: "LinkUp",
    6: "LinkErrorRecovery",
    7: "Phy Test",
}


MISSING = (
    "pyverbs is not installed: the active MTU is derived from the interface's MTU, for InfiniBand it is unknown."
    " Install python3-pyverbs (Debian, Ubuntu, RHEL 8 and later)."
)


def read() -> tuple[dict[str, dict[str, t.Any]], list[str]]:
    """Ask every device once; return the answers by device name, and what kept devices from answering."""
    answers: dict[str, dict[str, t.Any]] = {}
    if PYVERBS_ERROR:
        return answers, [MISSING]
    problems: list[str] = []
    for item in pyverbs_device.get_device_list():
        name = item.name.decode() if isinstance(item.name, bytes) else str(item.name)
        try:
            answers[name] = _ask(name)
        except Exception as exc:  # pyverbs raises classes of its own, which differ between releases
            problems.append(f"pyverbs could not ask device {name}: {exc}".strip())
    return answers, problems


def _ask(name: str) -> dict[str, t.Any]:
    with pyverbs_device.Context(name=name) as context:
        attributes = context.query_device()
        firmware = attributes.fw_version
        return {
            "firmware": firmware.decode() if isinstance(firmware, bytes) else firmware,
            "ports": {
                number: port_answer(context.query_port(number)) for number in range(1, attributes.phys_port_cnt + 1)
            },
        }


def port_answer(attributes: t.Any) -> dict[str, t.Any]:
    """Translate ibv_port_attr into the words that sysfs uses."""
    # Zero is what a driver leaves when it does not say: old Ethernet drivers left the link layer at 0.
    return {
        "link_layer": LINK_LAYERS.get(attributes.link_layer),
        "state": PORT_STATES.get(attributes.state),
        "phys_state": PHYS_STATES.get(attributes.phys_state),
        "active_mtu": MTUS.get(attributes.active_mtu),
        "max_mtu": MTUS.get(attributes.max_mtu),
        "lid": attributes.lid,
        "sm_lid": attributes.sm_lid,
    }

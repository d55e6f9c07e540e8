# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses the output of mstconfig and mlxconfig. One code base, two names; reads text only.

Source of the formats: mstflint (mlxconfig/mlxcfg_ui.cpp); docs/guides/link-type.md names them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .._errors import RdmaError

TITLES = {"Default": "default", "Current": "current", "Next Boot": "next", "New": "new"}
HEADER = re.compile(r"^Configurations:(?P<titles>.*)$")
TITLE = re.compile(r"Default|Current|Next Boot|New")
ROW = re.compile(r"^(?P<star>\*?)\s*(?P<ro>RO\b)?\s+(?P<name>[A-Z][A-Z0-9_]*(?:\[[0-9.N]+\])?)\s+(?P<values>\S.*)$")
LABEL = re.compile(r"^(?P<label>Device type|Name|Description|Device):\s*(?P<value>.*?)\s*$")
NAMED = re.compile(r"(?P<word>[^()]*)\((?P<number>\d+|0x[0-9a-fA-F]+)\)")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a card's configuration. A value is None where the firmware has none (or an array)."""

    name: str
    default: str | None = None
    current: str | None = None
    next: str | None = None
    read_only: bool = False


@dataclass(frozen=True)
class Configuration:
    """The result of one query."""

    device_type: str = ""
    name: str = ""
    parameters: dict[str, Parameter] = field(default_factory=dict)

    @property
    def dpu(self) -> bool:
        """Whether this is a BlueField whose ports belong to its own ARM cores (DPU mode): it is skipped.

        In NIC mode INTERNAL_CPU_OFFLOAD_ENGINE is DISABLED(1); cards without cores have no such parameter.
        """
        return self._in_force("INTERNAL_CPU_MODEL") == 1 and self._in_force("INTERNAL_CPU_OFFLOAD_ENGINE") == 0

    @property
    def reports_port_owner(self) -> bool:
        """Whether a BlueField's configuration distinguishes DPU mode from NIC mode; old tools and firmware may not."""
        model = self._in_force("INTERNAL_CPU_MODEL")
        return model is not None and (model != 1 or self._in_force("INTERNAL_CPU_OFFLOAD_ENGINE") is not None)

    def _in_force(self, name: str) -> int | None:
        parameter = self.parameters.get(name)
        return None if parameter is None else number(parameter.current or parameter.next)


FAULTS = (
    (
        r"Livefish mode",
        "The card is in livefish mode: its firmware did not start.",
        "Burn its firmware again (flint or mlxfwmanager) and power-cycle the host. [card_livefish]",
    ),
    (
        r"[Rr]ead[- ]?[Oo]nly",
        "The card keeps this configuration read-only.",
        "Unlock it (zero-trust or restricted host mode, or the vendor's lock) from the BMC or the DPU, then run "
        "again. [card_locked]",
    ),
    (
        r"(?i)capability exceeds device limits|illegal value",
        "The card cannot do that much.",
        "Set fewer virtual functions (fabric_vfs): ConnectX cards have at most 127 per port, some fewer. "
        "[card_too_many]",
    ),
    (
        r"Failed to open (?:the )?device",
        "The tool cannot open the card.",
        "Run as root; check with lspci that the card answers; kernel lockdown (Secure Boot) may forbid it: then use a "
        "kernel with fwctl. [card_open_failed]",
    ),
)
"""Messages of the tools that do not say what to do: the pattern, what it means and what to do."""


def number(value: str | None) -> int | None:
    """Return the number of a value: `ETH(2)` is 2, `True(1)` is 1, `0x10` is 16; None for N/A and arrays."""
    if value is None:
        return None
    named = NAMED.fullmatch(value.strip())
    text = named["number"] if named else value.strip()
    try:
        return int(text, 0)
    except ValueError:
        # int("08", 0) is refused; decimals with leading zeros are still decimals.
        return int(text) if text.isdigit() else None


def failure(argv: list[str], code: int, output: str, card: str) -> RdmaError:
    """Return the error that a failed call means. All messages come on standard output, as `-E- text`.

    :param argv: what was called.
    :param code: its exit status.
    :param output: what it printed.
    :param card: the card's PCI address.
    """
    reported = "; ".join(re.findall(r"-E-\s*(.+)", output)) or output.strip()[-300:] or "nothing"
    for pattern, meaning, fix in FAULTS:
        if re.search(pattern, output):
            return RdmaError(f"Card {card}: {meaning} ({reported})", fix)
    return RdmaError(
        f"Card {card}: {' '.join(argv)} failed with exit code {code} and reported: {reported}.",
        "Install a newer mstflint (4.16 at least, or MFT) and newer firmware; cards before ConnectX-4 are not "
        "supported. Nothing was changed on this card by this step. [mlxconfig_failed]",
    )


def parse_text(output: str) -> Configuration:
    """Parse the output of a text query (`-d DEV -e q`). The header names the columns, so their number may vary."""
    labels: dict[str, str] = {}
    columns: list[str] = []
    parameters: dict[str, Parameter] = {}
    for line in output.splitlines():
        if header := HEADER.match(line):
            columns = [TITLES[title] for title in TITLE.findall(header["titles"])]
            continue
        if (label := LABEL.match(line)) and not columns:
            labels[label["label"]] = label["value"]
            continue
        row = ROW.match(line) if columns else None
        if row is None:
            continue
        values = row["values"].split()
        if len(values) != len(columns):
            # A sentence, or a value that this parser does not know: not guessed at.
            continue
        unknown = [value in ("N/A", "-") or value.startswith("Array[") for value in values]
        by_title = {title: None if none else value for title, value, none in zip(columns, values, unknown)}
        default, current, next_value = map(by_title.get, ("default", "current", "next"))
        parameters[row["name"]] = Parameter(row["name"], default, current, next_value, bool(row["ro"]))
    if not columns:
        raise RdmaError(
            f"The tool's answer has no line `Configurations:`: {output.strip()[:200]!r}.",
            "Run the query manually (mstconfig -d PCI -e q) and report its output. [mlxconfig_answer]",
        )
    return Configuration(labels.get("Device type", ""), labels.get("Name", ""), parameters)

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The verdict as metrics in Prometheus' text format, for node_exporter's textfile collector. Pure.

Format: "Exposition formats" of Prometheus' documentation, version 0.0.4. No sample has a timestamp of its own: the
collector refuses a file with one (node_exporter, README of its textfile collector).
"""

from __future__ import annotations

import typing as t
from collections import Counter

from ...module_utils._check import DEVIATION, OK, WARNING
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._validation import shown
from .merge import deviations, tally

Sample = tuple[t.Mapping[str, str], float]

RAIL_OK = "railops_rail_ok"
OUT_OF_SERVICE = "railops_rail_out_of_service"
HELP = {
    RAIL_OK: "Whether a rail of a node is as planned, by the last audit; a rail that was not checked has no sample.",
    OUT_OF_SERVICE: "Rails that fabric_out_of_service names; 1 for each.",
    "railops_hosts": "Hosts of the fabric by what the last audit found.",
    "railops_deviations": "What differs from the plan, by check, over hosts, plan and cluster.",
    "railops_audit_timestamp_seconds": "When the last audit ended, in seconds since 1970.",
}
VALUES = {OK: 1.0, WARNING: 1.0, DEVIATION: 0.0}


def quoted(text: str) -> str:
    """Return the value of a label as the format has it."""
    return '"' + shown(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _metric(name: str, samples: t.Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {HELP[name]}\n", f"# TYPE {name} gauge\n"]
    for labels, value in samples:
        listed = ",".join(f"{key}={quoted(text)}" for key, text in labels.items())
        lines.append(f"{name}{{{listed}}} {value:.15g}\n")
    return "".join(lines) if len(lines) > 2 else ""


def _rails(verdict: Verdict, fabric: str) -> tuple[list[Sample], list[Sample]]:
    """Return the samples of rails in service, and of those that are out of it."""
    rails: list[Sample] = []
    out: list[Sample] = []
    for host, entry in verdict["hosts"].items():
        labels = {"fabric": fabric, "node": entry.get("node") or host}
        names = [check["rail"] for check in entry["checks"] if check["id"] == "rail_out_of_service"]
        out += [({**labels, "rail": rail or "all"}, 1) for rail in names]
        rows = ((rail, VALUES.get(status)) for rail, status in entry["rails"].items() if rail not in names)
        rails += [({**labels, "rail": rail}, value) for rail, value in rows if value is not None]
    return rails, out


def metrics(verdict: Verdict, fabric: str, ended: float) -> str:
    """Return the text of verdict.prom.

    :param ended: when the audit ended, in seconds since 1970.
    """
    counts = Counter(check["id"] for _where, check in deviations(verdict))
    rails, out = _rails(verdict, fabric)
    samples: dict[str, t.Iterable[Sample]] = {
        RAIL_OK: rails,
        OUT_OF_SERVICE: out,
        "railops_hosts": (({"fabric": fabric, "status": key}, n) for key, n in sorted(tally(verdict).items())),
        "railops_deviations": (({"fabric": fabric, "check": key}, n) for key, n in sorted(counts.items())),
        "railops_audit_timestamp_seconds": [({"fabric": fabric}, ended)],
    }
    return "".join(_metric(name, found) for name, found in samples.items())

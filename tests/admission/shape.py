# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API refuses of any object, before a webhook sees it: its name, labels and fields. Pure."""

from __future__ import annotations

from .mutate import DNS_NAME, LABEL_VALUE, AdmissionError, Json
from .schema import KINDS, schema_problems


def check_name(obj: Json) -> None:
    """Refuse a name that no object may have."""
    metadata = obj["metadata"]
    name = metadata.get("name")
    if not isinstance(name, str) or len(name) > 253 or not DNS_NAME.fullmatch(name):
        raise AdmissionError(
            obj,
            "metadata.name",
            f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
            "characters, '-' or '.', and must start and end with an alphanumeric character",
        )


def check_schema(obj: Json) -> None:
    """Refuse fields that the schema of the kind does not have so."""
    kind = KINDS[obj["kind"]]
    problems = schema_problems(obj["kind"], obj.get("spec"))
    if obj.get("apiVersion") != kind.api_version:
        problems.insert(0, ("apiVersion", f'Invalid value: "{obj.get("apiVersion")}": must be {kind.api_version}'))
    if problems:
        place, problem = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise AdmissionError(obj, place, f"{problem}{more}")


def check_labels(obj: Json) -> None:
    """Refuse labels that no object may have."""
    for key, value in (obj["metadata"].get("labels") or {}).items():
        if not isinstance(value, str) or len(value) > 63 or not LABEL_VALUE.fullmatch(value):
            raise AdmissionError(
                obj,
                "metadata.labels",
                f'Invalid value: "{value}": the label {key} must be at most 63 letters, digits, "-", "_" or ".", '
                "and start and end with a letter or digit",
            )

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The files of a verification on the controller: one result a host, and what is merged from them."""

from __future__ import annotations

import contextlib
import os
import tempfile
import typing as t
from numbers import Real

from ...module_utils._fabric.shapes import Verdict
from ...module_utils._files import unblocked
from ...module_utils._validation import FILE, parsed, validate
from .._json_lines import json_lines

VERDICT, SECTIONS_FILE, HISTORY = "verdict.json", "sections.json", "history.json"
_CAUSE = {"check": str, "sentence": str, "hosts": [str], "rails": [str]}
_RECORDS = {"verdicts": [{"time": Real, "status": str, "hosts": int, "causes": [_CAUSE]}]}
HOSTS_FOLDER, LAST_FOLDER, UNREACHABLE_FOLDER = "hosts", "last", "unreachable"
"""Results; what the next audit compares counters with; why the controller does not reach a host, which is no result."""


def write_text(path: str, text: str) -> None:
    """Replace a file atomically: readers see the old one or the new one."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".verify-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_json(path: str, value: t.Any) -> None:
    """Replace a JSON file atomically, its keys in the order they have: one line for each host or check."""
    write_text(path, json_lines(value, 2) + "\n")


def host_path(folder: str, part: str, host: str) -> str:
    """Return a host's file in a part of a folder. A name cannot lead out of it."""
    name = host.replace("%", "%25").replace("/", "%2F")
    return os.path.join(folder, part, f"{'%2E' + name[1:] if name.startswith('.') else name}.json")


def result_path(verify_dir: str, host: str) -> str:
    """Return the file of one host's result."""
    return host_path(verify_dir, HOSTS_FOLDER, host)


def parsed_file(path: str) -> t.Any:
    """Return what a JSON file holds, not yet measured.

    :raises OSError: it cannot be read.
    :raises InvalidData: it is too long, nested too deep, or no JSON.
    """
    with open(path, "rb", opener=unblocked) as file:
        return parsed(file.read(FILE + 1) or b"", FILE)


def read_json(path: str) -> dict[str, t.Any]:
    """Return what a JSON file holds; empty when it is not there, broken, or no object."""
    try:
        result = parsed_file(path)
    except (OSError, ValueError):
        return {}
    return t.cast("dict[str, t.Any]", result) if isinstance(result, dict) else {}


def read_verdict(verify_dir: str) -> Verdict | None:
    """Return the last verdict; None when it is not there or broken."""
    return t.cast("Verdict", read_json(os.path.join(verify_dir, VERDICT))) or None


def read_history(verify_dir: str) -> list[dict[str, t.Any]]:
    """Return what is kept of the last verdicts, the newest first; empty when it is not there or broken."""
    try:
        found = validate(read_json(os.path.join(verify_dir, HISTORY)), _RECORDS, "it")
    except ValueError:
        return []
    return t.cast("list[dict[str, t.Any]]", found["verdicts"])


def read_result(path: str) -> dict[str, t.Any]:
    """Return one host's result; empty when it is not there or broken."""
    result = read_json(path)
    return result if isinstance(result.get("checks"), list) else {}


def read_results(folders: t.Mapping[str, str]) -> t.Iterator[dict[str, t.Any]]:
    """Yield the results of hosts, one file after the other; one that is not there or broken is left out.

    Without a result, why the controller does not reach the host takes its place.

    :param folders: the folder of the verification that has each host's.
    """
    for host, folder in folders.items():
        result = read_result(result_path(folder, host)) or read_result(host_path(folder, UNREACHABLE_FOLDER, host))
        if result.get("host") == host:
            yield result


def forget(verify_dir: str, hosts: t.Iterable[str]) -> None:
    """Remove the results of these hosts."""
    for path in [host_path(verify_dir, part, host) for host in hosts for part in (HOSTS_FOLDER, UNREACHABLE_FOLDER)]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

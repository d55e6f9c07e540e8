# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rails' files for the next boot: compare, check, write, and report."""

from __future__ import annotations

import contextlib
import os
import typing as t
from dataclasses import asdict

from .._check import DEVIATION, WARNING, Check, by_role, compared, conflicting, deviation, warning
from .._errors import InputError, Problem, RdmaError, with_id
from .._files import Sysfs, temporary
from .._management_network import read_management_network
from .._route.managed_state import MANAGED_STATE, note, read_ports
from .._route.options import RAILS
from .._route.route_options import RouteOptions, management_network_problem, named, task_options
from . import sysctl
from .host import KEPT, PersistHost
from .model import LINK, File
from .out_of_service import OutOfServiceFiles
from .plan import MANAGERS, files_of, manager_of
from .precedence import precedence_checks

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

FIX = by_role("rail_network")
STALE_FILE = "left over from an earlier plan or another network manager"

SPEC = {
    **RAILS,
    "manager": {"type": "str", "choices": ["auto", *MANAGERS], "default": "auto"},
    "root": {"type": "path", "default": "/"},
    "stage": {"type": "bool", "default": False},
}


def _planned(
    want: RouteOptions, host: PersistHost, manager: str
) -> tuple[str, tuple[File, ...], list[Check], dict[str, str], set[str]]:
    """Return the manager, the wanted files, the checks of precedence, the files to set aside, and the rails' names."""
    if not want.present:
        return manager, (), [], {}, set()
    manager = manager_of(host) if manager == "auto" else manager
    names = {rail.name: host.interface(rail) for rail in want.rails}
    own = {rail.interface: names[rail.name] for rail in want.rails if rail.interface}
    unserved = sysctl.without_served(named(want, own), host.texts(sysctl.FOLDERS))
    files = MANAGERS[manager].fitted(want, host, files_of(unserved, names, manager))
    return (manager, files, *precedence_checks(host, manager, want, names, files), set(names.values()))


def _swap(host: PersistHost, manager: str, write: list[File], remove: list[str], moves: dict[str, str]) -> None:
    """Give the staged files their names, remove and move others, and notify the managers: completely or not at all.

    :param manager: the one in use; empty where no file of ours is wanted.
    """
    with contextlib.ExitStack() as undo:
        # The list of managed objects appears before the files, and changes or is removed after them: a killed run
        # leaves no file that neither the list nor the plan covers.
        new = sorted((file.path for file in write), key=lambda path: path != MANAGED_STATE)
        last = {MANAGED_STATE} if host.exists(MANAGED_STATE) else set()
        host.swap([path for path in new if path not in last], [path for path in remove if path not in last], undo)
        for path, target in moves.items():
            host.move(path, target)
            undo.callback(host.move, target, path)
        host.swap(last.intersection(new), last.intersection(remove), undo)
        for name, one in MANAGERS.items():
            # With another manager the rails are still wanted, and this one would take their addresses along.
            one.loaded(host, one.among(new), one.among(remove if manager in ("", name) else []))
        undo.pop_all()
    host.sweep()


def converge(
    want: RouteOptions,
    host: PersistHost,
    manager: str,
    *,
    check_mode: bool,
    report: bool = False,
    stage: bool = False,
    verbose: bool = True,
) -> dict[str, t.Any]:
    """Bring the files to the wanted state and return the result.

    :param manager: one of MANAGERS, or `auto` for the one that the host uses.
    :param report: whether a conflict is a deviation instead of a failure.
    :param verbose: whether the diff has the complete text of each file.
    :param stage: whether to write the files under temporary names only; a later call renames them.
    """
    manager, files, checks, aside, names = _planned(want, host, manager)
    out = OutOfServiceFiles(want, host)
    files = out.merged(files, {path: file.text for path, file in host.state(()).items()})
    desired = {file.path: file for file in files}
    have = {path: file for path, file in host.state(desired).items() if path not in out.paths}
    copies = {path: f"{KEPT}/{port}{path}" for path, port in host.set_aside().items() if port not in names | out.names}
    moves = {path: f"{KEPT}/{port}{path}" for path, port in aside.items()}
    moves.update({copy: path for path, copy in copies.items() if not host.exists(path)})
    write = [file for file in files if have.get(file.path) != file]
    remove = [path for path in have if path not in desired]
    touched = {*(file.path for file in write), *remove, *moves, *moves.values()}
    lacking = list(host.unwritable(touched))
    refused = [
        Problem(check["rail"] or check.get("object", ""), check["cause"], with_id(check["fix"], check["id"]))
        for check in checks
        if check["status"] == DEVIATION
    ]
    refused += lacking
    if refused and not report:
        raise InputError(refused)
    try:
        for file in [] if check_mode else write:
            host.stage(file.path, file.text, file.mode, link=file.mode == LINK)
    except RdmaError:
        host.sweep()
        raise
    left = [path for path in host.left() if path not in map(temporary, touched)]
    if not check_mode and not stage:
        _swap(host, manager if files else "", write, remove, moves)
        if host.live and not want.present and not read_ports():  # policy_route has removed the rails
            note(frozenset(), {})
    checks = [*_checks(files, have), *checks, *(conflicting("persist_preflight", row) for row in lacking)]
    checks += [deviation("persist_stale", "", path, STALE_FILE, FIX) for path in (*remove, *left)]
    checks += [*_left(copies, moves), *_beside(host, remove, moves)]
    result: dict[str, t.Any] = {
        "changed": bool(write or remove or moves or left) and not stage,
        "before": {path: f"{state.mode:04o}" for path, state in have.items()},
        "after": {file.path: f"{file.mode:04o}" for file in files},
        "checks": checks,
        "diff": _diffs(sorted({*remove, *(file.path for file in write)}), have, desired, verbose=verbose),
    }
    # Not their text: an unmanaged profile may hold a secret.
    result["diff"] += [
        {"before_header": path, "after_header": target, "before": "as it is\n", "after": f"as it is, at {target}\n"}
        for path, target in moves.items()
    ]
    if refused:
        result["problems"] = [asdict(row) for row in refused]
    if want.present:
        return {**result, "manager": manager}
    return {**result, "warnings": [f"{row['cause']} {row['fix']}" for row in checks if row["status"] == WARNING]}


def _diffs(paths: list[str], have: dict[str, File], desired: dict[str, File], *, verbose: bool) -> list[dict[str, str]]:
    """Return the diff of some files: of the text of each, or one of a line for each."""
    if verbose:
        return [_diff(path, have.get(path), desired.get(path)) for path in paths]
    names = {"before_header": "files", "after_header": "files (-v shows their text)"}
    sides = (_lines(paths, have, {}), _lines(paths, desired, have))
    return [{**names, "before": sides[0], "after": sides[1]}] if paths else []


def _lines(paths: list[str], files: t.Mapping[str, File], old: dict[str, File]) -> str:
    """Return a line for each file, one for those of a folder that are the same."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path in (path for path in paths if path in files):
        lines = files[path].text.splitlines()
        new = f", {len(set(lines) - set(old[path].text.splitlines()))} of them new" if path in old else ""
        what = f"mode {files[path].mode:04o}, {len(lines)} lines{new}"
        groups.setdefault((os.path.dirname(path), what), []).append(path)
    text = ""
    for (_folder, what), same in groups.items():
        more = f" (the same for {', '.join(map(os.path.basename, same[1:]))})" if same[1:] else ""
        text += f"{same[0]}: {what}{more}\n"
    return text


def _diff(path: str, have: File | None, file: File | None) -> dict[str, str]:
    before = f"# mode {have.mode:04o}\n{have.text}" if have else ""
    after = f"# mode {file.mode:04o}\n{file.text}" if file else ""
    return {"before_header": path, "after_header": path, "before": before, "after": after}


def _checks(files: tuple[File, ...], have: dict[str, File]) -> t.Iterator[Check]:
    for file in files:
        state = have.get(file.path)
        observed = "missing" if state is None else "different" if state != file else "as planned"
        cause = f"the file is {observed}, so a reboot would not bring the network back"
        good = observed == "as planned"
        yield compared("persist_file", file.path, observed, cause, FIX, good=good, rail=file.rail or None)


def _beside(host: PersistHost, remove: list[str], moves: dict[str, str]) -> t.Iterator[Check]:
    """Yield third-party drop-ins that the removal of our files orphans."""
    folders = [f"{path}.d" for path in remove if host.link(f"{path}.d") is None]
    for path in (f"{folder}/{name}" for folder in folders for name in host.names(folder)):
        if path not in remove and path not in moves and not path.endswith(".tmp"):
            cause = f"{path} belongs to a managed file that is removed: from the next boot on no manager reads it."
            fix = "Move it to a file of your own with a [Match] (/etc/systemd/network/10-NAME.network), or remove it."
            yield warning("persist_existing", "", path, cause, fix)


def _left(copies: dict[str, str], moves: dict[str, str]) -> t.Iterator[Check]:
    for path, copy in copies.items():
        if copy not in moves:
            cause = f"{path} was set aside for a rail, and there is a new one: the old one stays at {copy}."
            yield warning("persist_existing", path, copy, cause, f"Remove {copy} when it is not needed.")


def refuse_management_network(want: RouteOptions, host: PersistHost) -> None:
    """Refuse rails on interfaces that carry this host's own network, unless forced: after a boot it would be gone."""
    if not want.present or not host.live:
        return
    network = read_management_network(Sysfs())
    places = [(rail, host.interface(rail)) for rail in want.rails]
    problems = [
        management_network_problem(f"rails[{number}]", rail, name, network.why(name))
        for number, (rail, name) in enumerate(places)
        if network.why(name) and not want.force & {rail.interface, rail.pci, name}
    ]
    if problems:
        raise InputError(problems)


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the files to the wanted state. Check mode may report conflicts instead of failing, for verification."""
    host = PersistHost(params["root"], module)
    report = check_mode and params["on_conflict"] == "report"
    try:
        want = task_options(params)
        refuse_management_network(want, host)
        manager, stage = params["manager"], params["stage"]
        more = {"report": report, "stage": stage, "verbose": module._verbosity > 0}
        return converge(want, host, manager, check_mode=check_mode, **more)
    except RdmaError as exc:
        if not report:
            raise
        found = exc.problems if isinstance(exc, InputError) else (Problem("rail_persist", exc.problem, exc.fix),)
        problems = [asdict(row) for row in found]
        checks = [conflicting("persist_preflight", row) for row in found]
        return {"changed": False, "before": {}, "after": {}, "checks": checks, "problems": problems, "diff": []}

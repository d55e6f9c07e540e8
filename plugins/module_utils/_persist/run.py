# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rails' files for the next boot: compare, check, write, and report."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._check import CheckData, compared, deviation
from .._errors import InputError, RdmaError
from .._files import Sysfs
from .._route.options import slice_spec
from .._route.want import Want, named, parse_want, untouchable_problem
from .._untouchable import read_untouchable
from .host import Host, State
from .model import File, Ran
from .plan import MANAGERS, files_of, manager_of

FIX = "Run the role railops.rdma.rail_network on this host."

SPEC = {
    **slice_spec(),
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "manager": {"type": "str", "choices": ["auto", *MANAGERS], "default": "auto"},
    "root": {"type": "path", "default": "/"},
    "force": {"type": "list", "elements": "str", "default": []},
    "on_problem": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
}


def converge(want: Want, host: Host, manager: str, *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the files to the wanted state and describe what happened.

    :param manager: one of MANAGERS, or `auto` for the one that the host uses.
    """
    files: tuple[File, ...] = ()
    if want.present:
        manager = manager_of(host) if manager == "auto" else manager
        names = {rail.name: host.interface(rail.interface, rail.pci) for rail in want.rails}
        MANAGERS[manager].refuse(want, host)
        own = {rail.interface: names[rail.name] for rail in want.rails if rail.interface}
        files = files_of(named(want, own), names, manager)
    wanted = {file.path: file for file in files}
    have = host.state(wanted)
    write = [file for file in files if have.get(file.path) != State(file.text, file.mode)]
    remove = [path for path in have if path not in wanted]
    for one in MANAGERS.values() if write else ():
        one.check(host, files, write)
    if not check_mode:
        for file in write:
            host.write(file)
        for path in remove:
            host.put(path, None)
        for name, one in MANAGERS.items():
            # With another manager the rails are still wanted, and this one would take their addresses along.
            gone = remove if not files or manager == name else []
            one.loaded(host, one.among(file.path for file in write), one.among(gone))
    result: dict[str, t.Any] = {
        "changed": bool(write or remove),
        "before": {path: f"{state.mode:04o}" for path, state in have.items()},
        "after": {file.path: f"{file.mode:04o}" for file in files},
        "checks": [*_checks(files, have), *_stale(remove)],
        "diff": [
            _diff(path, have.get(path), wanted.get(path)) for path in sorted({*remove, *(file.path for file in write)})
        ],
    }
    if want.present:
        result["manager"] = manager
    return result


def _diff(path: str, have: State | None, file: File | None) -> dict[str, str]:
    before = f"# mode {have.mode:04o}\n{have.text}" if have else ""
    after = f"# mode {file.mode:04o}\n{file.text}" if file else ""
    return {"before_header": path, "after_header": path, "before": before, "after": after}


def _checks(files: tuple[File, ...], have: dict[str, State]) -> t.Iterator[CheckData]:
    for file in files:
        state = have.get(file.path)
        observed = "missing" if state is None else "different" if state != State(file.text, file.mode) else "as planned"
        cause = f"the file is {observed}, so a reboot would not bring the network back"
        good = observed == "as planned"
        yield compared("persist_file", file.path, observed, cause, FIX, good=good, rail=file.rail or None).data()


def _stale(paths: list[str]) -> t.Iterator[CheckData]:
    cause = "left over from an earlier plan or another network manager"
    for path in paths:
        yield deviation("persist_stale", "", path, cause, FIX).data()


def refuse_untouchable(module: AnsibleModule, want: Want, host: Host) -> None:
    """Refuse rails on interfaces that carry this host's own network, unless forced: after a boot it would be gone."""
    if not want.present or not host.live:
        return
    kept = read_untouchable(module, Sysfs())
    places = [(rail, host.interface(rail.interface, rail.pci)) for rail in want.rails]
    problems = [
        untouchable_problem(f"rails[{number}]", rail, name, kept.why(name))
        for number, (rail, name) in enumerate(places)
        if kept.why(name) and not want.force & {rail.interface, rail.pci, name}
    ]
    if problems:
        raise InputError(problems)


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Bring the files to what the parameters want; what is in the way may be reported instead, for verifying."""
    host = Host(
        module.params["root"],
        module,
        lambda argv, text: Ran(*module.run_command(argv, data=text, environ_update={"LC_ALL": "C.UTF-8"})),
    )
    try:
        want = parse_want(module.params)
        refuse_untouchable(module, want, host)
        return converge(want, host, module.params["manager"], check_mode=module.check_mode)
    except RdmaError as exc:
        if not (module.check_mode and module.params["on_problem"] == "report"):
            raise
        check = deviation("persist_preflight", "rail_persist", exc.problem, exc.problem, exc.fix).data()
        return {"changed": False, "before": {}, "after": {}, "checks": [check], "diff": []}

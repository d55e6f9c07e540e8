#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_persist
short_description: Write the host network of the rails for the host's own network manager
version_added: 0.1.0
description:
  - Writes what M(railops.rdma.policy_route) sets live as files of the host's own means, so that a reboot brings it
    back. That is one owned file per interface for netplan, NetworkManager or systemd-networkd, whichever manages the
    host.
  - Besides, one file of sysctls, the name of the collection's routing protocol for iproute2, and, where networkd is at
    work, a setting that keeps it from deleting other programs' rules and routes.
  - Nothing is applied. No link flaps, and C(netplan apply) is not run; the files count from the next boot.
  - The files are checked by the tool that reads them (C(netplan generate) in a root of its own, C(nmcli)) before any is
    written. Each is replaced atomically.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._slice
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  state:
    description: Whether the files are to be there, or all of this module's files are to be removed.
    type: str
    choices: [present, absent]
    default: present
  manager:
    description: The means to write for. V(auto) finds out what manages the host.
    type: str
    choices: [auto, netplan, networkmanager, networkd]
    default: auto
  on_problem:
    description:
      - What to do in check mode about something that is in the way. V(report) returns it in RV(checks) instead of
        failing, which is for verifying hosts. Outside of check mode it is always a failure.
    type: str
    choices: [fail, report]
    default: fail
  root:
    description: The root below which the files are, to prepare an image.
    type: path
    default: /
seealso:
  - module: railops.rdma.policy_route
"""

EXAMPLES = r"""
---
- name: Let a reboot bring the rails back as planned
  railops.rdma.rail_persist:
    plan_dir: plan/fabric

- name: Remove all files again
  railops.rdma.rail_persist:
    state: absent
"""

RETURN = r"""
manager:
  description: The means that was written for.
  returned: success, with O(state=present)
  type: str
  sample: netplan
before:
  description: The owned files that were there, with their modes.
  returned: success
  type: dict
  sample: {}
after:
  description: The owned files that are there now, or would be in check mode, with their modes.
  returned: success
  type: dict
  sample:
    /etc/netplan/90-railops-ens1np0.yaml: "0600"
    /etc/sysctl.d/90-railops-rails.conf: "0644"
checks:
  description: One entry per file, as it was found before any change.
  returned: success
  type: list
  elements: dict
  sample:
    - id: persist_file
      rail: rail1
      status: deviation
      planned: /etc/netplan/90-railops-ens1np0.yaml
      observed: missing
      cause: the file is missing
      fix: Run the role railops.rdma.rail_network on this host.
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._check import compared, deviation
from ..module_utils._errors import Problem, RdmaError
from ..module_utils._persist.host import Host, Ran, State
from ..module_utils._persist.plan import NETPLAN, NETWORKMANAGER, File, files_of, manager_of
from ..module_utils._route.options import slice_spec
from ..module_utils._route.plan import problem_check
from ..module_utils._route.want import Want, named, parse_want

ARGUMENT_SPEC = {
    **slice_spec(),
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "manager": {"type": "str", "choices": ["auto", "netplan", "networkmanager", "networkd"], "default": "auto"},
    "root": {"type": "path", "default": "/"},
    "on_problem": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
}
PROFILE = ".nmconnection"
FIX = "Run the role railops.rdma.rail_network on this host."


def run(want: Want, host: Host, manager: str, *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the files to the wanted state and describe what happened."""
    files: tuple[File, ...] = ()
    if want.present:
        found = host.found()
        manager = manager_of(found) if manager == "auto" else manager
        names = {rail.name: host.interface(rail.interface, rail.pci) for rail in want.rails}
        if manager == NETPLAN and want.policy == "default_route" and found.netplan_networkmanager:
            raise RdmaError(
                "netplan with the renderer NetworkManager cannot express the guard rule of the policy default_route.",
                "Use fabric_policy: prefixes (the default), which needs no guard.",
            )
        own = {rail.interface: names[rail.name] for rail in want.rails if rail.interface}
        files = files_of(named(want, own), names, manager)
    wanted = {file.path: file for file in files}
    have = host.state(wanted)
    write = [file for file in files if have.get(file.path) != State(file.text, file.mode)]
    remove = [path for path in have if path not in wanted]
    if write:
        host.check_netplan(files)
        host.check_keyfiles(write)
    if not check_mode:
        for file in write:
            host.write(file)
        for path in remove:
            host.remove(path)
        host.load_keyfiles(file.path for file in write if file.path.endswith(PROFILE))
        # With another manager the rails are still wanted, and NetworkManager would take their addresses along.
        if any(path.endswith(PROFILE) for path in remove) and (not files or manager == NETWORKMANAGER):
            host.forget_keyfiles()
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


def _checks(files: tuple[File, ...], have: dict[str, State]) -> t.Iterator[dict[str, t.Any]]:
    for file in files:
        state = have.get(file.path)
        observed = "missing" if state is None else "different" if state != State(file.text, file.mode) else "as planned"
        cause = f"the file is {observed}, so a reboot would not bring the network back"
        good = observed == "as planned"
        yield compared("persist_file", file.path, observed, cause, FIX, good=good, rail=file.rail or None).data()


def _stale(paths: list[str]) -> t.Iterator[dict[str, t.Any]]:
    cause = "left over from an earlier plan or another network manager"
    for path in paths:
        yield deviation("persist_stale", "", path, cause, FIX).data()


def replace(module: AnsibleModule, temporary: str, path: str) -> None:
    """Put a finished file in its place with the mode that it has; AnsibleModule.atomic_move would give it another."""
    os.replace(temporary, path)
    module.set_default_selinux_context(path, False)


def main() -> None:
    """Read the parameters, run, and report."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        host = Host(
            module.params["root"],
            lambda temporary, path: replace(module, temporary, path),
            lambda argv, text: Ran(*module.run_command(argv, data=text, environ_update={"LC_ALL": "C.UTF-8"})),
        )
        result = run(parse_want(module.params), host, module.params["manager"], check_mode=module.check_mode)
    except RdmaError as exc:
        if not (module.check_mode and module.params["on_problem"] == "report"):
            module.fail_json(msg=str(exc), fix=exc.fix, **exc.facts)
        check = problem_check(Problem("rail_persist", exc.problem, exc.fix), "persist_preflight")
        result = {"changed": False, "before": {}, "after": {}, "checks": [check]}
    if not module._diff:
        result.pop("diff", None)
    module.exit_json(**result)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_persist
short_description: Write the host network of the rails for the host's own network manager
version_added: 1.0.0
description:
  - Writes what M(railops.rdma.policy_route) sets live as files of the host's network manager, so that a reboot restores
    it. That is one owned file per interface for netplan, NetworkManager or systemd-networkd, whichever manages the
    host.
  - Besides, one file of sysctls, the name of the collection's routing protocol for iproute2, and, where networkd is at
    work, a setting that keeps it from deleting other programs' rules and routes.
  - Nothing is applied. No link flaps, and C(netplan apply) is not run; the files count from the next boot.
  - The files are checked by the tool that reads them (C(netplan generate) in a root of its own, C(nmcli)) before any is
    written. All are written beside their places before the first gets its name; where one cannot have it, the others
    get their old text back.
  - Before it writes, the module compares the next boot's network with and without this collection's files. It fails
    with the other file's name where that file takes precedence. It also fails where the port would lose addresses,
    routes, its MTU or a stacked interface, unless the port is in O(adopt_ports).
  - The interface of the default route and of Ansible's own connection are refused unless listed in O(force).
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._host_plan
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - iproute2 on the managed node
options:
  state:
    description: Whether the files are to be there, or all of this module's files are to be removed.
    type: str
    choices: [present, absent]
    default: present
  manager:
    description: The network manager. V(auto) detects it.
    type: str
    choices: [auto, netplan, networkmanager, networkd]
    default: auto
  force:
    description:
      - Interfaces that may get files although they carry the default route or Ansible's connection, directly or below
        a VLAN, bond or bridge. With another O(root) no network runs over them, and the module refuses none.
    type: list
    elements: str
    default: []
  adopt_ports:
    description:
      - Ports of rails whose existing settings the module may replace. It moves a file that takes precedence over ours
        to C(/var/lib/railops-rdma/kept) and restores it when the rail or all rails are removed. It refuses, and does
        not move, a file that also matches an interface outside of this list.
    type: list
    elements: str
    default: []
  stage:
    description:
      - Whether to write the files under temporary names only, beside their final paths. A later call without this
        option renames them and needs no disk space. Conflicts show before anything is changed.
    type: bool
    default: false
  on_conflict:
    description:
      - How check mode handles a conflict. V(report) returns it in RV(checks) instead of failing; C(verify) uses this.
        Outside of check mode a conflict is always a failure.
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
  become: true

- name: Remove all files again
  railops.rdma.rail_persist:
    state: absent
  become: true
"""

RETURN = r"""
manager:
  description: The network manager of the files.
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
problems:
  description: Conflicts that the module refuses, each with C(place), C(problem) and C(fix).
  returned: with O(on_conflict=report), where there is a conflict
  type: list
  elements: dict
  sample: []
checks:
  description:
    - One entry per file, in its state before any change. For each interface of a rail, whether the next boot uses the
      managed file (C(persist_precedence)) and which other files match it (C(persist_existing)).
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
      fix: Run the playbook railops.rdma.hosts with the tag rail_network.
"""

from ..module_utils._module import run_room
from ..module_utils._persist.run import SPEC, run


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_record_info
short_description: Record what modules read of a host, with stand-ins for what tells whose it is
version_added: 1.0.0
description:
  - Reads the files of C(/sys), C(/proc) and C(/etc) that this collection's modules read, and runs the programs that
    they call; writes nothing. What is read is a list in the collection; nothing else is.
  - Serial numbers, GUIDs, MAC and IP addresses, the names of hosts and people have stand-ins, on the host, before
    anything leaves it. The same value has the same stand-in under one O(key). Addresses keep their common prefixes and
    their last part.
  - Takes what is known to be harmless. Files of network managers are parsed; known keys stay with values that are made
    of numbers, addresses, interfaces and known words; other words have stand-ins; comments, commands and unknown keys
    are left out. The same holds for what programs say.
  - Fails when a real value is still found in what it would return, and names the place.
options:
  key:
    description: What the stand-ins are drawn with. Give the hosts of one archive the same, and throw it away.
    type: str
    required: true
  names:
    description:
      - Names that shall have stand-ins beside the host's own and those of the people who have an account, such as
        other hosts and switches.
    type: list
    elements: str
    default: []
  folders:
    description:
      - Record the files that this collection has written to these folders of a plan or a verdict, instead of the host.
      - Fails when one has what looks like a secret, and names file and line.
    type: list
    elements: path
    default: []
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The module changes nothing.
  idempotent:
    support: full
seealso:
  - module: railops.rdma.rdma_info
"""

EXAMPLES = r"""
---
- name: Record the host
  railops.rdma.host_record_info:
    key: "{{ lookup('ansible.builtin.password', '/dev/null', length=40) }}"
  become: true
  register: __example_record
"""

RETURN = r"""
record:
  description: The archive of the host.
  returned: success, without O(folders)
  type: dict
  sample: {"format": 1, "host": "name-4d1f2a90", "files": [["f", "/sys/class/net/ens1np0/mtu", "9000\n", 420]]}
summary:
  description:
    - The host's stand-in, how many files and bytes were taken, which commands ran, and how many values of each kind
      were replaced.
  returned: success, without O(folders)
  type: dict
  sample: {"host": "name-4d1f2a90", "files": 4210, "bytes": 812345, "commands": ["ip -V"], "stand_ins": {"mac": 9}}
bundle:
  description: The path and text of each file of O(folders); the path begins with C(plan) or C(verify).
  returned: success, with O(folders)
  type: list
  elements: list
  sample: [["plan/plan.json", "{}"]]
"""

from ..module_utils._module import run_module
from ..module_utils._record.run import SPEC, run


def main() -> None:
    """Record, and return."""
    # Names are nothing for the host's log.
    run_module(run, SPEC, no_log=True)


if __name__ == "__main__":
    main()

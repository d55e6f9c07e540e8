#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_driver
short_description: Install RDMA drivers and tools
version_added: 1.0.0
description:
  - Installs what RDMA needs, from the distribution (Debian, Ubuntu and the RHEL family) or as DOCA-OFED from one
    repository package that is pinned by its checksum.
  - Recognizes a containerised OFED driver, as the NVIDIA network operator runs it, and leaves the kernel half to it.
  - Returns whether a reboot is due. Loads and unloads no kernel module.
  - A package manager's failure becomes one error with its remedy.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Check mode queries no repositories, so only a real run detects a package that is in none of them.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  source:
    description:
      - Where the driver comes from. With V(container) another tool, such as NVIDIA's network operator or the chart
        ofed-driver, runs a driver container on the host. The module waits for it and installs user space beside it.
    type: str
    choices:
      - inbox
      - doca
      - container
    default: inbox
  packages:
    description:
      - The packages, instead of those that the module knows for the distribution. An empty list installs none.
    type: list
    elements: str
  extra_packages:
    description: More packages.
    type: list
    elements: str
    default: []
  doca_repository:
    description: The address of the C(doca-host) package, or its path on the host.
    type: str
  doca_checksum:
    description: Checksum of the repository package, C(sha256:) and 64 digits.
    type: str
  doca_profile:
    description: The package of the profile to install.
    type: str
    default: doca-ofed
  doca_version:
    description:
      - The version of the profile's package. Without it, the one that the repository package brings. A profile that is
        installed already keeps its version unless O(upgrade).
    type: str
  versions:
    description:
      - The version that a package must have, by its name, as the package manager writes it. Such a package is installed
        where it is missing. The check C(driver_versions) reports a package of another version. Only O(upgrade)
        replaces it.
    type: dict
    default: {}
  upgrade:
    description:
      - Replace packages that have another version than O(versions) or O(doca_version), by a newer or an older one.
      - The host must be free of work; P(railops.rdma.upgrade#role) sees to that.
    type: bool
    default: false
  container_timeout:
    description: How many seconds a driver container may take; it builds the driver for the host's kernel.
    type: int
    default: 1800
  refresh:
    description: Whether to refresh the package lists before something is installed.
    type: bool
    default: true
"""

EXAMPLES = r"""
---
- name: Install the distribution's RDMA packages
  railops.rdma.rdma_driver:
  become: true

- name: Install DOCA-OFED
  railops.rdma.rdma_driver:
    source: doca
    doca_repository: https://mirror.example/doca-host_3.1.0-091000-25.07-ubuntu2204_amd64.deb
    doca_checksum: sha256:0000000000000000000000000000000000000000000000000000000000000000
  become: true
"""

RETURN = r"""
before:
  description: The installed packages that the task is about, as they were.
  returned: success
  type: dict
after:
  description: These packages as they are now, or would be in check mode.
  returned: success
  type: dict
packages:
  description: The packages that the task installed.
  returned: success
  type: list
  elements: str
  sample:
    - rdma-core
replaced:
  description: The versions that packages had which the task replaced.
  returned: success
  type: dict
  sample: {}
driver:
  description: The driver of the NICs, C(inbox), C(ofed) or C(container), with its version when it reports one.
  returned: success
  type: dict
  sample:
    source: inbox
    version:
    kernel: 6.1.0-38-amd64
notes:
  description: What the module did not change, and why.
  returned: success
  type: list
  elements: str
  sample: []
reboot_required:
  description: Whether the wanted driver runs only after a reboot.
  returned: success
  type: bool
  sample: false
reboot_reasons:
  description: Why.
  returned: success
  type: list
  elements: str
  sample: []
checks:
  description: The comparison with the wanted state, before the task.
  returned: success
  type: list
  elements: dict
  sample:
    - id: driver_packages
      rail:
      status: ok
      planned: all packages installed
      observed: all packages installed
      cause: ""
      fix: ""
"""

from ..module_utils._driver.run import SPEC, run
from ..module_utils._module import run_room


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_driver_info
short_description: Plan the RDMA packages of a host
version_added: 1.0.0
description:
  - Returns the packages that RDMA needs and the host lacks, from the distribution (Debian, Ubuntu and the RHEL family)
    or for DOCA-OFED. The role P(railops.rdma.rdma_driver#role) installs them.
  - Recognizes a containerized OFED driver, as the NVIDIA network operator runs it, and leaves the kernel modules to it.
  - Returns whether a reboot is due. Changes nothing.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Returns no RV(steps).
  diff_mode:
    support: full
    details: Shows what the role would install.
  idempotent:
    support: full
options:
  source:
    description:
      - Where the driver comes from. With V(container) another tool, such as NVIDIA's network operator or the chart
        ofed-driver, runs a driver container on the host, and user space is installed beside it.
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
      - Whether to replace packages that have another version than O(versions) or O(doca_version), by a newer or an
        older one.
      - The host must be free of work; P(railops.rdma.upgrade#role) sees to that.
    type: bool
    default: false
  done:
    description:
      - The packages that the role has installed. The module fails when they are not on the host, and returns why a
        reboot is due.
    type: list
    elements: str
    default: []
  replaced:
    description: The versions that packages of O(done) had before.
    type: dict
    default: {}
"""

EXAMPLES = r"""
---
- name: List the missing RDMA packages of the distribution
  railops.rdma.rdma_driver_info:

- name: Plan DOCA-OFED
  railops.rdma.rdma_driver_info:
    source: doca
    doca_repository: https://mirror.example/doca-host_3.1.0-091000-25.07-ubuntu2204_amd64.deb
    doca_checksum: sha256:0000000000000000000000000000000000000000000000000000000000000000
"""

RETURN = r"""
before:
  description: The installed packages.
  returned: success
  type: dict
after:
  description: The same after the installation.
  returned: success
  type: dict
packages:
  description: The packages to install. With O(done) these.
  returned: success
  type: list
  elements: str
  sample:
    - rdma-core
replaced:
  description: The present versions of packages that are replaced.
  returned: success
  type: dict
  sample: {}
family:
  description: C(debian), C(rhel), or the ID of another distribution.
  returned: success
  type: str
  sample: debian
repository:
  description: Whether the repository package of DOCA-OFED is installed first.
  returned: success
  type: bool
  sample: false
steps:
  description: The packages of each call of the package manager, as it takes them. Empty in check mode.
  returned: success
  type: list
  elements: list
  sample: [[rdma-core=50.0-2]]
driver:
  description: The driver of the NICs, C(inbox), C(ofed) or C(container), with its version when it reports one.
  returned: success
  type: dict
  sample:
    source: inbox
    version:
    kernel: 6.1.0-38-amd64
notes:
  description: What the role does not change, and why.
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
  description: The comparison with the wanted state.
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

#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_driver
short_description: Install RDMA drivers and tools
version_added: 0.1.0
description:
  - Installs what RDMA needs, from the distribution (Debian, Ubuntu and the RHEL family) or as DOCA-OFED from one
    repository package that is pinned by its checksum.
  - Recognises a containerised OFED driver, as the NVIDIA network operator runs it, and leaves the kernel half to it.
  - Says whether a reboot is due. Nothing is loaded or unloaded.
  - A package manager's failure becomes one error with its remedy.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Repositories are not asked in check mode, so a package that is in none of them is found by the real run.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  source:
    description: Where the driver comes from.
    type: str
    choices:
      - inbox
      - doca
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
    description: Its checksum, C(sha256:) and 64 digits.
    type: str
  doca_profile:
    description: The package of the profile to install.
    type: str
    default: doca-ofed
  doca_version:
    description:
      - The version of the profile's package. Without it, the one that the repository package brings. A profile that is
        installed already keeps its version.
    type: str
  pyroute2_wheel:
    description:
      - A wheel of pyroute2 on the controller, for hosts whose distribution has none or one older than 0.7.2.
    type: path
  refresh:
    description: Whether to refresh the package lists before something is installed.
    type: bool
    default: true
"""

EXAMPLES = r"""
---
- name: Install the distribution's RDMA packages
  railops.rdma.rdma_driver:

- name: Install DOCA-OFED
  railops.rdma.rdma_driver:
    source: doca
    doca_repository: https://mirror.example/doca-host_3.1.0-091000-25.07-ubuntu2204_amd64.deb
    doca_checksum: sha256:0000000000000000000000000000000000000000000000000000000000000000
"""

RETURN = r"""
before:
  description: The installed packages that the task is about, as they were.
  returned: success
  type: dict
after:
  description: The same, as they are now, or would be in check mode.
  returned: success
  type: dict
packages:
  description: The packages that the task installed.
  returned: success
  type: list
  elements: str
  sample:
    - rdma-core
driver:
  description: What drives the NICs, C(inbox), C(ofed) or C(container), with its version when it tells one.
  returned: success
  type: dict
  sample:
    source: inbox
    version:
    kernel: 6.1.0-38-amd64
    pyroute2: 0.7.2
notes:
  description: What was left alone, and why.
  returned: success
  type: list
  elements: str
  sample: []
reboot_required:
  description: Whether the driver that was asked for runs only after a reboot.
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
  description: The comparison with what was asked for, before the task.
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

import os
import shutil
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import fetch_url

from ..module_utils._driver.host import Packages, apply, read_host
from ..module_utils._driver.plan import (
    PYROUTE2_FLOOR,
    Want,
    checks_of,
    make_plan,
    pyroute2_fix,
    reboot_reasons,
    version_tuple,
)
from ..module_utils._errors import RdmaError
from ..module_utils._files import Sysfs

ARGUMENT_SPEC = {
    "source": {"type": "str", "choices": ["inbox", "doca"], "default": "inbox"},
    "packages": {"type": "list", "elements": "str"},
    "extra_packages": {"type": "list", "elements": "str", "default": []},
    "doca_repository": {"type": "str"},
    "doca_checksum": {"type": "str"},
    "doca_profile": {"type": "str", "default": "doca-ofed"},
    "doca_version": {"type": "str"},
    "pyroute2_wheel": {"type": "path"},
    "refresh": {"type": "bool", "default": True},
}


def make_want(params: dict[str, t.Any]) -> Want:
    """Return the wish of a module's parameters."""
    return Want(
        source=params["source"],
        packages=None if params["packages"] is None else tuple(params["packages"]),
        extra_packages=tuple(params["extra_packages"]),
        repository=params["doca_repository"],
        repository_checksum=params["doca_checksum"],
        profile=params["doca_profile"],
        version=params["doca_version"],
        wheel=params["pyroute2_wheel"],
    )


def fetch(module: AnsibleModule, source: str) -> str:
    """Return the path of the repository package, fetched when it is an address."""
    if os.path.isabs(source):
        if not os.path.isfile(source):
            raise RdmaError(
                f"There is no repository package {source} on the host.", "Copy it there, or give its address."
            )
        return source
    response, info = fetch_url(module, source, timeout=60)
    if info["status"] != 200:
        raise RdmaError(
            f"The repository package {source} cannot be fetched: {info['msg']}.",
            "Make its mirror reachable from this host, or copy the package there and give its path.",
            url=source,
        )
    path = os.path.join(module.tmpdir, source.rsplit("/", 1)[-1])
    with open(path, "wb") as file:
        shutil.copyfileobj(response, file)
    return path


def run(module: AnsibleModule, sysfs: Sysfs) -> dict[str, t.Any]:
    """Read, plan, install unless in check mode, and read again."""
    want = make_want(module.params)
    environment = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "LANG": "C"}

    def command(argv: t.Sequence[str]) -> tuple[int, str, str]:
        code, out, err = module.run_command(list(argv), environ_update=environment)
        return code, out, err

    before = read_host(sysfs, want, command, module.get_bin_path)
    plan = make_plan(want, before)
    after = before
    if plan.changed and not module.check_mode:
        packages = Packages(before.family, command, module.get_bin_path)
        apply(plan, want, packages, lambda source: fetch(module, source), refresh=module.params["refresh"])
        after = read_host(sysfs, want, command, module.get_bin_path)
        left = [name for name in plan.packages if name not in after.installed]
        if left:
            raise RdmaError(
                f"The package manager reported success, but {', '.join(left)} is not installed.",
                "Look at its log on the host.",
                missing=left,
            )
    if version_tuple(after.pyroute2) < PYROUTE2_FLOOR and not module.check_mode:
        raise RdmaError(
            f"The managed node's Python has pyroute2 {after.pyroute2 or 'not at all'}; 0.7.2 is the oldest that works.",
            pyroute2_fix(),
            pyroute2=after.pyroute2,
        )
    reasons = reboot_reasons(want, after, plan)
    return {
        "changed": plan.changed,
        "packages": list(plan.packages),
        "driver": {
            "source": "container" if after.container else ("ofed" if after.ofed_version else "inbox"),
            "version": after.ofed_version,
            "kernel": after.kernel,
            "pyroute2": after.pyroute2,
        },
        "notes": list(plan.notes),
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
        "checks": checks_of(want, before, plan),
        "diff": {
            "before": {"installed": sorted(before.installed)},
            "after": {"installed": sorted({*before.installed, *plan.packages})},
        },
    }


def main() -> None:
    """Read the parameters, run, and report."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module, Sysfs())
    except RdmaError as exc:
        module.fail_json(msg=str(exc), fix=exc.fix, **exc.facts)
    result.update(result["diff"])
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()

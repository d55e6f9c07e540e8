# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What package managers say when they fail, and what to do about it. Pure."""

from __future__ import annotations

import re
import typing as t

from .._errors import RdmaError

# What package managers say, and what to do: the first that is found counts.
FAILURES = (
    (
        r"(Unable to locate package|No match for argument:?|Unable to find a match:?) (linux-headers|kernel-devel)-",
        "No repository of the host has the headers of its running kernel, so DOCA-OFED's modules cannot be built.",
        "Boot a kernel whose headers can be installed (the distribution's newest) and run again. [headers_missing]",
    ),
    (
        r"Could not get lock|is another process using it|waiting for process with pid",
        "Another package manager is running.",
        "Wait until it has ended (unattended-upgrades?), then run again. [packages_busy]",
    ),
    (
        r"Failed to fetch|Could not resolve|Cannot download|Curl error|Failed to download|Could not connect"
        r"|Temporary failure resolving",
        "The package mirror does not answer.",
        "Make the mirror reachable from this host, or point its sources to one that is. [mirror_unreachable]",
    ),
    (
        r"Packages need to be removed but remove is disabled",
        "The packages would remove those of another driver; MLNX_OFED or DOCA-OFED may be installed by hand.",
        "Set rdma_driver_source to doca, or uninstall that driver first (ofed_uninstall.sh), then run again. "
        "[driver_conflict]",
    ),
    (
        r"Unable to locate package|has no installation candidate|No match for argument|Unable to find a match"
        r"|No package .* available",
        "A package is in none of the host's repositories.",
        "Enable the repository that has it (universe on Ubuntu, CRB and AppStream on RHEL), or set"
        " rdma_driver_packages to what there is. [package_not_found]",
    ),
)


def install_error(argv: t.Sequence[str], code: int, output: str) -> RdmaError:
    """Return the one clear error for a package manager's failure."""
    lines = [
        line for line in output.splitlines() if re.match(r"(E:|Error|Err:|W: Failed|No match|error:)", line.strip())
    ]
    shown = "; ".join(line.strip() for line in lines[:3]) or output.strip()[-200:]
    problem, fix = next(
        ((f"{cause} {argv[0]} says: {shown}", fix) for pattern, cause, fix in FAILURES if re.search(pattern, output)),
        (
            f"{argv[0]} ended with {code}: {shown}",
            "Run the command on the host and fix what it says. [driver_command]",
        ),
    )
    return RdmaError(problem, fix, command=list(argv), rc=code)

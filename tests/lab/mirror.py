# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Package repositories in folders, and a package in a driver's place: nothing of it drives anything.

Its files are in /etc alone: on namespace hosts /etc and dpkg's database are each host's own. Where the file BREAKS is,
version 2 takes down a rail that has come up: when it is installed, and at each boot before sshd answers.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import typing as t

if t.TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "1.0-1", "2.0-1"
BREAKS = "/etc/lab-driver-breaks-rail3"
START = f"""#!/bin/sh
[ -e {BREAKS} ] || exit 0
for second in $(seq 120); do
    ip link show ens3np0 | grep -qw LOWER_UP && break
    sleep 1
done
ip link set ens3np0 down
"""
UNIT = """[Unit]
Description=What the lab's driver does to this host
After=systemd-networkd.service
Before=ssh.service

[Service]
Type=oneshot
ExecStart=/etc/lab-driver/start
"""
FIELDS = {
    "Architecture": "all",
    "Maintainer": "railops.rdma contributors <lab@example.invalid>",
    "Description": "in the place of a driver",
}


def index(folder: Path) -> None:
    """Write the list of a folder's packages, which makes a repository of it (`deb [trusted=yes] file:FOLDER ./`)."""
    entries = []
    for package in sorted(folder.glob("*.deb")):
        shown = subprocess.run(["dpkg-deb", "--field", package], check=True, capture_output=True, text=True)
        content = package.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        entries.append(f"{shown.stdout.rstrip()}\nFilename: ./{package.name}\nSize: {len(content)}\nSHA256: {digest}\n")
    (folder / "Packages").write_text("\n".join(entries), encoding="utf-8")


def drivers(folder: Path) -> None:
    """Make a repository with both versions of lab-driver."""
    files = {
        "DEBIAN/postinst": "#!/bin/sh\nexec /etc/lab-driver/start\n",
        "etc/lab-driver/start": START,
        "etc/systemd/system/lab-driver.service": UNIT,
        "etc/systemd/system/multi-user.target.wants/lab-driver.service": "../lab-driver.service",
    }
    for version in (OLD, NEW):
        package(
            folder,
            "lab-driver",
            version,
            {"etc/lab-driver/version": f"{version}\n", **(files if version == NEW else {})},
        )
    index(folder)


def package(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """Make a package from its files, where a path is a link; return its path."""
    root = folder / f"{name}-{version}"
    fields = {**FIELDS, "Package": name, "Version": version}
    control = "".join(f"{key}: {value}\n" for key, value in fields.items())
    for path, content in {"DEBIAN/control": control, **files}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("../"):
            file.symlink_to(content)
            continue
        file.write_text(content, encoding="utf-8")
        file.chmod(0o755 if content.startswith("#!") else 0o644)
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, folder], check=True, capture_output=True)
    shutil.rmtree(root)
    return folder / f"{name}_{version}_all.deb"

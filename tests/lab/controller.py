# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory of a lab: how Ansible reaches its hosts. What the fabric is, an inventory of the user's says."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

import cluster
import image
import state
from shell import environments
from topology import Host, Lab


def folder(lab: Lab) -> Path:
    """Return the inventory's folder; Ansible reads it whole."""
    return state.folder(lab.name) / "inventory"


def write(lab: Lab) -> Path:
    """Write the inventory and return its folder."""
    home = folder(lab)
    home.mkdir(exist_ok=True)
    connect = _space if lab.kind == "netns" else _guest
    hosts = {host.name: {"rlab_name": lab.name, **connect(lab, host)} for host in lab.hosts}
    content: dict[str, t.Any] = {"children": {"gpu_nodes": {"hosts": hosts}}}
    if lab.cluster:
        content["vars"] = cluster.variables(lab, image.container_images())
    content = {"all": content}
    # JSON is YAML.
    (home / "lab.yml").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return home


def _space(lab: Lab, host: Host) -> dict[str, t.Any]:
    """Every module of a namespace host runs through the wrapper that enters it."""
    return {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(state.folder(lab.name) / host.name / "python"),
        "ansible_pipelining": True,
    }


def _guest(lab: Lab, host: Host) -> dict[str, t.Any]:
    home = state.folder(lab.name)
    return {
        "ansible_host": host.address,
        "ansible_user": "root",
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(home / "key"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={home / 'known_hosts'} -o StrictHostKeyChecking=yes",
        # ssh starts inside the fabric's namespace, wherever Ansible runs.
        **{f"ansible_{tool}_executable": str(_inside(lab, tool)) for tool in ("ssh", "sftp", "scp")},
        # Every lab has the same addresses: connections that are kept must not meet.
        "ansible_control_path_dir": str(home / "cp"),
        "ansible_pipelining": True,
        # Emulated guests answer slowly when the machine is busy.
        "ansible_ssh_timeout": 60,
    }


def _inside(lab: Lab, tool: str) -> Path:
    """Return a script that runs a tool of OpenSSH beside the switches."""
    path = state.folder(lab.name) / tool
    path.write_text(f'#!/bin/sh\nexec ip netns exec {lab.fabric} {tool} "$@"\n', encoding="utf-8")
    path.chmod(0o700)
    return path


def environment(lab: Lab) -> dict[str, str]:
    """Return the environment in which `ansible-playbook railops.rdma.site` works unchanged."""
    folders = [str(environments.runtime()), os.environ.get("PATH", os.defpath)]
    wanted = {"RAILOPS_LAB": lab.name}
    if lab.cluster:
        folders.insert(1, str(cluster.binaries(lab)))
        wanted["KUBECONFIG"] = str(cluster.kubeconfig(lab))
    wanted["PATH"] = os.pathsep.join(folders)
    wanted |= {
        name: value
        for name, value in {
            "ANSIBLE_COLLECTIONS_PATH": str(environments.tree()),
            "ANSIBLE_INVENTORY": str(folder(lab)),
            "ANSIBLE_FORKS": "20" if lab.kind == "netns" else "5",
            "LC_ALL": "C.UTF-8",
        }.items()
        if name not in os.environ
    }
    return {**os.environ, **wanted}

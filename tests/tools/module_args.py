# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parameters for a module that runs in this process, on any ansible-core (its own helper came with 2.19)."""

from __future__ import annotations

import contextlib
import json
import typing as t
from unittest import mock

from ansible.module_utils import basic


@contextlib.contextmanager
def module_args(params: dict[str, t.Any]) -> t.Iterator[None]:
    """Let the next AnsibleModule read these parameters."""
    data = json.dumps({"ANSIBLE_MODULE_ARGS": params}).encode()
    with (
        mock.patch.object(basic, "_ANSIBLE_ARGS", data),
        # From 2.19 on arguments come in one of several formats.
        mock.patch.object(basic, "_ANSIBLE_PROFILE", "legacy", create=True),
    ):
        yield

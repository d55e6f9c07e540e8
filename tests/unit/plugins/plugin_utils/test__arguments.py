# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.utils import color

from ansible_collections.railops.rdma.plugins.plugin_utils._arguments import has_color


@pytest.mark.parametrize("found", [True, False])
def test_colors_are_what_ansible_found_when_it_started(monkeypatch, found):
    """A worker of ansible-core 2.19 has no terminal any more: what it could ask itself says no."""
    monkeypatch.setattr(color, "ANSIBLE_COLOR", found)
    assert has_color() is found

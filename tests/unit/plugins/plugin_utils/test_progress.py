# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.module_utils._cluster.pod_state import last_lines, last_warning, trouble
from ansible_collections.railops.rdma.plugins.plugin_utils import _progress

ESCAPE = "\x1b]0;owned\x07\x9b2J\u202e"


def test_progress_reaches_the_terminal_without_escapes(tmp_path, monkeypatch):
    """M5: a pod's termination message was shown as it was."""
    seen = []
    monkeypatch.setattr(_progress.display, "display", seen.append)
    (tmp_path / "lines").write_text(f"waits for a ({ESCAPE})\nwaits for b é ö\n", encoding="utf-8")
    follower = _progress.Follower(str(tmp_path / "lines"), "cluster_wait")
    follower.start()
    follower.stop()
    assert seen == ["cluster_wait: waits for a (\\x1b]0;owned\\x07\\x9b2J\\u202e)", "cluster_wait: waits for b é ö"]


def test_a_termination_message_an_event_and_a_log_come_without_escapes():
    ended = {"exitCode": 1, "reason": "Error", "message": f"gone{ESCAPE}\nFAILED=0"}
    row = {"name": "c", "state": {"terminated": ended}, "ready": False}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": "Failed", "containerStatuses": [row]}}
    events = [{"type": "Warning", "reason": f"Failed{ESCAPE}", "message": ESCAPE}]
    logs = (f"one\n{ESCAPE}", f'{{"level": "info", "msg": "{chr(0x9B)}"}}', "[" * 60_000)
    texts = [trouble(pod).text, last_warning(events), *map(last_lines, logs)]
    for text in texts:
        assert text
        assert text.isprintable()
    assert "\\x1b]0;owned" in texts[0]

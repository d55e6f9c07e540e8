# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows a run on many hosts in few lines."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet
type: stdout
short_description: Show a run on many hosts in few lines
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Shows what P(ansible.builtin.default#callback) shows, and folds what is equal on many hosts.
  - Hosts whose changes are equal apart from addresses and their names share one diff.
  - Hosts with equal counts share one row of the recap, and equal failures of a task share one message.
  - Includes, and plays and tasks without a result to show, print nothing.
  - With C(-v), nothing is folded or left out.
options:
  display_ok_hosts:
    default: false
  display_skipped_hosts:
    default: false
extends_documentation_fragment:
  - ansible.builtin.default_callback
  - ansible.builtin.result_format_callback
requirements:
  - Set C(stdout_callback = railops.rdma.fleet) in the section C([defaults]) of ansible.cfg.
"""

import typing as t

from ansible import constants
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback import default

from ..module_utils._formatting import group_by
from ..plugin_utils._report.equal import folded, group_diffs

Default: t.Any = default.CallbackModule

DIFFS = 3
"""Groups of hosts whose diff is shown for one task."""


class Recap:
    """The counts of a run: hosts with equal counts under one name."""

    def __init__(self, stats: t.Any) -> None:
        counts = group_by((str(stats.summarize(host)), host) for host in sorted(stats.processed))
        self.processed = {folded(hosts, len(hosts)): hosts[0] for hosts in counts.values()}
        self.custom = stats.custom
        self._stats = stats

    def summarize(self, name: str) -> t.Any:
        """Return the counts of these hosts."""
        return self._stats.summarize(self.processed[name])


class CallbackModule(Default):  # type: ignore[misc]
    """The callback."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "railops.rdma.fleet"

    def __init__(self) -> None:
        super().__init__()
        self._unshown: t.Any = None
        self._task: t.Any = None
        self._diffs: dict[str, str] = {}
        self._changed: list[str] = []
        self._failed: dict[str, list[str]] = {}
        self._brief = False

    @property
    def _folds(self) -> bool:
        return int(self._display.verbosity) == 0

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        """Show the play when there is something to show of it."""
        self._flush()
        self._play = play
        self._unshown = play
        if not self._folds:
            self._show_play()

    def _show_play(self) -> None:
        if self._unshown:
            self._unshown = None
            super().v2_playbook_on_play_start(self._play)

    def _task_start(self, task: t.Any, prefix: str | None = None) -> None:
        self._flush()
        # A module on many hosts takes a while: its play is shown before.
        module = task.action.startswith("railops.rdma.") and task.action != "railops.rdma.message"
        skipped = task.check_mode and "not ansible_check_mode" in task.when
        if module and not task.run_once and not skipped and self._play.hosts != ["localhost"]:
            self._show_play()
        super()._task_start(task, prefix)

    def _print_task_banner(self, task: t.Any) -> None:
        self._show_play()
        super()._print_task_banner(task)

    def v2_playbook_on_include(self, included_file: t.Any) -> None:
        """Show an include with -v only."""
        if not self._folds:
            super().v2_playbook_on_include(included_file)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """Show a play without hosts with -v only."""
        if not self._folds:
            super().v2_playbook_on_no_hosts_matched()

    def v2_on_file_diff(self, result: t.Any) -> None:
        """Keep the diff of a host until the other hosts have theirs."""
        task, host, values = _parts(result)
        if not self._folds or task.loop:
            super().v2_on_file_diff(result)
        elif values.get("diff") and values.get("changed"):
            self._diffs[host] = self._get_diff(values["diff"])

    def v2_runner_on_ok(self, result: t.Any) -> None:
        """Keep what changed until the other hosts are there."""
        task, host, values = _parts(result)
        if self._folds and isinstance(task, TaskInclude):
            return
        if not self._folds or task.loop or not values.get("changed"):
            super().v2_runner_on_ok(result)
            return
        self._task = task
        self._changed.append(host)
        if hasattr(self, "_handle_warnings_and_exception"):
            self._handle_warnings_and_exception(result)
        else:
            self._handle_warnings(values)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        """Show the first failure of equal ones; of modules of this collection only the message."""
        task, host, values = _parts(result)
        same = self._failed.setdefault(str(values.get("msg")), [])
        same.append(host)
        if not self._folds or ignore_errors or len(same) == 1:
            self._brief = self._folds and task.action.startswith("railops.rdma.")
            super().v2_runner_on_failed(result, ignore_errors)
            self._brief = False

    def _dump_results(self, result: t.Any, *args: t.Any, **more: t.Any) -> str:
        shown = {"msg": result["msg"]} if self._brief and "msg" in result else result
        return str(super()._dump_results(shown, *args, **more))

    def _flush(self) -> None:
        """Show what changed by the last task, and where else it failed."""
        for hosts in self._failed.values():
            if len(hosts) > 1 and self._folds:
                self._display.display(
                    f"fatal: the same on {folded(hosts[1:])}", color=t.cast("t.Any", constants).COLOR_ERROR
                )
        self._failed = {}
        diffs = {host: self._diffs.get(host, "") for host in self._changed}
        self._diffs, self._changed = {}, []
        if diffs and self._last_task_banner != self._task._uuid:
            self._print_task_banner(self._task)
        color = t.cast("t.Any", constants).COLOR_CHANGED
        for place, group in enumerate(group_diffs(diffs)):
            text = diffs[group.hosts[0]]
            if text and place < DIFFS:
                self._display.display(text.rstrip("\n"))
            for line in group.lines(shown=place < DIFFS):
                self._display.display(f"changed: {line}", color=color)

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        """Show the counts, equal ones once."""
        self._flush()
        super().v2_playbook_on_stats(Recap(stats) if self._folds else stats)


def _parts(result: t.Any) -> tuple[t.Any, str, t.Any]:
    """Return task, host and values of a result. ansible-core before 2.19 has no public names for them."""
    if hasattr(result, "task"):
        return result.task, result.host.get_name(), result.result
    return result._task, result._host.get_name(), result._result

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._netns.plan import (
    ABSENT,
    LOADED,
    OWNED_FILE,
    TOO_OLD,
    NetnsCurrent,
    NetnsOptions,
    Setting,
    checks,
    owned_text,
    parse_arguments,
    parse_options,
    plan_netns,
)

EXCLUSIVE = NetnsOptions(mode="exclusive")


def loaded(**changes):
    return NetnsCurrent(**{"support": LOADED, "kernel": "6.1", "current": "shared", "tool": "/sbin/rdma", **changes})


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("options ib_core netns_mode=0\n", ["exclusive"], id="the guides' line"),
        pytest.param("options ib-core netns_mode=0", ["exclusive"], id="a dash is an underscore"),
        pytest.param("options ib_core send_queue_size=128 netns_mode=1", ["shared"], id="among others"),
        pytest.param("options ib_core netns_mode=N\noptions ib_core netns_mode=Y", ["exclusive", "shared"], id="twice"),
        pytest.param("options ib_core netns_mode", ["shared"], id="a bare boolean is true"),
        pytest.param("options ib_core \\\n  netns_mode=0", ["exclusive"], id="continued line"),
        pytest.param("# options ib_core netns_mode=0", [], id="comment"),
        pytest.param("options ib_cores netns_mode=0", [], id="another module"),
        pytest.param("options ib_core netns_mode=maybe", [], id="a value that the kernel refuses"),
        pytest.param("options ib_core netns_mode=true", ["shared"], id="the kernel looks at the first letter"),
        pytest.param("options ib_core netns_mode=off", ["exclusive"], id="and after an o at the second"),
        pytest.param("options ib_core netns_mode=o", [], id="an o alone is nothing"),
        pytest.param("options ib_core", [], id="no options"),
    ],
)
def test_options_are_read_as_modprobe_reads_them(text, modes):
    assert [item.mode for item in parse_options(text, "x")] == modes


def test_a_continued_line_is_reported_by_its_first_line():
    found = list(parse_options("# a\noptions ib_core \\\n netns_mode=0\noptions ib_core netns_mode=1", "/x"))
    assert found == [Setting("/x", 2, "exclusive"), Setting("/x", 4, "shared")]


def test_the_command_line_is_read():
    found = parse_arguments("root=/dev/sda quiet ib-core.netns_mode=0 ib_core.netns_mode=1 ib_core.other=1")
    assert [item.mode for item in found] == ["exclusive", "shared"]


@pytest.mark.parametrize(
    ("have", "problem", "fix"),
    [
        pytest.param(NetnsCurrent(support=ABSENT, kernel="6.18"), "no RDMA subsystem", "rdma_driver", id="no RDMA"),
        pytest.param(NetnsCurrent(support=TOO_OLD, kernel="4.18", current="shared"), "no network", "5.3", id="too old"),
        pytest.param(
            loaded(arguments=(Setting("/proc/cmdline", 0, "shared"),)), "command line", "boot loader", id="argument"
        ),
        pytest.param(loaded(builtin=True), "built into", "Add ib_core.netns_mode=0", id="built in"),
        pytest.param(
            loaded(settings=(Setting("/etc/modprobe.d/zzz.conf", 1, "shared"),)),
            "zzz.conf",
            "zzz.conf",
            id="later file",
        ),
    ],
)
def test_what_no_reboot_can_repair_blocks_and_changes_nothing(have, problem, fix):
    plan = plan_netns(EXCLUSIVE, have)
    assert problem in plan.blocker.problem
    assert fix in plan.blocker.fix
    assert (plan.changed, plan.reboot_reasons) == (False, [])
    assert {item["status"] for item in checks(plan, plan.before)} == {"deviation"}
    assert {item["fix"] for item in checks(plan, plan.before)} == {plan.blocker.fix}


def test_a_built_in_ib_core_that_the_command_line_sets_is_fine():
    have = loaded(builtin=True, current="exclusive", arguments=(Setting("/proc/cmdline", 0, "exclusive"),))
    assert plan_netns(EXCLUSIVE, have).blocker is None


def test_a_mode_that_was_set_manually_has_a_cause_and_needs_no_reboot():
    settings = (Setting(OWNED_FILE, 3, "exclusive"),)
    plan = plan_netns(EXCLUSIVE, loaded(owned_text=owned_text("exclusive"), settings=settings))
    current, persistent = checks(plan, plan.before)
    assert (current["status"], persistent["status"]) == ("deviation", "ok")
    assert "was set to shared after ib_core started; the next start has exclusive" in current["cause"]
    assert current["fix"] == "Run the playbook railops.rdma.hosts with the tag rdma_host."


def test_only_the_setting_of_the_next_boot_needs_no_reboot():
    plan = plan_netns(EXCLUSIVE, loaded(current="exclusive"))
    current, persistent = checks(plan, plan.before)
    assert (current["status"], persistent["status"]) == ("ok", "deviation")
    assert persistent["fix"] == "Run the playbook railops.rdma.hosts with the tag rdma_host."
